//! All solvers on a thermalised configuration at a quark mass near the critical one: each reaches the true
//! residual asked for, and their solutions agree; where a method or a precision fails, another takes over and that is
//! told, or there is an error.

use hmc::action::{Action, GaugeAction};
use hmc::comm::Solo;
use hmc::device::{Cpu, Device, Precision, lane_counts};
use hmc::family::{Schur, Wilson, WilsonParams};
use hmc::field::{Domain, Halo, HostLinks, Kind, MatrixField, ODD, Purpose, RandomAddress, Spinor};
use hmc::hmc::{Chain, Level, Scheme};
use hmc::lattice::{Extents, LaneGrid, Partition};
use hmc::operator::{CloverTerm, Operator};
use hmc::solver::{Info, Matrix, Method, MultiShift, Operators, Params, Settings, SolverError, System};
use std::sync::{Arc, OnceLock};

const EXTENTS: Extents = [8, 8, 8, 8];
/// Quenched at beta = 6.0; the critical kappa of this `c_sw` is 0.13525 (Luescher et al., hep-lat/9609035).
const BETA: f64 = 6.0;
const C_SW: f64 = 1.769;
const KAPPA: f64 = 0.1345;

fn domain() -> Arc<Domain> {
    let fits = |lanes: &usize| LaneGrid::choose(EXTENTS, [false; 4], *lanes).is_some();
    let lanes = lane_counts().into_iter().filter(fits).max().unwrap();
    let device = Device::new(Cpu::new(lanes).unwrap());
    Domain::new(Partition::whole(EXTENTS).unwrap(), device, Arc::new(Solo), 1, Halo::Staged).unwrap()
}

/// Quenched links after 20 trajectories from unit links.
fn thermalised() -> &'static HostLinks {
    static LINKS: OnceLock<HostLinks> = OnceLock::new();
    LINKS.get_or_init(|| {
        let domain = domain();
        let mut links = MatrixField::new(&domain, 4).unwrap();
        links.set_host(&HostLinks::unit(EXTENTS)).unwrap();
        let gauge: Box<dyn Action> = Box::new(GaugeAction::new(&domain, BETA, [1.0, 0.0, 0.0]).unwrap());
        let level = Level { scheme: Scheme::Omelyan2 { lambda: 0.193_183_327_503_783_6 }, steps: 8 };
        let mut chain = Chain::new(links, &[level], vec![vec![gauge]], 1.0, 5).unwrap();
        for number in 0..20 {
            chain.trajectory(number, true).unwrap();
        }
        chain.links.to_host().unwrap()
    })
}

/// The operator in all precisions.
struct Quark {
    domain: Arc<Domain>,
    all: [Wilson; 3],
    /// Of which the operators hold pointers.
    _clovers: [Option<CloverTerm>; 3],
}

impl Quark {
    fn new(links: &HostLinks, params: WilsonParams) -> Self {
        Self::of([links; 3], params)
    }

    /// Each precision on links of its own.
    fn of(links: [&HostLinks; 3], params: WilsonParams) -> Self {
        let domain = domain();
        let all = [0, 1, 2].map(|n| {
            let field = MatrixField::from_host(&domain, links[n]).unwrap();
            let mut clover = Wilson::clover_term(&domain, &params).unwrap();
            if let Some(clover) = &mut clover {
                clover.update(&field).unwrap();
            }
            let mut operator = Wilson::new(&domain, Precision::ALL[n], 12, params).unwrap();
            operator.update(&field, clover.as_ref()).unwrap();
            (operator, clover)
        });
        let [(double, clover), (single, clover_single), (half, clover_half)] = all;
        Self { domain, all: [double, single, half], _clovers: [clover, clover_single, clover_half] }
    }

    fn operators(&mut self) -> Operators<'_> {
        let [double, single, half] = &mut self.all;
        Operators { double, single: Some(single), half: Some(half) }
    }

    /// `|b - M^dag M x| / |b|`, by another way than the solvers'.
    fn residual(&mut self, x: &Spinor, b: &Spinor) -> f64 {
        let [mut y, mut z] = [(); 2].map(|()| Spinor::new(&self.domain, D).unwrap());
        self.all[0].apply(&mut y, x, false).unwrap();
        self.all[0].apply(&mut z, &y, true).unwrap();
        relative(&z, b)
    }

    /// Solves `M^dag M x = b` from zero; what is told of a success is true.
    fn solve(
        &mut self,
        settings: Settings,
        b: &Spinor,
        residual: f64,
    ) -> Result<(Spinor, Info), SolverError> {
        let mut solver = settings.solver(&self.domain, Kind::Dirac).unwrap();
        let mut x = Spinor::new(&self.domain, D).unwrap();
        let goal = Params { residual, max_iterations: settings.max_iterations };
        let info = solver.solve(&mut self.operators(), &mut x, b, goal)?;
        let found = self.residual(&x, b);
        // |b - M^dag M x| has the rounding of b, a few 1e-16, in it.
        let close = (found - info.residual).abs() < 1e-3 * info.residual + 1e-15;
        assert!(info.residual <= residual && close, "{settings:?}: {found:.3e}, {info:?}");
        Ok((x, info))
    }

    /// Solves `M x = b` or `M^dag x = b` from zero.
    fn solve_one(
        &mut self,
        settings: Settings,
        matrix: Matrix,
        b: &Spinor,
        goal: Params,
    ) -> Result<Info, SolverError> {
        let mut solver = settings.linear_solver(&self.domain).unwrap().expect("a solver of M x = b");
        let mut x = Spinor::new(&self.domain, D).unwrap();
        let mut operators = self.operators();
        solver.solve(&mut System { operators: &mut operators, matrix }, &mut x, b, goal)
    }

    fn random(&self, number: u8) -> Spinor {
        let mut b = Spinor::new(&self.domain, Precision::Double).unwrap();
        b.set_random(ODD, 1.0, RandomAddress { seed: 3, trajectory: 0, purpose: Purpose::Probe(number) })
            .unwrap();
        b
    }
}

fn params(schur: Schur) -> WilsonParams {
    WilsonParams { kappa: KAPPA, mu: 0.0, c_sw: C_SW, boundary: [0.0, 0.0, 0.0, 1.0], schur }
}

const D: Precision = Precision::Double;
const S: Precision = Precision::Single;
const H: Precision = Precision::Half;

/// Every method in every mix.
fn settings() -> Vec<(&'static str, Settings)> {
    let block = Some([4, 4, 4, 4]);
    let gcr = Method::GcrDd { k_max: 16, n_mr: 8, block };
    let of = |method, precisions, delta| Settings { method, precisions, delta, max_iterations: 4000 };
    vec![
        ("CG double", of(Method::Cg, [D, D, D], 1e-3)),
        ("CG double-single", of(Method::Cg, [D, S, S], 1e-3)),
        ("CG double-half", of(Method::Cg, [D, H, H], 0.1)),
        ("BiCGstab double", of(Method::BiCgStab, [D, D, D], 1e-3)),
        ("BiCGstab double-single", of(Method::BiCgStab, [D, S, S], 1e-3)),
        ("BiCGstab double-half", of(Method::BiCgStab, [D, H, H], 0.1)),
        ("GCR-DD double-double-double", of(gcr, [D, D, D], 0.1)),
        ("GCR-DD double-single-half", of(gcr, [D, S, H], 0.1)),
        ("GCR-DD double-half-half", of(gcr, [D, H, H], 0.1)),
        ("GCR-DD single-half-half", of(gcr, [S, H, H], 0.1)),
    ]
}

/// One of them by its name.
fn setting(name: &'static str) -> (&'static str, Settings) {
    settings().into_iter().find(|(other, _)| *other == name).unwrap()
}

fn relative(x: &Spinor, y: &Spinor) -> f64 {
    let mut difference = Spinor::new(x.domain(), D).unwrap();
    difference.copy_from(x).unwrap();
    difference.axpy(-1.0, y).unwrap();
    (difference.norm2().unwrap().value() / y.norm2().unwrap().value()).sqrt()
}

#[test]
fn all_methods_reach_the_residual_and_agree() {
    const RESIDUAL: f64 = 1e-10;
    for (schur, methods) in [
        (Schur::Asymmetric, &settings()[..]),
        (
            Schur::Symmetric,
            &["CG double-half", "BiCGstab double-half", "GCR-DD double-single-half"].map(setting),
        ),
    ] {
        let mut quark = Quark::new(thermalised(), params(schur));
        let b = quark.random(0);
        let mut first: Option<Spinor> = None;
        for &(name, settings) in methods {
            let (x, info) = quark.solve(settings, &b, RESIDUAL).unwrap();
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
        let mut quark = Quark::new(thermalised(), params);
        let b = quark.random(0);
        let gcr = Method::GcrDd { k_max: 16, n_mr: 8, block: Some(block) };
        let of = |method, precisions, delta| Settings { method, precisions, delta, max_iterations: 4000 };
        let [bicgstab, gcr_dd] = [
            ("BiCGstab double-single", of(Method::BiCgStab, [D, S, S], 1e-3)),
            ("GCR-DD d-s-h, n_mr 8", of(gcr, [D, S, H], 0.1)),
        ]
        .map(|(name, settings)| {
            let goal = Params { residual: RESIDUAL, max_iterations: 4000 };
            let info = quark.solve_one(settings, Matrix::Plain, &b, goal).unwrap();
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
        let mut quark = Quark::of([links, lower, lower], params);
        let b = quark.random(0);
        for (name, settings) in settings() {
            let (_, info) = quark.solve(settings, &b, RESIDUAL).unwrap();
            println!("{what} links, {name}: {} fallbacks", info.fallbacks);
            assert_eq!(info.fallbacks > 0, settings.precisions != [D; 3], "{what} links, {name}: {info:?}");
        }
    }
}

/// Beyond the critical kappa BiCGstab finds no way, in whatever precision; conjugate gradients take over.
#[test]
fn what_bicgstab_cannot_cg_does() {
    let params = WilsonParams { kappa: 0.14, ..params(Schur::Symmetric) };
    let mut quark = Quark::new(thermalised(), params);
    let b = quark.random(0);
    for (name, settings) in settings() {
        if settings.method == Method::BiCgStab {
            let settings = Settings { max_iterations: 300, ..settings };
            let (_, info) = quark.solve(settings, &b, 1e-10).unwrap();
            // What was in vain is counted too.
            assert!(info.fallbacks > 0 && info.iterations > 300, "{name}: {info:?}");
        }
    }
}

/// A residual near what double has is reached from half, or not and told; one below it is never claimed. The residual's
/// fall between updates may be set to more than half can follow.
#[test]
fn extreme_residuals_are_reached_or_refused() {
    let mut quark = Quark::new(thermalised(), params(Schur::Symmetric));
    let b = quark.random(0);
    for (name, settings) in settings() {
        if !settings.precisions.contains(&H) {
            continue;
        }
        quark.solve(settings, &b, 1e-14).unwrap();
        quark.solve(Settings { delta: 1e-9, ..settings }, &b, 1e-10).unwrap();
        match quark.solve(Settings { max_iterations: 500, ..settings }, &b, 1e-18) {
            Err(SolverError::NotConverged { residual, wanted, .. }) => assert!(residual > wanted, "{name}"),
            other => panic!("{name}: {:?}", other.map(|(_, info)| info)),
        }
    }
}

/// Too few iterations are an error with the residual reached, of every method.
#[test]
fn too_few_iterations_are_an_error() {
    const MOST: usize = 6;
    let mut quark = Quark::new(thermalised(), params(Schur::Symmetric));
    let b = quark.random(0);
    let failed = |name: &str, result: Result<Info, SolverError>| match result {
        Err(SolverError::NotConverged { iterations, residual, wanted }) => {
            assert!(iterations <= MOST + 1 && residual > wanted, "{name}: {iterations}, {residual:e}");
        }
        other => panic!("{name}: {other:?}"),
    };
    for (name, settings) in settings() {
        let few = Settings { max_iterations: MOST, ..settings };
        failed(name, quark.solve(few, &b, 1e-10).map(|(_, info)| info));
        if settings.method != Method::Cg {
            let goal = Params { residual: 1e-10, max_iterations: MOST };
            failed(name, quark.solve_one(settings, Matrix::Adjoint, &b, goal));
        }
    }
    for precision in [D, S] {
        let mut solver = MultiShift::new(&quark.domain, Kind::Dirac, precision, 1e-3, 2).unwrap();
        let mut x = [(); 2].map(|()| Spinor::new(&quark.domain, D).unwrap());
        let goal = Params { residual: 1e-10, max_iterations: MOST };
        let [double, single, _] = &mut quark.all;
        let single = (precision == S).then_some(single as &mut dyn Operator);
        let mut operators = Operators::new(double, single);
        let result = solver.solve_all(&mut operators, &mut x, &b, &[1e-3, 1e-2], goal);
        failed("many shifts", result.map(|info| info.total));
    }
}
