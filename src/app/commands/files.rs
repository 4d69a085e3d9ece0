//! `info`, `convert`, `compare`: operations on files only, with all ranks: none holds more than its box.

use crate::app::chain::assemble;
use crate::app::chain::assemble::Layers;
use crate::app::machine::start;
use crate::app::output::{json, say, shown, warn};
use crate::app::{AppError, Ranks};
use crate::comm::agree;
use crate::field::{Halo, HostLinks, MatrixField};
use crate::input::{self, DeviceChoice, Parallel};
use crate::io::{self, Format, Header, Meta, Told, Verified};
use crate::lattice::{Extents, Partition, coordinates, shape, site, volume};
use crate::operator::GaugeLoops;
use serde::Serialize;
use std::path::Path;

/// What `hmc info --json` prints; `null` is what the file does not say.
#[derive(Serialize)]
struct Info<'a> {
    /// The file, as it was named.
    #[serde(serialize_with = "shown")]
    file: std::path::Display<'a>,
    /// Its layout, as [`Format`] is shown.
    #[serde(serialize_with = "shown")]
    format: Format,
    /// x to t.
    extents: Extents,
    /// How it ends in time, as `time_boundary` in an input.
    time_boundary: String,
    /// Trajectories done.
    trajectory: Option<u64>,
    /// Mean of Re tr P / 3, computed anew.
    plaquette: f64,
    /// [`io::links_checksum`], 16 hexadecimal digits.
    links_checksum: &'a str,
    /// Name and version of the writer.
    program: Option<&'a str>,
    /// What verified the links, as [`Verified`] is shown.
    #[serde(serialize_with = "shown")]
    verified: Verified,
    /// The logical file name of an ILDG file.
    logical_name: Option<&'a str>,
    /// What is odd about the file.
    notes: &'a [String],
}

/// All ranks on CPUs.
fn here() -> Parallel {
    Parallel {
        grid: None,
        device: DeviceChoice::Cpu,
        threads: None,
        lanes: None,
        transport: Some(Halo::Staged),
        self_test: false,
    }
}

/// Links of this rank's box, what the file says, and the division of the lattice. Collective.
fn read(path: &Path, comm: &Ranks, told: &Told) -> Result<(HostLinks, Header, Partition), AppError> {
    let header = io::header_on(path, told, &**comm)?;
    let partition = start::partition(&here(), header.extents, &**comm)?.with_time(told.time);
    let (links, header) = io::read_links_as(path, &partition, &**comm, told)?;
    header.doubts(path).iter().filter(|_| comm.rank() == 0).for_each(warn);
    let partition = partition.with_time(header.time);
    Ok((links, header, partition))
}

fn mean_plaquette(links: &HostLinks, partition: &Partition, comm: &Ranks) -> Result<f64, AppError> {
    let domain = assemble::domain(&here(), partition.lattice(), Layers::of_links(1), comm)?;
    Ok(GaugeLoops::traces(&MatrixField::from_host(&domain, links)?)?.plaquette())
}

/// `hmc info [--json] [--extents EXTENTS] FILE`: reads the whole file with all ranks, so damage is detected.
///
/// # Errors
/// The file cannot be read.
pub fn info(path: &Path, as_json: bool, told: &Told, comm: &Ranks) -> Result<(), AppError> {
    start::in_pool(&here(), &**comm, || {
        let (links, header, partition) = read(path, comm, told)?;
        let checksum = format!("{:016x}", io::links_checksum(&links, &partition, &**comm));
        let plaquette = mean_plaquette(&links, &partition, comm)?;
        if comm.rank() == 0 { tell(path, &header, plaquette, &checksum, as_json) } else { Ok(()) }
    })
}

/// The object of `hmc info --json`.
pub(in crate::app) fn described(path: &Path, header: &Header, plaquette: f64, checksum: &str) -> String {
    json(&Info {
        file: path.display(),
        format: header.format,
        extents: header.extents,
        time_boundary: header.time.to_string(),
        trajectory: header.trajectory,
        plaquette,
        links_checksum: checksum,
        program: header.program.as_deref(),
        verified: header.verified,
        logical_name: header.logical_name.as_deref(),
        notes: &header.notes,
    })
}

fn tell(path: &Path, header: &Header, plaquette: f64, checksum: &str, as_json: bool) -> Result<(), AppError> {
    if as_json {
        return say(described(path, header, plaquette, checksum));
    }
    say(format_args!("{}: {} of {}", path.display(), header.format, shape(header.extents)))?;
    if header.time.has_walls() {
        say(format_args!("time boundary   {}", header.time))?;
    }
    if let Some(trajectory) = header.trajectory {
        say(format_args!("trajectory      {trajectory}"))?;
    }
    say(format_args!("plaquette       {plaquette:?}\nlinks checksum  {checksum}"))?;
    say(format_args!("verified by     {}", header.verified))?;
    if let Some(name) = &header.logical_name {
        say(format_args!("logical name    {name}"))?;
    }
    if let Some(program) = &header.program {
        say(format_args!("written by      {program}"))?;
    }
    if let Some(solvers) = &header.solvers {
        say(format_args!("solvers         {solvers}"))?;
    }
    if let Some(input) = &header.input {
        say(format_args!("\n{input}"))?;
    }
    Ok(())
}

/// Refuses to write to an existing path, unless `force` is set.
///
/// # Errors
/// [`AppError::Refused`] if the path exists.
pub(in crate::app) fn require_new(path: &Path, force: bool) -> Result<(), AppError> {
    // A dangling symbolic link also counts as existing.
    if force || path.symlink_metadata().is_err() {
        return Ok(());
    }
    Err(AppError::Refused(format!("{}: exists already; --force overwrites it", path.display())))
}

/// A logical file name as ILDG has them, `lfn://GRID/PATH` without spaces, for a file of this format.
fn require_logical_name(name: &str, format: Format) -> Result<(), AppError> {
    if format != Format::Ildg {
        return Err(AppError::Refused(format!(
            "--lfn: only .ildg files have a logical name, not {format} files"
        )));
    }
    if input::is_logical_name(name) {
        return Ok(());
    }
    Err(AppError::Refused(format!("--lfn: expected lfn://GRID/PATH without spaces, found '{name}'")))
}

/// `hmc convert [--force] [--lfn LFN] [--extents EXTENTS] [--remove-boundary-sign] IN OUT.{h5,milc,nersc,ildg,openqcd}`, with
/// all ranks: each reads and writes its own box.
///
/// # Errors
/// The ending of OUT is not a format, OUT exists without `force`, `lfn` is no logical file name or OUT has none, or a file
/// cannot be read or written.
pub fn convert(
    from: &Path,
    to: &Path,
    force: bool,
    lfn: Option<String>,
    told: &Told,
    comm: &Ranks,
) -> Result<(), AppError> {
    let format = Format::of_name(to).map_err(AppError::Refused)?;
    lfn.as_deref().map_or(Ok(()), |name| require_logical_name(name, format))?;
    agree(&**comm, if comm.rank() == 0 { require_new(to, force) } else { Ok(()) })?;
    start::in_pool(&here(), &**comm, || {
        let (links, header, partition) = read(from, comm, told)?;
        // Our own files have it with a checksum; it takes another copy of the links.
        let known = header.plaquette.filter(|_| header.format == Format::Hdf5);
        let meta = Meta {
            trajectory: header.trajectory,
            plaquette: known.map_or_else(|| mean_plaquette(&links, &partition, comm), Ok)?,
            input: header.input.unwrap_or_default(),
            solvers: header.solvers,
            logical_name: lfn,
        };
        Ok(io::write_links(to, format, &links, &partition, &**comm, &meta)?)
    })
}

/// A real of two configurations that differs: its place in `[t][z][y][x][mu][row][column][re, im]`, and both values.
type Difference = (u64, f64, f64);

/// `hmc compare A B`, with all ranks: the first difference, or equal to the bit.
///
/// # Errors
/// [`AppError::Differs`] with the first difference, or a file cannot be read.
pub fn compare(a: &Path, b: &Path, told: &Told, comm: &Ranks) -> Result<(), AppError> {
    let ((links_a, header_a, partition), (links_b, header_b, _)) =
        (read(a, comm, told)?, read(b, comm, told)?);
    if header_a.extents != header_b.extents {
        let (a, b) = (shape(header_a.extents), shape(header_b.extents));
        return Err(AppError::Differs(format!("the lattices differ: {a} and {b}")));
    }
    let all = links_a.reals.iter().zip(&links_b.reals).enumerate();
    let different = all.filter(|(_, (x, y))| x.to_bits() != y.to_bits());
    let place = |n: usize| {
        let (here, offset) = (coordinates(links_a.local, n / 72), partition.offset());
        let there = std::array::from_fn(|mu| here[mu] + offset[mu]);
        (site(partition.global, there) * 72 + n % 72) as u64
    };
    let mut own: (u64, Option<Difference>) = (0, None);
    for (n, (x, y)) in different {
        let found = (place(n), *x, *y);
        own = (own.0 + 1, Some(own.1.filter(|first| first.0 < found.0).unwrap_or(found)));
    }
    let ranks = comm.gather(json(&own).as_bytes());
    let ranks = ranks.iter().map(|text| -> (u64, Option<Difference>) {
        serde_json::from_slice(text).expect("it is what a rank wrote of the same type")
    });
    let all: Vec<_> = ranks.collect();
    let count: u64 = all.iter().map(|(count, _)| count).sum();
    let first = all.iter().filter_map(|(_, first)| *first).min_by_key(|(place, ..)| *place);
    let Some((at, x, y)) = first else {
        return if comm.rank() == 0 { say("equal to the bit") } else { Ok(()) };
    };
    let (site, rest) = (at as usize / 72, at as usize % 72);
    Err(AppError::Differs(format!(
        "{count} of {} reals differ; the first: site {:?}, direction {}, row {}, column {}, {}: {x:e} and {y:e}",
        volume(partition.global) * 72,
        coordinates(partition.global, site),
        ["x", "y", "z", "t"][rest / 18],
        rest % 18 / 6,
        rest % 6 / 2,
        ["re", "im"][rest % 2],
    )))
}
