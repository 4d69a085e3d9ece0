//! ILDG's and SciDAC's files: the records that readers ask for, and what is odd about those of others.

use crate::files::{
    LimeRecord, lime_file, lime_records, meta, random_links, read, without_scidac_checksum, written,
};
use crate::program::Scratch;
use crate::ranks;
use hmc::comm::Solo;
use hmc::io::{self, Format, IoError, Meta, Precision, Verified};
use hmc::lattice::{Extents, Partition, volume};
use std::fs;

const EXTENTS: Extents = [4, 2, 6, 8];

/// What QIO reads, in its order, with its flags; Grid reads no file without format, logical name and checksum.
#[test]
fn files_have_the_records_that_readers_ask_for() {
    let folder = Scratch::new();
    let path = folder.at("cfg 7.ildg");
    let links = random_links(EXTENTS, 15);
    let partition = Partition::whole(EXTENTS).unwrap();
    io::write_links(&path, Format::Ildg, &links, &partition, &Solo, &meta()).unwrap();
    let records = lime_records(&fs::read(&path).unwrap());
    let kinds: Vec<(&str, u16)> = records.iter().map(|record| (&*record.kind, record.flags)).collect();
    let expected = [
        ("scidac-private-file-xml", 0x8000),
        ("scidac-file-xml", 0x4000),
        ("scidac-private-record-xml", 0x8000),
        ("scidac-record-xml", 0),
        ("ildg-format", 0),
        ("ildg-data-lfn", 0),
        ("ildg-binary-data", 0),
        ("scidac-checksum", 0x4000),
    ];
    assert_eq!(kinds, expected);
    let text = |n: usize| std::str::from_utf8(&records[n].data).unwrap();
    let has = |n: usize, parts: &[&str]| {
        for part in parts {
            assert!(text(n).contains(part), "{part}: {}", text(n));
        }
    };
    has(0, &["<scidacFile><version>1.1</version><spacetime>4</spacetime><dims>4 2 6 8 </dims><volfmt>0<"]);
    has(2, &["<scidacRecord><version>1.1</version><date></date><recordtype>0</recordtype>"]);
    has(2, &["<datatype>USQCD_D3_ColorMatrix</datatype><precision>D</precision><colors>3</colors>"]);
    has(2, &["<typesize>144</typesize><datacount>4</datacount>"]);
    has(3, &["<usqcdInfo><version>1.0</version><plaq>", "<linktr>", "<info>hmc ", ", trajectory 123</info>"]);
    has(4, &["<ildgFormat ", "<version>1.0</version><field>su3gauge</field><precision>64</precision>"]);
    has(4, &["<lx>4</lx><ly>2</ly><lz>6</lz><lt>8</lt>"]);
    assert_eq!(text(5), "lfn://hmc/cfg 7.ildg");
    let data = &records[6].data;
    let mut sums = [0_u32; 2];
    for (s, bytes) in data.chunks_exact(576).enumerate() {
        let reals = bytes.chunks_exact(8).map(|b| f64::from_be_bytes(b.try_into().unwrap()));
        assert!(reals.eq((0..4).flat_map(|mu| links.link(s, mu).iter().copied())));
        let crc = crc32fast::hash(bytes);
        sums = [sums[0] ^ crc.rotate_left(s as u32 % 29), sums[1] ^ crc.rotate_left(s as u32 % 31)];
    }
    assert_eq!(data.len(), volume(EXTENTS) * 576);
    let [a, b] = sums;
    has(7, &["<scidacChecksum>", &format!("<suma>{a:x}</suma>"), &format!("<sumb>{b:x}</sumb>")]);
    let header = io::header(&path).unwrap();
    assert_eq!((header.trajectory, header.verified), (Some(123), Verified::Checksum));
    assert!(header.program.unwrap().starts_with("hmc ") && header.notes.is_empty());
    // Another logical name.
    let named = Meta { logical_name: Some("lfn://LDG/test/7".into()), ..meta() };
    io::write_links(&path, Format::Ildg, &links, &partition, &Solo, &named).unwrap();
    assert_eq!(io::header(&path).unwrap().logical_name.as_deref(), Some("lfn://LDG/test/7"));
    assert_eq!(lime_records(&fs::read(&path).unwrap())[5].data, b"lfn://LDG/test/7");
    // Files of 0.1.0: one message without SciDAC's records and logical name.
    let mut old = records.clone();
    old.retain(|record| ["ildg-format", "ildg-binary-data", "scidac-checksum"].contains(&&*record.kind));
    old[0].flags = 0x8000;
    fs::write(&path, lime_file(&old)).unwrap();
    assert!(read(&path, EXTENTS).unwrap() == links && io::header(&path).unwrap().notes.is_empty());
}

/// Files of QIO without ILDG's records, as MILC and Chroma write them: zeros end the texts.
#[test]
fn scidac_files_are_read() {
    let folder = Scratch::new();
    let path = folder.at("a.scidac");
    let links = random_links(EXTENTS, 16);
    let of = |precision: Precision| {
        let single = precision == Precision::Single;
        let record = |kind: &str, flags: u16, data: &[u8]| LimeRecord {
            kind: kind.into(),
            flags,
            data: data.to_vec(),
        };
        let (name, letter, size) = if single { ("QDP_F3", "F", 72) } else { ("USQCD_D3", "D", 144) };
        let private = format!(
            "<?xml version=\"1.0\"?><scidacRecord><version>1.0</version><date>today</date>\
             <globaldata>0</globaldata><datatype>{name}_ColorMatrix</datatype><precision>{letter}</precision>\
             <colors>3</colors><typesize>{size}</typesize><datacount>4</datacount></scidacRecord>\0"
        );
        let mut data = Vec::new();
        for &x in &links.reals {
            if single { data.extend((x as f32).to_be_bytes()) } else { data.extend(x.to_be_bytes()) }
        }
        let mut sums = [0_u32; 2];
        for (s, bytes) in data.chunks_exact(4 * size).enumerate() {
            let crc = crc32fast::hash(bytes);
            sums = [sums[0] ^ crc.rotate_left(s as u32 % 29), sums[1] ^ crc.rotate_left(s as u32 % 31)];
        }
        let [a, b] = sums;
        let sums = format!("<scidacChecksum><suma>{a:x}</suma><sumb>{b:x}</sumb></scidacChecksum>\0");
        let file =
            b"<scidacFile><spacetime>4</spacetime><dims>4 2 6 8 </dims><volfmt>0</volfmt></scidacFile>\0";
        vec![
            record("scidac-private-file-xml", 0x8000, file),
            record("scidac-file-xml", 0x4000, b"no XML\0"),
            record("scidac-private-record-xml", 0x8000, private.as_bytes()),
            record("scidac-record-xml", 0, b"nor this\0"),
            record("scidac-binary-data", 0, &data),
            record("scidac-checksum", 0x4000, sums.as_bytes()),
        ]
    };
    for precision in [Precision::Single, Precision::Double] {
        fs::write(&path, lime_file(&of(precision))).unwrap();
        let header = io::header(&path).unwrap();
        assert_eq!((header.precision, header.extents), (precision, EXTENTS));
        assert_eq!((header.verified, header.notes.len()), (Verified::Checksum, 0), "{:?}", header.notes);
        let expected: Vec<f64> = match precision {
            Precision::Single => links.reals.iter().map(|&x| f64::from(x as f32)).collect(),
            Precision::Double => links.reals.clone(),
        };
        assert!(read(&path, EXTENTS).unwrap().reals == expected);
        let parts = ranks::run(4, |comm| {
            let partition = Partition::new(EXTENTS, [2, 1, 1, 2], 4, comm.rank()).unwrap();
            io::read_links(&path, &partition, &*comm).unwrap().0.reals
                == ranks::part(&expected, &partition, 72)
        });
        assert!(parts.into_iter().all(|same| same));
    }
    // The four links as one object.
    let mut records = of(Precision::Double);
    let text = String::from_utf8(records[2].data.clone()).unwrap();
    let one = text.replace("<typesize>144</typesize><datacount>4", "<typesize>576</typesize><datacount>1");
    records[2].data = one.into_bytes();
    fs::write(&path, lime_file(&records)).unwrap();
    assert!(read(&path, EXTENTS).unwrap() == links);
    // What is no such field, in one line.
    let with = |n: usize, from: &str, to: &str| {
        let mut records = of(Precision::Double);
        let text = String::from_utf8(records[n].data.clone()).unwrap();
        assert!(text.contains(from));
        records[n].data = text.replace(from, to).into_bytes();
        fs::write(&path, lime_file(&records)).unwrap();
        let error = read(&path, EXTENTS).unwrap_err();
        assert!(matches!(error, IoError::Malformed { .. } | IoError::Damaged { .. }), "{error}");
        error.to_string()
    };
    assert!(with(2, "<datacount>4", "<datacount>1").contains("1 of USQCD_D3_ColorMatrix (144 bytes) a site"));
    assert!(
        with(2, "<typesize>144</typesize><datacount>4", "<typesize>288</typesize><datacount>2")
            .contains("2 of")
    );
    assert!(with(2, "<globaldata>0", "<globaldata>1").contains("no field on the whole lattice"));
    assert!(with(0, "<volfmt>0", "<volfmt>1").contains("one of several files"));
    assert!(with(0, "4 2 6 8", "4 2 6").contains("not four numbers"));
    assert!(with(0, "4 2 6 8", "4 2 6 4").contains("the lattice needs"));
    assert!(with(5, "<suma>", "<suma>1").contains("suma"));
}

#[test]
fn odd_records_are_told_and_read() {
    let folder = Scratch::new();
    let path = folder.at("a");
    let links = random_links(EXTENTS, 17);
    let good = written(&folder, Format::Ildg, &links);
    let told = |change: &dyn Fn(&mut Vec<LimeRecord>)| {
        let mut records = lime_records(&good);
        change(&mut records);
        fs::write(&path, lime_file(&records)).unwrap();
        assert!(read(&path, EXTENTS).unwrap() == links);
        io::header(&path).unwrap().doubts(&path)
    };
    let at = |what: &str| vec![format!("{}: {what}", path.display())];
    assert!(told(&|_| {}).is_empty());
    let strange = LimeRecord { kind: "my-notes".into(), flags: 0xc000, data: b"?".to_vec() };
    let unknown = told(&|records| records.push(strange.clone()));
    assert_eq!(unknown, at("LIME records of unknown types, not read: my-notes"));
    let no_start = told(&|records| records[2].flags = 0);
    assert_eq!(
        no_start,
        at("LIME records at the start of a message without its flag: scidac-private-record-xml")
    );
    let no_end = told(&|records| records.last_mut().unwrap().flags = 0);
    assert_eq!(
        no_end,
        at("LIME records at the end of the file without the flag of a message's end: scidac-checksum")
    );
    let inside = told(&|records| {
        for n in [4, 5] {
            records[n].flags |= 0x8000;
        }
    });
    assert_eq!(
        inside,
        at("LIME records inside a message with the flag of its start: ildg-format, ildg-data-lfn")
    );
    let twice = told(&|records| {
        let copy = LimeRecord { data: vec![0; 8], ..records[6].clone() };
        records.insert(7, copy);
    });
    assert_eq!(twice, at("2 LIME records ildg-binary-data: the first is read"));
    let other = told(&|records| {
        let text = String::from_utf8(records[0].data.clone()).unwrap();
        records[0].data = text.replace("4 2 6 8", "4 2 6 4").into_bytes();
    });
    assert_eq!(
        other,
        at("scidac-private-file-xml has dims [4, 2, 6, 4], ildg-format has [4, 2, 6, 8], which hold")
    );
}

/// Without a checksum the plaquette and link trace of USQCD's record are compared.
#[test]
fn the_plaquette_stands_in_for_a_checksum() {
    let folder = Scratch::new();
    let path = folder.at("a");
    let links = random_links(EXTENTS, 18);
    let good = written(&folder, Format::Ildg, &links);
    let bare = without_scidac_checksum(&good);
    fs::write(&path, &bare).unwrap();
    assert!(read(&path, EXTENTS).unwrap() == links);
    assert_eq!(io::header(&path).unwrap().verified, Verified::Plaquette);
    let swap = |file: &[u8]| {
        let mut records = lime_records(file);
        let data = &mut records.iter_mut().find(|record| record.kind == "ildg-binary-data").unwrap().data;
        for k in 0..144 {
            data.swap(k, 144 * 77 + k);
        }
        lime_file(&records)
    };
    fs::write(&path, swap(&bare)).unwrap();
    assert!(read(&path, EXTENTS).unwrap_err().to_string().contains("damaged: plaq = "));
    fs::write(&path, swap(&good)).unwrap();
    assert!(read(&path, EXTENTS).unwrap_err().to_string().contains("damaged: checksums "));
}

/// XML is more than tags: files of other programs have comments, namespaces, attributes, entities and CDATA in their records.
#[test]
fn records_are_read_as_xml() {
    let folder = Scratch::new();
    let path = folder.at("a");
    let links = random_links(EXTENTS, 19);
    let good = written(&folder, Format::Ildg, &links);
    let with = |kind: &str, text: &str| {
        let mut records = lime_records(&good);
        let record = records.iter_mut().find(|record| record.kind == kind).unwrap();
        record.data = text.as_bytes().to_vec();
        fs::write(&path, lime_file(&records)).unwrap();
        read(&path, EXTENTS).map(|found| assert!(found == links)).map_err(|error| error.to_string())
    };
    let format = "<?xml version='1.0'?><!-- <lx>99</lx> --><i:ildgFormat xmlns:i='http://www.lqcd.org/ildg'>\n\
         <i:version>1.0</i:version><i:field>su3<![CDATA[gauge]]></i:field><i:precision unit='a>b'>&#54;4</i:precision>\
         <i:lx>\n4</i:lx><i:ly> 2 </i:ly><i:lz>6<!-- not 7 --></i:lz><i:lt>8</i:lt></i:ildgFormat>\n\0\0";
    with("ildg-format", format).unwrap();
    assert!(with("ildg-format", "<ildgFormat><lx>4</lx>").unwrap_err().contains("ildg-format is no XML: "));
    let bomb = "<!DOCTYPE a [<!ENTITY b '4'>]><ildgFormat><lx>&b;</lx></ildgFormat>";
    assert!(with("ildg-format", bomb).unwrap_err().contains("ildg-format is no XML: "));
    let sums = lime_records(&good).pop().unwrap();
    let text = String::from_utf8(sums.data).unwrap();
    with("scidac-checksum", &text.replace("<suma>", "<suma><!-- a -->")).unwrap();
    let cdata = text.replace("<sumb>", "<sumb><![CDATA[").replace("</sumb>", "]]></sumb>");
    with("scidac-checksum", &cdata).unwrap();
    // A comment says nothing.
    let hidden = text.replace("<suma>", "<!-- <suma>0</suma> --><suma>");
    with("scidac-checksum", &hidden).unwrap();
}

#[test]
fn what_other_programs_leave_out_or_add_is_told() {
    let folder = Scratch::new();
    let path = folder.at("a");
    let links = random_links(EXTENTS, 20);
    let good = written(&folder, Format::Ildg, &links);
    let records = lime_records(&good);
    let told = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        read(&path, EXTENTS).map(|found| assert!(found == links)).map_err(|error| error.to_string())
    };
    // Blocks that are filled up, and bytes of something else.
    told(&[&good[..], &[0; 300]].concat()).unwrap();
    assert_eq!(io::header(&path).unwrap().notes, ["300 zeros behind the last LIME record, not read"]);
    told(&[&good[..], &[0; 3]].concat()).unwrap();
    let error = told(&[&good[..], b"and more"].concat()).unwrap_err();
    assert!(
        error.contains(&format!("the 8 bytes from byte {} on are no LIME record", good.len())),
        "{error}"
    );
    // One of several files of QIO, though ILDG's records are there.
    let part = |n: usize, from: &str, to: &str| {
        let mut records = records.clone();
        let text = String::from_utf8(records[n].data.clone()).unwrap();
        assert!(text.contains(from));
        records[n].data = text.replace(from, to).into_bytes();
        lime_file(&records)
    };
    assert!(told(&part(0, "<volfmt>0", "<volfmt>1")).unwrap_err().contains("one of several files of QIO"));
    assert!(
        told(&part(2, "<recordtype>0", "<recordtype>2"))
            .unwrap_err()
            .contains("no field on the whole lattice")
    );
    // Links alone, as Gaugefields.jl writes them.
    let mut bare = records.clone();
    bare.retain(|record| record.kind == "ildg-binary-data");
    bare[0].flags = 0xc000;
    let error = told(&lime_file(&bare)).unwrap_err();
    assert!(
        error.contains("no LIME record ildg-format; tell its extents: --extents 8x8x8x16, say"),
        "{error}"
    );
    let with = io::Told { extents: Some(EXTENTS), ..io::Told::default() };
    assert_eq!(io::header_as(&path, &with).unwrap().verified, Verified::Unitarity);
    assert!(io::read_links_as(&path, &Partition::whole(EXTENTS).unwrap(), &Solo, &with).unwrap().0 == links);
    // tmLQCD's record.
    let own = records[3].data.clone();
    let own = String::from_utf8(own).unwrap();
    let plaquette: f64 = own.split_once("<plaq>").unwrap().1.split_once('<').unwrap().0.parse().unwrap();
    let xlf = |plaquette: f64| {
        LimeRecord {
        kind: "xlf-info".into(),
        flags: 0xc000,
        data: format!("\n plaquette = {plaquette:14.12}\n trajectory nr = 77\n beta = 3.9, kappa = 0.16\n hmcversion = tmLQCD 6.1.0\n")
            .into_bytes(),
    }
    };
    let mut tmlqcd = records.clone();
    tmlqcd.retain(|record| ["ildg-format", "ildg-binary-data"].contains(&&*record.kind));
    tmlqcd[0].flags = 0x8000;
    tmlqcd[1].flags = 0x4000;
    tmlqcd.push(xlf(plaquette));
    told(&lime_file(&tmlqcd)).unwrap();
    let header = io::header(&path).unwrap();
    assert_eq!((header.trajectory, header.verified, header.notes.len()), (Some(77), Verified::Plaquette, 0));
    assert_eq!(header.program.as_deref(), Some("tmLQCD 6.1.0"));
    tmlqcd[2] = xlf(plaquette + 1e-9);
    assert!(told(&lime_file(&tmlqcd)).unwrap_err().contains("damaged: plaquette = "));
}
