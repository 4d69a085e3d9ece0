//! The fuzz targets of `fuzz/` without libFuzzer: their corpora, each mutated with a fixed seed. `make fuzz` runs this.
//!
//! A binary of its own: it counts memory, and what a C library does with a damaged file ends no other test.

#[path = "../fuzz/src/lib.rs"]
mod targets;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// No file of a few kilobytes takes a thousandth of this.
const LONGEST: Duration = Duration::from_secs(20);

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to `count - 1`; 0 if there is none.
    fn below(&mut self, count: usize) -> usize {
        (self.next() % count.max(1) as u64) as usize
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

fn folder(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(kind)
}

/// The files of a corpus, in the order of their names; those of `toml` are also the inputs that come with hmc.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let inputs = (name == "toml").then(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("inputs"));
    let folders = [folder("corpus").join(name)].into_iter().chain(inputs);
    let entries = folders.flat_map(|folder| fs::read_dir(folder).unwrap());
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// The words of a dictionary in libFuzzer's form, a quoted one a line.
fn words(name: &str) -> Vec<Vec<u8>> {
    let text = fs::read_to_string(folder("dictionaries").join(format!("{name}.dict"))).unwrap_or_default();
    let quoted = text.lines().filter_map(|line| line.strip_prefix('"')?.strip_suffix('"'));
    quoted.map(|word| word.replace("\\\"", "\"").replace("\\x0A", "\n").into_bytes()).collect()
}

/// Numbers that readers trip over.
const NUMBERS: [u64; 10] =
    [0, 1, 2, 3, 255, 1 << 16, (1 << 31) - 1, u32::MAX as u64, i64::MAX as u64, u64::MAX];
const DIGITS: [&str; 12] = [
    "0",
    "-1",
    "3",
    "4",
    "1e308",
    "-1e-320",
    "nan",
    "inf",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "99999999999999999999999",
];

/// One mutation of `bytes`.
fn mutate(bytes: &mut Vec<u8>, corpus: &[Vec<u8>], words: &[Vec<u8>], random: &mut Random) {
    let place = random.below(bytes.len() + 1);
    let order = random.below(9);
    let end = bytes.len().min(place + 1 + random.below(1 << order));
    match random.below(10) {
        0 => bytes.get_mut(place).into_iter().for_each(|byte| *byte ^= 1 << random.below(8)),
        1 => bytes.get_mut(place).into_iter().for_each(|byte| *byte = random.next() as u8),
        2 => drop(bytes.drain(place..end)),
        3 => {
            let block = bytes[place..end].to_vec();
            bytes.splice(place..place, block);
        }
        4 => bytes.truncate(place),
        5 if !words.is_empty() => drop(bytes.splice(place..place, random.one(words).iter().copied())),
        6 => {
            let number = *random.one(&NUMBERS);
            let written = [
                number.to_le_bytes().to_vec(),
                number.to_be_bytes().to_vec(),
                (number as u32).to_le_bytes().to_vec(),
                (number as u32).to_be_bytes().to_vec(),
            ];
            let new = random.one(&written);
            bytes.iter_mut().skip(place).zip(new).for_each(|(byte, new)| *byte = *new);
        }
        7 => {
            // A number in a text.
            let digit = |n: &usize| bytes[*n].is_ascii_digit();
            let Some(start) = (place..bytes.len()).find(digit) else { return };
            let end = (start..bytes.len()).find(|n| !digit(n)).unwrap_or(bytes.len());
            bytes.splice(start..end, random.one(&DIGITS).bytes());
        }
        8 => {
            // The end of another file, from about the same place on.
            let other = random.one(corpus);
            bytes.truncate(place);
            bytes.extend(&other[place.min(other.len())..]);
        }
        _ => {
            // A line goes elsewhere, or stands twice.
            let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
            let (from, to) = (random.below(lines.len()), random.below(lines.len()));
            let Some(line) = lines.get(from).copied() else { return };
            lines.insert(to, line);
            *bytes = lines.concat();
        }
    }
}

/// Keeps what a target fails with.
struct Kept<'a>(&'a str, &'a [u8]);

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let path = std::env::temp_dir().join(format!("hmc-fuzz-failed-{}", self.0));
            fs::write(&path, self.1).unwrap();
            println!("{}: fails with {}", self.0, path.display());
        }
    }
}

/// Runs a target on its corpus and on `count` mutations of its files, or `HMC_FUZZ` times as many.
fn run(name: &str, count: usize) {
    let count = count * std::env::var("HMC_FUZZ").map_or(1, |times| times.parse().expect("a whole number"));
    let (corpus, words) = (corpus(name), words(name));
    assert!(!corpus.is_empty());
    let start = Instant::now();
    let execute = |bytes: &[u8]| {
        let (_kept, start) = (Kept(name, bytes), Instant::now());
        targets::run(name, bytes);
        assert!(start.elapsed() < LONGEST, "{name}: {:?}", start.elapsed());
    };
    corpus.iter().for_each(|bytes| execute(bytes));
    let mut random = Random(2026);
    for _ in 0..count {
        let mut bytes = random.one(&corpus).clone();
        for _ in 0..=random.below(6) {
            mutate(&mut bytes, &corpus, &words, &mut random);
        }
        execute(&bytes);
    }
    println!("{name}: {} executions in {:.1} s", corpus.len() + count, start.elapsed().as_secs_f64());
}

/// A test a target.
macro_rules! each {
    ($($name:ident $count:literal)*) => {
        $(#[test]
        #[ignore = "make fuzz"]
        fn $name() {
            run(stringify!($name), $count);
        })*

        #[test]
        fn every_target_is_run() {
            let run = [$(stringify!($name)),*];
            assert_eq!(run.to_vec(), targets::TARGETS.map(|(name, _)| name));
        }
    };
}

each! {
    toml 20000
    lime 30000
    nersc 30000
    milc 20000
    openqcd 30000
    hdf5 15000
    records 15000
    ensemble 10000
    state 10000
}
