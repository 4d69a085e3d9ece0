//! `[run]`, `[lattice]` and `[parallel]`.

use crate::config::forms::{ANGLES, COUNT, NAME, PATH};
use crate::config::key::{Absent, Change, Key, Shape, form, integer, words};
use crate::config::raw::Table;
use crate::config::reader::{
    self, MAX_EXTENT, Read, Value, choice, describe, extent, four, is_name, list, one_of, or_auto, or_word,
    text, whole,
};
use crate::config::section::Section;
use crate::device::{Device, DeviceError};
use crate::field::Halo;
use crate::io::{Format, MOST_TRAJECTORIES};
use crate::lattice::{Extents, LaneGrid, Partition, PartitionError, TimeBoundary, choose_grid, shape};
use std::path::PathBuf;
use std::time::Duration;
use toml::de::DeValue;

/// `[run]`
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The name of the ensemble's folder.
    pub name: String,
    /// The name of the chain among those of the ensemble; `None`: it is the only one.
    pub stream: Option<String>,
    /// Keys every random number.
    pub seed: u64,
    /// Trajectories in the whole chain.
    pub trajectories: u64,
    /// The number of trajectories at the start that are accepted whatever dH is.
    pub thermalisation: u64,
    /// The links before trajectory 0.
    pub start: Start,
    /// The job writes a checkpoint and ends before this time is over.
    pub wall_time: Option<Duration>,
    /// Folder of all ensembles.
    pub ensembles: PathBuf,
    /// Trajectories between saved configurations.
    pub save_every: u64,
    /// Trajectories between checkpoints.
    pub checkpoint_every: u64,
    /// Formats in which each saved configuration is written besides HDF5.
    pub save_formats: Vec<Format>,
    /// What the logical file names of configurations begin with (ILDG).
    pub lfn: Option<String>,
}

impl Run {
    /// The folder of the ensemble, which all of its streams share: `ENSEMBLES/NAME`.
    #[must_use]
    pub fn ensemble_folder(&self) -> PathBuf {
        self.ensembles.join(&self.name)
    }

    /// The folder of the chain: that of the ensemble, or one of its stream within it.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.stream.iter().fold(self.ensemble_folder(), |folder, stream| folder.join(stream))
    }

    /// The name of the chain: `NAME`, or `NAME/STREAM`.
    #[must_use]
    pub fn chain_name(&self) -> String {
        self.stream.iter().fold(self.name.clone(), |name, stream| format!("{name}/{stream}"))
    }

    /// The logical file name of the configuration after `trajectory`, `PREFIX/cfg_000123.ildg`, with the stream, if there is
    /// one, before the file.
    #[must_use]
    pub fn logical_name(&self, trajectory: u64) -> String {
        let prefix = self.lfn.clone().unwrap_or_else(|| format!("lfn://hmc/{}", self.name));
        let prefix = self.stream.iter().fold(prefix, |prefix, stream| format!("{prefix}/{stream}"));
        format!("{prefix}/cfg_{trajectory:06}.ildg")
    }
}

/// The links before trajectory 0.
#[derive(Clone, Debug, PartialEq)]
pub enum Start {
    /// Random links from the Haar measure.
    Hot,
    /// Unit links.
    Cold,
    /// A configuration in any supported format.
    File(PathBuf),
}

/// `[parallel]`
#[derive(Clone, Debug, PartialEq)]
pub struct Parallel {
    /// Ranks in each direction; `None`: those with the least surface.
    pub grid: Option<Extents>,
    /// CPU or GPU.
    pub device: DeviceChoice,
    /// Threads per rank; `None`: the node's cores divided by its ranks.
    pub threads: Option<usize>,
    /// SIMD lanes: 1, 4, 8 or 16; `None`: the best for the processor.
    pub lanes: Option<usize>,
    /// The transport of halos between GPUs; `None`: peer to peer among the ranks of a node if each has a GPU and all can,
    /// staged between others; NCCL stands for the same with NCCL between them.
    pub transport: Option<Halo>,
    /// Whether a run begins with a test of its devices.
    pub self_test: bool,
}

impl Parallel {
    /// The grid of `ranks` ranks.
    ///
    /// # Errors
    /// No grid has even local extents.
    pub fn grid_of(&self, extents: Extents, ranks: usize) -> Result<Extents, PartitionError> {
        self.grid.map_or_else(|| choose_grid(extents, ranks), Ok)
    }
}

/// CPU or GPU.
#[derive(Clone, Copy, Debug)]
pub enum DeviceChoice {
    /// A GPU if there is one.
    Auto,
    /// The CPU's cores.
    Cpu,
    /// A GPU; without one, an error.
    Cuda,
    /// A GPU's kernels on the CPU's cores.
    Emulated,
    /// That of another program, which makes it for a rank; no input can ask for it.
    Own(fn(usize) -> Result<Device, DeviceError>),
}

impl PartialEq for DeviceChoice {
    /// A program has one device of its own.
    fn eq(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

const RUN_NAME: Key<String> = Key::new(
    "name",
    NAME,
    Absent::Refused,
    Change::Free,
    "names the folder of the ensemble: letters, digits, `.`, `_`, `-`, first a letter or digit",
);
const STREAM: Key<String> = Key::new(
    "stream",
    form("text", Shape::Text("^[A-Za-z0-9][A-Za-z0-9_-]*$"), stream),
    Absent::Means("none"),
    Change::Free,
    "names one of several chains of the ensemble, which differ in `seed` and may differ in `start`, lengths and tuning: letters, \
     digits, `_`, `-`, first a letter or digit. The chain's folder is `ENSEMBLES/NAME/STREAM` then ([files](files.md#streams))",
);
/// Keys random numbers.
pub(super) const SEED: Key<u64> =
    Key::new("seed", integer(0, i64::MAX), Absent::Refused, Change::Fixed, "keys every random number");
const TRAJECTORIES: Key<u64> = Key::new(
    "trajectories",
    integer(1, MOST_TRAJECTORIES as i64),
    Absent::Refused,
    Change::Free,
    "length of the whole chain; may grow when it is resumed",
);
const THERMALISATION: Key<u64> = Key::new(
    "thermalisation",
    integer(0, i64::MAX),
    Absent::Is("0"),
    Change::Fixed,
    "so many trajectories at the start are accepted whatever dH is",
);
const START: Key<Start> = Key::new(
    "start",
    form("text", Shape::Text(""), start),
    Absent::Is("\"hot\""),
    Change::Fixed,
    "`\"hot\"` (random links), `\"cold\"` (unit links), or the path of a configuration, with a `/` or `.` in it",
);
const WALL_TIME: Key<Duration> = Key::new(
    "wall_time",
    form("text", Shape::Text("^([0-9]+h)?([0-9]+m)?([0-9]+s)?$"), reader::duration),
    Absent::Means("none"),
    Change::Free,
    "ends the job with a checkpoint before this time is over: `\"11h30m\"`, `\"90m\"`, `\"3600s\"`. A measurement that is \
     under way is left, and made when the run resumes. Within a Slurm job that says when it ends (`SLURM_JOB_END_TIME`), the run \
     ends a minute before that in any case",
);
const ENSEMBLES: Key<PathBuf> =
    Key::new("ensembles", PATH, Absent::Is("\"ensembles\""), Change::Free, "folder of all ensembles");
const SAVE_EVERY: Key<u64> = Key::new(
    "save_every",
    COUNT,
    Absent::Is("1"),
    Change::Free,
    "trajectories between configurations that are kept",
);
const CHECKPOINT_EVERY: Key<u64> =
    Key::new("checkpoint_every", COUNT, Absent::Is("1"), Change::Free, "trajectories between checkpoints");
const SAVE_FORMAT: Key<Vec<Format>> = Key::new(
    "save_format",
    form(
        "`\"hdf5\"`, `\"ildg\"`, `\"nersc\"`, `\"milc\"`, `\"openqcd\"`, or a list of them",
        Shape::Either(&[FORMATS, Shape::List(&FORMATS, None)]),
        save_formats,
    ),
    Absent::Is("\"hdf5\""),
    Change::Free,
    "formats of configurations that are kept: `cfg/` has HDF5 in any case; others are written by all ranks as well, with the \
     bytes of `hmc convert`, into a folder of their name, such as `ildg/cfg_000020.ildg`. A run that resumes makes those that \
     are missing from the files in `cfg/`",
);
const LFN: Key<String> = Key::new(
    "lfn",
    form("text", Shape::Text("^lfn://[!-~]+/[!-~]+$"), lfn),
    Absent::Means("`\"lfn://hmc/NAME\"`"),
    Change::Free,
    "what the logical file names of ILDG files begin with, such as `\"lfn://LDG/GROUP/ENSEMBLE\"`; the stream, if there is one, and `/cfg_000020.ildg` follow",
);
const EXTENTS: Key<Extents> = Key::new(
    "extents",
    form("4 even integers, 2 to 4096", Shape::List(&Shape::Integer(2, MAX_EXTENT), Some(4)), |value| {
        four("4 even integers [x, y, z, t]", extent)(value)
    }),
    Absent::Refused,
    Change::Fixed,
    "x, y, z, t; those of the box of a rank must be even too",
);
/// The words of `time_boundary`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ends {
    Periodic,
    Open,
    Schroedinger,
    OpenSchroedinger,
}

const TIME_BOUNDARY: Key<Ends> = Key::new(
    "time_boundary",
    words(&[
        ("periodic", Ends::Periodic),
        ("open", Ends::Open),
        ("schroedinger", Ends::Schroedinger),
        ("open-schroedinger", Ends::OpenSchroedinger),
    ]),
    Absent::Is("\"periodic\""),
    Change::Fixed,
    "`\"open\"`: time ends at walls on the first and on the last slice, where topological charge flows in and out. \
     `\"schroedinger\"`: on the first slice and the one after the last, where links in space are given. \
     `\"open-schroedinger\"`: open on the first slice, given on the one after the last. For Wilson and clover quarks, whose \
     fields are zero on walls, and gauge actions of plaquettes and rectangles",
);
const PHI: Key<[f64; 2]> = Key::new(
    "phi",
    ANGLES,
    Absent::Means("required with `\"schroedinger\"`, else refused"),
    Change::Fixed,
    "links in space on the first slice are `diag(exp(i phi_j / L))` of their extent L; the three angles are zero together",
);
const PHI_PRIME: Key<[f64; 2]> = Key::new(
    "phi_prime",
    ANGLES,
    Absent::Means("required with `\"schroedinger\"` and `\"open-schroedinger\"`, else refused"),
    Change::Fixed,
    "likewise on the slice after the last",
);
const GRID: Key<Option<Extents>> = Key::new(
    "grid",
    form(
        "`\"auto\"` or 4 integers",
        Shape::Either(&[Shape::Words(&["auto"]), Shape::List(&Shape::Integer(1, MAX_EXTENT), Some(4))]),
        |value| {
            const EXPECTED: &str = "\"auto\" or 4 integers [x, y, z, t]";
            let grid = |value| four(EXPECTED, whole(1..=MAX_EXTENT))(value).map(Some);
            or_word(&[("auto", None)], EXPECTED, grid)(value)
        },
    ),
    Absent::Is("\"auto\""),
    Change::Free,
    "ranks in x, y, z, t; `\"auto\"` takes the grid with the least surface, if it can one whose boxes are four sites or more in cut \
     directions. With `gcr-dd.block = \"rank\"` the bits depend on it",
);
const DEVICE: Key<DeviceChoice> = Key::new(
    "device",
    words(&[
        ("auto", DeviceChoice::Auto),
        ("cpu", DeviceChoice::Cpu),
        ("cuda", DeviceChoice::Cuda),
        ("emulated", DeviceChoice::Emulated),
    ]),
    Absent::Is("\"auto\""),
    Change::Free,
    "`\"auto\"`: a GPU if there is one. `\"emulated\"`: a GPU's kernels on a CPU, slowly, for checks without a GPU",
);
const THREADS: Key<Option<usize>> = Key::new(
    "threads",
    form("`\"auto\"` or an integer", Shape::Either(&[AUTO, Shape::Integer(1, 4096)]), |value| {
        or_auto(whole(1..=4096))(value)
    }),
    Absent::Is("\"auto\""),
    Change::Free,
    "CPU threads per rank; `\"auto\"`: the cores that the launcher bound the rank to, or else the node's cores over its \
     ranks",
);
const LANES: Key<Option<usize>> = Key::new(
    "lanes",
    form(
        "`\"auto\"`, `1`, `4`, `8`, `16`",
        Shape::Either(&[AUTO, Shape::Integers(&[1, 4, 8, 16])]),
        |value| or_auto(one_of(&[1, 4, 8, 16], "1, 4, 8 or 16 lanes"))(value),
    ),
    Absent::Is("\"auto\""),
    Change::Free,
    "SIMD lanes on a CPU in single and half precision; `\"auto\"` takes the most that fit. Double precision has half of them \
     if a register holds no more",
);
const TRANSPORT: Key<Option<Halo>> = Key::new(
    "transport",
    words(&[
        ("auto", None),
        ("staged", Some(Halo::Staged)),
        ("peer", Some(Halo::Peer)),
        ("nccl", Some(Halo::Nccl)),
    ]),
    Absent::Is("\"auto\""),
    Change::Free,
    "halos between GPUs: `\"staged\"` through host memory and MPI, `\"peer\"` from GPU to GPU within a node; \
     `\"auto\"`: peer among the ranks of a node, between nodes by NCCL where it is there, else staged; `\"nccl\"`: the same, and \
     refused without NCCL",
);
const SELF_TEST: Key<bool> = Key::new(
    "self_test",
    words(&[("on", true), ("off", false)]),
    Absent::Is("\"on\""),
    Change::Free,
    "whether a run begins with a test of every rank's device, of a second: all devices, and the CPUs beside GPUs, do the same \
     work and must find the same bits. Where they differ, the run names rank, node and card and ends",
);
const AUTO: Shape = Shape::Words(&["auto"]);
const FORMATS: Shape = Shape::Words(&["hdf5", "ildg", "nersc", "milc", "openqcd"]);

/// `[run]`
pub(super) const RUN: Section = Section {
    keys: &[
        &RUN_NAME,
        &STREAM,
        &SEED,
        &TRAJECTORIES,
        &THERMALISATION,
        &START,
        &WALL_TIME,
        &ENSEMBLES,
        &SAVE_EVERY,
        &CHECKPOINT_EVERY,
        &SAVE_FORMAT,
        &LFN,
    ],
    tables: &[],
};
/// `[lattice]`
pub(super) const LATTICE: Section =
    Section { keys: &[&EXTENTS, &TIME_BOUNDARY, &PHI, &PHI_PRIME], tables: &[] };
/// `[parallel]`
pub(super) const PARALLEL: Section =
    Section { keys: &[&GRID, &DEVICE, &THREADS, &LANES, &TRANSPORT, &SELF_TEST], tables: &[] };

/// Reads `[run]`.
pub(super) fn run(mut table: Table) -> Option<Run> {
    let (name, seed, trajectories) = (table.get(&RUN_NAME), table.get(&SEED), table.get(&TRAJECTORIES));
    let stream = table.get(&STREAM);
    let thermalisation = table.get_or(&THERMALISATION, None);
    let start = table.get(&START);
    let wall_time = table.get(&WALL_TIME);
    let ensembles = table.get(&ENSEMBLES);
    let save_every = table.get(&SAVE_EVERY);
    let checkpoint_every = table.get(&CHECKPOINT_EVERY);
    let save_formats = table.get(&SAVE_FORMAT);
    let lfn = table.get(&LFN);
    let many = trajectories.is_some_and(|all| all > 10_000_000);
    table.doubt("trajectories", many, "more than 10 million: chains have some thousands");
    if let Some(trajectories) = trajectories.filter(|all| thermalisation > *all) {
        let message =
            format!("thermalisation: {thermalisation} exceeds the {trajectories} trajectories of the chain");
        table.mistake("thermalisation", message);
    }
    table.finish();
    Some(Run {
        name: name?,
        stream,
        seed: seed?,
        trajectories: trajectories?,
        thermalisation,
        start: start?,
        wall_time,
        ensembles: ensembles?,
        save_every: save_every?,
        checkpoint_every: checkpoint_every?,
        save_formats: save_formats?,
        lfn,
    })
}

/// Reads `extents`.
pub(super) fn extents(table: &mut Table) -> Option<Extents> {
    table.get(&EXTENTS)
}

/// Reads `time_boundary` and what belongs to it.
pub(super) fn time_boundary(table: &mut Table) -> TimeBoundary {
    let ends = table.get_or(&TIME_BOUNDARY, None);
    let needed: &[&'static str] = match ends {
        Ends::Periodic | Ends::Open => &[],
        Ends::Schroedinger => &["phi", "phi_prime"],
        Ends::OpenSchroedinger => &["phi_prime"],
    };
    needed.iter().for_each(|key| table.demand(key));
    for key in ["phi", "phi_prime"].into_iter().filter(|key| !needed.contains(key)) {
        if table.has(key) {
            table.mistake(key, format!("{key}: no links are given there; see 'time_boundary'"));
        }
    }
    let [phi, phi_prime] = [&PHI, &PHI_PRIME].map(|key| table.get(key).unwrap_or_default());
    match ends {
        Ends::Periodic => TimeBoundary::Periodic,
        Ends::Open => TimeBoundary::Open,
        Ends::Schroedinger => TimeBoundary::Schroedinger { phi, phi_prime },
        Ends::OpenSchroedinger => TimeBoundary::OpenSchroedinger { phi_prime },
    }
}

/// Reads `[parallel]`.
pub(super) fn parallel(table: &mut Table) -> Parallel {
    Parallel {
        grid: table.get_or(&GRID, None),
        device: table.get_or(&DEVICE, None),
        threads: table.get_or(&THREADS, None),
        lanes: table.get_or(&LANES, None),
        transport: table.get_or(&TRANSPORT, None),
        self_test: table.get_or(&SELF_TEST, None),
    }
}

/// A folder's name without dots, which no file of a chain has.
fn stream(value: &Value) -> Read<String> {
    let found = text(value)?;
    if is_name(&found) && !found.contains('.') {
        return Ok(found);
    }
    let expected = "expected a name of letters, digits, '_' and '-'";
    Err(vec![(value.span().start, format!("{expected}, found {}", describe(value)))])
}

/// A word without `/` or `.` is more likely a misspelt `hot` than a file.
fn start(value: &Value) -> Read<Start> {
    let found = text(value)?;
    match found.as_str() {
        "hot" => Ok(Start::Hot),
        "cold" => Ok(Start::Cold),
        path if path.contains(['/', '.']) => Ok(Start::File(PathBuf::from(path))),
        _ => {
            let expected = "expected \"hot\", \"cold\" or a path with a '/' or '.' in it";
            Err(vec![(value.span().start, format!("{expected}, found {}", describe(value)))])
        }
    }
}

/// A format or a list of them; HDF5, which is always written, is left out.
fn save_formats(value: &Value) -> Read<Vec<Format>> {
    let words = Format::ALL.map(|format| (format.word(), format));
    let one = choice(&words);
    let named = if matches!(value.get_ref(), DeValue::Array(_)) {
        list("a list of formats", one)(value)?
    } else {
        vec![one(value)?]
    };
    let mut formats: Vec<Format> = Vec::new();
    for format in named {
        if format != Format::Hdf5 && !formats.contains(&format) {
            formats.push(format);
        }
    }
    Ok(formats)
}

/// `lfn://GRID/PATH`, without a slash at its end.
fn lfn(value: &Value) -> Read<String> {
    let found = text(value)?;
    let prefix = found.trim_end_matches('/');
    if is_logical_name(prefix) {
        return Ok(prefix.to_owned());
    }
    Err(vec![(value.span().start, format!("expected lfn://GRID/PATH without spaces, found {found:?}"))])
}

/// Whether a text is a logical file name as ILDG has them, `lfn://GRID/PATH` without spaces.
#[must_use]
pub fn is_logical_name(text: &str) -> bool {
    let parts = text.strip_prefix("lfn://").and_then(|rest| rest.split_once('/'));
    parts.is_some_and(|(grid, path)| !grid.is_empty() && !path.is_empty())
        && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The division of the lattice among `ranks` ranks; `None` after a mistake.
pub(super) fn partition(
    extents: Extents,
    parallel: &Parallel,
    ranks: usize,
    lattice: &Table,
    table: &Table,
) -> Option<Partition> {
    let grid = parallel.grid_of(extents, ranks);
    let partition = match grid.and_then(|grid| Partition::new(extents, grid, ranks, 0)) {
        Ok(partition) => partition,
        Err(error) => {
            match parallel.grid {
                Some(_) => table.mistake("grid", format!("grid: {error}")),
                None => lattice.mistake("extents", format!("extents: {error}")),
            }
            return None;
        }
    };
    let local = partition.local();
    let cut = std::array::from_fn(|mu| partition.is_cut(mu));
    let has_lanes = matches!(parallel.device, DeviceChoice::Auto | DeviceChoice::Cpu);
    let lanes = parallel.lanes.filter(|_| has_lanes);
    if let Some(lanes) = lanes.filter(|lanes| LaneGrid::choose(local, cut, *lanes).is_none()) {
        let local = shape(local);
        table.mistake("lanes", format!("lanes: a rank's box of {local} is too small for {lanes} lanes"));
    }
    Some(partition)
}
