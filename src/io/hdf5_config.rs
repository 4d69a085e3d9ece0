//! The program's own configuration: HDF5, written and read by all ranks, each its own box.
//!
//! Dataset `/gauge/U` of shape `[Lt, Lz, Ly, Lx, 4, 3, 3]`, compound `{r: f64, i: f64}`, which h5py reads
//! as complex128. Attributes of `/`:
//!
//! | name | type | meaning |
//! |---|---|---|
//! | `format_version` | u64 | 1 |
//! | `program` | text | name and version of the writer |
//! | `extents` | u64[4] | x, y, z, t |
//! | `trajectory` | u64 | the trajectory that made the links, if it is known |
//! | `plaquette` | f64 | average of (1/3) Re tr P |
//! | `links_checksum` | text | 16 hexadecimal digits: [`links_checksum`](super::links_checksum) |
//! | `time_boundary` | text | between fixed walls: `schroedinger`, or `open-schroedinger`, and the angles |
//! | `input` | text | the input of the run, as TOML |
//! | `solvers` | text | the methods that the run has chosen for terms with `method = "auto"`, if there are some |
//! | `state` | text | checkpoints only: what the run needs to go on |
//! | `attributes_crc32` | u64 | CRC-32 of all of the above: HDF5 has no checksum for texts |
//!
//! The bytes do not depend on the rank grid: creation order and layout are fixed, and no times are kept. Files of versions
//! before 0.3 have a chunk a time slice, each with a Fletcher-32 checksum; these, and others that were packed anew, are read
//! as well (`hdf5_reader`).

use super::bytes::{checked_extents, eight, same_lattice};
use super::hdf5_raw::{self, failed};
use super::hdf5_reader::{Reader, Slab};
use super::safe::require_room;
use super::verify::{Claim, Quantity};
use super::{
    Format, Header, IoError, Meta, PROGRAM, Precision, Read, links_checksum, require_box, verified,
    write_aside,
};
use crate::comm::{Comm, agree, from_first};
use crate::field::HostLinks;
use crate::lattice::{Partition, TimeBoundary, volume};
use hdf5::File;
use std::path::Path;

const FORMAT_VERSION: u64 = 1;
/// Bytes of one site: four links of 18 doubles.
const SITE_BYTES: u64 = 576;
/// The links' dataset, and its shape on a site.
pub(super) const DATASET: &str = "gauge/U";
pub(super) const LINKS: [usize; 3] = [4, 3, 3];

/// Reads what a file says about its links.
pub(super) fn header(path: &Path) -> Result<Header, IoError> {
    let file = Reader::open(path)?;
    let header = read_header(&file, path)?;
    file.dataset(DATASET, header.extents, &LINKS)?;
    Ok(header)
}

/// Reads this rank's box and verifies the checksums; collective.
pub(super) fn read(path: &Path, partition: &Partition, comm: &dyn Comm) -> Result<Read, IoError> {
    let file = agree(comm, Reader::open(path))?;
    let header = agree(comm, read_header(&file, path))?;
    same_lattice(path, header.extents, partition)?;
    let read = || file.dataset(DATASET, header.extents, &LINKS)?.read(&Slab::new(partition, &LINKS));
    let links = HostLinks { local: partition.local(), reals: agree(comm, read())? };
    let found = links_checksum(&links, partition, comm);
    if header.links_checksum != Some(found) {
        let written = header.links_checksum.unwrap_or_default();
        let what = format!("links_checksum is {written:016x}, {found:016x} found");
        return Err(IoError::damaged(path, what));
    }
    let value = header.plaquette.unwrap_or(f64::NAN);
    let claim = Claim::exact(Quantity::Plaquette, "plaquette", value, Precision::Double, header.extents);
    Ok(Read { links, header, claims: vec![claim] })
}

/// Writes all ranks' boxes beside `path`, reads them back, and gives the file its name; collective.
pub(super) fn write(
    path: &Path,
    links: &HostLinks,
    partition: &Partition,
    comm: &dyn Comm,
    meta: &Meta,
    state: Option<&str>,
) -> Result<(), IoError> {
    agree(comm, require_box(path, links, partition))?;
    let header = Header {
        time: partition.time,
        trajectory: meta.trajectory,
        plaquette: Some(meta.plaquette),
        links_checksum: Some(links_checksum(links, partition, comm)),
        program: Some(PROGRAM.into()),
        input: Some(meta.input.clone()),
        solvers: meta.solvers.clone(),
        state: state.map(Into::into),
        ..Header::new(Format::Hdf5, partition.global, Precision::Double)
    };
    write_aside(path, comm, |temporary| {
        let bytes = volume(partition.global) as u64 * SITE_BYTES + meta.input.len() as u64 + (1 << 16);
        agree(comm, if comm.rank() == 0 { require_room(temporary, bytes) } else { Ok(()) })?;
        put(temporary, links, partition, comm, &header)?;
        let (_, back) = verified(read(temporary, partition, comm)?, temporary, partition, comm)?;
        // By their texts: a plaquette that is NaN is equal to itself here.
        let same = format!("{back:?}") == format!("{header:?}");
        if same { Ok(()) } else { Err(IoError::damaged(temporary, "reads back as something else")) }
    })
}

/// Rank 0 lays the file out, then every rank writes its box.
fn put(
    path: &Path,
    links: &HostLinks,
    partition: &Partition,
    comm: &dyn Comm,
    header: &Header,
) -> Result<(), IoError> {
    let make = || {
        let file = hdf5_raw::create(path)?;
        let start = lay_out(&file, header).map_err(failed(path, "lay out the file"))?;
        file.close().map_err(failed(path, "close the file"))?;
        Ok::<_, IoError>(start.to_le_bytes().to_vec())
    };
    let made = agree(comm, if comm.rank() == 0 { make() } else { Ok(Vec::new()) })?;
    let start = eight(&from_first(comm, made), 0).map_or(0, u64::from_le_bytes);
    agree(comm, hdf5_raw::write(path, start, partition, &links.reals))
}

/// Attributes and the empty dataset, in the order that fixes the file's bytes; returns where the links begin.
fn lay_out(file: &File, header: &Header) -> hdf5::Result<u64> {
    let number = |name: &str, value: u64| file.new_attr::<u64>().create(name)?.write_scalar(&value);
    let text = |name: &str, value: &Option<String>| {
        value.as_ref().map_or(Ok(()), |value| hdf5_raw::put_text(file, name, value))
    };
    let plaquette = header.plaquette.unwrap_or(f64::NAN);
    number("format_version", FORMAT_VERSION)?;
    text("program", &header.program)?;
    file.new_attr::<u64>().shape(4).create("extents")?.write_raw(&header.extents.map(|n| n as u64))?;
    header.trajectory.map_or(Ok(()), |value| number("trajectory", value))?;
    file.new_attr::<f64>().create("plaquette")?.write_scalar(&plaquette)?;
    text("links_checksum", &header.links_checksum.map(|sum| format!("{sum:016x}")))?;
    text("time_boundary", &fixed_walls(header))?;
    text("input", &header.input)?;
    text("solvers", &header.solvers)?;
    text("state", &header.state)?;
    number("attributes_crc32", attributes_crc32(header).into())?;
    let gauge = file.create_group_builder().obj_track_times(false).create("gauge")?;
    hdf5_raw::lay_out(&gauge, "U", header.extents, &LINKS)
}

/// What links do not show of the walls in time.
fn fixed_walls(header: &Header) -> Option<String> {
    (header.time.given() != [None; 2]).then(|| header.time.to_string())
}

/// The CRC-32 of all attributes, floats by their bits.
fn attributes_crc32(header: &Header) -> u32 {
    let plaquette = header.plaquette.map(f64::to_bits);
    let numbers = (FORMAT_VERSION, header.extents, header.trajectory, plaquette, header.links_checksum);
    let mut text = format!("{numbers:?}{:?}", (&header.program, &header.input, &header.state));
    // Files without them are older than these attributes.
    text += &header.solvers.as_ref().map_or(String::new(), |solvers| format!("{solvers:?}"));
    text += &fixed_walls(header).unwrap_or_default();
    crc32fast::hash(text.as_bytes())
}

/// Reads and checks the attributes.
fn read_header(file: &Reader, path: &Path) -> Result<Header, IoError> {
    if !file.has(DATASET)? {
        return Err(IoError::malformed(
            path,
            format!("an HDF5 file, but no configuration: there is no /{DATASET}"),
        ));
    }
    let all = file.attributes()?;
    if !all.has("format_version") {
        let what = "an HDF5 file, but no configuration of hmc: there is no attribute format_version";
        return Err(IoError::malformed(path, what));
    }
    let version = all.integer("format_version")?;
    if version != FORMAT_VERSION {
        let what = format!("format_version {version}, this program reads {FORMAT_VERSION}");
        return Err(IoError::malformed(path, what));
    }
    let extents = checked_extents(path, all.integers("extents", &[4])?)?;
    let checksum = all.text("links_checksum")?;
    let checksum = u64::from_str_radix(&checksum, 16)
        .map_err(|_| IoError::malformed(path, format!("links_checksum {checksum} is no checksum")))?;
    let text = |name: &str| all.has(name).then(|| all.text(name)).transpose();
    let time = text("time_boundary")?.map_or(Ok(TimeBoundary::Periodic), |text| {
        text.parse().map_err(|error| IoError::malformed(path, format!("time_boundary: {error}")))
    })?;
    let header = Header {
        time,
        // Whether these should be there, the checksum below knows.
        trajectory: all.has("trajectory").then(|| all.integer("trajectory")).transpose()?,
        solvers: text("solvers")?,
        state: text("state")?,
        plaquette: Some(all.real("plaquette")?),
        links_checksum: Some(checksum),
        program: Some(all.text("program")?),
        input: Some(all.text("input")?),
        ..Header::new(Format::Hdf5, extents, Precision::Double)
    };
    if all.integer("attributes_crc32")? != u64::from(attributes_crc32(&header)) {
        return Err(IoError::damaged(path, "the attributes do not have the checksum attributes_crc32"));
    }
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attributes_checksum_is_of_this_text() {
        let known = Header {
            trajectory: Some(7),
            plaquette: Some(0.5),
            links_checksum: Some(9),
            program: Some("hmc".into()),
            input: Some("a = \"b\"".into()),
            ..Header::new(Format::Hdf5, [4, 4, 6, 8], Precision::Double)
        };
        // Another text, and no file that there is would be read any more.
        let text = r#"(1, [4, 4, 6, 8], Some(7), Some(4602678819172646912), Some(9))(Some("hmc"), Some("a = \"b\""), None)"#;
        assert_eq!(attributes_crc32(&known), crc32fast::hash(text.as_bytes()));
        let unknown = Header { trajectory: None, ..known };
        let text = text.replacen("Some(7)", "None", 1);
        assert_eq!(attributes_crc32(&unknown), crc32fast::hash(text.as_bytes()));
    }
}
