//! The documentation: every link leads somewhere, every page is in the book, the tutorial's commands run, and a few phrases that
//! are not English stay out.

use crate::program::{self, Scratch};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The README and the pages of the book.
fn pages() -> Vec<PathBuf> {
    let book = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = book.filter(|path| path.extension().is_some_and(|e| e == "md"));
    pages.chain([root().join("README.md"), root().join("CHANGELOG.md")]).collect()
}

/// A page without its code blocks.
fn prose(text: &str) -> String {
    text.split("```").step_by(2).collect()
}

/// The targets of `[text](target)`.
fn links(text: &str) -> Vec<String> {
    let ends = text.match_indices("](").map(|(at, _)| &text[at + 2..]);
    ends.filter_map(|rest| Some(rest[..rest.find(')')?].to_owned())).collect()
}

/// What readers of Markdown call a heading: lower case, blanks as '-', nothing else but letters, digits, '-' and '_'.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| -> String {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn links_lead_somewhere() {
    let (mut broken, mut seen) = (Vec::new(), 0);
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for link in links(&prose(&text)).into_iter().filter(|link| !link.contains("://")) {
            seen += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let found = target.exists()
                && (anchor.is_empty() || anchors(&fs::read_to_string(&target).unwrap()).contains(anchor));
            if !found {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(seen > 30, "only {seen} links were found");
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

/// What is named in backticks as a file of the tree is one. NAME stands for any.
#[test]
fn paths_are_there() {
    let rooms = ["src", "kernels", "tests", "inputs", "docs", "tools", "examples", "python", "fuzz", "build"];
    let is_plain = |path: &str| path.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    let (mut gone, mut seen) = (Vec::new(), 0);
    // The changelog tells of files as they were.
    for page in pages().into_iter().filter(|page| !page.ends_with("CHANGELOG.md")) {
        let text = fs::read_to_string(&page).unwrap();
        let quoted = text.split('`').skip(1).step_by(2);
        let paths = quoted.filter(|quoted| {
            let room = quoted.split_once('/').map(|(room, _)| room);
            room.is_some_and(|room| rooms.contains(&room)) && is_plain(quoted) && !quoted.contains("NAME")
        });
        for path in paths {
            seen += 1;
            if !root().join(path).exists() {
                gone.push(format!("{}: {path}", page.display()));
            }
        }
    }
    assert!(seen > 100, "only {seen} paths were found");
    assert!(gone.is_empty(), "\n{}", gone.join("\n"));
}

#[test]
fn every_page_is_in_the_book() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let listed: BTreeSet<String> = links(&summary).into_iter().collect();
    let name = |page: PathBuf| page.file_name().unwrap().to_str().unwrap().to_owned();
    let book = pages().into_iter().filter(|page| page.parent().unwrap().ends_with("docs")).map(name);
    let book: BTreeSet<String> = book.filter(|name| name != "SUMMARY.md").collect();
    assert_eq!(listed, book);
}

/// Phrases of other languages in English words: each has a plain form.
const ODD: [(&str, &str); 6] = [
    ("is no number", "is NaN"),
    ("to be had", "available"),
    ("from anew", "from scratch"),
    ("has no room", "is out of memory"),
    ("are asked of", "must hold for"),
    ("by this part", "by this fraction"),
];

#[test]
fn the_english_is_plain() {
    let mut files = pages();
    let mut folders: Vec<PathBuf> = ["src", "kernels"].map(|folder| root().join(folder)).into();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    let mut odd = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for (number, line) in (1..).zip(text.lines()) {
            for (phrase, plain) in ODD.into_iter().filter(|(phrase, _)| line.contains(phrase)) {
                odd.push(format!("{}:{number}: '{phrase}': say '{plain}'", file.display()));
            }
        }
    }
    assert!(odd.is_empty(), "\n{}", odd.join("\n"));
}

/// The commands of the tutorial, with what they are shown to print.
fn commands(text: &str) -> Vec<(String, Vec<String>)> {
    let blocks = text.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for line in blocks.flat_map(str::lines) {
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => found.push((command.to_owned(), Vec::new())),
            (None, Some((_, lines))) => lines.push(line.to_owned()),
            (None, None) => panic!("'{line}' before any command"),
        }
    }
    found
}

/// A line without what depends on the machine: times, and what follows '...'.
fn timeless(line: &str) -> String {
    let line = line.split("...").next().unwrap();
    let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
    let is_unit = |word: &&str| ["ms", "s", "min", "h", "d"].contains(word);
    let kept =
        words.iter().enumerate().filter(|(n, word)| !is_unit(word) && !words.get(n + 1).is_some_and(is_unit));
    kept.map(|(_, word)| *word).collect::<Vec<_>>().join(" ")
}

/// Every command of the tutorial runs, and prints what it shows.
#[test]
fn the_tutorial_runs_as_it_is_written() {
    let text = fs::read_to_string(root().join("docs/tutorial.md")).unwrap();
    let scratch = Scratch::new();
    let program = Path::new(env!("CARGO_BIN_EXE_hmc")).parent().unwrap().display().to_string();
    let path = format!("{program}:{}", std::env::var("PATH").unwrap());
    let all = commands(&text);
    assert!(all.len() >= 15, "{} commands", all.len());
    for (command, shown) in all {
        let shell = ["-c", &format!("set -o pipefail; {command}")];
        let ended = program::command("bash")
            .args(shell)
            .env("PATH", &path)
            .current_dir(scratch.path())
            .output()
            .unwrap();
        let said =
            String::from_utf8_lossy(&ended.stdout).into_owned() + &String::from_utf8_lossy(&ended.stderr);
        // `head` may end a pipe before all is said.
        assert!(ended.status.success() || command.contains("| head"), "{command}\n{said}");
        let said: Vec<String> = said.lines().map(timeless).collect();
        for line in shown.iter().map(|line| timeless(line)).filter(|line| !line.is_empty()) {
            assert!(
                said.iter().any(|other| other.starts_with(&line)),
                "{command}: no '{line}' in\n{}",
                said.join("\n")
            );
        }
    }
}

/// `tools/setup.sh` takes what is there, wherever it comes from, and asks for packages only for the rest.
#[test]
fn the_set_up_looks_for_tools_before_packages() {
    let scratch = Scratch::new();
    let tools = scratch.at("bin");
    fs::create_dir(&tools).unwrap();
    let stand_in = |name: &str, text: &str| {
        let path = tools.join(name);
        fs::write(&path, format!("#!/bin/bash\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    for name in ["bash", "sed", "grep", "sort", "head", "cut", "dirname", "cat", "make"] {
        let place = ["/bin", "/usr/bin"].map(|folder| Path::new(folder).join(name));
        std::os::unix::fs::symlink(place.iter().find(|path| path.exists()).unwrap(), tools.join(name))
            .unwrap();
    }
    for name in ["g++", "cargo", "srun", "apt-get", "dpkg"] {
        stand_in(name, "exit 1");
    }
    stand_in("id", "echo 1000");
    stand_in("rustc", "echo rustc 1.999.0");
    let set_up = |variables: &[(&str, &str)]| {
        let ended = program::command("/bin/bash")
            .arg(root().join("tools/setup.sh"))
            .env_clear()
            .env("PATH", &tools)
            .envs([("HDF5_DIR", "/opt/hdf5"), ("LIBCLANG_PATH", "/opt/llvm")])
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
    };
    let (code, said) = set_up(&[]);
    assert!(
        code == Some(2) && said.contains("missing: libopenmpi-dev.") && !said.contains("libhdf5"),
        "{said}"
    );
    for there in [("CRAY_MPICH_DIR", "/opt/cray"), ("MPICC", "g++")] {
        assert_eq!(set_up(&[there]), (Some(0), String::new()), "{there:?}");
    }
    stand_in("mpicc", "exit 1");
    assert_eq!(set_up(&[]), (Some(0), String::new()));
}

/// The job of `tools/slurm.sh`, with stand-ins for Slurm's commands: it goes on until the chain is done.
#[test]
fn the_slurm_job_submits_itself_until_the_chain_is_done() {
    let scratch = Scratch::new();
    let tools = scratch.at("bin");
    fs::create_dir(&tools).unwrap();
    let stand_in = |name: &str, text: &str| {
        let path = tools.join(name);
        fs::write(&path, format!("#!/usr/bin/env bash\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    // Two to three seconds of work, then the minute that a run leaves.
    stand_in("srun", "shift; SLURM_JOB_END_TIME=$(($(date +%s) + 63)) exec \"$@\"");
    stand_in("sbatch", "echo submitted >> submissions; exec bash \"$@\"");
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let input = "[run]\nname = \"chain\"\nseed = 1\ntrajectories = 800\n[lattice]\nextents = [4, 4, 4, 4]\n[gauge]\naction = \"wilson\"\n\
                 beta = 5.7\n[[hmc.level]]\nintegrator = \"2mn\"\nsteps = 40\nterms = [\"gauge\"]\n";
    scratch.write("run.toml", program::on(input, 0));
    let job = program::command("bash")
        .args([&*root().join("tools/slurm.sh").display().to_string(), "run.toml", "ensembles/chain"])
        .env("PATH", path)
        .env("HMC", env!("CARGO_BIN_EXE_hmc"))
        .current_dir(scratch.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&job.stdout);
    assert!(job.status.success() && said.ends_with("the chain is done\n"), "{job:?}");
    let submissions = fs::read_to_string(scratch.at("submissions")).unwrap();
    assert!(submissions.lines().count() >= 1, "{said}");
    assert_eq!(
        said.matches(": the end of the job is near; checkpoint written").count(),
        submissions.lines().count()
    );
    assert!(said.contains("resumes after ") && scratch.at("ensembles/chain/report.html").exists());
}

#[test]
fn the_smallest_input_starts() {
    let page = fs::read_to_string(root().join("docs/input.md")).unwrap();
    let (_, rest) = page.split_once("```toml\n").expect("an input");
    let (input, _) = rest.split_once("```").expect("its end");
    let scratch = Scratch::new();
    let path = scratch.write("smallest.toml", input);
    scratch.run(0, &["--check", &path]).succeeded();
}
