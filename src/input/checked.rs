//! A run's input after every check: what the floors above work from.

use super::domain_wall::DomainWallFermion;
use crate::lattice::Extents;
use crate::math::MilcPseudofermion;
use crate::measure::Measure;
use std::path::PathBuf;
use std::time::Duration;

/// A checked run input.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// The chain: name, seed, length, files.
    pub run: Run,
    /// Lattice extents x, y, z, t: even, 2 at least.
    pub extents: Extents,
    /// Ranks, threads, lanes, device.
    pub parallel: Parallel,
    /// The gauge action.
    pub gauge: Gauge,
    /// The quarks, in the order of the file.
    pub fermions: Vec<Fermion>,
    /// Molecular dynamics.
    pub hmc: Hmc,
    /// What is measured along the way.
    pub measure: Measure,
    /// The text of the input, as it was read.
    pub text: String,
}

/// The checked input of `hmc measure`.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasureInput {
    /// Ranks, threads, lanes, device.
    pub parallel: Parallel,
    /// The quarks that correlators and condensates name.
    pub fermions: Vec<Fermion>,
    /// What is measured.
    pub measure: Measure,
    /// Keys the random sources.
    pub seed: u64,
}

/// `[run]`
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Names the ensemble's folder.
    pub name: String,
    /// Keys every random number.
    pub seed: u64,
    /// Trajectories in the whole chain.
    pub trajectories: u64,
    /// The first so many are accepted whatever dH is.
    pub thermalisation: u64,
    /// The links before trajectory 0.
    pub start: Start,
    /// Ends the job, with a checkpoint, before this much time is over.
    pub wall_time: Option<Duration>,
    /// Folder of all ensembles.
    pub ensembles: PathBuf,
    /// A configuration is kept every so many trajectories.
    pub save_every: u64,
    /// A checkpoint is written every so many trajectories.
    pub checkpoint_every: u64,
}

/// The links before trajectory 0.
#[derive(Clone, Debug, PartialEq)]
pub enum Start {
    /// Random links, by the Haar measure.
    Hot,
    /// Unit links.
    Cold,
    /// A configuration in any format that is read.
    File(PathBuf),
}

/// `[parallel]`
#[derive(Clone, Debug, PartialEq)]
pub struct Parallel {
    /// Ranks in each direction; `None`: least surface.
    pub grid: Option<Extents>,
    /// CPU or GPU.
    pub device: DeviceChoice,
    /// Threads a rank; `None`: the cores of the node over its ranks.
    pub threads: Option<usize>,
    /// SIMD lanes, 1, 4, 8 or 16; `None`: what suits the processor.
    pub lanes: Option<usize>,
    /// How halos travel.
    pub transport: Transport,
}

/// CPU or GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// A GPU where there is one.
    Auto,
    /// The processor's cores.
    Cpu,
    /// A GPU, or an error.
    Cuda,
    /// A GPU's kernels on the processor's cores.
    Emulated,
}

/// How halos travel between ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Peer to peer where all neighbours allow it, else staged.
    Auto,
    /// Through host memory and MPI.
    Staged,
    /// GPU to GPU through CUDA IPC, or an error.
    Peer,
}

/// `[gauge]`: coefficients in the normalisation of PHYSICS section 2,
/// `S = beta sum_x { c_plaquette sum [1 - Re tr U/3] + c_rectangle sum [..] + c_parallelogram sum [..] }`.
#[derive(Clone, Debug, PartialEq)]
pub struct Gauge {
    /// The name in the input.
    pub action: String,
    /// The coupling.
    pub beta: f64,
    /// Of the plaquettes, 6 a site.
    pub c_plaquette: f64,
    /// Of the 1x2 rectangles, 12 a site.
    pub c_rectangle: f64,
    /// Of the six-link bent loops through three directions (parallelograms), 16 a site.
    pub c_parallelogram: f64,
}

/// `[fermion.NAME]`
#[derive(Clone, Debug, PartialEq)]
pub enum Fermion {
    /// Wilson and clover quarks.
    Wilson(WilsonFermion),
    /// Improved staggered quarks.
    Staggered(StaggeredFermion),
    /// Domain-wall quarks.
    DomainWall(DomainWallFermion),
}

impl Fermion {
    /// NAME.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Wilson(fermion) => &fermion.name,
            Self::Staggered(fermion) => &fermion.name,
            Self::DomainWall(fermion) => &fermion.name,
        }
    }

    /// How many pseudofermions it has.
    #[must_use]
    pub fn pseudofermions(&self) -> usize {
        match self {
            Self::Wilson(fermion) => 1 + fermion.hasenbusch.len(),
            Self::DomainWall(fermion) => 1 + fermion.hasenbusch.len(),
            Self::Staggered(fermion) => fermion.pseudofermions.iter().map(|p| p.copies).sum(),
        }
    }
}

/// `[fermion.NAME]`: Wilson(-clover) quarks, even-odd preconditioned. With W the even-odd operator, the
/// Hasenbusch factors W1 .. Wn split two flavours into terms of the Hamiltonian:
///
/// ```text
/// det W0^dag W0 = ratio(W0 / W1) ratio(W1 / W2) .. det Wn^dag Wn
/// ```
///
/// The first ratio (with no factors, the determinant) goes by NAME; each factor's name is that of what follows it.
#[derive(Clone, Debug, PartialEq)]
pub struct WilsonFermion {
    /// NAME.
    pub name: String,
    /// How many flavours, and how one of them comes about.
    pub flavours: Flavours,
    /// kappa = 1 / (2 (m0 + 4)) of W0.
    pub kappa: f64,
    /// Twisted mass of W0, which is `Mhat + i mu gamma_5` (asymmetric) or `Mhat + i mu A_oo^-1 gamma_5`
    /// (symmetric); 0 with one flavour.
    pub mu: f64,
    /// Clover coefficient; 0 for plain Wilson quarks.
    pub c_sw: f64,
    /// Phase a direction in units of pi: 0 periodic, 1 antiperiodic.
    pub boundary: [f64; 4],
    /// How the Schur complement is taken.
    pub schur: Schur,
    /// Smearing of the links that the operator sees.
    pub stout: Option<Stout>,
    /// The solver of the term NAME.
    pub solver: Solver,
    /// The factors W1 .. Wn, each heavier than the one before.
    pub hasenbusch: Vec<Hasenbusch>,
}

/// Degenerate flavours of a quark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Flavours {
    /// Two: `det W^dag W`.
    Two,
    /// One: `det (Mhat^dag Mhat)^(1/2)` by rational functions.
    One(Rational),
}

/// `[fermion.NAME.rational]`
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rational {
    /// Bounds of the spectrum of Mhat^dag Mhat (of domain-wall quarks, of C C^dag), 0 < lo < hi.
    pub range: [f64; 2],
    /// Greatest relative error of the functions of heat bath and action.
    pub action_error: f64,
    /// The same of the function of the force.
    pub force_error: f64,
    /// The spectrum's bounds are measured, and enforced, every so many trajectories.
    pub check_every: u64,
}

/// `stout` of `[fermion.NAME]`
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stout {
    /// Smearing steps, 1 to 16.
    pub steps: usize,
    /// Weight of a staple, 0 < rho < 0.25.
    pub rho: f64,
}

/// `[[fermion.NAME.hasenbusch]]`, with what it inherits.
#[derive(Clone, Debug, PartialEq)]
pub struct Hasenbusch {
    /// The term of the ratio of this factor to the next, or of the last factor's determinant.
    pub name: String,
    /// kappa of this factor.
    pub kappa: f64,
    /// Twisted mass of this factor.
    pub mu: f64,
    /// The solver of this term.
    pub solver: Solver,
}

/// The Schur complement that a pseudofermion sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schur {
    /// `A_oo - D_oe A_ee^-1 D_eo`
    Asymmetric,
    /// `1 - A_oo^-1 D_oe A_ee^-1 D_eo`
    Symmetric,
}

/// `[fermion.NAME.solver]`, `[fermion.NAME.hasenbusch.solver]`
#[derive(Clone, Debug, PartialEq)]
pub struct Solver {
    /// The algorithm.
    pub method: Method,
    /// Of the outer iteration (solution and true residual), the inner (Krylov) iteration and the
    /// preconditioner; where a method has no preconditioner, the last two are equal.
    pub precision: [Real; 3],
    /// Fall of the inner residual, 0 to 1, at which the true one is taken anew: a reliable update, or a
    /// restart of GCR.
    pub delta: f64,
    /// Reals kept of a link in the operator: 18, 12 or 8.
    pub link_reals: usize,
    /// `|b - A x| / |b|` in the heat bath and the action.
    pub action_residual: f64,
    /// The same in the forces.
    pub force_residual: f64,
    /// More iterations than this are an error.
    pub max_iterations: usize,
    /// Past solutions from which the next one is guessed; 0: start from zero.
    pub guess: usize,
}

/// A solver's algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Conjugate gradients of W^dag W; for one flavour with many shifts.
    Cg,
    /// Stabilised biconjugate gradients, of W and of W^dag.
    BiCgStab,
    /// GCR with an additive Schwarz preconditioner, of W and of W^dag.
    GcrDd {
        /// Directions kept before a restart, 2 to 64.
        k_max: usize,
        /// Steps of minimal residual in a block, 1 to 64.
        n_mr: usize,
        /// Extents of a block; `None`: the box of a rank.
        block: Option<Extents>,
    },
}

/// A precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Real {
    /// 64 bits.
    Double,
    /// 32 bits.
    Single,
    /// 16 bits.
    Half,
}

/// `[fermion.NAME]`: improved staggered quarks, on even sites `M^dag M = 4 m^2 - D_eo D_oe`. All its
/// pseudofermions are one term of the Hamiltonian, NAME.
#[derive(Clone, Debug, PartialEq)]
pub struct StaggeredFermion {
    /// NAME.
    pub name: String,
    /// How the links that the operator sees are made.
    pub links: StaggeredSmearing,
    /// Phase a direction in units of pi: 0 periodic, 1 antiperiodic.
    pub boundary: [f64; 4],
    /// In the order of the file: one at least in a run, perhaps none where only measured.
    pub pseudofermions: Vec<Pseudofermion>,
    /// The solver of all of them.
    pub solver: StaggeredSolver,
}

/// `action` of staggered quarks, with the coefficients of PHYSICS section 6.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StaggeredSmearing {
    /// One level of fattening.
    Asqtad {
        /// The tadpole factor, 0 to 1: a path of length l is divided by `u0^(l-1)`.
        u0: f64,
    },
    /// Two levels, and a projection between them.
    Hisq {
        /// The group that is projected to.
        projection: Projection,
    },
}

/// The group that HISQ's links are projected to after the first level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Projection {
    /// `V (V^dag V)^(-1/2)`
    U3,
    /// The same, divided by the third root of its determinant.
    Su3,
}

/// `[[fermion.NAME.pseudofermion]]`: the weight `prod_i det(M^dag M at mass_i)^(p_i/q_i)` over the even sites, where
/// `det(M^dag M)^(1/4)` is one rooted flavour.
#[derive(Clone, Debug, PartialEq)]
pub struct Pseudofermion {
    /// One at least, in the order of the input or of its file.
    pub factors: Vec<MassFactor>,
    /// So many pseudofermions, each with all powers divided by this; 1 with a file's functions.
    pub copies: usize,
    /// Correction to the Naik term of a heavy quark; 0 with asqtad.
    pub naik_epsilon: f64,
    /// Where the rational functions come from.
    pub rational: RationalSource,
}

/// One entry of `factors`: `det(M^dag M)^(p/q)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MassFactor {
    /// m of `M = 2 m + D`, above 0.
    pub mass: f64,
    /// Numerator p, not 0, and denominator q.
    pub power: (i32, u32),
}

/// `[fermion.NAME.pseudofermion.rational]`, with what it inherits from `[fermion.NAME.rational]`.
#[derive(Clone, Debug, PartialEq)]
pub enum RationalSource {
    /// Made at the start of a job.
    Made {
        /// Upper end of the spectrum of `-D^2`.
        lambda_max: f64,
        /// Greatest relative error of the function of the heat bath.
        heat_bath_error: f64,
        /// The same of the function of the action.
        action_error: f64,
        /// The same of the function of the force.
        force_error: f64,
        /// The spectrum's upper end is measured, and enforced, every so many trajectories.
        check_every: u64,
    },
    /// Of a file in MILC's format.
    File {
        /// The file, as it was named.
        path: PathBuf,
        /// Which of the file's pseudofermions, from 0.
        index: usize,
        /// What the file says of it.
        functions: MilcPseudofermion,
        /// As above.
        check_every: u64,
    },
}

/// `[fermion.NAME.solver]` of staggered quarks: conjugate gradients of M^dag M.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StaggeredSolver {
    /// What is done with the poles of a function.
    pub strategy: Strategy,
    /// As of [`Solver`]; never half with [`Strategy::MultiShift`].
    pub precision: [Real; 3],
    /// As of [`Solver`].
    pub delta: f64,
    /// Reals kept of a long link in the operator: 18, 14 or 9.
    pub long_link_reals: usize,
    /// `|b - A x| / |b|`, A = M^dag M at a pole's mass, in the heat bath.
    pub heat_bath_residual: f64,
    /// The same in the action.
    pub action_residual: f64,
    /// The same in the forces.
    pub force_residual: f64,
    /// More iterations than this are an error.
    pub max_iterations: usize,
}

/// How the systems of a rational function's poles are solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// All in one iteration.
    MultiShift,
    /// Each by itself, from the largest pole to the least.
    OneByOne,
}

/// `[hmc]`
#[derive(Clone, Debug, PartialEq)]
pub struct Hmc {
    /// Length of a trajectory.
    pub tau: f64,
    /// From the outermost to the innermost; each term lives on one of them.
    pub levels: Vec<Level>,
    /// Links are projected back to SU(3) every so many trajectories.
    pub reproject_every: u64,
    /// Reversibility is measured every so many trajectories; 0: never.
    pub reversibility_every: u64,
}

/// `[[hmc.level]]`
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// The scheme of a step.
    pub integrator: Integrator,
    /// Steps in one step of the level outside this one (or in the trajectory); 3 on the inner level of 3G1F.
    pub steps: u32,
    /// The terms that kick here: `gauge`, names of fermions and of their Hasenbusch factors.
    pub terms: Vec<String>,
}

/// The scheme of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Integrator {
    /// Kick half, drift, kick half.
    Leapfrog,
    /// Second order, two force evaluations, with its lambda.
    Omelyan2 {
        /// 0.1931833275037836 by default.
        lambda: f64,
    },
    /// The same drift first, with its lambda.
    Omelyan2Position {
        /// 0.1931833275037836 by default.
        lambda: f64,
    },
    /// Fourth order, five force evaluations (4MN5FV).
    Omelyan4,
    /// Fourth order, with the force's gradient by an extra evaluation at shifted links.
    ForceGradient,
    /// Second order: the two innermost levels side by side, three steps inside to one outside (3G1F).
    ThreeToOne,
}
