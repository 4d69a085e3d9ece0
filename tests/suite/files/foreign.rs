//! What verifies files of other programs: plaquette, link trace and the unitarity of each link, on any number of ranks.

use crate::files;
use crate::files::{
    meta, nersc, nersc_start, plaquette, random_links, read, reference, with_header, with_key, without_key,
};
use crate::files::{without_scidac_checksum, write, written};
use crate::program::Scratch;
use crate::ranks;
use hmc::comm::Solo;
use hmc::io::{self, Format, IoError, Meta, Precision, Verified};
use hmc::lattice::{Extents, Partition, coordinates, site};
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
        // The least change that counts: above 32 units of rounding in single; 28 + sqrt(6 x 384) = 76, and 2 x 6 x 384 of a running
        // sum, in double.
        let least = if precision == Precision::Single { 2.5e-6 } else { 5.5e-13 };
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
    // Three times a plaquette: rounding is 2.5e-14, one running sum 1.5e-12.
    for (off, is_refused) in
        [(0.0, false), (2e-14, false), (-1.4e-12, false), (1.7e-12, true), (-1.7e-12, true), (1e-9, true)]
    {
        let mut file = good.clone();
        file[16..24].copy_from_slice(&(plaquette + off).to_le_bytes());
        fs::write(&path, &file).unwrap();
        assert!(errors(&path, EXTENTS).iter().all(|error| error.is_some() == is_refused), "{off:e}");
        if off == -1.4e-12 {
            let told = notes(&path).remove(0);
            assert!(told.contains("off by 4.7e-13, as one sum of all may be"), "{told}");
        }
    }
}

/// What is odd about links that are read all the same.
fn notes(path: &Path) -> Vec<String> {
    io::read_links(path, &Partition::whole(EXTENTS).unwrap(), &Solo).unwrap().1.notes
}

/// Where there is no checksum a flipped bit of a link is refused, with the link's name, or told, down to the last ones.
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
            // U U^dag moves by 2 x 0.5 x 2^(bit - 53) or more: 1e-8 is less than 2^-26, and outliers start at 2^-47.
            if bit < 23 {
                assert!(told[0].is_none(), "{name}, bit {bit}: {told:?}");
                let odd =
                    notes(&path).iter().any(|note| note.contains("a link is less unitary than the others"));
                assert!(odd || bit < 8, "{name}, bit {bit}");
            }
            if bit >= 27 {
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
            let meta = Meta { trajectory, plaquette: plaquette(&links), ..meta() };
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

/// The message of a file whose links are not in SU(3).
fn not_special(path: &Path, extents: Extents) -> String {
    match read(path, extents) {
        Err(error @ IoError::Malformed { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

/// Our links with a sign or a phase, in NERSC files with right checksums.
#[test]
fn links_of_another_determinant_are_refused_with_their_cause() {
    let folder = Scratch::new();
    let path = folder.at("a.nersc");
    let links = random_links(EXTENTS, 18);
    let put = |change: &dyn Fn(usize, Extents) -> bool| {
        let mut odd = links.clone();
        for (n, link) in odd.reals.chunks_exact_mut(18).enumerate() {
            if change(n % 4, coordinates(EXTENTS, n / 4)) {
                link.iter_mut().for_each(|x| *x = -*x);
            }
        }
        let file = raw_nersc(&odd, "IEEE64BIG", false);
        fs::write(&path, &file).unwrap();
        not_special(&path, EXTENTS)
    };
    let in_time = put(&|mu, x| mu == 3 && x[3] == 7);
    assert!(
        in_time.contains("det U = -1 on all links in t from t = 7: the sign of an antiperiodic boundary"),
        "{in_time}"
    );
    assert!(in_time.contains("`hmc convert --remove-boundary-sign` takes it out"), "{in_time}");
    let told = io::Told { has_boundary_sign: true, ..io::Told::default() };
    let partition = Partition::whole(EXTENTS).unwrap();
    assert!(io::read_links_as(&path, &partition, &Solo, &told).unwrap().0 == links);
    let parts = ranks::run(4, |comm| {
        let partition = Partition::new(EXTENTS, [2, 1, 1, 2], 4, comm.rank()).unwrap();
        let alone = io::read_links(&path, &partition, &*comm).unwrap_err().to_string();
        let part = io::read_links_as(&path, &partition, &*comm, &told).unwrap().0;
        alone == in_time && part.reals == ranks::part(&links.reals, &partition, 72)
    });
    assert_eq!(parts, [true; 4]);
    let in_x = put(&|mu, x| mu == 0 && x[0] == 3);
    assert!(in_x.contains("all links in x from x = 3: the sign of an antiperiodic boundary"), "{in_x}");
    let error = io::read_links_as(&path, &partition, &Solo, &told).unwrap_err().to_string();
    assert!(error.contains("do not have the sign of an antiperiodic boundary in time"), "{error}");
    let one = put(&|mu, x| mu == 3 && x == [0; 4]);
    assert!(one.contains("not in SU(3): det U is not 1 on 1 links (-1 on 1 of them)"), "{one}");
    // MILC's phases: all plaquettes have another sign. Those of random links have none, so links near one are taken.
    let mut odd = hmc::field::HostLinks::unit(EXTENTS);
    for (n, link) in odd.reals.chunks_exact_mut(18).enumerate() {
        let x = coordinates(EXTENTS, n / 4);
        let before = [x[3], x[3] + x[0], x[3] + x[0] + x[1], 0][n % 4];
        link.iter_mut().for_each(|x| *x *= if before % 2 == 1 { -1.0 } else { 1.0 });
    }
    fs::write(&path, raw_nersc(&odd, "IEEE64BIG", false)).unwrap();
    let staggered = not_special(&path, EXTENTS);
    assert!(
        staggered.contains("and a negative plaquette: phases of staggered quarks are in the links"),
        "{staggered}"
    );
    // U(3): a phase on one row.
    let mut odd = links.clone();
    for z in odd.reals[18..24].chunks_exact_mut(2) {
        (z[0], z[1]) = (0.6 * z[0] - 0.8 * z[1], 0.8 * z[0] + 0.6 * z[1]);
    }
    fs::write(&path, raw_nersc(&odd, "IEEE64BIG", false)).unwrap();
    assert!(not_special(&path, EXTENTS).contains("not 1 on 1 links (-1 on 0 of them); they are of U(3)"));
}

/// A NERSC file with three rows and without checksum and plaquette.
fn raw_nersc(links: &hmc::field::HostLinks, point: &str, is_little: bool) -> Vec<u8> {
    let [x, y, z, t] = links.local;
    let mut file = format!(
        "BEGIN_HEADER\nDATATYPE = 4D_SU3_GAUGE_3x3\nDIMENSION_1 = {x}\nDIMENSION_2 = {y}\nDIMENSION_3 = {z}\n\
         DIMENSION_4 = {t}\nFLOATING_POINT = {point}\nEND_HEADER\n"
    )
    .into_bytes();
    for x in &links.reals {
        let [double, single] = [x.to_be_bytes().to_vec(), (*x as f32).to_be_bytes().to_vec()];
        let mut bytes = if point.contains("64") { double } else { single };
        if is_little {
            bytes.reverse();
        }
        file.extend(bytes);
    }
    file
}

/// Without a checksum the byte order is the one in which links are unitary.
#[test]
fn nersc_files_without_a_byte_order_are_read() {
    let folder = Scratch::new();
    let path = folder.at("a.nersc");
    let links = random_links(EXTENTS, 19);
    for point in ["IEEE64", "IEEE32"] {
        for is_little in [false, true] {
            fs::write(&path, raw_nersc(&links, point, is_little)).unwrap();
            let found = read(&path, EXTENTS).unwrap();
            let off = found.reals.iter().zip(&links.reals).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(off < if point == "IEEE64" { 1e-300 } else { 1e-7 }, "{point} {is_little} {off:e}");
        }
    }
    // Lines of other systems, and what editors leave behind them.
    let plain = raw_nersc(&links, "IEEE64BIG", false);
    for change in [
        |text: &str| text.replace('\n', "\r\n"),
        |text: &str| text.replace("END_HEADER\n", "END_HEADER \t \n"),
        |text: &str| text.replace("END_HEADER\n", "END_HEADER\r\n"),
    ] {
        fs::write(&path, with_header(&plain, change)).unwrap();
        assert!(read(&path, EXTENTS).unwrap() == links);
    }
    let boundary = |header: &str| header.replace("END_HEADER", "BOUNDARY_4 = ANTIPERIODIC\nEND_HEADER");
    fs::write(&path, with_header(&plain, boundary)).unwrap();
    let told = "BOUNDARY_4 = ANTIPERIODIC: links are taken as they stand, without a sign of the boundary";
    assert_eq!(io::header(&path).unwrap().notes, [told]);
    assert!(read(&path, EXTENTS).unwrap() == links);
}

/// Links as a program leaves them that does not make them unitary again: some a hundred times further off than others.
#[test]
fn links_that_are_not_equally_unitary_are_read() {
    let folder = Scratch::new();
    let path = folder.at("a.nersc");
    let links = random_links(EXTENTS, 20);
    let put = |usual: f64, one: f64| {
        let mut off = links.clone();
        for (n, link) in off.reals.chunks_exact_mut(18).enumerate() {
            link.iter_mut().for_each(|x| *x *= 1.0 + if n == 77 { one } else { usual } / 2.0);
        }
        fs::write(&path, raw_nersc(&off, "IEEE64BIG", false)).unwrap();
        read(&path, EXTENTS).map(|found| {
            assert!(found == off);
            notes(&path)
        })
    };
    for (usual, one) in
        [(1e-16, 9e-11), (1e-12, 1e-12), (1e-12, 1e-10), (1e-12, 9e-9), (1e-7, 1e-7), (1e-7, 9e-6)]
    {
        let told = put(usual, one).unwrap();
        let is_odd = one / usual > 40.0;
        assert_eq!(
            told.iter().any(|note| note.contains("a link is less unitary than the others")),
            is_odd,
            "{told:?}"
        );
    }
    for (usual, one) in [(1e-16, 2e-8), (1e-12, 2e-8), (1e-7, 2e-5), (2e-5, 2e-5)] {
        let told = put(usual, one).unwrap_err().to_string();
        assert!(told.contains("is not unitary: U U^dag is off by 2.0e-"), "{told}");
    }
}

/// Links without a header, in either order and precision.
#[test]
fn links_alone_are_read_with_extents_that_the_user_tells() {
    let folder = Scratch::new();
    let path = folder.at("a.bin");
    let links = random_links(EXTENTS, 21);
    let partition = Partition::whole(EXTENTS).unwrap();
    let told = io::Told { extents: Some(EXTENTS), ..io::Told::default() };
    for (point, precision) in [("IEEE64", Precision::Double), ("IEEE32", Precision::Single)] {
        for is_little in [false, true] {
            let file = raw_nersc(&links, point, is_little);
            fs::write(&path, &file[nersc_start(&file)..]).unwrap();
            assert!(matches!(io::header(&path), Err(IoError::UnknownFormat { .. })));
            let header = io::header_as(&path, &told).unwrap();
            assert_eq!(
                (header.format, header.precision, header.verified),
                (Format::Raw, precision, Verified::Unitarity)
            );
            let found = io::read_links_as(&path, &partition, &Solo, &told).unwrap().0;
            let expected = |x: &f64| if precision == Precision::Double { *x } else { f64::from(*x as f32) };
            assert!(found.reals.iter().zip(&links.reals).all(|(a, b)| *a == expected(b)));
            let other = io::Told { extents: Some([4, 2, 6, 10]), ..told };
            let error = io::header_as(&path, &other).unwrap_err().to_string();
            assert!(error.contains("are no links of 4x2x6x10 without a header"), "{error}");
        }
    }
    write(&path, Format::Ildg, &links).unwrap();
    assert!(io::read_links_as(&path, &partition, &Solo, &told).unwrap().0 == links);
    let other = io::Told { extents: Some([2, 4, 6, 8]), ..told };
    let error = io::header_as(&path, &other).unwrap_err().to_string();
    assert!(error.contains("holds a lattice of 4x2x6x8, but 2x4x6x8 is asked for"), "{error}");
}

#[test]
fn files_that_are_something_else_are_told() {
    let folder = Scratch::new();
    let path = folder.at("a");
    for (bytes, what) in [
        (&b"\x1f\x8b\x08 and more"[..], "packed by gzip: unpack it first"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "a pointer of Git LFS and not the file itself"),
        (b"something else", "no HDF5, ILDG, NERSC, MILC or openQCD configuration"),
    ] {
        fs::write(&path, bytes).unwrap();
        let error = read(&path, EXTENTS).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
    // Nobody waits for what nobody writes.
    for device in ["/dev/null", "/dev/zero"] {
        let error = read(Path::new(device), EXTENTS).unwrap_err().to_string();
        assert_eq!(error, format!("{device}: is no file, but a pipe or a device"));
    }
}
