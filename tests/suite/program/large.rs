//! Buffers of more than 2^31 bytes on CPUs: a trajectory, a flow, and every format, on one rank and on two. On a node with more
//! memory `HMC_LARGE_T` makes the lattice longer: 64 is above 2^32 numbers.

use super::{LIMIT, Scratch, names, on};
use std::fs;

const TEXT: &str = r#"[run]
name = "large"
seed = 64
trajectories = 1
save_every = 1
save_format = ["ildg", "nersc", "milc", "openqcd"]
[lattice]
extents = [64, 64, 64, 16]
[gauge]
action = "wilson"
beta = 6.0
[hmc]
tau = 0.1
reversibility_every = 0
[[hmc.level]]
integrator = "2mn"
steps = 1
terms = ["gauge"]
[measure]
every = 1
[measure.loops]
[measure.flow]
step = 0.02
t_max = 0.04
"#;

#[test]
#[ignore = "takes 14 GB of memory, 30 GB of disk and minutes: make large"]
fn buffers_above_two_gigabytes() {
    let length = std::env::var("HMC_LARGE_T").unwrap_or_else(|_| "16".to_owned());
    let text = TEXT.replace("64, 16]", &format!("64, {length}]"));
    let (mut all, mut records) = (Vec::new(), Vec::new());
    for ranks in [0, 2] {
        let scratch = Scratch::new();
        let input = scratch.write("run.toml", on(&text, ranks).replace("threads = 1\n", ""));
        let mut job = scratch.start(ranks, &[&input]);
        while job.is_running() {
            std::thread::sleep(LIMIT / 1000);
        }
        let ended = job.wait();
        ended.succeeded();
        println!("{ranks} ranks: {}", ended.out);
        let folder = scratch.at("ensembles/large");
        records.push(super::read_chain(&folder).measurements);
        let own = folder.join("cfg/cfg_000001.h5");
        let sum = scratch.checksum(&own);
        for ending in ["ildg", "nersc", "openqcd", "milc"] {
            let file = folder.join(ending).join(format!("cfg_000001.{ending}"));
            let found = scratch.checksum(&file);
            // MILC's format holds numbers of single precision.
            assert_eq!(found == sum, ending != "milc", "{ending}");
            let back = scratch.at("back.h5");
            let [file, back] = [&file, &back].map(|path| path.display().to_string());
            scratch.run(ranks, &["convert", &file, &back]).succeeded();
            if ending == "milc" {
                let again = scratch.at("again.milc").display().to_string();
                scratch.run(ranks, &["convert", &back, &again]).succeeded();
                assert!(scratch.run(ranks, &["compare", &file, &again]).out.contains("equal to the bit"));
                fs::remove_file(again).unwrap();
            } else {
                let ended = scratch.run(ranks, &["compare", &own.display().to_string(), &back]);
                assert!(ended.out.contains("equal to the bit"), "{ending}: {ended:?}");
            }
            fs::remove_file(back).unwrap();
            fs::remove_file(file).unwrap();
            println!("{ranks} ranks, {ending}: {found}");
            all.push((ending, found));
        }
        assert_eq!(names(&folder.join("cfg")), ["cfg_000001.h5"]);
    }
    let (one, two) = all.split_at(4);
    assert_eq!(one, two);
    assert_eq!(records[0], records[1]);
}
