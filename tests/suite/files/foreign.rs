//! What verifies files of other programs: plaquette, link trace and the unitarity of each link, on any number of ranks.

use crate::files;
use crate::files::{
    meta, nersc, nersc_start, random_links, read, reference, with_header, with_key, without_key,
};
use crate::files::{without_scidac_checksum, write, written};
use crate::program::Scratch;
use crate::ranks;
use hmc::comm::Solo;
use hmc::io::{self, Format, IoError, Meta, Precision, Verified};
use hmc::lattice::{Extents, Partition, site};
use std::fs;
use std::path::Path;

const EXTENTS: Extents = [4, 2, 6, 8];

/// What one rank and several find: the first is the rank that has the damage, or rank 0.
fn errors(path: &Path, extents: Extents) -> Vec<Option<String>> {
    let alone = read(path, extents).err();
    let grid = [2, 1, 1, 2];
    let several = ranks::run(4, |comm| {
        let partition = Partition::new(extents, grid, 4, comm.rank()).unwrap();
        io::read_links(path, &partition, &*comm).err()
    });
    assert!(several.iter().all(|error| error.is_some() == alone.is_some()), "{alone:?}, {several:?}");
    assert!(alone.as_ref().is_none_or(|error| matches!(error, IoError::Damaged { .. })), "{alone:?}");
    let own = several.into_iter().filter(|error| !matches!(error, Some(IoError::Ranks(_))));
    [alone].into_iter().chain(own).map(|error| error.map(|error| error.to_string())).collect()
}

/// Every rank's error has all of `parts`, to the same digits.
fn refused(path: &Path, extents: Extents, parts: &[&str]) {
    let told = errors(path, extents);
    for part in parts {
        assert!(
            told.iter().all(|text| text.as_ref().is_some_and(|text| text.contains(part))),
            "{part}: {told:?}"
        );
    }
    assert!(told.iter().all(|text| *text == told[0]), "{told:?}");
}

fn accepted(path: &Path, extents: Extents) {
    let told = errors(path, extents);
    assert!(told.iter().all(Option::is_none), "{told:?}");
}

fn swapped(file: &[u8], start: usize, link_bytes: usize, a: usize, b: usize) -> Vec<u8> {
    let mut file = file.to_vec();
    for k in 0..link_bytes {
        file.swap(start + a * link_bytes + k, start + b * link_bytes + k);
    }
    file
}

#[test]
fn nersc_plaquette_and_link_trace_are_compared_to_their_digits() {
    let folder = Scratch::new();
    let path = folder.at("a.nersc");
    let links = random_links(EXTENTS, 11);
    for (rows, precision) in
        [(2, Precision::Double), (3, Precision::Double), (2, Precision::Single), (3, Precision::Single)]
    {
        let good = nersc(&folder, &links, rows, precision);
        let put = |file: &[u8]| fs::write(&path, file).unwrap();
        put(&good);
        accepted(&path, EXTENTS);
        let value = |key: &str| -> f64 {
            let text = String::from_utf8_lossy(&good[..nersc_start(&good)]).into_owned();
            let line = text.lines().find(|line| line.starts_with(&format!("{key} ="))).unwrap();
            line.rsplit_once(' ').unwrap().1.parse().unwrap()
        };
        // The least change that counts: above 32 units of rounding in single, 28 + sqrt(6 x 384) = 76 in double.
        let least = if precision == Precision::Single { 2.5e-6 } else { 1.2e-14 };
        for key in ["PLAQUETTE", "LINK_TRACE"] {
            let right = value(key);
            for wrong in [right + least, right - least, right + 0.5, -right, 0.123] {
                let text = format!("{wrong:.17}");
                put(&with_header(&good, |header| with_key(header, key, &text)));
                refused(&path, EXTENTS, &["damaged", key, &text, "found"]);
            }
            // Fewer digits are right as far as they go, and wrong by two units of the last.
            put(&with_header(&good, |header| with_key(header, key, &format!("{right:.4}"))));
            accepted(&path, EXTENTS);
            put(&with_header(&good, |header| with_key(header, key, &format!("{:.4e}", right * 1.001))));
            refused(&path, EXTENTS, &[key]);
            put(&with_header(&good, |header| with_key(header, key, "nan")));
            assert!(matches!(read(&path, EXTENTS), Err(IoError::Malformed { .. })));
            put(&without_key(&good, key));
            accepted(&path, EXTENTS);
        }
        // The sum of all words does not see it: links of one site, neighbours, links far away.
        for (a, b) in [(0, 1), (0, 4), (3, 4 * 383 + 3), (700, 1300)] {
            put(&swapped(&good, nersc_start(&good), 6 * rows * precision.bytes(), a, b));
            refused(&path, EXTENTS, &["damaged: PLAQUETTE = "]);
        }
        // Of a lattice that is not periodic it is not known what the link trace is of.
        let antiperiodic = |header: &str| with_key(header, "BOUNDARY_4", "ANTIPERIODIC");
        put(&with_header(&good, |header| with_key(&antiperiodic(header), "LINK_TRACE", "0.3")));
        accepted(&path, EXTENTS);
    }
}

#[test]
fn openqcd_plaquette_is_compared_on_any_number_of_ranks() {
    let folder = Scratch::new();
    let path = folder.at("a.openqcd");
    let good = written(&folder, Format::OpenQcd, &random_links(EXTENTS, 12));
    fs::write(&path, swapped(&good, 24, 144, 5, 77)).unwrap();
    refused(&path, EXTENTS, &["damaged: plaquette = ", "in the header", "found"]);
    let plaquette = f64::from_le_bytes(good[16..24].try_into().unwrap());
    for (off, is_refused) in [(0.0, false), (4e-15, false), (7e-15, true), (-7e-15, true), (1e-9, true)] {
        let mut file = good.clone();
        file[16..24].copy_from_slice(&(plaquette + off).to_le_bytes());
        fs::write(&path, &file).unwrap();
        assert!(errors(&path, EXTENTS).iter().all(|error| error.is_some() == is_refused), "{off:e}");
    }
}

/// Where there is no checksum a flipped bit of a link is seen down to the last ones, and the link is named.
#[test]
fn a_link_less_unitary_than_the_others_is_told() {
    let folder = Scratch::new();
    let path = folder.at("a");
    let links = random_links(EXTENTS, 13);
    // The greatest real of a link in the last rank's box: a flip of bit b moves it by 2^(b - 53) at least.
    let x = [3, 1, 4, 7];
    let (s, mu) = (site(EXTENTS, x), 2);
    let link = links.link(s, mu);
    let at = (0..12).max_by(|&a, &b| link[a].abs().total_cmp(&link[b].abs())).unwrap();
    assert!(link[at].abs() >= 0.5);
    let three = nersc(&folder, &links, 3, Precision::Double);
    let two = nersc(&folder, &links, 2, Precision::Double);
    let ildg = written(&folder, Format::Ildg, &links);
    let files = [
        ("NERSC", without_key(&three, "CHECKSUM"), Verified::Plaquette),
        ("NERSC, two rows", without_key(&two, "CHECKSUM"), Verified::Plaquette),
        ("NERSC, nothing", without_key(&without_key(&three, "CHECKSUM"), "PLAQUETTE"), Verified::Unitarity),
        ("ILDG", without_scidac_checksum(&ildg), Verified::Plaquette),
        ("openQCD", written(&folder, Format::OpenQcd, &links), Verified::Plaquette),
    ];
    for (name, good, verified) in files {
        fs::write(&path, &good).unwrap();
        accepted(&path, EXTENTS);
        assert_eq!(io::header(&path).unwrap().verified, verified, "{name}");
        let bytes = if name == "openQCD" { link[at].to_le_bytes() } else { link[at].to_be_bytes() };
        let place = good.windows(8).position(|window| window == bytes).unwrap();
        for bit in 0..52_usize {
            let mut file = good.clone();
            let byte = if name == "openQCD" { bit / 8 } else { 7 - bit / 8 };
            file[place + byte] ^= 1 << (bit % 8);
            fs::write(&path, &file).unwrap();
            let told = errors(&path, EXTENTS);
            // U U^dag moves by 2 x 0.5 x 2^(bit - 53) or more, and outliers start at 2^-47.
            if bit >= 8 {
                let text = told[0].as_ref().unwrap_or_else(|| panic!("{name}, bit {bit}: not seen"));
                let named = text.contains("link z of site [3, 1, 4, 7] (x, y, z, t) is");
                assert!(named && text.contains("unitary"), "{name}, bit {bit}: {text}");
            }
            assert!(told.iter().all(|text| *text == told[0]), "{name}, bit {bit}: {told:?}");
        }
    }
}

#[test]
fn files_without_a_checksum_are_doubted() {
    let folder = Scratch::new();
    let path = folder.at("a");
    let links = random_links([2, 2, 2, 4], 14);
    for format in files::FORMATS {
        write(&path, format, &links).unwrap();
        let header = io::header(&path).unwrap();
        let has = format != Format::OpenQcd;
        assert_eq!(header.verified == Verified::Checksum, has, "{format}");
        assert_eq!(header.doubts(&path).is_empty(), has, "{format}");
    }
    let doubts = io::header(&path).unwrap().doubts(&path);
    let expected =
        "has no checksum; verified by the plaquette in its header and the unitarity of its links alone";
    assert_eq!(doubts, [format!("{}: {expected}", path.display())]);
}

#[test]
fn reference_files_are_accepted_on_any_number_of_ranks() {
    let Some(configs) = reference() else { return };
    for entry in fs::read_dir(configs).unwrap() {
        let path = entry.unwrap().path();
        // Links in time that end on a wall are zero: no configuration of this program yet.
        if path.to_string_lossy().contains("open.") {
            println!("skipped: {}: open boundaries", path.display());
            continue;
        }
        let extents = io::header(&path).unwrap().extents;
        if extents[0].is_multiple_of(4) {
            accepted(&path, extents);
        }
        let links = read(&path, extents).unwrap();
        // What its own program wrote without a checksum is as unitary as it says.
        let folder = Scratch::new();
        for format in [Format::Nersc, Format::Ildg, Format::OpenQcd] {
            let file = written(&folder, format, &links);
            let bare = match format {
                Format::Nersc => without_key(&file, "CHECKSUM"),
                Format::Ildg => without_scidac_checksum(&file),
                _ => file,
            };
            fs::write(folder.at("bare"), bare).unwrap();
            assert!(read(&folder.at("bare"), extents).unwrap() == links, "{}", path.display());
        }
    }
}

#[test]
fn a_trajectory_that_is_unknown_stays_unknown() {
    let folder = Scratch::new();
    let partition = Partition::whole(EXTENTS).unwrap();
    let links = random_links(EXTENTS, 16);
    for format in [Format::Hdf5, Format::Nersc, Format::Ildg] {
        for trajectory in [None, Some(0), Some(7)] {
            let path = folder.at("a");
            let meta = Meta { trajectory, ..meta() };
            io::write_links(&path, format, &links, &partition, &Solo, &meta).unwrap();
            assert_eq!(io::header(&path).unwrap().trajectory, trajectory, "{format}");
            assert!(read(&path, EXTENTS).unwrap() == links);
        }
    }
    // Grid stops at a header without the key, or without a number there.
    let unknown = Meta { trajectory: None, ..meta() };
    let path = folder.at("b");
    io::write_links(&path, Format::Nersc, &links, &partition, &Solo, &unknown).unwrap();
    let file = fs::read(&path).unwrap();
    assert!(String::from_utf8_lossy(&file[..nersc_start(&file)]).contains("\nSEQUENCE_NUMBER = -1\n"));
    let saved = io::save(folder.path(), &links, &partition, &Solo, &unknown, "{}");
    assert!(saved.unwrap_err().to_string().contains("needs the number of its trajectory"));
}

#[test]
fn hdf5_files_that_are_no_configurations_are_told() {
    let folder = Scratch::new();
    let records = io::History::records(folder.path(), &["trajectory"], &[]).unwrap();
    let mut history = io::History::open(folder.path(), &["trajectory"], &records).unwrap();
    history.append(&[io::Value::Count(1)]).unwrap();
    io::write_history_h5(folder.path()).unwrap();
    let path = folder.at("history.h5");
    let told = format!("{}: an HDF5 file, but no configuration: there is no /gauge/U", path.display());
    assert_eq!(io::header(&path).unwrap_err().to_string(), told);
    assert_eq!(read(&path, EXTENTS).unwrap_err().to_string(), told);
    for (name, told) in
        [("none", "No such file"), ("history.csv", "no state of hmc replay: not an HDF5 file")]
    {
        let error = io::state_input(&folder.at(name)).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(told) && error.lines().count() == 1, "{error}");
    }
    let error = io::state_input(&path).unwrap_err().to_string();
    assert!(error.contains("no state of hmc replay: there is no attribute kind"), "{error}");
}
