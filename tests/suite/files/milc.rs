//! MILC's version 5: sites in natural order or as a list says, single and double, either byte order.

use crate::files::{random_links, read};
use crate::program::Scratch;
use crate::ranks;
use hmc::field::HostLinks;
use hmc::io::{self, Format, IoError, Precision};
use hmc::lattice::{Extents, Partition, coordinates, site, volume};
use std::fs;

const EXTENTS: Extents = [4, 2, 6, 8];

/// A file by MILC's description of it. With a list of sites the order is 1.
fn file(links: &HostLinks, list: Option<&[usize]>, precision: Precision, is_big: bool) -> Vec<u8> {
    let word = |x: u32| if is_big { x.to_be_bytes() } else { x.to_le_bytes() };
    let natural: Vec<usize> = (0..volume(links.local)).collect();
    let mut data = Vec::new();
    for &s in list.unwrap_or(&natural) {
        for &x in (0..4).flat_map(|mu| links.link(s, mu)) {
            match (precision, is_big) {
                (Precision::Single, true) => data.extend((x as f32).to_be_bytes()),
                (Precision::Single, false) => data.extend((x as f32).to_le_bytes()),
                (Precision::Double, true) => data.extend(x.to_be_bytes()),
                (Precision::Double, false) => data.extend(x.to_le_bytes()),
            }
        }
    }
    let mut sums = [0_u32; 2];
    for (n, bytes) in data.chunks_exact(4).enumerate() {
        let bytes = bytes.try_into().unwrap();
        let x = if is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
        sums = [sums[0] ^ x.rotate_left(n as u32 % 29), sums[1] ^ x.rotate_left(n as u32 % 31)];
    }
    let mut file: Vec<u8> = [20103].into_iter().chain(links.local.map(|n| n as u32)).flat_map(word).collect();
    file.extend([b'x'; 64]);
    file.extend(word(u32::from(list.is_some())));
    file.extend(list.unwrap_or_default().iter().flat_map(|&s| word(s as u32)));
    file.extend(sums.into_iter().flat_map(word));
    file.extend(data);
    file
}

/// The sites as MILC's nodes write them: node by node, on each the even sites first.
fn node_order(grid: Extents) -> Vec<usize> {
    let boxes = |s: usize| {
        let x = coordinates(EXTENTS, s);
        let node: Extents = std::array::from_fn(|mu| x[mu] * grid[mu] / EXTENTS[mu]);
        (site(grid, node), x.iter().sum::<usize>() % 2, s)
    };
    let mut sites: Vec<usize> = (0..volume(EXTENTS)).collect();
    sites.sort_by_key(|&s| boxes(s));
    sites
}

#[test]
fn sites_are_where_the_list_says() {
    let folder = Scratch::new();
    let path = folder.at("lat");
    let links = random_links(EXTENTS, 31);
    let natural: Vec<usize> = (0..volume(EXTENTS)).collect();
    let backwards: Vec<usize> = natural.iter().rev().copied().collect();
    let orders = [node_order([1, 1, 1, 1]), node_order([2, 1, 3, 4]), backwards, natural];
    assert!(orders.windows(2).all(|two| two[0] != two[1]));
    for precision in [Precision::Single, Precision::Double] {
        let expected = match precision {
            Precision::Single => links.reals.iter().map(|&x| f64::from(x as f32)).collect(),
            Precision::Double => links.reals.clone(),
        };
        for is_big in [false, true] {
            for list in [None].into_iter().chain(orders.iter().map(|order| Some(&order[..]))) {
                fs::write(&path, file(&links, list, precision, is_big)).unwrap();
                let header = io::header(&path).unwrap();
                assert_eq!((header.format, header.precision), (Format::Milc, precision));
                assert!(read(&path, EXTENTS).unwrap().reals == expected);
                let boxes = ranks::run(4, |comm| {
                    let partition = Partition::new(EXTENTS, [2, 1, 1, 2], 4, comm.rank()).unwrap();
                    let part = io::read_links(&path, &partition, &*comm).unwrap().0.reals;
                    part == ranks::part(&expected, &partition, 72)
                });
                assert!(boxes.into_iter().all(|is_same| is_same));
            }
        }
    }
}

#[test]
fn a_list_of_sites_that_is_none_is_told() {
    let folder = Scratch::new();
    let path = folder.at("lat");
    let links = random_links(EXTENTS, 32);
    let order = node_order([1, 1, 2, 2]);
    let good = file(&links, Some(&order), Precision::Single, false);
    let told = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let error = read(&path, EXTENTS).unwrap_err();
        assert_eq!(error.to_string().lines().count(), 1);
        (matches!(error, IoError::Damaged { .. }), error.to_string())
    };
    let with = |at: usize, word: u32| {
        let mut file = good.clone();
        file[at..at + 4].copy_from_slice(&word.to_le_bytes());
        file
    };
    let (damaged, text) = told(&with(84, 2));
    assert!(!damaged && text.contains("order of sites 2; 0 (natural) and 1"), "{text}");
    // The order of a natural file, but with a list.
    assert!(!told(&with(84, 0)).0);
    let (damaged, text) = told(&with(88 + 4 * 7, volume(EXTENTS) as u32));
    assert!(damaged && text.contains("the list of sites has 384, the lattice 384 sites"), "{text}");
    let (damaged, text) = told(&with(88 + 4 * 7, order[300] as u32));
    assert!(damaged && text.contains("(x, y, z, t) twice"), "{text}");
    let (damaged, text) = told(&with(good.len() - 4, 0x3f00_0000));
    assert!(damaged && text.contains("checksums"), "{text}");
    for length in [85, 88, 100, 88 + 4 * 384, 88 + 4 * 384 + 8, good.len() - 1] {
        assert!(told(&good[..length]).1.contains("truncated"), "{length}");
    }
    assert!(!told(&[&good[..], &[0]].concat()).0);
}

/// Versions 1 to 4: magic, extents, two numbers of the action, links.
#[test]
fn files_of_versions_1_to_4_are_read() {
    let folder = Scratch::new();
    let path = folder.at("lat");
    let links = random_links(EXTENTS, 33);
    for is_big in [false, true] {
        let new = file(&links, None, Precision::Single, is_big);
        let word = |x: u32| if is_big { x.to_be_bytes() } else { x.to_le_bytes() };
        let head = [&word(59354)[..], &new[4..20], &[0; 8]].concat();
        let old = [&head[..], &new[96..]].concat();
        fs::write(&path, &old).unwrap();
        let header = io::header(&path).unwrap();
        assert_eq!(
            (header.format, header.extents, header.verified),
            (Format::Milc, EXTENTS, io::Verified::Unitarity)
        );
        let found = read(&path, EXTENTS).unwrap();
        assert!(found.reals.iter().zip(&links.reals).all(|(a, b)| *a == f64::from(*b as f32)));
        fs::write(&path, &old[..old.len() - 1]).unwrap();
        assert!(matches!(read(&path, EXTENTS), Err(IoError::Truncated { .. })));
        let mut bad = old;
        bad[28 + 4] ^= 0x40;
        bad[28 + 7] ^= 0x40;
        fs::write(&path, &bad).unwrap();
        assert!(matches!(read(&path, EXTENTS), Err(IoError::Damaged { .. })));
    }
}
