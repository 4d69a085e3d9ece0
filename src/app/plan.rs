//! What `hmc --check` prints of an input alone: partition, memory, files.

use super::assemble::Layers;
use super::{assemble, start};
use crate::action::QuarkParams;
use crate::device::Precision;
use crate::family::{
    DomainWallFermion, Fermion, Flavours, RootedSolver, Schur, StaggeredFermion, StoutSteps, WallFlavours,
    WilsonParams,
};
use crate::hmc::Scheme;
use crate::input::Input;
use crate::lattice::{Partition, shape, volume};
use crate::solver::{Method, Settings, TermSolver};

/// Poles of one flavour, before its functions are made.
const POLES: usize = 24;

/// Bytes of a rank's fields.
struct Sizes {
    /// Sites of one parity.
    half: usize,
    /// All sites, with borders.
    bordered: usize,
    /// Sites of one parity on one side of every cut direction.
    faces: usize,
}

impl Sizes {
    fn spinors(&self, count: usize, precision: Precision) -> usize {
        count * self.half * precision.stored(24, 1)
    }

    fn doubles(&self, count: usize) -> usize {
        self.spinors(count, Precision::Double)
    }

    fn matrices(&self, blocks: usize) -> usize {
        self.bordered * blocks * 18 * 8
    }

    fn algebra(&self) -> usize {
        2 * self.half * 32 * 8
    }

    /// Ghost zones of an operator's hops, two in turn, and what is sent; `reals` of a site's two faces.
    fn ghosts(&self, reals: usize, count: usize, precision: Precision) -> usize {
        3 * count * self.faces * reals * precision.bytes()
    }

    /// Hermitian blocks on one parity.
    fn clover(&self, precision: Precision) -> usize {
        self.half * 2 * precision.stored(36, 1)
    }

    /// Links, spinors on even sites, ghost zones, and the clover term where it is a copy.
    fn operator(&self, params: &WilsonParams, precision: Precision, link_reals: usize) -> usize {
        let spare = usize::from(params.schur == Schur::Symmetric);
        let copies = if params.c_sw != 0.0 && precision != Precision::Double { 2 } else { 0 };
        2 * self.half * precision.stored(4 * link_reals, 0)
            + self.spinors(1 + spare, precision)
            + self.ghosts(24, 1, precision)
            + copies * self.clover(precision)
    }

    /// Operators, clover term, workspace of the solver, past solutions.
    fn quark(&self, quark: &QuarkParams<WilsonParams>) -> usize {
        let QuarkParams { operator, solver, link_reals, guess } = quark;
        let Settings { method, precisions: [outer, krylov, inner], .. } = *solver;
        let mut bytes = self.operator(operator, Precision::Double, (*link_reals).max(12));
        for lower in [Precision::Single, Precision::Half] {
            if solver.precisions.contains(&lower) {
                bytes += self.operator(operator, lower, *link_reals);
            }
        }
        if operator.c_sw != 0.0 {
            // Both parities, and the inverse on one or both.
            bytes += (3 + usize::from(operator.schur == Schur::Symmetric)) * self.clover(Precision::Double);
        }
        let lower = |precision, count| {
            if precision == Precision::Double { 0 } else { self.spinors(count, precision) }
        };
        bytes += match method {
            Method::Cg => self.doubles(4) + self.gradients(1, krylov),
            Method::BiCgStab => self.doubles(6) + self.spinors(6, krylov),
            Method::GcrDd { k_max, .. } => {
                // The last: products of sites in blocks.
                let blocks = self.half * 3 * 8;
                let schwarz = self.spinors(3, inner) + blocks;
                self.doubles(6) + lower(outer, 3) + self.spinors(2 * k_max + 2, krylov) + schwarz
            }
        };
        // While a guess is made, a basis and its images are there too.
        bytes + self.doubles(3 * guess)
    }

    /// The fields of conjugate gradients in a lower precision.
    fn gradients(&self, n_s: usize, precision: Precision) -> usize {
        if precision == Precision::Double {
            return 0;
        }
        self.spinors(4 * n_s, precision) + self.spinors(n_s, precision.of_solution())
    }

    /// Of all shifts: solutions; and in the iteration's precision directions, and solutions again where it is lower.
    fn shifts(&self, precision: Precision) -> usize {
        let own =
            if precision == Precision::Double { 0 } else { self.spinors(POLES, precision.of_solution()) };
        self.doubles(POLES) + own + self.spinors(3 + POLES, precision)
    }

    /// Of a term: links of each step of the smearing, and their force.
    fn smeared(&self, stout: Option<StoutSteps>) -> usize {
        stout.map_or(0, |stout| (stout.steps + 1) * (self.matrices(4) + self.algebra()))
    }

    /// Of one mass: links in each precision, two fields of all slices and ghost zones for the operator, the solver's
    /// fields, past solutions.
    fn wall_quark(&self, n_s: usize, solver: &TermSolver, guess: usize) -> usize {
        let operator = |precision: Precision, reals: usize| {
            2 * self.half * precision.stored(4 * reals, 0)
                + self.spinors(2 * n_s, precision)
                + self.ghosts(24, n_s, precision)
        };
        let double =
            operator(Precision::Double, solver.link_reals.max(12)) + self.doubles(n_s * (4 + 3 * guess));
        match solver.settings.precisions[1] {
            Precision::Double => double,
            lower => double + operator(lower, solver.link_reals) + self.gradients(n_s, lower),
        }
    }

    /// A term of domain-wall quarks, a ratio of two masses.
    fn wall_term(&self, fermion: &DomainWallFermion, solver: &TermSolver) -> usize {
        let n_s = fermion.n_s;
        let quark = |guess| self.wall_quark(n_s, solver, guess);
        // The pairs of the force.
        let bytes = self.doubles(4 * n_s) + self.smeared(fermion.stout);
        bytes
            + match fermion.flavours {
                // phi, x, the heavier operator on phi.
                WallFlavours::Two => quark(solver.guess) + quark(0) + self.doubles(3 * n_s),
                // A quark for each chirality; what is solved, on even and odd sites; phi, eta, A phi, r(A) A phi.
                WallFlavours::OneEofa { .. } => 2 * quark(solver.guess) + self.doubles(6 * n_s + 8),
                // As of two flavours; for both operators poles, their sum, and vectors of the spectrum.
                WallFlavours::OneRational { .. } => {
                    let shifts = self.shifts(solver.settings.precisions[1]);
                    2 * quark(0) + self.doubles(3 * n_s) + 2 * n_s * (shifts + self.doubles(5))
                }
            }
    }

    /// All terms of domain-wall quarks.
    fn domain_wall(&self, fermion: &DomainWallFermion) -> usize {
        let heavier = fermion.hasenbusch.iter().map(|factor| &factor.solver);
        [&fermion.solver].into_iter().chain(heavier).map(|solver| self.wall_term(fermion, solver)).sum()
    }
}

/// Poles of a staggered pseudofermion, before its functions are made.
const STAGGERED_POLES: usize = 20;

impl Sizes {
    fn colours(&self, count: usize, precision: Precision) -> usize {
        count * self.half * precision.stored(6, 1)
    }

    /// Smeared links with room for their force, X, operators, workspace of the solvers, pseudofermions, solutions.
    fn staggered(&self, fermion: &StaggeredFermion) -> usize {
        let RootedSolver { precision: inner, long_reals, multi_shift, .. } = fermion.solver;
        let mut epsilons: Vec<f64> = fermion.pseudofermions.iter().map(|p| p.naik_epsilon).collect();
        epsilons.sort_by(f64::total_cmp);
        epsilons.dedup();
        let lower = (inner != Precision::Double).then_some(inner);
        let operators = [Some(Precision::Double), lower].into_iter().flatten();
        let operator =
            |p: Precision| 2 * self.half * p.stored(4 * (18 + long_reals), 0) + self.ghosts(42, 1, p);
        let operators: usize = operators.map(operator).sum();
        let solutions = if multi_shift { STAGGERED_POLES } else { 0 };
        let shifts = match lower {
            Some(precision) => self.colours(2 * solutions + 8, precision),
            None => self.colours(solutions + 8, Precision::Double),
        };
        let fields: usize = fermion.pseudofermions.iter().map(|p| p.copies).sum();
        self.matrices(fermion.smearing.matrices(true) + 4)
            + epsilons.len() * operators
            + shifts
            // Solutions, pseudofermions, workspace, and a group of poles on both parities.
            + self.colours(STAGGERED_POLES + fields + 6 + 16, Precision::Double)
    }
}

/// Bytes that a rank's fields take.
pub fn memory(input: &Input, partition: &Partition) -> usize {
    let border = assemble::layers(input, [&input.measure]).border;
    let local = partition.local();
    let bordered = (0..4).map(|mu| local[mu] + if partition.is_cut(mu) { 2 * border } else { 0 }).product();
    let half = volume(local) / 2;
    let faces = (0..4).filter(|&mu| partition.is_cut(mu)).map(|mu| half / local[mu]).sum();
    let sizes = Sizes { half, bordered, faces };
    // Links, saved links, one shifted or host copy; momenta and force.
    let mut bytes = 3 * sizes.matrices(4) + 2 * sizes.algebra();
    for fermion in &input.fermions {
        let fermion = match fermion {
            Fermion::Wilson(fermion) => fermion,
            Fermion::Staggered(fermion) => {
                bytes += sizes.staggered(fermion);
                continue;
            }
            Fermion::DomainWall(fermion) => {
                bytes += sizes.domain_wall(fermion);
                continue;
            }
        };
        for factor in fermion.factors() {
            let heavier = factor.heavier.as_ref();
            bytes += sizes.quark(&factor.quark) + heavier.map_or(0, |heavier| sizes.quark(heavier));
            if let Flavours::One(_) = fermion.flavours {
                // The sum over poles, and vectors of the spectrum.
                bytes += sizes.shifts(factor.quark.solver.precisions[1]) + sizes.doubles(5);
            }
            // phi, x, V^dag phi of a ratio, and the pairs of the force.
            bytes += sizes.doubles(6 + usize::from(heavier.is_some()));
            if fermion.operator.c_sw != 0.0 {
                bytes += sizes.matrices(6);
            }
            bytes += sizes.smeared(fermion.stout);
        }
    }
    bytes
}

/// Bytes of a configuration or a checkpoint.
pub fn configuration(input: &Input) -> usize {
    volume(input.extents) * 72 * 8
}

/// An integrator as the input names it.
fn integrator(scheme: &Scheme) -> String {
    match scheme {
        Scheme::Leapfrog => "leapfrog".to_owned(),
        Scheme::Omelyan2 { lambda } => format!("2mn (lambda {lambda:.6})"),
        Scheme::Omelyan2Position { lambda } => format!("2mn-position (lambda {lambda:.6})"),
        Scheme::Omelyan4 => "omf4".to_owned(),
        Scheme::ForceGradient => "force-gradient".to_owned(),
        Scheme::ThreeToOne => "3g1f".to_owned(),
    }
}

/// A size in memory or on a disk.
pub fn megabytes(bytes: usize) -> String {
    if bytes < 1 << 30 {
        format!("{:.1} MB", bytes as f64 / 1e6)
    } else {
        format!("{:.2} GB", bytes as f64 / 1e9)
    }
}

/// The plan of a run on `ranks` ranks, as text.
pub fn plan(input: &Input, partition: &Partition, ranks: usize) -> String {
    let Layers { reach, .. } = assemble::layers(input, [&input.measure]);
    let local = partition.local();
    let lanes = start::lanes(&input.parallel, partition, reach);
    let lane_grid =
        start::lane_grid(partition, lanes, reach).map_or_else(|| "-".into(), |grid| shape(grid.0));
    let run = &input.run;
    let configuration = configuration(input);
    let kept = (run.trajectories / run.save_every.max(1)) as usize;
    let folder = run.ensembles.join(&run.name);
    let mut text = format!(
        "lattice        {}\nranks          {ranks} as {}\nlocal lattice  {}\nlanes (CPU)    {lanes} as {lane_grid}\n",
        shape(input.extents),
        shape(partition.grid),
        shape(local),
    );
    text += &format!("memory         about {} per rank\n", megabytes(memory(input, partition)));
    text += &format!(
        "trajectories   {} of length {}, {} of them thermalisation\n",
        run.trajectories, input.hmc.tau, run.thermalisation
    );
    for (n, (level, terms)) in input.hmc.levels.iter().zip(&input.hmc.terms).enumerate() {
        text += &format!(
            "level {n}        {}, {} step{}: {}\n",
            integrator(&level.scheme),
            level.steps,
            if level.steps == 1 { "" } else { "s" },
            terms.join(", ")
        );
    }
    for fermion in &input.fermions {
        for (title, note) in fermion.notes() {
            text += &format!("{title:<14} {note}\n");
        }
    }
    text += &format!("folder         {}\n", folder.display());
    text += &format!(
        "configurations {kept} of {}, {} in all\n",
        megabytes(configuration),
        megabytes(kept * configuration)
    );
    text + &format!(
        "checkpoints    2 of {}, written every {}\n",
        megabytes(configuration),
        if run.checkpoint_every == 1 {
            "trajectory".to_owned()
        } else {
            format!("{} trajectories", run.checkpoint_every)
        }
    )
}
