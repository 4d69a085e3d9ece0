//! Configurations and checkpoints in HDF5, raw and with altered objects.
//!
//! HDF5's metadata have checksums, so that arbitrary bytes seldom come past the library itself, which is not
//! instrumented. So most bytes are taken as a list of what is done to a whole file, by the library.

use super::cursor::Cursor;
use super::memory::bounded;
use super::scratch::{Scratch, names};
use hdf5::Extents as Shape;
use hdf5::types::{VarLenAscii, VarLenUnicode};
use hmc::comm::Solo;
use hmc::field::HostLinks;
use hmc::io::{self, Format, Meta};
use hmc::lattice::{Extents, Partition};
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

const EXTENTS: Extents = [2; 4];
/// The attributes of a checkpoint, and one that nobody knows.
const ATTRIBUTES: [&str; 11] = [
    "format_version",
    "program",
    "extents",
    "trajectory",
    "plaquette",
    "links_checksum",
    "input",
    "solvers",
    "state",
    "attributes_crc32",
    "more",
];
/// The objects of a checkpoint.
const OBJECTS: [&str; 2] = ["gauge/U", "gauge"];

fn partition() -> Partition {
    Partition::whole(EXTENTS).expect("even extents")
}

/// A whole checkpoint.
fn checkpoint() -> &'static [u8] {
    static FILE: OnceLock<Vec<u8>> = OnceLock::new();
    FILE.get_or_init(|| {
        let folder = Scratch::new();
        let meta = Meta {
            trajectory: Some(7),
            plaquette: 1.0,
            input: "[run]\nname = \"x\"\n".into(),
            solvers: Some("{}".into()),
            logical_name: None,
        };
        let links = HostLinks::unit(EXTENTS);
        let state = "{\"trajectories\":7,\"seed\":1}";
        fs::read(io::save(folder.path(), &links, &partition(), &Solo, &meta, state).unwrap()).unwrap()
    })
}

/// The first byte says what the others are: a file, what is done to a checkpoint by the library or to its bytes, what a new
/// configuration says.
pub(super) fn run(bytes: &[u8]) {
    let (kind, rest) = bytes.split_first().unwrap_or((&0, &[]));
    let folder = Scratch::new();
    match kind % 5 {
        0 => raw(&folder, rest),
        3 => written(&folder, &mut Cursor(rest)),
        4 => {
            let path = folder.file("given", &patched(checkpoint(), &mut Cursor(rest)));
            refused_or_same(&folder, &path);
        }
        _ => {
            let path = folder.file("given", checkpoint());
            alter(&path, &mut Cursor(rest), &ATTRIBUTES, &OBJECTS);
            refused_or_same(&folder, &path);
        }
    }
}

fn raw(folder: &Scratch, bytes: &[u8]) {
    let path = folder.file("given", &[b"\x89HDF\r\n\x1a\n", bytes].concat());
    match bounded(bytes.len(), 16, || io::header(&path)) {
        Err(error) => names(error, &path),
        Ok(header) => drop(io::read_links(&path, &Partition::whole(header.extents).unwrap(), &Solo)),
    }
}

/// A file with other bytes: each behind its place.
pub(super) fn patched(file: &[u8], cursor: &mut Cursor) -> Vec<u8> {
    let mut file = file.to_vec();
    while !cursor.is_empty() {
        let place = usize::from(cursor.byte()) * 256 + usize::from(cursor.byte());
        let place = place % file.len();
        file[place] = cursor.byte();
    }
    file
}

/// What was a checkpoint is refused, or is read as before.
fn refused_or_same(folder: &Scratch, path: &Path) {
    let whole = folder.file("whole", checkpoint());
    let (links, header) = io::read_links(&whole, &partition(), &Solo).unwrap();
    let size = fs::metadata(path).unwrap().len() as usize;
    match bounded(size, 16, || io::header(path)) {
        Err(error) => names(error, path),
        Ok(told) => assert_eq!(told, header),
    }
    match bounded(size, 16, || io::read_links(path, &partition(), &Solo)) {
        Err(error) => names(error, path),
        Ok(told) => assert_eq!(told, (links, header)),
    }
}

/// A configuration that says any text and number is read again as it was written.
fn written(folder: &Scratch, cursor: &mut Cursor) {
    let meta = Meta {
        trajectory: (cursor.byte() % 2 == 1).then(|| cursor.integer() % (io::MOST_TRAJECTORIES + 1)),
        plaquette: if cursor.byte().is_multiple_of(4) { f64::from_bits(cursor.integer()) } else { 1.0 },
        input: cursor.text(),
        solvers: (cursor.byte() % 2 == 1).then(|| cursor.text()),
        logical_name: None,
    };
    let path = folder.path().join("written");
    let links = HostLinks::unit(EXTENTS);
    match io::write_links(&path, Format::Hdf5, &links, &partition(), &Solo, &meta) {
        // HDF5 has no zero in a text; and the plaquette must be that of unit links.
        Err(error) => {
            names(&error, folder.path());
            assert!(meta.plaquette != 1.0 || format!("{meta:?}").contains("\\0"), "{error}: {meta:?}");
        }
        Ok(()) => {
            let (back, header) = io::read_links(&path, &partition(), &Solo).unwrap();
            assert_eq!(back, links);
            assert!((meta.plaquette - 1.0).abs() < 1e-13);
            assert_eq!(header.plaquette.map(f64::to_bits), Some(meta.plaquette.to_bits()));
            assert_eq!((header.trajectory, header.input), (meta.trajectory, Some(meta.input)));
            assert_eq!((header.solvers, header.state), (meta.solvers, None));
        }
    }
}

/// Alters attributes of the root and objects of a file, as long as there are bytes. What the library refuses is left out.
pub(super) fn alter(path: &Path, cursor: &mut Cursor, attributes: &[&str], objects: &[&str]) {
    let file = hdf5::File::open_rw(path).unwrap();
    while !cursor.is_empty() {
        let (what, which) = (cursor.byte(), usize::from(cursor.byte()));
        let _ = match what % 16 {
            0..12 => attribute(&file, attributes[which % attributes.len()], what % 16, cursor),
            other => object(&file, objects[which % objects.len()], other, cursor),
        };
    }
}

/// Removes an attribute, and makes another of its name.
fn attribute(file: &hdf5::File, name: &str, kind: u8, cursor: &mut Cursor) -> hdf5::Result<()> {
    let _ = file.delete_attr(name);
    match kind {
        0 => Ok(()),
        1 => file.new_attr::<u64>().create(name)?.write_scalar(&cursor.integer()),
        2 => file.new_attr::<f64>().create(name)?.write_scalar(&f64::from_bits(cursor.integer())),
        3 => file.new_attr::<i32>().create(name)?.write_scalar(&(cursor.integer() as i32)),
        4 | 5 => {
            let numbers: Vec<u64> = (0..cursor.byte() % 8).map(|_| cursor.integer()).collect();
            file.new_attr::<u64>().shape(numbers.len()).create(name)?.write_raw(&numbers)
        }
        6 => {
            let numbers: Vec<u64> = (0..4).map(|_| u64::from(cursor.byte())).collect();
            file.new_attr::<u64>().shape(4).create(name)?.write_raw(&numbers)
        }
        7 => {
            let text = hdf5::types::FixedAscii::<16>::from_ascii(&cursor.text()).unwrap_or_default();
            file.new_attr::<hdf5::types::FixedAscii<16>>().create(name)?.write_scalar(&text)
        }
        8 => {
            let texts: Vec<VarLenUnicode> =
                (0..cursor.byte() % 4).filter_map(|_| cursor.text().parse().ok()).collect();
            file.new_attr::<VarLenUnicode>().shape(texts.len()).create(name)?.write_raw(&texts)
        }
        9 => {
            let text = VarLenAscii::from_ascii(&cursor.text()).unwrap_or_default();
            file.new_attr::<VarLenAscii>().create(name)?.write_scalar(&text)
        }
        // Without a value: what is read of it would be memory that nobody wrote.
        10 if cursor.byte().is_multiple_of(2) => {
            file.new_attr::<VarLenUnicode>().shape(Shape::Null).create(name).map(drop)
        }
        10 => file.new_attr::<u64>().shape(Shape::Null).create(name).map(drop),
        _ => {
            let text: VarLenUnicode = cursor.text().parse().unwrap_or_default();
            file.new_attr::<VarLenUnicode>().create(name)?.write_scalar(&text)
        }
    }
}

/// Removes an object, and makes another of its name.
fn object(file: &hdf5::File, name: &str, kind: u8, cursor: &mut Cursor) -> hdf5::Result<()> {
    let _ = file.unlink(name);
    let _ = file.create_group("gauge");
    let mut shape: Vec<usize> = EXTENTS.into_iter().chain([4, 3, 3]).collect();
    let place = usize::from(cursor.byte()) % (shape.len() + 1);
    match shape.get_mut(place) {
        // A dataset that is large, but has no chunk.
        Some(extent) => *extent = 1 << (cursor.byte() % 40),
        None => shape.truncate(usize::from(cursor.byte()) % 7),
    }
    match kind {
        12 => file.create_group(name).map(drop),
        13 => match cursor.byte() % 6 {
            4 => file.link_external("whole", "/gauge/U", name),
            5 => {
                let (builder, source) =
                    (file.new_dataset_builder().empty_as(complex()).shape(&shape), shape.clone());
                builder.virtual_map(".", "/gauge/U", source.clone(), .., source, ..).create(name).map(drop)
            }
            to => file.link_soft(["/gauge", "/nowhere", "/gauge/U", "/"][usize::from(to)], name),
        },
        14 => file.new_dataset::<f64>().shape(shape).chunk_min_kb(1).create(name).map(drop),
        _ => {
            let complex = file.new_dataset_builder().empty_as(complex()).shape(shape).chunk_min_kb(1);
            complex.create(name).map(drop)
        }
    }
}

/// The type of links.
fn complex() -> hdf5::types::TypeDescriptor {
    use hdf5::types::{CompoundField, CompoundType, FloatSize, TypeDescriptor};
    let real = || TypeDescriptor::Float(FloatSize::U8);
    let fields = vec![CompoundField::new("r", real(), 0, 0), CompoundField::new("i", real(), 8, 1)];
    TypeDescriptor::Compound(CompoundType { fields, size: 16 })
}
