//! Files: what is written reads back, other programs' files read as what they hold, damage is told.

use crate::files::{FORMATS, Random, meta, plaquette, plaquettes, random_links, read, reference, write};
use crate::program::Scratch;
use crate::ranks;
use hmc::comm::Solo;
use hmc::field::HostLinks;
use hmc::io::{self, Format, IoError, Precision};
use hmc::lattice::{Extents, Partition};
use std::fs;

const EXTENTS: Extents = [4, 2, 6, 8];

#[test]
fn every_format_reads_back() {
    let folder = Scratch::new();
    let links = random_links(EXTENTS, 1);
    for format in FORMATS {
        // The name says nothing.
        let path = folder.at("configuration");
        write(&path, format, &links).unwrap();
        assert_eq!(io::detect(&path).unwrap(), format);
        let header = io::header(&path).unwrap();
        assert_eq!((header.format, header.extents), (format, EXTENTS));
        let back = read(&path, EXTENTS).unwrap();
        if format == Format::Milc {
            assert_eq!(header.precision, Precision::Single);
            assert!(back.reals.iter().zip(&links.reals).all(|(a, b)| *a == f64::from(*b as f32)));
        } else {
            assert!(back == links, "{format}");
        }
        if let Some(plaquette) = header.plaquette.filter(|_| format != Format::Hdf5) {
            let [space, time] = plaquettes(&links);
            // Three digits of rounding in a sum of 10^5 terms of order one, averaged.
            assert!((plaquette - (space + time) / 6.0).abs() < 1e-14, "{format}");
        }
    }
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["configuration"]);
}

#[test]
fn hdf5_headers_say_everything() {
    let folder = Scratch::new();
    let (path, links) = (folder.at("cfg_000123.h5"), random_links(EXTENTS, 2));
    write(&path, Format::Hdf5, &links).unwrap();
    let header = io::header(&path).unwrap();
    let partition = Partition::whole(EXTENTS).unwrap();
    assert_eq!(header.trajectory, Some(123));
    assert_eq!(header.plaquette, Some(plaquette(&links)));
    assert_eq!(header.input, Some(meta().input));
    assert_eq!(header.state, None);
    assert_eq!(header.links_checksum, Some(io::links_checksum(&links, &partition, &Solo)));
    assert!(header.program.unwrap().starts_with("hmc "));
    // The same content makes the same bytes, whenever it is written.
    let first = fs::read(&path).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1100));
    write(&path, Format::Hdf5, &links).unwrap();
    assert!(fs::read(&path).unwrap() == first);
}

#[test]
fn each_rank_reads_its_own_box() {
    let folder = Scratch::new();
    let links = random_links(EXTENTS, 3);
    let path = folder.at("a");
    let expected = io::links_checksum(&links, &Partition::whole(EXTENTS).unwrap(), &Solo);
    for format in FORMATS.into_iter().filter(|&format| format != Format::Milc) {
        write(&path, format, &links).unwrap();
        let boxes = ranks::run(6, |comm| {
            let partition = Partition::new(EXTENTS, [2, 1, 3, 1], 6, comm.rank()).unwrap();
            let read = io::read_links(&path, &partition, &*comm).map(|(part, _)| part);
            read.map(|part| (io::links_checksum(&part, &partition, &*comm), part, partition))
        });
        for (rank, read) in boxes.into_iter().enumerate() {
            let (checksum, part, partition) = read.unwrap();
            assert!(part.reals == ranks::part(&links.reals, &partition, 72), "{format}, rank {rank}");
            assert_eq!(checksum, expected);
        }
    }
}

#[test]
fn checksum_sees_places_and_bits_but_not_the_sign_of_zero() {
    let partition = Partition::whole(EXTENTS).unwrap();
    let sum = |links: &HostLinks| io::links_checksum(links, &partition, &Solo);
    let links = HostLinks::unit(EXTENTS);
    let mut other = links.clone();
    other.reals[1] = -0.0;
    assert_eq!(sum(&other), sum(&links));
    other.reals[1] = f64::MIN_POSITIVE;
    assert_ne!(sum(&other), sum(&links));
    other = links.clone();
    other.reals.swap(0, 1);
    assert_ne!(sum(&other), sum(&links));
}

#[test]
fn reference_configurations_have_their_plaquettes() {
    let Some(configs) = reference() else { return };
    // ../shared/reference/README.md: Re tr P of the raw links, space-space and space-time.
    let expected = [
        ("lat.sample.l6666.hisq", [6, 6, 6, 6], [1.840_395_441_912_021_4, 1.859_750_578_527_182_8]),
        ("lat.sample.hisq.f211b670.l6666", [6, 6, 6, 6], [1.683_361_523_306_233_6, 1.672_678_032_800_563]),
        ("lat.sample.l8888", [8, 8, 8, 8], [1.779_002_154_458_459_6, 1.782_359_288_138_585_7]),
        ("lat.sample.l4448", [4, 4, 4, 8], [1.723_748_280_797_453_8, 1.690_586_065_416_609_6]),
    ];
    for (name, extents, planes) in expected {
        let path = configs.join(name);
        assert_eq!(io::detect(&path).unwrap(), Format::Milc);
        let found = plaquettes(&read(&path, extents).unwrap());
        for k in 0..2 {
            // Sums of 10^4 terms of order one, averaged: 1e-15 or so.
            assert!((found[k] - planes[k]).abs() < 1e-13, "{name}: {found:?}");
        }
    }
    // Two rows in single precision; the header has ten digits.
    let path = configs.join("chroma_4444.nersc");
    let found = plaquettes(&read(&path, [4; 4]).unwrap());
    let header = io::header(&path).unwrap();
    assert_eq!((header.format, header.precision), (Format::Nersc, Precision::Single));
    assert!(((found[0] + found[1]) / 6.0 - header.plaquette.unwrap()).abs() < 1e-8);
}

#[test]
fn openqcd_and_nersc_files_of_one_configuration_are_equal() {
    let Some(configs) = reference() else { return };
    let extents = [4, 4, 4, 8];
    let (openqcd, nersc) = (configs.join("q844n1.openqcd"), configs.join("q844n1.nersc"));
    assert_eq!(io::detect(&openqcd).unwrap(), Format::OpenQcd);
    let links = read(&openqcd, extents).unwrap();
    assert!(links == read(&nersc, extents).unwrap());
    let [space, time] = plaquettes(&links);
    assert!((0.5 * (space + time) - 1.626_350_317_273_676_8).abs() < 1e-13);
    // What openQCD wrote, this program writes: links to the byte, the plaquette to rounding.
    let folder = Scratch::new();
    let path = folder.at("q844n1");
    write(&path, Format::OpenQcd, &links).unwrap();
    let (own, theirs) = (fs::read(&path).unwrap(), fs::read(&openqcd).unwrap());
    assert!(own[24..] == theirs[24..] && own[..16] == theirs[..16]);
}

#[test]
fn another_lattice_is_refused_with_both_named() {
    let folder = Scratch::new();
    let path = folder.at("a");
    for format in FORMATS {
        write(&path, format, &random_links([2, 2, 2, 4], 4)).unwrap();
        let message = read(&path, [2, 2, 4, 4]).unwrap_err().to_string();
        assert!(message.contains("2x2x2x4") && message.contains("2x2x4x4"), "{message}");
        assert!(message.contains(path.to_str().unwrap()), "{message}");
    }
}

/// Truncated and altered files are errors, or read as what was written: never something else.
#[test]
fn damage_is_told() {
    let folder = Scratch::new();
    let path = folder.at("a");
    let extents = [2, 2, 2, 4];
    let links = random_links(extents, 5);
    let mut random = Random(6);
    for format in FORMATS {
        write(&path, format, &links).unwrap();
        let good = fs::read(&path).unwrap();
        let expected = read(&path, extents).unwrap();
        let mut lengths: Vec<usize> = (0..40).map(|k| k * good.len() / 40).collect();
        lengths.extend([1, 7, 8, 23, 24, 95, 96, 143, 144, good.len() - 1]);
        for length in lengths {
            fs::write(&path, &good[..length]).unwrap();
            let _ = io::header(&path);
            let result = read(&path, extents);
            // The padding of the last record may be lost; nothing else.
            assert!(
                result.is_err() || format == Format::Ildg && length + 8 > good.len(),
                "{format}, {length} of {} bytes",
                good.len()
            );
        }
        for trial in 0..600 {
            let mut bad = good.clone();
            // Half of the flips in the first kilobyte, where headers are.
            let range = if trial % 2 == 0 { good.len().min(1024) } else { good.len() };
            let place = random.next() as usize % range;
            bad[place] ^= 1 << (random.next() % 8);
            fs::write(&path, &bad).unwrap();
            let _ = io::header(&path);
            match read(&path, extents) {
                Err(error) => assert!(error.to_string().contains(path.to_str().unwrap()), "{error}"),
                // openQCD has no checksum: an altered last digit is seen by nothing (`mutated.rs`).
                Ok(back) if format == Format::OpenQcd => {
                    let off = back.reals.iter().zip(&expected.reals).map(|(a, b)| (a - b).abs());
                    assert!(off.fold(0.0, f64::max) < 1e-7, "{format}, byte {place}");
                }
                Ok(back) => assert!(back == expected, "{format}, byte {place}"),
            }
        }
    }
    fs::write(&path, b"something else altogether").unwrap();
    assert!(matches!(read(&path, extents), Err(IoError::UnknownFormat { .. })));
    assert!(read(folder.path(), extents).is_err());
    assert!(read(&folder.at("none"), extents).is_err());
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let folder = Scratch::new();
    // Not even root writes below a file.
    let file = folder.at("file");
    fs::write(&file, b"x").unwrap();
    for format in FORMATS {
        let error = write(&file.join("cfg"), format, &random_links([2; 4], 7)).unwrap_err();
        assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
    }
}
