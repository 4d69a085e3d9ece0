//! All solvers on a thermalised configuration at a quark mass near the critical one: each reaches the true
//! residual asked for, and their solutions agree.

use hmc::action::{Action, GaugeAction};
use hmc::comm::Solo;
use hmc::device::{Cpu, Device, Precision, lane_counts};
use hmc::field::{Domain, Halo, HostLinks, MatrixField, ODD, Purpose, RandomAddress, Spinor};
use hmc::hmc::{Chain, Level, Scheme};
use hmc::lattice::{Extents, LaneGrid, Partition};
use hmc::operator::{CloverTerm, Operator, Schur, Wilson, WilsonParams};
use hmc::solver::{Info, Method, NormalSolver, Operators, Params, Settings, SolverError};
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

/// The operator in all precisions, with blocks.
struct Quark {
    domain: Arc<Domain>,
    all: [Wilson; 3],
    _clover: Option<CloverTerm>,
}

impl Quark {
    fn new(links: &HostLinks, params: WilsonParams, block: Option<Extents>) -> Self {
        let domain = domain();
        let field = MatrixField::from_host(&domain, links).unwrap();
        let mut clover = Wilson::clover_term(&domain, &params).unwrap();
        if let Some(clover) = &mut clover {
            clover.update(&field).unwrap();
        }
        let all = Precision::ALL.map(|precision| {
            let operator = Wilson::new(&domain, precision, 12, params).unwrap();
            let mut operator = operator.with_blocks(block).unwrap();
            operator.update(&field, clover.as_ref()).unwrap();
            operator
        });
        Self { domain, all, _clover: clover }
    }

    fn operators(&mut self) -> Operators<'_> {
        let [double, single, half] = &mut self.all;
        Operators { double, single: Some(single), half: Some(half) }
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

fn relative(x: &Spinor, y: &Spinor) -> f64 {
    let mut difference = Spinor::new(x.domain(), D).unwrap();
    difference.copy_from(x).unwrap();
    difference.axpy(-1.0, y).unwrap();
    (difference.norm2().unwrap().value() / y.norm2().unwrap().value()).sqrt()
}

#[test]
fn all_methods_reach_the_residual_and_agree() {
    const RESIDUAL: f64 = 1e-10;
    for schur in [Schur::Asymmetric, Schur::Symmetric] {
        let mut quark = Quark::new(thermalised(), params(schur), Some([4; 4]));
        let b = quark.random(0);
        let mut first: Option<Spinor> = None;
        for (name, settings) in settings() {
            let mut solver = NormalSolver::new(&quark.domain, settings).unwrap();
            let mut x = Spinor::new(&quark.domain, D).unwrap();
            let info = solver.solve(&mut quark.operators(), &mut x, &b, RESIDUAL).unwrap();
            // The residual that is told is the true one.
            let (mut y, mut z) =
                (Spinor::new(&quark.domain, D).unwrap(), Spinor::new(&quark.domain, D).unwrap());
            quark.all[0].apply(&mut y, &x, false).unwrap();
            quark.all[0].apply(&mut z, &y, true).unwrap();
            let residual = relative(&z, &b);
            println!(
                "{schur:?} {name:28} iterations {:5} updates {:3} fallbacks {} applications {:5} residual {residual:.1e} {:.2} s",
                info.iterations, info.updates, info.fallbacks, info.applications, info.seconds
            );
            assert!(
                residual <= RESIDUAL && (residual / info.residual - 1.0).abs() < 1e-3,
                "{name}: {info:?}"
            );
            match &first {
                None => first = Some(x),
                // |x - y| <= |(M^dag M)^-1| (|r_x| + |r_y|), and that norm is below 1e4 here.
                Some(first) => assert!(relative(&x, first) < 1e-6, "{name}: {:.1e}", relative(&x, first)),
            }
        }
    }
}

#[test]
fn debug_blocks() {
    for kappa in [0.1335, 0.1345] {
        for block in [None, Some([8, 8, 8, 4]), Some([8, 8, 4, 4]), Some([4; 4])] {
            let p = WilsonParams { kappa, ..params(Schur::Symmetric) };
            let mut quark = Quark::new(thermalised(), p, block);
            let b = quark.random(0);
            let set = |method| Settings { method, precisions: [D, S, S], delta: 1e-1, max_iterations: 4000 };
            let mut all = vec![set(Method::BiCgStab)];
            for (k_max, n_mr) in [(16, 4), (16, 8), (16, 16), (32, 8), (32, 16)] {
                all.push(set(Method::GcrDd { k_max, n_mr, block }));
            }
            for settings in all {
                let mut solver = NormalSolver::new(&quark.domain, settings).unwrap();
                let mut x = Spinor::new(&quark.domain, D).unwrap();
                let info = solver.solve_one(
                    &mut quark.operators(),
                    false,
                    &mut x,
                    &b,
                    Params { residual: 1e-10, max_iterations: 4000 },
                );
                match info {
                    Ok(info) => println!(
                        "{kappa} {block:?} {:?} iterations {:5} updates {:3} fallbacks {} applications {:5} residual {:.1e} {:.2} s",
                        settings.method,
                        info.iterations,
                        info.updates,
                        info.fallbacks,
                        info.applications,
                        info.residual,
                        info.seconds
                    ),
                    Err(e) => println!("{e}"),
                }
            }
        }
    }
}
