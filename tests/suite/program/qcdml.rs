//! `hmc qcdml`: the elements of QCDml 2.0, in the order of its schemas.

use crate::program::{Ended, Scratch, parallel, with};
use std::fs;

const PURE: &str = r#"[run]
name = "pure"
seed = 3
trajectories = 2
thermalisation = 1
save_format = "ildg"
lfn = "lfn://LDG/test/pure"
[lattice]
extents = [4, 4, 4, 6]
[gauge]
action = "iwasaki"
beta = 2.1
[[hmc.level]]
integrator = "2mn"
steps = 2
terms = ["gauge"]
"#;

const TOLD: [&str; 12] = [
    "--uri",
    "mc://LDG/test/pure",
    "--collaboration",
    "Test & Co",
    "--project",
    "p",
    "--participant",
    "N. N.",
    "--institution",
    "U",
    "--license",
    "https://creativecommons.org/licenses/by/4.0/",
];

fn qcdml(scratch: &Scratch, more: &[&str]) -> Ended {
    scratch.run(0, &[&["qcdml"], &TOLD[..], more].concat())
}

/// The texts of a document of an element a line, each with the names of the elements around it, in order.
fn leaves(text: &str) -> Vec<(String, String)> {
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("<?xml version=\"1.0\" encoding=\"UTF-8\"?>"));
    let (mut around, mut found) = (Vec::new(), Vec::new());
    for line in lines {
        let tag = line.trim().strip_prefix('<').unwrap();
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(around.pop(), Some(name.trim_end_matches('>').to_owned()));
        } else if let Some((name, rest)) = tag.split_once('>').filter(|(_, rest)| !rest.is_empty()) {
            let value = rest.strip_suffix(&format!("</{name}>")).unwrap();
            found.push(([&around.join("/"), name].join("/"), value.to_owned()));
        } else if let Some(name) = tag.strip_suffix("/>") {
            found.push(([&around.join("/"), name].join("/"), String::new()));
        } else {
            let name = tag.trim_end_matches('>').split(' ').next().unwrap();
            around.push(name.to_owned());
        }
    }
    assert!(around.is_empty());
    found
}

fn is_in_order(leaves: &[(String, String)], expected: &[(&str, &str)]) {
    let mut rest = leaves.iter();
    for (path, value) in expected {
        assert!(rest.any(|(p, v)| p.ends_with(path) && v == value), "{path} = {value}: {leaves:#?}");
    }
}

#[test]
fn an_ensemble_and_its_configurations() {
    let scratch = Scratch::new();
    let log = scratch.chain(0, &format!("{PURE}{}", parallel([1; 4], 0, 1)));
    assert!(!log.err.contains("warning"), "{log:?}");
    let ended = qcdml(&scratch, &["ensembles/pure"]);
    ended.succeeded();
    assert_eq!(ended.out, "ensembles/pure/qcdml: the ensemble and 2 configurations\n");
    assert!(ended.err.is_empty(), "{ended:?}");
    let read = |name: &str| fs::read_to_string(scratch.at(&format!("ensembles/pure/qcdml/{name}"))).unwrap();
    let ensemble = read("ensemble.xml");
    assert!(ensemble.contains("<markovChain xmlns=\"http://www.lqcd.org/ildg/QCDml/ensemble2.0\">"));
    let glossary = "http://www.lqcd.org/ildg/actionGlossaries/iwasakiRGGluonAction.pdf";
    is_in_order(
        &leaves(&ensemble),
        &[
            ("markovChain/markovChainURI", "mc://LDG/test/pure"),
            ("management/collaboration", "Test &amp; Co"),
            ("management/projectName", "p"),
            ("management/ensembleLabel", "pure"),
            ("management/archiveHistory", ""),
            ("license/licenseURI", "https://creativecommons.org/licenses/by/4.0/"),
            ("physics/size/x", "4"),
            ("physics/size/t", "6"),
            ("action/gluon/iwasakiRGGluonAction/glossary", glossary),
            ("iwasakiRGGluonAction/gluonField/gaugeGroup", "SU(3)"),
            ("gluonField/representation", "fundamental"),
            ("gluonField/boundaryCondition/t", "periodic"),
            ("iwasakiRGGluonAction/beta", "2.1"),
            ("iwasakiRGGluonAction/normalisation", "cs_sum_to_one"),
            ("iwasakiRGGluonAction/c0", "3.648"),
            ("iwasakiRGGluonAction/c1", "-0.331"),
            ("iwasakiRGGluonAction/c2", "0"),
            ("iwasakiRGGluonAction/c3", "0"),
            ("markovChain/algorithm/name", "HMC"),
            ("algorithm/exact", "true"),
            ("algorithm/reweightingNeeded", "false"),
            ("parameters/parameter/value", "2mn"),
        ],
    );
    assert!(!ensemble.contains("<quark>"));
    for number in [1, 2] {
        let name = format!("cfg_00000{number}");
        let text = read(&format!("{name}.xml"));
        assert!(text.contains("<gaugeConfiguration xmlns=\"http://www.lqcd.org/ildg/QCDml/config2.0\">"));
        let file = fs::read(scratch.at(&format!("ensembles/pure/ildg/{name}.ildg"))).unwrap();
        let records = crate::files::lime_records(&file);
        let of = |kind: &str| &records.iter().find(|record| record.kind == kind).unwrap().data;
        let plaquette = scratch.info(&scratch.at(&format!("ensembles/pure/ildg/{name}.ildg")))["plaquette"]
            .as_f64()
            .unwrap();
        let found = leaves(&text);
        is_in_order(
            &found,
            &[
                ("gaugeConfiguration/dataLFN", &format!("lfn://LDG/test/pure/{name}.ildg")),
                ("archiveHistory/archiveEvent/revisionAction", "generate"),
                ("archiveEvent/participant/name", "N. N."),
                ("archiveEvent/participant/institution", "U"),
                ("implementation/machine/institution", "U"),
                ("implementation/code/name", "hmc"),
                ("implementation/code/version", env!("CARGO_PKG_VERSION")),
                ("gaugeConfiguration/precision", "double"),
                ("markovSequence/markovChainURI", "mc://LDG/test/pure"),
                ("markovSequence/series", "1"),
                ("markovStep/update", &number.to_string()),
                ("record/field", "su3gauge"),
                ("record/crcCheckSum", &posix_cksum(of("ildg-binary-data")).to_string()),
            ],
        );
        let said: f64 = found.last().unwrap().1.parse().unwrap();
        assert!(found.last().unwrap().0.ends_with("record/avePlaquette"));
        assert!((said - plaquette).abs() < 1e-14, "{said} {plaquette}");
    }
    // Nothing is overwritten, unless that is asked for.
    qcdml(&scratch, &["ensembles/pure"]).failed(2, &["ensemble.xml: exists already; --force"]);
    qcdml(&scratch, &["--force", "--out", "elsewhere", "ensembles/pure"]).succeeded();
    assert!(scratch.at("elsewhere/cfg_000002.xml").exists());
    // Neither has a file of another lattice metadata nor one that is damaged.
    scratch.write("ensembles/pure/run.toml", with(PURE, "extents", "[4, 4, 4, 4]"));
    let other = qcdml(&scratch, &["--out", "third", "ensembles/pure"]);
    other.failed(1, &["cfg_000001.ildg: holds a lattice of 4x4x4x6, but 4x4x4x4 is asked for"]);
    scratch.write("ensembles/pure/run.toml", PURE);
    let path = scratch.at("ensembles/pure/ildg/cfg_000002.ildg");
    let mut file = fs::read(&path).unwrap();
    let middle = file.len() / 2;
    file[middle] ^= 1;
    fs::write(&path, file).unwrap();
    qcdml(&scratch, &["--out", "third", "ensembles/pure"]).failed(1, &["damaged: checksums"]);
}

/// The CRC of POSIX, bit by bit.
fn posix_cksum(data: &[u8]) -> u32 {
    let length = (data.len() as u64).to_le_bytes();
    let significant = length.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let mut crc = 0_u32;
    for &byte in data.iter().chain(&length[..significant]) {
        for bit in (0..8).rev() {
            let out = crc >> 31 ^ u32::from(byte >> bit & 1);
            crc = crc << 1 ^ (0_u32.wrapping_sub(out) & 0x04c1_1db7);
        }
    }
    !crc
}

/// Every input that the program comes with has words in QCDml, or is refused with what has none.
#[test]
fn actions_of_all_inputs() {
    let scratch = Scratch::new();
    scratch.chain(0, &format!("{PURE}{}", parallel([1; 4], 0, 1)));
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/inputs");
    let mut seen = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if path.extension().is_none_or(|ending| ending != "toml") {
            continue;
        }
        seen += 1;
        fs::create_dir_all(scratch.at(&name).join("ildg")).unwrap();
        // Multigrid's aggregates do not fit so small a lattice; what solves is no physics.
        let own = fs::read_to_string(&path)
            .unwrap()
            .replace("method = \"multigrid\"\nprecision = \"double-single-half\"\n", "method = \"cg\"\n");
        fs::write(scratch.at(&name).join("run.toml"), with(&own, "extents", "[4, 4, 4, 6]")).unwrap();
        let file = "ildg/cfg_000001.ildg";
        fs::copy(scratch.at("ensembles/pure").join(file), scratch.at(&name).join(file)).unwrap();
        let ended = qcdml(&scratch, &[&name]);
        if name == "odwf-nf2-16c32" {
            ended.failed(2, &["QCDml 2.0 has no words for weights that differ from slice to slice, as those of [fermion."]);
            continue;
        }
        if name.contains("-open-") {
            ended.failed(2, &["QCDml 2.0 has no words for walls in time"]);
            continue;
        }
        if name.starts_with("tm-") {
            ended.failed(2, &["the twisted mass of [fermion.light]"]);
            continue;
        }
        if name.starts_with("swf-") {
            ended.failed(2, &["the exponential clover term of [fermion.light]"]);
            continue;
        }
        ended.succeeded();
        let text = fs::read_to_string(scratch.at(&name).join("qcdml/ensemble.xml")).unwrap();
        let found = leaves(&text);
        let expected: &[(&str, &str)] = match &*name {
            "clover-nf2p1-32c64" => &[
                ("gluon/treelevelSymanzikGluonAction/beta", "3.4"),
                ("quark/cloverQuarkAction/quarkField/boundaryCondition/t", "antiperiodic"),
                ("cloverQuarkAction/numberOfFlavours", "2"),
                ("cloverQuarkAction/kappa", "0.136865"),
                ("cloverQuarkAction/cSW", "1.986246"),
                ("cloverQuarkAction/numberOfFlavours", "1"),
                ("cloverQuarkAction/kappa", "0.136549339"),
                ("algorithm/name", "RHMC"),
            ],
            "clover-nf2-8x8" => &[("gluon/plaquetteGluonAction/beta", "5.6")],
            "dwf-2p1-16c32" => &[
                ("domainWallQuarkAction/numberOfFlavours", "2"),
                ("domainWallQuarkAction/mass", "0.01"),
                ("domainWallQuarkAction/kernelMass", "1.8"),
                ("domainWallQuarkAction/N5", "16"),
                ("domainWallQuarkAction/numberOfFlavours", "1"),
                ("domainWallQuarkAction/mass", "0.04"),
            ],
            "mobius-2p1-small" => &[("moebiusDomainWallQuarkAction/b5", "1.5"), ("c5", "0.5")],
            "asqtad-2p1" => &[
                ("tpLuescherWeiszGluonAction/normalisation", "c0_is_one"),
                ("tpLuescherWeiszGluonAction/u0", "0.862"),
                ("asqTadQuarkAction/numberOfFlavours", "2"),
                ("asqTadQuarkAction/mass", "0.01"),
                ("asqTadQuarkAction/c1Link", "0.625"),
                ("asqTadQuarkAction/numberOfFlavours", "1"),
                ("asqTadQuarkAction/mass", "0.05"),
            ],
            // Light and strange quarks, and charm; the masses of Hasenbusch factors cancel.
            "hisq-2p1p1-physical-64c96" => &[
                ("hisqQuarkAction/numberOfFlavours", "2"),
                ("hisqQuarkAction/numberOfFlavours", "1"),
                ("hisqQuarkAction/numberOfFlavours", "1"),
                ("hisqQuarkAction/mass", "0.432"),
                ("LinkTreatment/fat7QuarkLinkTreatment/c1Link", "0.125"),
                ("LinkTreatment/projectGroupLinkTreatment/group", "U(3)"),
                ("asqTadQuarkLinkTreatment/epsilon/value", "-0.1164617"),
                ("asqTadQuarkLinkTreatment/cLepage", "-0.125"),
            ],
            _ => &[],
        };
        is_in_order(&found, expected);
        let quarks = found.iter().filter(|(path, _)| path.ends_with("numberOfFlavours")).count();
        assert_eq!(quarks == 0, name.starts_with("quenched"), "{name}");
        if name == "hisq-2p1p1-physical-64c96" {
            assert_eq!(quarks, 3, "{text}");
        }
    }
    assert!(seen >= 12);
}

#[test]
fn what_is_no_ensemble_is_told() {
    let scratch = Scratch::new();
    qcdml(&scratch, &["nowhere"]).failed(2, &["nowhere: no folder of an ensemble"]);
    fs::create_dir_all(scratch.at("bare")).unwrap();
    scratch.write("bare/run.toml", PURE);
    qcdml(&scratch, &["bare"]).failed(2, &["bare: has no ILDG files; save_format = \"ildg\" in [run]"]);
    let mut told = TOLD;
    for (at, text, why) in [
        (1, "LDG/test", "--uri: expected mc://GRID/PATH without spaces, found 'LDG/test'"),
        (3, " ", "--collaboration: the text is empty"),
    ] {
        let before = std::mem::replace(&mut told[at], text);
        scratch.run(0, &[&["qcdml"], &told[..], &["bare"]].concat()).failed(2, &[why]);
        told[at] = before;
    }
}
