//! Headers that ask for too much: one line tells so, at once, whatever the number.

use crate::files::{meta, nersc, nersc_start, random_links, read, with_key, write};
use crate::program::Scratch;
use hmc::comm::Solo;
use hmc::field::HostLinks;
use hmc::io::{self, Format, Meta, Precision};
use hmc::lattice::{Extents, Partition};
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

const EXTENTS: Extents = [4; 4];

/// What `path` is refused with, by those who read headers and those who read links.
fn refused(path: &Path, what: &str) {
    let start = Instant::now();
    let header = io::header(path).expect_err(what).to_string();
    let links = read(path, EXTENTS).expect_err(what).to_string();
    assert!(start.elapsed() < Duration::from_secs(5), "{what}: {:?}", start.elapsed());
    for error in [&header, &links] {
        assert!(error.starts_with(path.to_str().unwrap()), "{what}: {error}");
        assert!(!error.contains('\n') && error.contains(what), "{what}: {error}");
    }
}

/// A file of these bytes that is a terabyte long, of which the disk has nothing.
fn huge(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
    File::options().write(true).open(path).unwrap().set_len(1 << 40).unwrap();
}

fn lime_record(kind: &str, length: u64, text: &str) -> Vec<u8> {
    let mut bytes = 0x4567_89ab_u32.to_be_bytes().to_vec();
    bytes.extend([0, 1, 0, 0]);
    bytes.extend(length.to_be_bytes());
    bytes.extend(kind.as_bytes());
    bytes.resize(144, 0);
    bytes.extend(text.as_bytes());
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

#[test]
fn lengths_and_numbers_of_lime_records() {
    let folder = Scratch::new();
    let path = folder.at("lime");
    for length in [1 << 20, u64::from(u32::MAX), 1 << 63, u64::MAX - 143, u64::MAX] {
        fs::write(&path, lime_record("ildg-format", length, "<lx>4</lx>")).unwrap();
        refused(&path, "truncated");
    }
    huge(&path, &lime_record("ildg-format", (1 << 40) - 144, ""));
    refused(&path, "a record ildg-format of 1099511627632 bytes");
    fs::write(&path, lime_record("empty", 0, "").repeat(10_001)).unwrap();
    refused(&path, "more than 10000 LIME records");
    for extent in ["1048576", "1048578", "18446744073709551615", "99999999999999999999", "0", "-4"] {
        let text = format!(
            "<ildgFormat><field>su3gauge</field><precision>64</precision><lx>{extent}</lx><ly>1048576</ly>\
             <lz>1048576</lz><lt>1048576</lt></ildgFormat>"
        );
        fs::write(&path, lime_record("ildg-format", text.len() as u64, &text)).unwrap();
        let is_number = extent.parse::<u64>().is_ok();
        refused(&path, if is_number { "extents [" } else { "ildg-format has no number lx" });
    }
}

#[test]
fn extents_of_nersc_milc_and_openqcd() {
    let folder = Scratch::new();
    let own = nersc(&folder, &random_links(EXTENTS, 5), 2, Precision::Double);
    let header = String::from_utf8(own[..nersc_start(&own)].to_vec()).unwrap();
    let path = folder.at("nersc");
    for (extent, what) in [
        ("18446744073709551615", "2^20"),
        ("1048578", "2^20"),
        ("99999999999999999999", "no extent"),
        ("1048576", "truncated"),
        ("0", "2^20"),
    ] {
        fs::write(&path, with_key(&header, "DIMENSION_4", extent)).unwrap();
        refused(&path, what);
    }
    let all = (1..=4).fold(header.clone(), |text, n| with_key(&text, &format!("DIMENSION_{n}"), "1048576"));
    fs::write(&path, all).unwrap();
    refused(&path, "are absurd");
    // A header that does not end is not looked for in a terabyte.
    huge(&path, b"BEGIN_HEADER\n");
    refused(&path, "no END_HEADER");
    for extent in [u32::MAX, 1 << 31, (1 << 20) + 2, 3] {
        for order in [u32::to_le_bytes as fn(u32) -> [u8; 4], u32::to_be_bytes] {
            let words = [20103, 4, 4, 4, extent].into_iter().chain([0; 19]);
            fs::write(&path, words.flat_map(order).collect::<Vec<u8>>()).unwrap();
            refused(&path, "2^20");
            // openQCD has no magic number: a file of this kind is of no known format.
            let words = [extent, 4, 4, 4, 0, 0];
            fs::write(&path, words.into_iter().flat_map(order).collect::<Vec<u8>>()).unwrap();
            refused(&path, "no HDF5, ILDG, NERSC, MILC or openQCD configuration");
        }
    }
    for (extent, what) in [(1_u32 << 14, "are absurd"), (1 << 12, "truncated")] {
        let words = [extent; 4].into_iter().chain([0; 2]);
        fs::write(&path, words.flat_map(u32::to_le_bytes).collect::<Vec<u8>>()).unwrap();
        refused(&path, what);
    }
}

#[test]
fn extents_and_datasets_of_hdf5() {
    let folder = Scratch::new();
    let path = folder.at("cfg.h5");
    type Change<'a> = &'a dyn Fn(&hdf5::File);
    let extents = |numbers: [u64; 4]| {
        move |file: &hdf5::File| {
            file.delete_attr("extents").unwrap();
            file.new_attr::<u64>().shape(4).create("extents").unwrap().write_raw(&numbers).unwrap();
        }
    };
    let dataset = |file: &hdf5::File| {
        file.unlink("gauge/U").unwrap();
        let shape = [1 << 20, 1 << 20, 4, 4, 4, 3, 3];
        file.new_dataset::<f64>().shape(shape).chunk([1, 1, 4, 4, 4, 3, 3]).create("gauge/U").unwrap();
    };
    let changes: [(Change, &str); 4] = [
        (&extents([u64::MAX; 4]), "2^20"),
        (&extents([1 << 20; 4]), "are absurd"),
        (&extents([1 << 12; 4]), "the attributes do not have the checksum attributes_crc32"),
        (&dataset, "has shape [1048576, 1048576, 4, 4, 4, 3, 3]"),
    ];
    for (change, what) in changes {
        write(&path, Format::Hdf5, &random_links(EXTENTS, 6)).unwrap();
        change(&hdf5::File::open_rw(&path).unwrap());
        // As long as one with links, which a dataset without any does not make it.
        File::options().write(true).open(&path).unwrap().set_len(1 << 20).unwrap();
        refused(&path, what);
    }
}

#[test]
fn a_terabyte_of_links_is_not_read_for_a_small_lattice() {
    let folder = Scratch::new();
    let path = folder.at("large.nersc");
    let own = nersc(&folder, &random_links(EXTENTS, 7), 2, Precision::Double);
    let header = String::from_utf8(own[..nersc_start(&own)].to_vec()).unwrap();
    huge(&path, with_key(&with_key(&header, "DIMENSION_3", "1024"), "DIMENSION_4", "65536").as_bytes());
    assert_eq!(io::header(&path).unwrap().extents, [4, 4, 1024, 65536]);
    let error = read(&path, EXTENTS).unwrap_err().to_string();
    assert!(error.contains("holds a lattice of 4x4x1024x65536"), "{error}");
}

#[test]
fn a_state_of_an_absurd_trajectory_is_none() {
    let folder = Scratch::new();
    let partition = Partition::whole([2; 4]).unwrap();
    let links = HostLinks::unit([2; 4]);
    let meta = Meta { plaquette: 1.0, ..meta() };
    io::save(folder.path(), &links, &partition, &Solo, &meta, "{}").unwrap();
    for number in [io::MOST_TRAJECTORIES + 1, 1 << 63, u64::MAX] {
        fs::write(folder.at(&format!("checkpoint/ckpt_{number}.h5")), "").unwrap();
    }
    let found: Vec<u64> = io::states(folder.path()).unwrap().into_iter().map(|(number, _)| number).collect();
    assert_eq!(found, [123]);
}
