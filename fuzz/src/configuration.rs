//! Configurations of other programs.

use super::memory::bounded;
use super::scratch::{Scratch, names};
use hmc::comm::Solo;
use hmc::io::{self, Format, Header, Meta, Precision};
use hmc::lattice::{Extents, Partition};
use std::path::Path;

pub(super) fn lime(bytes: &[u8]) {
    configuration(Format::Ildg, bytes);
}

pub(super) fn nersc(bytes: &[u8]) {
    configuration(Format::Nersc, bytes);
}

pub(super) fn milc(bytes: &[u8]) {
    configuration(Format::Milc, bytes);
}

pub(super) fn openqcd(bytes: &[u8]) {
    configuration(Format::OpenQcd, bytes);
}

fn configuration(format: Format, bytes: &[u8]) {
    let folder = Scratch::new();
    let path = folder.file("given", bytes);
    match bounded(bytes.len(), 16, || io::header(&path)) {
        Err(error) => {
            names(error, &path);
            let error =
                bounded(bytes.len(), 16, || read(&path, [2; 4])).expect_err("a file without a header");
            names(error, &path);
        }
        Ok(header) => {
            assert!(is_held(&header, bytes.len()), "{header:?} of {} bytes", bytes.len());
            bounded(bytes.len(), 32, || again(format, &folder, &path, &header));
            let mut other = header.extents;
            other[0] += 2;
            names(read(&path, other).expect_err("another lattice"), &path);
        }
    }
}

/// Whether a file of so many bytes can hold the links: no format has less than two rows a link.
fn is_held(header: &Header, bytes: usize) -> bool {
    let site = 4 * 12 * header.precision.bytes();
    header.extents.iter().try_fold(site, |all, n| all.checked_mul(*n)).is_some_and(|all| all <= bytes)
}

fn read(path: &Path, extents: Extents) -> Result<(hmc::field::HostLinks, Header), io::IoError> {
    io::read_links(path, &Partition::whole(extents).expect("a header's extents"), &Solo)
}

/// Reads the links, writes them in the same format, and reads them again.
fn again(format: Format, folder: &Scratch, path: &Path, header: &Header) {
    let (links, told) = match read(path, header.extents) {
        Ok(found) => found,
        Err(error) => return names(error, path),
    };
    let mut same = told.clone();
    same.notes.truncate(header.notes.len());
    assert_eq!(same, *header, "with the links, the header says something else");
    assert!(links.reals.iter().all(|x| x.is_finite()));
    let partition = Partition::whole(header.extents).expect("a header's extents");
    let written = folder.path().join("written");
    let meta = Meta { trajectory: header.trajectory, ..Meta::default() };
    io::write_links(&written, format, &links, &partition, &Solo, &meta)
        .unwrap_or_else(|error| panic!("what was read is not written: {error}"));
    let (back, says) = read(&written, header.extents).expect("what was just read back");
    let same = |(a, b): (&f64, &f64)| {
        if says.precision == Precision::Single { *a == f64::from(*b as f32) } else { a == b }
    };
    assert!(back.reals.iter().zip(&links.reals).all(same));
    if format == Format::Nersc {
        assert_eq!(says.trajectory, header.trajectory);
    }
}
