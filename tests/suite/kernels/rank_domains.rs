//! GCR-DD whose Schwarz domain is the box of a rank, `schwarz_block = "rank"`, on two and four ranks: every mix of
//! precisions reaches the true residual, with fewer halos than BiCGstab; molecular dynamics are those of conjugate
//! gradients, and reversible.

mod dynamics;

use crate::ranks;
use crate::reference::gauge::Gauge;
use hmc::action::{Action, GaugeAction};
use hmc::comm::{Comm, Solo};
use hmc::device::{Cpu, Device, Precision, lane_counts};
use hmc::family::{Schur, Wilson, WilsonParams};
use hmc::field::{
    Domain, Halo, HostLinks, Kind, LINK_REALS, MatrixField, ODD, Purpose, RandomAddress, Spinor,
};
use hmc::hmc::{Chain, Level, Scheme};
use hmc::lattice::{Extents, LaneGrid, Partition, volume};
use hmc::operator::{CloverTerm, Operator};
use hmc::solver::{Info, Matrix, Method, Operators, Params, Settings, System};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

const EXTENTS: Extents = [8; 4];
const GRIDS: [Extents; 4] = [[1, 1, 1, 2], [2, 1, 1, 1], [2, 1, 1, 2], [1, 2, 2, 1]];
const RESIDUAL: f64 = 1e-10;
const DIRAC_REALS: usize = 24;

const D: Precision = Precision::Double;
const S: Precision = Precision::Single;
const H: Precision = Precision::Half;
/// All that an input accepts.
const MIXES: [[Precision; 3]; 9] =
    [[D, D, D], [D, D, S], [D, D, H], [D, S, S], [D, S, H], [D, H, H], [S, S, S], [S, S, H], [S, H, H]];

/// Ranks that wait for each other need their cores at once: tests take turns.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    // A test that failed while it had its turn is no reason for others to fail.
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn domain(partition: Partition, comm: Arc<dyn Comm>) -> Arc<Domain> {
    let cut = std::array::from_fn(|mu| partition.is_cut(mu));
    let fits = |lanes: &usize| LaneGrid::choose(partition.local(), cut, *lanes).is_some();
    let lanes = lane_counts().into_iter().filter(fits).max().unwrap();
    Domain::new(partition, Device::new(Cpu::new(lanes).unwrap()), comm, 1, Halo::Staged).unwrap()
}

fn whole() -> Partition {
    Partition::whole(EXTENTS).unwrap()
}

/// Quenched links at beta = 6 after 10 trajectories.
fn thermalised() -> &'static HostLinks {
    static LINKS: OnceLock<HostLinks> = OnceLock::new();
    LINKS.get_or_init(|| {
        let domain = domain(whole(), Arc::new(Solo));
        let links = MatrixField::from_host(&domain, &Gauge::warm(EXTENTS, 0.3, 1).to_host()).unwrap();
        let gauge: Box<dyn Action> = Box::new(GaugeAction::new(&domain, 6.0, [1.0, 0.0, 0.0]).unwrap());
        let level = Level { scheme: Scheme::Omelyan2 { lambda: 0.193_183_327_503_783_6 }, steps: 8 };
        let mut chain = Chain::new(links, &[level], vec![vec![gauge]], 1.0, 5).unwrap();
        for number in 0..10 {
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
    fn new(domain: &Arc<Domain>, schur: Schur) -> Self {
        // Not light: systems of one rank take some hundred iterations by BiCGstab.
        let params =
            WilsonParams { kappa: 0.13, mu: 0.0, c_sw: 1.769, boundary: [0.0, 0.0, 0.0, 1.0], schur };
        let partition = domain.partition();
        let reals = ranks::part(&thermalised().reals, partition, 4 * LINK_REALS);
        let links = MatrixField::from_host(domain, &HostLinks { local: partition.local(), reals }).unwrap();
        let all = Precision::ALL.map(|precision| {
            let mut clover = Wilson::clover_term(domain, &params).unwrap();
            if let Some(clover) = &mut clover {
                clover.update(&links).unwrap();
            }
            let mut operator = Wilson::new(domain, precision, 12, params).unwrap();
            operator.update(&links, clover.as_ref()).unwrap();
            (operator, clover)
        });
        let [(double, clover), (single, clover_single), (half, clover_half)] = all;
        Self {
            domain: Arc::clone(domain),
            all: [double, single, half],
            _clovers: [clover, clover_single, clover_half],
        }
    }

    /// On this rank of a grid.
    fn on(grid: Extents, comm: Arc<dyn Comm>, schur: Schur) -> Self {
        let partition = Partition::new(EXTENTS, grid, volume(grid), comm.rank()).unwrap();
        Self::new(&domain(partition, comm), schur)
    }

    fn operators(&mut self) -> Operators<'_> {
        let [double, single, half] = &mut self.all;
        Operators { double, single: Some(single), half: Some(half) }
    }

    fn spinor(&self) -> Spinor {
        Spinor::new(&self.domain, D).unwrap()
    }

    fn random(&self) -> Spinor {
        let mut b = self.spinor();
        let address = RandomAddress { seed: 3, trajectory: 0, purpose: Purpose::Probe(0) };
        b.set_random(ODD, 1.0, address).unwrap();
        b
    }

    /// What solving `M^dag M x = b` did, and x.
    fn solve(&mut self, settings: Settings) -> (Info, Vec<f64>) {
        let mut solver = settings.solver(&self.domain, Kind::Dirac).unwrap();
        let (mut x, b) = (self.spinor(), self.random());
        let params = Params { residual: RESIDUAL, max_iterations: settings.max_iterations };
        let info = solver.solve(&mut self.operators(), &mut x, &b, params).unwrap();
        (info, self.reals(&x))
    }

    /// What solving `M x = b` did, and x.
    fn solve_one(&mut self, settings: Settings, residual: f64) -> (Info, Vec<f64>) {
        let mut solver = settings.linear_solver(&self.domain).unwrap().expect("a solver of M x = b");
        let (mut x, b) = (self.spinor(), self.random());
        let params = Params { residual, max_iterations: settings.max_iterations };
        let mut operators = self.operators();
        let mut system = System { operators: &mut operators, matrix: Matrix::Plain };
        let info = solver.solve(&mut system, &mut x, &b, params).unwrap();
        (info, self.reals(&x))
    }

    fn reals(&self, x: &Spinor) -> Vec<f64> {
        let mut reals = vec![0.0; volume(self.domain.partition().local()) * DIRAC_REALS];
        x.write_host(ODD, &mut reals).unwrap();
        reals
    }

    /// `|b - M^dag M x| / |b|`
    fn residual(&mut self, x: &[f64]) -> f64 {
        let [mut y, mut z, mut field] = [self.spinor(), self.spinor(), self.spinor()];
        let b = self.random();
        field.read_host(ODD, x).unwrap();
        self.all[0].apply(&mut y, &field, false).unwrap();
        self.all[0].apply(&mut z, &y, true).unwrap();
        z.axpy(-1.0, &b).unwrap();
        (z.norm2().unwrap().value() / b.norm2().unwrap().value()).sqrt()
    }
}

fn settings(method: Method, precisions: [Precision; 3], delta: f64) -> Settings {
    Settings { method, precisions, delta, max_iterations: 4000 }
}

fn gcr_dd(precisions: [Precision; 3], block: Option<Extents>) -> Settings {
    settings(Method::GcrDd { k_max: 16, n_mr: 8, block }, precisions, 0.1)
}

/// Every rank's part of a field put into its place.
fn join(parts: &[Vec<f64>], grid: Extents) -> Vec<f64> {
    let sites: Vec<f64> = (0..volume(EXTENTS)).map(|x| x as f64).collect();
    let mut all = vec![0.0; volume(EXTENTS) * DIRAC_REALS];
    for (rank, part) in parts.iter().enumerate() {
        let partition = Partition::new(EXTENTS, grid, parts.len(), rank).unwrap();
        for (site, reals) in ranks::part(&sites, &partition, 1).iter().zip(part.chunks_exact(DIRAC_REALS)) {
            let at = *site as usize * DIRAC_REALS;
            all[at..at + DIRAC_REALS].copy_from_slice(reals);
        }
    }
    all
}

/// Every mix on two ranks, the usual ones on every grid. The judge is one rank with the whole lattice.
#[test]
fn every_mix_reaches_the_true_residual_on_every_grid() {
    let _turn = turn();
    const USUAL: [[Precision; 3]; 3] = [[D, S, H], [D, H, H], [S, H, H]];
    for (grid, schur, mixes) in [
        ([1, 1, 1, 2], Schur::Symmetric, &MIXES[..]),
        ([2, 1, 1, 1], Schur::Asymmetric, &USUAL),
        ([2, 1, 1, 2], Schur::Symmetric, &USUAL),
        ([1, 2, 2, 1], Schur::Asymmetric, &USUAL),
    ] {
        let found = ranks::run(volume(grid), |comm| {
            let mut quark = Quark::on(grid, comm, schur);
            mixes.iter().map(|mix| quark.solve(gcr_dd(*mix, None))).collect::<Vec<_>>()
        });
        let mut judge = Quark::new(&domain(whole(), Arc::new(Solo)), schur);
        for (n, mix) in mixes.iter().enumerate() {
            let info = found[0][n].0;
            let parts: Vec<_> = found.iter().map(|rank| rank[n].1.clone()).collect();
            let residual = judge.residual(&join(&parts, grid));
            println!(
                "{schur:?} {grid:?} {mix:?}: {} iterations, {} updates, {} applications, residual {residual:.3e}",
                info.iterations, info.updates, info.applications
            );
            assert_eq!(info.fallbacks, 0, "{grid:?} {mix:?}: {info:?}");
            // |b - M^dag M x| has the rounding of b, a few 1e-16, in it.
            let close = (residual - info.residual).abs() < 1e-3 * residual + 1e-15;
            assert!(residual <= RESIDUAL && close, "{grid:?} {mix:?}: {residual:e}, {info:?}");
        }
    }
}

/// Nothing crosses the cuts: in double, one rank with blocks of the boxes' extents does the same, but for rounding, which
/// is seen far from convergence. A sum over all ranks, or a hop over a cut, would make another preconditioner.
#[test]
fn the_domain_is_the_box_of_the_rank() {
    const LOOSE: f64 = 1e-3;
    let _turn = turn();
    let one = domain(whole(), Arc::new(Solo));
    for grid in GRIDS {
        let found = ranks::run(volume(grid), |comm| {
            Quark::on(grid, comm, Schur::Symmetric).solve_one(gcr_dd([D; 3], None), LOOSE)
        });
        let local = Some(std::array::from_fn(|mu| EXTENTS[mu] / grid[mu]));
        let settings = gcr_dd([D; 3], local);
        let (info, blocks) = Quark::new(&one, Schur::Symmetric).solve_one(settings, LOOSE);
        let x = join(&found.iter().map(|rank| rank.1.clone()).collect::<Vec<_>>(), grid);
        let norm2 = |x: &mut dyn Iterator<Item = f64>| x.map(|x| x * x).sum::<f64>();
        let difference = norm2(&mut x.iter().zip(&blocks).map(|(x, y)| x - y));
        let difference = (difference / norm2(&mut blocks.iter().copied())).sqrt();
        let iterations: Vec<usize> = found.iter().map(|rank| rank.0.iterations).collect();
        println!(
            "{grid:?}: iterations {iterations:?}, of blocks {}, difference {difference:.1e}",
            info.iterations
        );
        assert!(iterations.iter().all(|n| *n == info.iterations), "{grid:?}: {iterations:?}, {info:?}");
        // Some 10^3 steps, each with a rounding of 1e-16; another preconditioner differs by LOOSE.
        assert!(difference < 1e-11, "{grid:?}: {difference:e}");
    }
}

/// The point of the method: halos are in the Krylov iteration alone.
#[test]
fn it_takes_fewer_halos_than_bicgstab() {
    let _turn = turn();
    for grid in GRIDS {
        let found = ranks::run(volume(grid), |comm| {
            let mut quark = Quark::on(grid, comm, Schur::Symmetric);
            let bicgstab = settings(Method::BiCgStab, [D, S, S], 1e-3);
            [gcr_dd([D, S, H], None), bicgstab]
                .map(|settings| quark.solve_one(settings, RESIDUAL).0.applications)
        });
        let [gcr_dd, bicgstab] = found[0];
        println!("{grid:?}: {gcr_dd} applications of M, {bicgstab} by BiCGstab");
        assert!(2 * gcr_dd < bicgstab, "{grid:?}: {gcr_dd} applications, {bicgstab} by BiCGstab");
    }
}
