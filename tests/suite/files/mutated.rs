//! Damaged files of every format: none is taken for what was written, but where no checksum is and only the last bits differ.

use crate::files::{Random, nersc, random_links, read, without_key, without_scidac_checksum, written};
use crate::program::Scratch;
use crate::ranks;
use hmc::field::HostLinks;
use hmc::io::{self, Format, Precision};
use hmc::lattice::{Extents, Partition, volume};
use std::fs;
use std::path::Path;

const EXTENTS: Extents = [4; 4];
const TRIALS: usize = 400;

/// What is done to a file.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Bit,
    LastBits,
    Byte,
    Zeros,
    Noise,
    Truncation,
    Appendix,
    Swap,
    HeaderByte,
    HeaderDigit,
}

use Kind::{Appendix, Bit, Byte, HeaderByte, HeaderDigit, LastBits, Noise, Swap, Truncation, Zeros};

const KINDS: [Kind; 10] =
    [Bit, LastBits, Byte, Zeros, Noise, Truncation, Appendix, Swap, HeaderByte, HeaderDigit];

/// A format, and what may get past it.
struct Subject {
    name: &'static str,
    file: Vec<u8>,
    /// The first byte of the links, and the bytes of one.
    start: usize,
    link_bytes: usize,
    big_endian: bool,
    /// Rows in the file where there is no checksum.
    unchecked_rows: Option<usize>,
    /// Whether exchanged links are seen.
    sees_swaps: bool,
}

fn subjects(folder: &Scratch, links: &HostLinks) -> Vec<Subject> {
    let three = nersc(folder, links, 3, Precision::Double);
    let two = nersc(folder, links, 2, Precision::Double);
    let of = |format| written(folder, format, links);
    let ildg = of(Format::Ildg);
    let subject = |name, file: Vec<u8>, link_bytes, big_endian, unchecked_rows| {
        let reals = links.link(0, 0)[..2].iter();
        let mark: Vec<u8> = match (name, big_endian) {
            ("MILC", _) => reals.flat_map(|&x| (x as f32).to_ne_bytes()).collect(),
            (_, true) => reals.flat_map(|x| x.to_be_bytes()).collect(),
            (_, false) => reals.flat_map(|x| x.to_le_bytes()).collect(),
        };
        let found = file.windows(mark.len()).position(|window| window == mark).unwrap();
        // openQCD's first link is another.
        let start = if name == "openQCD" { 24 } else { found };
        let sees_swaps = name != "ILDG, no checksum";
        Subject { name, file, start, link_bytes, big_endian, unchecked_rows, sees_swaps }
    };
    vec![
        subject("MILC", of(Format::Milc), 72, false, None),
        subject("NERSC, two rows", two.clone(), 96, true, None),
        subject("NERSC, three rows", three.clone(), 144, true, None),
        subject("ILDG", ildg.clone(), 144, true, None),
        subject("HDF5", of(Format::Hdf5), 144, false, None),
        subject("openQCD", of(Format::OpenQcd), 144, false, Some(3)),
        subject("NERSC, two rows, no checksum", without_key(&two, "CHECKSUM"), 96, true, Some(2)),
        subject("NERSC, three rows, no checksum", without_key(&three, "CHECKSUM"), 144, true, Some(3)),
        subject("ILDG, no checksum", without_scidac_checksum(&ildg), 144, true, Some(3)),
    ]
}

fn mutated(subject: &Subject, kind: Kind, random: &mut Random) -> Vec<u8> {
    let mut file = subject.file.clone();
    let (size, links) = (file.len(), 4 * volume(EXTENTS));
    let mut below = |n: usize| (random.next() % n as u64) as usize;
    let (place, order) = (below(size), 1 + below(12));
    let length = 1 + below(1 << order);
    let block = place..(place + length).min(size);
    match kind {
        Bit => file[place] ^= 1 << below(8),
        LastBits => {
            // Of a real of eight bytes; of MILC's it is any.
            let real = subject.start + 8 * below(links * subject.link_bytes / 8);
            let byte = below(3);
            file[real + if subject.big_endian { 7 - byte } else { byte }] ^= 1 << below(8);
        }
        Byte => file[place] = below(256) as u8,
        Zeros => file[block].fill(0),
        Noise => block.for_each(|n| file[n] = below(256) as u8),
        Truncation => file.truncate(place),
        Appendix => (0..length).for_each(|_| file.push(below(256) as u8)),
        Swap => {
            let bytes = subject.link_bytes;
            let (a, b) = (below(links), below(links));
            for k in 0..bytes {
                file.swap(subject.start + a * bytes + k, subject.start + b * bytes + k);
            }
        }
        HeaderByte => file[below(subject.start)] = below(256) as u8,
        HeaderDigit => {
            let digits: Vec<usize> = (0..subject.start).filter(|&n| file[n].is_ascii_digit()).collect();
            // Some formats have no text in front of their links.
            let at = if digits.is_empty() { below(subject.start) } else { digits[below(digits.len())] };
            file[at] = b'0' + below(10) as u8;
        }
    }
    file
}

/// The greatest difference of a link that no check sees, where one real of it is altered.
///
/// A real of U_ij moved by d moves row i of U U^dag - 1: its diagonal by 2 d times that real, its other elements by d times
/// U_kj, k another row in the file. Moved by less than 1e-8 it gets past, with a word about it. A third row that is made of the others moves by no more than d |U_0| + d |U_1| < 2 d.
fn bound(links: &HostLinks, rows: usize) -> f64 {
    let mut least = f64::INFINITY;
    for link in links.reals.chunks_exact(18) {
        for real in 0..6 * rows {
            let (i, j) = (real / 6, real % 6 / 2);
            let others =
                (0..rows).filter(|&k| k != i).flat_map(|k| [link[6 * k + 2 * j], link[6 * k + 2 * j + 1]]);
            let moved = others.map(f64::abs).fold(2.0 * link[real].abs(), f64::max);
            least = least.min(moved);
        }
    }
    2.0 * 1.01e-8 / least
}

#[derive(Default)]
struct Count {
    refused: usize,
    equal: usize,
    other: usize,
    greatest: f64,
}

/// Reads `trials` mutated files; whether each was accepted.
fn count(
    folder: &Scratch,
    subject: &Subject,
    trials: usize,
    mut also: impl FnMut(&Path, bool),
) -> (Count, Vec<(usize, Kind)>) {
    let path = folder.at(&subject.name.replace(", ", "-").replace(' ', "-"));
    fs::write(&path, &subject.file).unwrap();
    let expected = read(&path, EXTENTS).unwrap();
    let (mut random, mut count, mut passed) = (Random(2026), Count::default(), Vec::new());
    for trial in 0..trials {
        let kind = KINDS[trial % KINDS.len()];
        let file = mutated(subject, kind, &mut random);
        if kind == Swap && !subject.sees_swaps {
            continue;
        }
        fs::write(&path, &file).unwrap();
        let result = read(&path, EXTENTS);
        also(&path, result.is_ok());
        match result {
            Err(error) => {
                assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
                count.refused += 1;
            }
            Ok(links) if links == expected => count.equal += 1,
            Ok(links) => {
                let off = links.reals.iter().zip(&expected.reals).map(|(a, b)| (a - b).abs());
                count.greatest = off.fold(count.greatest, f64::max);
                count.other += 1;
                passed.push((trial, kind));
            }
        }
    }
    (count, passed)
}

#[test]
fn mutated_files_are_refused() {
    let folder = Scratch::new();
    let links = random_links(EXTENTS, 21);
    let subjects = subjects(&folder, &links);
    let count = |subject: &Subject| count(&folder, subject, TRIALS, |_, _| {});
    // All formats at once.
    let counts: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = subjects.iter().map(|subject| scope.spawn(move || count(subject))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    println!("{:32} {:>8} {:>8} {:>8} {:>10} {:>10}", "", "refused", "equal", "other", "greatest", "bound");
    for (subject, (count, _)) in subjects.iter().zip(&counts) {
        let bound = subject.unchecked_rows.map_or(0.0, |rows| bound(&links, rows));
        let Count { refused, equal, other, greatest } = count;
        println!("{:32} {refused:8} {equal:8} {other:8} {greatest:10.1e} {bound:10.1e}", subject.name);
    }
    for (subject, (count, passed)) in subjects.iter().zip(&counts) {
        match subject.unchecked_rows {
            None => assert_eq!(count.other, 0, "{}: {passed:?}", subject.name),
            Some(rows) => {
                assert!(count.greatest < bound(&links, rows), "{}: {:e}", subject.name, count.greatest);
                assert!(passed.iter().all(|(_, kind)| *kind != Swap), "{}: {passed:?}", subject.name);
            }
        }
    }
}

#[test]
fn ranks_come_to_the_same_verdict() {
    let folder = Scratch::new();
    let links = random_links(EXTENTS, 22);
    for subject in subjects(&folder, &links) {
        let (counted, _) = count(&folder, &subject, 60, |path, is_ok| {
            let verdicts = ranks::run(4, |comm| {
                let partition = Partition::new(EXTENTS, [1, 2, 1, 2], 4, comm.rank()).unwrap();
                io::read_links(path, &partition, &*comm).is_ok()
            });
            assert_eq!(verdicts, [is_ok; 4], "{}", subject.name);
        });
        assert!(counted.refused > 20, "{}", subject.name);
    }
}
