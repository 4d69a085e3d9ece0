//! HDF5 files of strangers: what was packed without loss is read, everything else is refused before it does harm.

use crate::files::{plaquette, random_links, read, write};
use crate::program::Scratch;
use crate::ranks;
use hdf5::dataset::Layout;
use hdf5::file::LibraryVersion;
use hdf5::types::{TypeDescriptor, VarLenUnicode};
use hdf5::{Extents as Shape, File};
use hmc::comm::Solo;
use hmc::field::HostLinks;
use hmc::io::{self, Format, Place, State};
use hmc::lattice::{Extents, Partition, volume};
use std::fs;
use std::path::Path;

const EXTENTS: Extents = [4, 2, 6, 8];
const TEXTS: [&str; 3] = ["program", "links_checksum", "input"];

fn complex() -> TypeDescriptor {
    use hdf5::types::{CompoundField, CompoundType, FloatSize};
    let real = || TypeDescriptor::Float(FloatSize::U8);
    let fields = vec![CompoundField::new("r", real(), 0, 0), CompoundField::new("i", real(), 8, 1)];
    TypeDescriptor::Compound(CompoundType { fields, size: 16 })
}

#[derive(Clone, Copy, hdf5::H5Type)]
#[repr(C)]
struct Pair {
    r: f64,
    i: f64,
}

/// How a file is packed.
#[derive(Clone, Copy, Debug)]
struct Packing {
    version: LibraryVersion,
    layout: Layout,
    /// Elements of a chunk, beside those of a lattice site.
    chunk: [usize; 7],
    deflate: bool,
    shuffle: bool,
    checksum: bool,
}

/// Copies attributes and datasets, as `h5repack` does.
fn packed(from: &Path, to: &Path, datasets: &[&str], how: Packing) {
    let old = File::open(from).unwrap();
    let new = File::with_options()
        .with_fapl(|p| p.libver_bounds(how.version, LibraryVersion::V110))
        .create(to)
        .unwrap();
    for name in old.attr_names().unwrap() {
        let attribute = old.attr(&name).unwrap();
        match attribute.dtype().unwrap().to_descriptor().unwrap() {
            TypeDescriptor::VarLenUnicode => {
                let text = attribute.read_scalar::<VarLenUnicode>().unwrap();
                new.new_attr::<VarLenUnicode>().create(&*name).unwrap().write_scalar(&text).unwrap();
            }
            TypeDescriptor::Float(_) => {
                let number = attribute.read_scalar::<f64>().unwrap();
                new.new_attr::<f64>().create(&*name).unwrap().write_scalar(&number).unwrap();
            }
            _ => {
                let numbers = attribute.read_raw::<u64>().unwrap();
                let made = new.new_attr::<u64>().shape(attribute.shape()).create(&*name).unwrap();
                made.write_raw(&numbers).unwrap();
            }
        }
    }
    for name in datasets {
        let dataset = old.dataset(name).unwrap();
        let (shape, values) = (dataset.shape(), dataset.read_raw::<Pair>().unwrap());
        let mut parent = String::new();
        for part in name.rsplit_once('/').unwrap().0.split('/') {
            parent = format!("{parent}/{part}");
            if new.group(&parent).is_err() {
                new.create_group(&parent).unwrap();
            }
        }
        let mut builder = new.new_dataset::<Pair>();
        if how.layout == Layout::Chunked {
            builder = builder.chunk(&how.chunk[..shape.len()]);
        } else {
            builder = builder.layout(how.layout);
        }
        builder = if how.shuffle { builder.shuffle() } else { builder };
        builder = if how.deflate { builder.deflate(6) } else { builder };
        builder = if how.checksum { builder.fletcher32() } else { builder };
        builder.shape(shape).create(*name).unwrap().write_raw(&values).unwrap();
    }
}

/// Packs a configuration where it is, as `h5repack -f SHUF -f GZIP=6` does: with the oldest forms of headers.
pub fn repack(path: &Path) {
    let aside = path.with_extension("packed");
    let how = Packing {
        version: LibraryVersion::Earliest,
        layout: Layout::Chunked,
        chunk: [1, 2, 2, 2, 4, 3, 3],
        deflate: true,
        shuffle: true,
        checksum: false,
    };
    packed(path, &aside, &["gauge/U"], how);
    fs::rename(aside, path).unwrap();
}

fn packings() -> Vec<Packing> {
    let mut all = Vec::new();
    for version in [LibraryVersion::Earliest, LibraryVersion::V18, LibraryVersion::V110] {
        let plain = Packing {
            version,
            layout: Layout::Contiguous,
            chunk: [1; 7],
            deflate: false,
            shuffle: false,
            checksum: false,
        };
        all.push(plain);
        // As the writer of versions before 0.3, one for all, of h5py's kind, beyond the end, and more than a page of them.
        for chunk in [
            [1, 6, 2, 4, 4, 3, 3],
            [8, 6, 2, 4, 4, 3, 3],
            [2, 3, 1, 2, 4, 3, 3],
            [3, 4, 2, 3, 3, 2, 3],
            [1, 1, 1, 1, 1, 3, 3],
        ] {
            for [deflate, shuffle, checksum] in
                [[false; 3], [false, false, true], [true, false, false], [true, true, false], [true; 3]]
            {
                all.push(Packing { layout: Layout::Chunked, chunk, deflate, shuffle, checksum, ..plain });
            }
        }
    }
    all
}

/// What `h5repack` and h5py make of a configuration: old and new forms of headers, groups and indices of chunks.
#[test]
fn files_that_were_packed_without_loss_are_read() {
    let folder = Scratch::new();
    let (from, to) = (folder.at("a.h5"), folder.at("b.h5"));
    let links = random_links(EXTENTS, 51);
    write(&from, Format::Hdf5, &links).unwrap();
    let header = io::header(&from).unwrap();
    for (n, how) in packings().into_iter().enumerate() {
        packed(&from, &to, &["gauge/U"], how);
        assert_eq!(io::header(&to).unwrap_or_else(|error| panic!("{how:?}: {error}")), header);
        assert!(read(&to, EXTENTS).unwrap_or_else(|error| panic!("{how:?}: {error}")) == links, "{how:?}");
        if n % 7 == 0 {
            let same = ranks::run(4, |comm| {
                let partition = Partition::new(EXTENTS, [2, 1, 1, 2], 4, comm.rank()).unwrap();
                let part = io::read_links(&to, &partition, &*comm).unwrap().0;
                part.reals == ranks::part(&links.reals, &partition, 72)
            });
            assert_eq!(same, [true; 4], "{how:?}");
        }
    }
    // Small enough for a header.
    let links = random_links([2; 4], 52);
    write(&from, Format::Hdf5, &links).unwrap();
    packed(&from, &to, &["gauge/U"], Packing { layout: Layout::Compact, ..packings()[0] });
    assert!(read(&to, [2; 4]).unwrap() == links);
}

#[test]
fn states_that_were_packed_without_loss_are_read() {
    let folder = Scratch::new();
    let (from, to) = (folder.at("a.h5"), folder.at("b.h5"));
    let links = random_links(EXTENTS, 53);
    let momenta = HostLinks { local: EXTENTS, reals: vec![0.0; links.reals.len()] };
    // More terms than a header has room for.
    let place = |n: usize| Place { term: format!("t{n}"), number: 0, parity: 0, slice_reals: 6, slices: 1 };
    let field = vec![0.0; volume(EXTENTS) * 6];
    let state = State {
        input: "[run]\n".into(),
        links,
        momenta,
        pseudofermions: (0..20).map(|n| (place(n), field.clone())).collect(),
    };
    let (partition, wanted) = (Partition::whole(EXTENTS).unwrap(), (0..20).map(place).collect::<Vec<_>>());
    io::write_state(&from, &state, &partition, &Solo).unwrap();
    let names: Vec<String> = wanted.iter().map(|place| format!("pseudofermion/{}/0", place.term)).collect();
    let names: Vec<&str> =
        ["gauge/U", "momenta/P"].into_iter().chain(names.iter().map(|name| &**name)).collect();
    for how in [packings()[0], packings()[10], packings()[36], packings()[70]] {
        packed(&from, &to, &names, Packing { chunk: [2, 2, 2, 2, 3, 3, 3], ..how });
        let found = io::read_state(&to, &partition, &Solo, &wanted);
        assert!(found.unwrap_or_else(|error| panic!("{how:?}: {error}")) == state, "{how:?}");
    }
}

/// One line names the file and what it is.
fn refused(path: &Path, what: &str) {
    for error in [io::header(path).err(), read(path, EXTENTS).err()] {
        let error = error.unwrap_or_else(|| panic!("{what}: was read")).to_string();
        assert!(error.starts_with(path.to_str().unwrap()), "{error}");
        assert!(error.contains(what) && !error.contains('\n'), "{what}: {error}");
    }
}

#[test]
fn attributes_of_other_shapes_and_types_are_refused() {
    let folder = Scratch::new();
    let path = folder.at("a.h5");
    write(&path, Format::Hdf5, &random_links(EXTENTS, 54)).unwrap();
    let whole = fs::read(&path).unwrap();
    let changed = |name: &str, change: &dyn Fn(&File) -> hdf5::Result<()>, what: &str| {
        fs::write(&path, &whole).unwrap();
        {
            let file = File::open_rw(&path).unwrap();
            file.delete_attr(name).unwrap();
            change(&file).unwrap();
        }
        refused(&path, &format!("attribute {name} {what}"));
    };
    let no_text = "is no text of variable length";
    for name in TEXTS {
        changed(
            name,
            &|file| file.new_attr::<VarLenUnicode>().shape(Shape::Null).create(name).map(drop),
            "has no value (a null dataspace)",
        );
        changed(
            name,
            &|file| file.new_attr::<VarLenUnicode>().shape(1).create(name).map(drop),
            "has the shape [1], not []",
        );
        changed(name, &|file| file.new_attr::<u64>().create(name)?.write_scalar(&7), no_text);
        changed(
            name,
            &|file| file.new_attr::<Pair>().create(name)?.write_scalar(&Pair { r: 1.0, i: 2.0 }),
            no_text,
        );
        let texts = |file: &File| {
            file.new_attr::<hdf5::types::VarLenArray<u64>>()
                .create(name)?
                .write_scalar(&hdf5::types::VarLenArray::from_slice(&[1, 2]))
        };
        changed(name, &texts, "has a type that is not read");
        changed(
            name,
            &|file| file.new_attr::<hdf5::types::FixedAscii<8>>().create(name).map(drop),
            "has a type that is not read",
        );
    }
    for name in ["format_version", "trajectory", "attributes_crc32"] {
        changed(
            name,
            &|file| file.new_attr::<u64>().shape(Shape::Null).create(name).map(drop),
            "has no value (a null dataspace)",
        );
        changed(
            name,
            &|file| file.new_attr::<u64>().shape([1, 1]).create(name).map(drop),
            "has the shape [1, 1], not []",
        );
        changed(name, &|file| file.new_attr::<f64>().create(name)?.write_scalar(&1.0), "is no whole number");
        changed(name, &|file| file.new_attr::<i64>().create(name)?.write_scalar(&-1), "is less than zero");
        changed(
            name,
            &|file| file.new_attr::<bool>().create(name)?.write_scalar(&true),
            "has a type that is not read",
        );
    }
    changed(
        "plaquette",
        &|file| file.new_attr::<f64>().shape(Shape::Null).create("plaquette").map(drop),
        "has no value",
    );
    changed(
        "plaquette",
        &|file| file.new_attr::<f32>().create("plaquette").map(drop),
        "has a type that is not read",
    );
    changed(
        "extents",
        &|file| file.new_attr::<u64>().shape(Shape::Null).create("extents").map(drop),
        "has no value",
    );
    changed(
        "extents",
        &|file| file.new_attr::<u64>().shape(3).create("extents").map(drop),
        "has the shape [3], not [4]",
    );
}

/// A file without its dataset, and another one of that name, with room for its links so that the size is none of the matter.
fn another(path: &Path, whole: &[u8], make: impl FnOnce(&File) -> hdf5::Result<()>) {
    fs::write(path, whole).unwrap();
    {
        let file = File::open_rw(path).unwrap();
        file.unlink("gauge/U").unwrap();
        make(&file).unwrap();
    }
    let size = fs::metadata(path).unwrap().len();
    fs::File::options().write(true).open(path).unwrap().set_len(size + whole.len() as u64).unwrap();
}

#[test]
fn nothing_outside_of_the_file_is_read() {
    let folder = Scratch::new();
    let path = folder.at("a.h5");
    write(&path, Format::Hdf5, &random_links(EXTENTS, 55)).unwrap();
    let whole = fs::read(&path).unwrap();
    fs::write(folder.at("other.h5"), &whole).unwrap();
    let shape = [8, 6, 2, 4, 4, 3, 3];
    another(&path, &whole, |file| file.link_external("other.h5", "/gauge/U", "gauge/U"));
    refused(
        &path,
        "'U' of /gauge/U is a link to a name or to another file; expected is what hmc or h5repack writes",
    );
    another(&path, &whole, |file| file.link_soft("/gauge/V", "gauge/U"));
    refused(&path, "'U' of /gauge/U is a link to a name or to another file");
    another(&path, &whole, |file| {
        let builder = file.new_dataset::<Pair>().shape(shape).external("other.h5", 0, whole.len());
        builder.create("gauge/U").map(drop)
    });
    refused(&path, "/gauge/U is in another file (external storage)");
    for source in [".", "other.h5"] {
        another(&path, &whole, |file| {
            let builder = file.new_dataset::<Pair>().shape(shape);
            builder.virtual_map(source, "/gauge/U", shape, .., shape, ..).create("gauge/U").map(drop)
        });
        refused(&path, "/gauge/U is a virtual dataset");
    }
    another(&path, &whole, |file| {
        file.new_dataset::<Pair>().shape(shape).chunk(shape).nbit().create("gauge/U").map(drop)
    });
    refused(&path, "/gauge/U has filter 5; shuffle, deflate and Fletcher-32 are read");
    another(&path, &whole, |file| {
        let builder = file.new_dataset_builder().empty_as(complex()).chunk(shape);
        builder.shape(shape.map(|n| n..)).create("gauge/U").map(drop)
    });
    refused(&path, "chunks of a dataset that can grow");
    another(&path, &whole, |file| file.new_dataset::<f64>().shape(shape).create("gauge/U").map(drop));
    refused(&path, "/gauge/U does not hold pairs r, i of doubles");
    another(&path, &whole, |file| file.new_dataset::<Pair>().shape(shape).create("gauge/U").map(drop));
    refused(&path, "/gauge/U was never written");
    another(&path, &whole, |file| {
        file.new_dataset::<Pair>().shape(shape).chunk(shape).create("gauge/U").map(drop)
    });
    refused(&path, "was never written");
}

/// A file that is long but for what is in it asks for no memory that the node does not have.
#[test]
fn sparse_files_are_told() {
    let folder = Scratch::new();
    let path = folder.at("a.h5");
    write(&path, Format::Hdf5, &random_links(EXTENTS, 56)).unwrap();
    let large: Extents = [128, 128, 128, 1024];
    {
        let file = File::open_rw(&path).unwrap();
        file.unlink("gauge/U").unwrap();
        file.delete_attr("extents").unwrap();
        file.new_attr::<u64>()
            .shape(4)
            .create("extents")
            .unwrap()
            .write_raw(&large.map(|n| n as u64))
            .unwrap();
        let shape = [1024, 128, 128, 128, 4, 3, 3];
        let builder = file.new_dataset::<Pair>().shape(shape).fill_time(hdf5::dataset::FillTime::Never);
        builder.alloc_time(Some(hdf5::dataset::AllocTime::Early)).create("gauge/U").unwrap();
        forge_attributes(
            &file,
            io::links_checksum(&random_links(EXTENTS, 56), &Partition::whole(EXTENTS).unwrap(), &Solo),
            large,
        );
    }
    // HDF5 itself does not make a file so long that has nothing in it.
    fs::File::options().write(true).open(&path).unwrap().set_len(3 << 40).unwrap();
    assert_eq!(io::header(&path).unwrap().extents, large);
    let error = read(&path, large).unwrap_err().to_string();
    assert!(error.contains("1237.0 GB of memory are needed, this node has"), "{error}");
}

/// Makes `attributes_crc32` right, for these links and extents.
fn forge_attributes(file: &File, checksum: u64, extents: Extents) {
    let text = |name: &str| file.attr(name).unwrap().read_scalar::<VarLenUnicode>().unwrap().to_string();
    let plaquette = file.attr("plaquette").unwrap().read_scalar::<f64>().unwrap();
    let numbers = (1_u64, extents, Some(123_u64), Some(plaquette.to_bits()), Some(checksum));
    let texts = (&Some(text("program")), &Some(text("input")), &None::<String>);
    let crc32 = crc32fast::hash(format!("{numbers:?}{texts:?}").as_bytes());
    file.attr("attributes_crc32").unwrap().write_scalar(&u64::from(crc32)).unwrap();
    file.delete_attr("links_checksum").unwrap();
    let sum: VarLenUnicode = format!("{checksum:016x}").parse().unwrap();
    file.new_attr::<VarLenUnicode>().create("links_checksum").unwrap().write_scalar(&sum).unwrap();
}

/// With right checksums, links are still what those of every other format must be.
#[test]
fn links_of_hdf5_are_verified_by_more_than_their_checksum() {
    let folder = Scratch::new();
    let path = folder.at("a.h5");
    let links = random_links(EXTENTS, 57);
    write(&path, Format::Hdf5, &links).unwrap();
    let whole = fs::read(&path).unwrap();
    let forged = |links: &HostLinks, plaquette: f64| {
        fs::write(&path, &whole).unwrap();
        let file = File::open_rw(&path).unwrap();
        let pairs: Vec<Pair> = links.reals.chunks_exact(2).map(|z| Pair { r: z[0], i: z[1] }).collect();
        file.dataset("gauge/U").unwrap().write_raw(&pairs).unwrap();
        file.attr("plaquette").unwrap().write_scalar(&plaquette).unwrap();
        forge_attributes(
            &file,
            io::links_checksum(links, &Partition::whole(EXTENTS).unwrap(), &Solo),
            EXTENTS,
        );
        drop(file);
        read(&path, EXTENTS).map_err(|error| error.to_string())
    };
    let right = plaquette(&links);
    assert!(forged(&links, right).unwrap() == links);
    let with = |change: &dyn Fn(usize, f64) -> f64| HostLinks {
        local: EXTENTS,
        reals: links.reals.iter().enumerate().map(|(n, &x)| change(n, x)).collect(),
    };
    for (odd, what) in [
        (with(&|n, x| if n == 500 { f64::NAN } else { x }), "is not unitary"),
        (with(&|n, x| if n == 500 { f64::INFINITY } else { x }), "is not unitary"),
        (with(&|_, _| 0.0), "is not unitary"),
        (with(&|_, x| 2.0 * x), "is not unitary"),
        (
            with(&|n, x| if n / 18 == 7 { 1.001 * x } else { x }),
            "link t of site [1, 0, 0, 0] (x, y, z, t) is not unitary",
        ),
        (with(&|n, x| if n == 99 { 1e200 } else { x }), "is not unitary"),
        (with(&|_, x| -x), "not in SU(3): det U is not 1 on 1536 links (-1 on 1536 of them)"),
    ] {
        let error = forged(&odd, right).unwrap_err();
        assert!(error.contains(what), "{what}: {error}");
    }
    for wrong in [f64::NAN, right + 1e-9, -right, 0.0] {
        let error = forged(&links, wrong).unwrap_err();
        assert!(error.contains(&format!("damaged: plaquette = {wrong:?} in the header, ")), "{error}");
    }
}
