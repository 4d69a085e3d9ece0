//! `info`, `convert`, `compare`: operations on files only.

use super::assemble::Layers;
use super::report::{json, say, shown, warn};
use super::{AppError, assemble};
use crate::field::{Halo, HostLinks, MatrixField};
use crate::input::{DeviceChoice, GridChoice, Parallel};
use crate::io::{self, Format, Header, Meta, Verified};
use crate::lattice::{Extents, Partition, coordinates, shape};
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
}

/// One rank on the CPU.
fn here() -> Parallel {
    Parallel {
        grid: GridChoice::Auto,
        device: DeviceChoice::Cpu,
        threads: None,
        lanes: None,
        transport: Some(Halo::Staged),
    }
}

fn read(path: &Path) -> Result<(HostLinks, Header, Partition), AppError> {
    let header = io::header(path)?;
    let partition = Partition::whole(header.extents)?;
    let (links, header) = io::read_links(path, &partition, &crate::comm::Solo)?;
    header.doubt(path).iter().for_each(warn);
    Ok((links, header, partition))
}

fn mean_plaquette(links: &HostLinks) -> Result<f64, AppError> {
    let comm = start_solo();
    let domain = assemble::domain(&here(), links.local, Layers::of_links(1), &comm)?;
    Ok(GaugeLoops::traces(&MatrixField::from_host(&domain, links)?)?.plaquette())
}

fn start_solo() -> super::Ranks {
    std::sync::Arc::new(crate::comm::Solo)
}

/// `hmc info [--json] FILE`: reads the whole file, so damage is detected.
///
/// # Errors
/// The file cannot be read.
pub fn info(path: &Path, as_json: bool) -> Result<(), AppError> {
    let (links, header, partition) = read(path)?;
    let checksum = format!("{:016x}", io::links_checksum(&links, &partition, &crate::comm::Solo));
    let plaquette = mean_plaquette(&links)?;
    if as_json {
        return say(json(&Info {
            file: path.display(),
            format: header.format,
            extents: header.extents,
            trajectory: header.trajectory,
            plaquette,
            links_checksum: &checksum,
            program: header.program.as_deref(),
            verified: header.verified,
        }));
    }
    say(format_args!("{}: {} of {}", path.display(), header.format, shape(header.extents)))?;
    if let Some(trajectory) = header.trajectory {
        say(format_args!("trajectory      {trajectory}"))?;
    }
    say(format_args!("plaquette       {plaquette:?}\nlinks checksum  {checksum}"))?;
    say(format_args!("verified by     {}", header.verified))?;
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
pub(super) fn require_new(path: &Path, force: bool) -> Result<(), AppError> {
    // A dangling symbolic link also counts as existing.
    if force || path.symlink_metadata().is_err() {
        return Ok(());
    }
    Err(AppError::Refused(format!("{}: exists already; --force overwrites it", path.display())))
}

/// `hmc convert [--force] IN OUT.{h5,milc,nersc,ildg,openqcd}`
///
/// # Errors
/// The ending of OUT is not a format, OUT exists without `force`, or a file cannot be read or written.
pub fn convert(from: &Path, to: &Path, force: bool) -> Result<(), AppError> {
    let ending = to.extension().map(|e| e.to_string_lossy().into_owned()).unwrap_or_default();
    let format = match ending.as_str() {
        "h5" => Format::Hdf5,
        "milc" => Format::Milc,
        "nersc" => Format::Nersc,
        "ildg" => Format::Ildg,
        "openqcd" => Format::OpenQcd,
        other => {
            return Err(AppError::Refused(format!(
                "{}: '.{other}' is no format; expected .h5, .milc, .nersc, .ildg or .openqcd",
                to.display()
            )));
        }
    };
    require_new(to, force)?;
    let (links, header, partition) = read(from)?;
    let meta = Meta {
        trajectory: header.trajectory,
        plaquette: mean_plaquette(&links)?,
        input: header.input.unwrap_or_default(),
        solvers: header.solvers,
    };
    Ok(io::write_links(to, format, &links, &partition, &crate::comm::Solo, &meta)?)
}

/// `hmc compare A B`: the first difference, or equal to the bit.
///
/// # Errors
/// [`AppError::Differs`] with the first difference, or a file cannot be read.
pub fn compare(a: &Path, b: &Path) -> Result<(), AppError> {
    let ((links_a, header_a, _), (links_b, header_b, _)) = (read(a)?, read(b)?);
    if header_a.extents != header_b.extents {
        let (a, b) = (shape(header_a.extents), shape(header_b.extents));
        return Err(AppError::Differs(format!("the lattices differ: {a} and {b}")));
    }
    let pairs = || links_a.reals.iter().zip(&links_b.reals);
    let count = pairs().filter(|(x, y)| x.to_bits() != y.to_bits()).count();
    let Some(at) = pairs().position(|(x, y)| x.to_bits() != y.to_bits()) else {
        return say("equal to the bit");
    };
    let (site, rest) = (at / 72, at % 72);
    Err(AppError::Differs(format!(
        "{count} of {} reals differ; the first: site {:?}, direction {}, row {}, column {}, {}: {:e} and {:e}",
        links_a.reals.len(),
        coordinates(links_a.local, site),
        ["x", "y", "z", "t"][rest / 18],
        rest % 18 / 6,
        rest % 6 / 2,
        ["re", "im"][rest % 2],
        links_a.reals[at],
        links_b.reals[at],
    )))
}
