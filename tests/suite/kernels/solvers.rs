//! All solvers on a thermalised configuration at a quark mass near the critical one: each reaches the true
//! residual asked for, and their solutions agree; where a method or a precision fails, another takes over and that is
//! told, or there is an error.

use super::quark::{EXTENTS, Quark, Solved, relative, thermalised};
use crate::devices::domain;
use hmc::device::Precision;
use hmc::family::{Schur, WilsonParams, WilsonQuark};
use hmc::field::{Dagger, EVEN, HostLinks, Kind, MatrixField, ODD, Purpose, RandomAddress, Spinor};
use hmc::lattice::Boundary;
use hmc::operator::{CloverForm, Operator};
use hmc::quark::{Inverse, QuarkParams, fields};
use hmc::solver::{
    GcrDd, GcrMultigrid, Info, Matrix, Method, MethodSolver, MultiShift, MultigridParams, Operators, Params,
    Past, Settings, SolverError, System,
};

/// At beta = 6.0 the critical kappa of this `c_sw` is 0.13525 (Luescher et al., hep-lat/9609035).
const C_SW: f64 = 1.769;
const KAPPA: f64 = 0.1345;

/// The quark on thermalised links.
fn quark(params: WilsonParams) -> Quark {
    Quark::new(&domain(EXTENTS), [thermalised(); 3], params)
}

/// Solves `M^dag M x = b`; what is told of a success is true.
fn solve(quark: &mut Quark, settings: Settings, b: &Spinor, residual: f64) -> Solved {
    let (x, info) = quark.solve(settings, b, residual)?;
    let found = quark.residual(&x, b);
    // |b - M^dag M x| has the rounding of b, a few 1e-16, in it.
    let close = (found - info.residual).abs() < 1e-3 * info.residual + 1e-15;
    assert!(info.residual <= residual && close, "{settings:?}: {found:.3e}, {info:?}");
    Ok((x, info))
}

fn params(schur: Schur) -> WilsonParams {
    WilsonParams {
        kappa: KAPPA,
        mu: 0.0,
        twisted_mass: 0.0,
        c_sw: C_SW,
        clover: CloverForm::Linear,
        boundary: Boundary::ANTIPERIODIC,
        schur,
    }
}

const D: Precision = Precision::Double;
const S: Precision = Precision::Single;
const H: Precision = Precision::Half;

/// Every method in every mix.
fn settings() -> Vec<(&'static str, Settings)> {
    let block = Some([4, 4, 4, 4]);
    let gcr = Method::GcrDd(GcrDd { k_max: 16, n_mr: 8, block });
    let params = MultigridParams { block: [4; 4], coarse_block: None, vectors: 16, steps: 8 };
    let multigrid = Method::Multigrid(GcrMultigrid { k_max: 16, params });
    let of = |method, precisions, delta| Settings { method, precisions, delta, max_iterations: 4000 };
    vec![
        ("CG double", of(Method::CG, [D, D, D], 1e-3)),
        ("CG double-single", of(Method::CG, [D, S, S], 1e-3)),
        ("CG double-half", of(Method::CG, [D, H, H], 0.1)),
        ("BiCGstab double", of(Method::BICGSTAB, [D, D, D], 1e-3)),
        ("BiCGstab double-single", of(Method::BICGSTAB, [D, S, S], 1e-3)),
        ("BiCGstab double-half", of(Method::BICGSTAB, [D, H, H], 0.1)),
        ("GCR-DD double-double-double", of(gcr, [D, D, D], 0.1)),
        ("GCR-DD double-single-half", of(gcr, [D, S, H], 0.1)),
        ("GCR-DD double-half-half", of(gcr, [D, H, H], 0.1)),
        ("multigrid double-single-half", of(multigrid, [D, S, H], 1e-3)),
        ("multigrid double-double-single", of(multigrid, [D, D, S], 1e-3)),
        ("multigrid double-half-half", of(multigrid, [D, H, H], 0.1)),
    ]
}

/// One of each method.
fn one_of_each() -> [(&'static str, Settings); 4] {
    ["CG double-half", "BiCGstab double-half", "GCR-DD double-single-half", "multigrid double-single-half"]
        .map(setting)
}

/// One of them by its name.
fn setting(name: &'static str) -> (&'static str, Settings) {
    settings().into_iter().find(|(other, _)| *other == name).unwrap()
}

#[test]
fn all_methods_reach_the_residual_and_agree() {
    const RESIDUAL: f64 = 1e-10;
    for (schur, methods) in [(Schur::Asymmetric, &settings()[..]), (Schur::Symmetric, &one_of_each())] {
        let mut quark = quark(params(schur));
        let b = quark.random(0);
        let mut first: Option<Spinor> = None;
        for &(name, settings) in methods {
            let (x, info) = solve(&mut quark, settings, &b, RESIDUAL).unwrap();
            let Info { iterations, updates, fallbacks, applications, residual, seconds, .. } = info;
            println!(
                "{schur:?} {name:28} iterations {iterations:4} updates {updates:3} fallbacks {fallbacks} applications \
                 {applications:4} residual {residual:.1e} {seconds:.2} s"
            );
            assert_eq!(fallbacks, 0, "{name}");
            match &first {
                None => first = Some(x),
                // |x - y| <= |(M^dag M)^-1| (|r_x| + |r_y|), and that norm is below 1e4 here.
                Some(first) => assert!(relative(&x, first) < 1e-6, "{name}: {:.1e}", relative(&x, first)),
            }
        }
    }
}

/// The point of GCR-DD: with a block a rank, hops over the cuts, and sums over ranks, are only in the Krylov iteration.
/// The blocks are those of 1, 2 and 4 ranks; one rank computes them all, with the same numbers.
#[test]
fn gcr_dd_spares_communication() {
    const RESIDUAL: f64 = 1e-10;
    let params = params(Schur::Symmetric);
    println!("\ndomains  method                  iterations  applications  residual");
    for (domains, block) in [(1, [8, 8, 8, 8]), (2, [8, 8, 8, 4]), (4, [8, 8, 4, 4])] {
        let mut quark = quark(params);
        let b = quark.random(0);
        let gcr = Method::GcrDd(GcrDd { k_max: 16, n_mr: 8, block: Some(block) });
        let of = |method, precisions, delta| Settings { method, precisions, delta, max_iterations: 4000 };
        let [bicgstab, gcr_dd] = [
            ("BiCGstab double-single", of(Method::BICGSTAB, [D, S, S], 1e-3)),
            ("GCR-DD d-s-h, n_mr 8", of(gcr, [D, S, H], 0.1)),
        ]
        .map(|(name, settings)| {
            let (_, info) = quark.solve_one(settings, Matrix::Linear(Dagger::No), &b, RESIDUAL).unwrap();
            let (iterations, applications, residual) = (info.iterations, info.applications, info.residual);
            println!("{domains:7}  {name:22}  {iterations:10}  {applications:12}  {residual:.1e}");
            assert!(residual <= RESIDUAL && info.fallbacks == 0, "{name}: {info:?}");
            applications
        });
        assert!(gcr_dd < bicgstab, "{domains} domains: {gcr_dd} applications against {bicgstab}");
        assert!(domains != 2 || 3 * gcr_dd <= bicgstab, "two domains: {gcr_dd} against {bicgstab}");
    }
}

/// Where low precision is of no use, here because its operators are of other links, or of links that are no numbers, a
/// higher one takes over, and says so.
#[test]
fn what_low_precision_cannot_double_does() {
    const RESIDUAL: f64 = 1e-10;
    // Without a clover term, which links that are no numbers do not have; the critical kappa is then 0.157.
    let params = WilsonParams { kappa: 0.145, c_sw: 0.0, ..params(Schur::Asymmetric) };
    let links = thermalised();
    let broken = HostLinks { reals: vec![f64::NAN; links.reals.len()], ..links.clone() };
    for (what, lower) in [("other", &HostLinks::unit(EXTENTS)), ("broken", &broken)] {
        let mut quark = Quark::new(&domain(EXTENTS), [links, lower, lower], params);
        let b = quark.random(0);
        for (name, settings) in one_of_each().into_iter().chain([setting("CG double")]) {
            // GCR in double ends with any preconditioner.
            let settings = Settings { max_iterations: 1_000, ..settings };
            let (_, info) = solve(&mut quark, settings, &b, RESIDUAL).unwrap();
            println!("{what} links, {name}: {} fallbacks", info.fallbacks);
            assert_eq!(info.fallbacks > 0, settings.precisions != [D; 3], "{what} links, {name}: {info:?}");
        }
    }
}

/// Beyond the critical kappa BiCGstab finds no way, in whatever precision: it stagnates, whatever `max_iterations` allows,
/// or uses up the few that there are. Conjugate gradients take over, in the precision that was asked for.
#[test]
fn what_bicgstab_cannot_cg_does() {
    let params = WilsonParams { kappa: 0.14, ..params(Schur::Symmetric) };
    let mut quark = quark(params);
    let b = quark.random(0);
    for (name, settings) in settings() {
        if settings.method == Method::BICGSTAB {
            let (_, plain) =
                solve(&mut quark, Settings { method: Method::CG, ..settings }, &b, 1e-10).unwrap();
            let most = [(300, 301..1_000), (100_000, 1_001..20_000)];
            for (max_iterations, in_vain) in most.into_iter().skip(usize::from(name.ends_with("double"))) {
                let settings = Settings { max_iterations, ..settings };
                let (_, info) = solve(&mut quark, settings, &b, 1e-10).unwrap();
                println!("{name}, at most {max_iterations}: {info:?}; CG alone: {plain:?}");
                // What was in vain is counted too.
                let lost = info.iterations - plain.iterations;
                assert!(info.fallbacks > 0 && in_vain.contains(&lost), "{name}: {info:?}, {plain:?}");
            }
        }
    }
}

/// A residual near what double has is reached from half, or not and told; one below it is never claimed. The residual's
/// fall between updates may be set to more than half can follow.
#[test]
fn extreme_residuals_are_reached_or_refused() {
    let mut quark = quark(params(Schur::Symmetric));
    let b = quark.random(0);
    for (name, settings) in one_of_each() {
        solve(&mut quark, settings, &b, 1e-14).unwrap();
        solve(&mut quark, Settings { delta: 1e-9, ..settings }, &b, 1e-10).unwrap();
        match solve(&mut quark, Settings { max_iterations: 500, ..settings }, &b, 1e-18) {
            Err(SolverError::NotConverged { residual, wanted, .. }) => assert!(residual > wanted, "{name}"),
            other => panic!("{name}: {:?}", other.map(|(_, info)| info)),
        }
    }
}

/// Too few iterations are an error with the residual reached, of every method.
#[test]
fn too_few_iterations_are_an_error() {
    const MOST: usize = 6;
    let mut quark = quark(params(Schur::Symmetric));
    let b = quark.random(0);
    let failed = |name: &str, result: Result<Info, SolverError>| match result {
        Err(SolverError::NotConverged { iterations, residual, wanted }) => {
            assert!(iterations <= MOST + 1 && residual > wanted, "{name}: {iterations}, {residual:e}");
        }
        other => panic!("{name}: {other:?}"),
    };
    for (name, settings) in settings() {
        let few = Settings { max_iterations: MOST, ..settings };
        failed(name, solve(&mut quark, few, &b, 1e-10).map(|(_, info)| info));
        if settings.method != Method::CG {
            failed(name, quark.solve_one(few, Matrix::Linear(Dagger::Yes), &b, 1e-10).map(|(_, info)| info));
        }
    }
    for precision in [D, S] {
        let solver = MultiShift::new(&quark.domain, Kind::Dirac, [precision; 2], 1e-3, 1);
        let mut x = [quark.spinor(), quark.spinor()];
        let goal = Params { residual: 1e-10, max_iterations: MOST };
        let [double, single, _] = &mut quark.all;
        let single = (precision == S).then_some(single as &mut dyn Operator);
        let mut operators = Operators::new(double, single);
        let result = solver.solve_all(&mut operators, &mut x, &b, &[1e-3, 1e-2], goal);
        failed("many shifts", result.map(|info| info.total));
    }
}

/// `M x = b` on all sites, as measurements solve it: by methods that need no normal equations in one solve of the system on odd
/// sites, with few iterations. Beyond the critical kappa BiCGstab fails, and conjugate gradients take over.
#[test]
fn systems_on_all_sites() {
    let links = MatrixField::from_host(&domain(EXTENTS), thermalised()).unwrap();
    let random = || {
        let mut all = fields(links.domain(), Kind::Dirac, 1).unwrap();
        for (parity, b) in all.iter_mut().enumerate() {
            let address = RandomAddress { seed: 3, trajectory: parity as u64, purpose: Purpose::Start };
            b[0].set_random(parity, 1.0, address).unwrap();
        }
        all
    };
    let solve = |name, schur, kappa, residual| {
        let (_, solver) = setting(name);
        let operator = WilsonParams { kappa, ..params(schur) };
        let quark = QuarkParams { operator, solver, link_reals: 12, guess: Past::NONE };
        let mut quark = WilsonQuark::new(&links, &quark, residual).unwrap();
        let mut x = fields(links.domain(), Kind::Dirac, 1).unwrap();
        let info = quark.solve(&mut x, &random()).unwrap();
        assert!(info.residual <= residual, "{name}: {info:?}");
        (x.map(|mut x| x.remove(0)), info)
    };
    for schur in [Schur::Symmetric, Schur::Asymmetric] {
        let (plain, normal) = solve("CG double", schur, KAPPA, 1e-13);
        for name in ["BiCGstab double-half", "GCR-DD double-single-half", "multigrid double-single-half"] {
            let (x, info) = solve(name, schur, KAPPA, 1e-10);
            let apart = [EVEN, ODD].map(|parity| relative(&x[parity], &plain[parity]));
            let Info { iterations, applications, .. } = info;
            println!("{schur:?}, {name}: {iterations} iterations, {applications} applications; {apart:.1?}");
            assert!(apart.iter().all(|apart| *apart < 1e-8) && info.fallbacks == 0, "{name}: {info:?}");
            assert!(applications < normal.applications, "{name}: {info:?}");
        }
    }
    let (plain, _) = solve("CG double", Schur::Symmetric, 0.138, 1e-13);
    let (x, info) = solve("BiCGstab double-half", Schur::Symmetric, 0.138, 1e-10);
    let apart = [EVEN, ODD].map(|parity| relative(&x[parity], &plain[parity]));
    println!("kappa 0.138: {info:?}; {apart:.1?}");
    assert!(info.fallbacks > 0 && apart.iter().all(|apart| *apart < 1e-6), "{info:?} {apart:?}");
}

/// Several right-hand sides of `M x = b`, more than a cycle of multigrid takes, of which one is zero: of a method that solves some
/// together, and of those that do not. Where multigrid fails, conjugate gradients take over for each; what has too few iterations
/// is told to be unsolved.
#[test]
fn several_systems_at_once() {
    let several =
        ["multigrid double-single-half", "multigrid double-double-single", "multigrid double-half-half"];
    let all = several.into_iter().chain(["BiCGstab double-half", "GCR-DD double-single-half"]);
    let usual = all.map(|name| (setting(name), KAPPA, false));
    let poor = MultigridParams { block: [4; 4], coarse_block: None, vectors: 8, steps: 1 };
    let (name, settings) = setting("multigrid double-single-half");
    let beyond = (
        (name, Settings { method: Method::Multigrid(GcrMultigrid { k_max: 1, params: poor }), ..settings }),
        0.14,
        true,
    );
    for ((name, settings), kappa, rescued) in usual.chain([beyond]) {
        let mut quark = quark(WilsonParams { kappa, ..params(Schur::Symmetric) });
        let mut b: Vec<Spinor> = (0..6).map(|n| quark.random(n)).collect();
        b[1].set_zero().unwrap();
        let mut x: Vec<Spinor> = b.iter().map(|_| quark.spinor()).collect();
        let solver = settings.solver(&quark.domain, Kind::Dirac, b.len()).unwrap();
        let MethodSolver::Linear(mut solver) = solver else { panic!("{name}") };
        let goal = Params { residual: 1e-10, max_iterations: settings.max_iterations };
        let info = solver.solve_linear(&mut quark.operators(), &mut x, &b, goal).unwrap();
        let mut product = quark.spinor();
        for (n, (x, b)) in x.iter().zip(&b).enumerate() {
            if n == 1 {
                assert_eq!(x.norm2().unwrap().value(), 0.0, "{name}");
                continue;
            }
            quark.all[0].apply(&mut product, x, Dagger::No).unwrap();
            let found = relative(&product, b);
            assert!(found < 1.001e-10, "{name}, number {n}: {found:.3e}, {info:?}");
        }
        let Info { iterations, applications, fallbacks, .. } = info;
        println!(
            "kappa {kappa}, {name}: {iterations} iterations, {applications} applications, {fallbacks} fallbacks"
        );
        assert!(info.residual <= 1e-10 && (fallbacks > 0) == rescued, "{name}: {info:?}");
    }
    // Other forms of the operator, and their adjoints.
    for (schur, c_sw, mu) in
        [(Schur::Asymmetric, 1.0, 0.0), (Schur::Symmetric, 0.0, 0.0), (Schur::Symmetric, 1.0, 0.05)]
    {
        let mut quark = quark(WilsonParams { mu, c_sw, ..params(schur) });
        let mut solver = settings.linear_solver(&quark.domain, 3).unwrap().expect("a solver of M x = b");
        for dagger in [Dagger::No, Dagger::Yes] {
            let b = [0, 1, 2].map(|n| quark.random(n));
            let mut x = [(); 3].map(|()| quark.spinor());
            let mut operators = quark.operators();
            let mut system = System { operators: &mut operators, matrix: Matrix::Linear(dagger) };
            let goal = Params { residual: 1e-10, max_iterations: 100 };
            let (info, solved) = solver.solve_each(&mut system, &mut x, &b, goal).unwrap();
            let what = format!("{schur:?}, c_sw {c_sw}, mu {mu}, {dagger:?}: {info:?}");
            assert!(solved == [true; 3], "{what}");
            let mut product = quark.spinor();
            for (x, b) in x.iter().zip(&b) {
                quark.all[0].apply(&mut product, x, dagger).unwrap();
                assert!(relative(&product, b) < 1.001e-10, "{what}");
            }
        }
    }
    let mut quark = quark(params(Schur::Symmetric));
    let mut solver = settings.linear_solver(&quark.domain, 2).unwrap().expect("a solver of M x = b");
    let (mut x, b) = ([quark.spinor(), quark.spinor()], [quark.random(0), quark.random(1)]);
    let mut operators = quark.operators();
    let mut system = System { operators: &mut operators, matrix: Matrix::Linear(Dagger::No) };
    let goal = Params { residual: 1e-10, max_iterations: 5 };
    let (info, solved) = solver.solve_each(&mut system, &mut x, &b, goal).unwrap();
    assert!(solved == [false, false] && info.iterations == 10, "{info:?}");
}
