//! The texts of an ensemble's folder, as `hmc status` and `hmc report` read them beside a run.
//!
//! The bytes are files one after the other, each behind a line `--- NAME`. Behind `--- +NAME`, lines get the checksum that
//! they must have: a mutation seldom finds it.

use super::memory::bounded;
use super::scratch::{Scratch, names};
use hmc::io::Form;
use std::fs::File;

/// The files that a report reads. All other names are left out.
const NAMES: [&str; 6] =
    ["run.toml", "run_000002.toml", "history.csv", "measurements.jsonl", "jobs.jsonl", "lock"];

pub(super) fn run(bytes: &[u8]) {
    let folder = Scratch::new();
    let text = String::from_utf8_lossy(bytes);
    let mut parts: Vec<(&str, bool, String)> = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("--- ") {
            let (sealed, name) = name.strip_prefix('+').map_or((false, name), |name| (true, name));
            let known = NAMES.iter().find(|own| **own == name);
            parts.extend(known.map(|name| (*name, sealed, String::new())));
        } else if let Some((name, sealed, content)) = parts.last_mut() {
            let form = if *name == "history.csv" { Form::Csv } else { Form::Json };
            // The names of columns have none.
            let is_record = *sealed && !(form == Form::Csv && content.is_empty());
            content.push_str(&if is_record { form.seal(line) } else { line.to_owned() });
            content.push('\n');
        }
    }
    for (name, _, content) in &parts {
        folder.file(name, content.as_bytes());
    }
    // The lock is asked who holds it only while someone does.
    let lock =
        File::create_new(folder.path().join("lock")).or_else(|_| File::open(folder.path().join("lock")));
    lock.as_ref().unwrap().lock().unwrap();
    let page = bounded(bytes.len(), 4000, || hmc::app::page(folder.path(), None));
    match page {
        Err(error) => names(error, folder.path()),
        Ok(page) => {
            assert!(page.ends_with("</html>\n"), "{page}");
            // The page is made of its own markup and of escaped text.
            for tag in ["<script", "<img", "<iframe"] {
                assert!(!page.contains(tag), "{tag} in {page}");
            }
        }
    }
}
