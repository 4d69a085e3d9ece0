//! A module imports only from lower floors. The floors are the table of `src/lib.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Module to floor, from lines like ``//! | 0 | [`math`] | its one job |``.
fn table(lib: &str) -> BTreeMap<String, u32> {
    lib.lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.strip_prefix("//! |")?.split('|').map(str::trim).collect();
            let module = cells.get(1)?.strip_prefix("[`")?.strip_suffix("`]")?;
            Some((module.to_owned(), cells[0].parse().ok()?))
        })
        .collect()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The first segments of the paths that begin with `prefix` in a source without comments: `crate::a::b` and
/// `crate::{a::b, c}` give a and a, c.
fn segments(source: &str, prefix: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in source.match_indices(prefix) {
        if source[..at].ends_with(|c: char| is_word(c) || c == ':' || c == '$') {
            continue;
        }
        let rest = source[at + prefix.len()..].trim_start();
        let word = |s: &str| s.trim_start().chars().take_while(|&c| is_word(c)).collect::<String>();
        if let Some(group) = rest.strip_prefix('{') {
            let (mut depth, mut start) = (0, 0);
            for (n, c) in group.char_indices() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => {
                        found.insert(word(&group[start..n]));
                        break;
                    }
                    '}' => depth -= 1,
                    ',' if depth == 0 => {
                        found.insert(word(&group[start..n]));
                        start = n + 1;
                    }
                    _ => {}
                }
            }
        } else {
            found.insert(word(rest));
        }
    }
    found.remove("");
    found
}

fn without_comments(source: &str) -> String {
    source.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

/// The modules of the table that the file `path` (its parts below `src`) names.
fn imports(path: &[&str], source: &str, floors: &BTreeMap<String, u32>) -> BTreeSet<String> {
    let code = without_comments(source);
    let mut named = segments(&code, "crate::");
    named.extend(segments(&code, "hmc::"));
    // From src/a/mod.rs the root is `super`, from src/a/b.rs `super::super`.
    let depth = path.len() - usize::from(path.ends_with(&["mod.rs"]));
    named.extend(segments(&code, &"super::".repeat(depth)));
    named.into_iter().filter(|name| floors.contains_key(name)).collect()
}

/// What is wrong with the imports of a file; empty where nothing is.
fn violations(path: &[&str], source: &str, floors: &BTreeMap<String, u32>) -> Vec<String> {
    let own = path[0].trim_end_matches(".rs");
    let Some(floor) = floors.get(own) else { return vec![format!("{}: no floor", path.join("/"))] };
    imports(path, source, floors)
        .into_iter()
        .filter(|name| name != own && floors[name] >= *floor)
        .map(|name| format!("{} (floor {floor}) imports {name} (floor {})", path.join("/"), floors[&name]))
        .collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn modules_import_from_lower_floors_only() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let lib = std::fs::read_to_string(root.join("lib.rs")).unwrap();
    let floors = table(&lib);
    let declared: BTreeSet<String> = lib
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
        .map(str::to_owned)
        .collect();
    assert_eq!(floors.keys().cloned().collect::<BTreeSet<_>>(), declared, "the table and the modules");
    assert!(floors.len() >= 13, "{floors:?}");

    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > floors.len());
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for file in files {
        let parts = file.strip_prefix(&root).unwrap();
        let parts: Vec<&str> = parts.iter().map(|part| part.to_str().unwrap()).collect();
        // The library's root and the program stand above all floors; tests of a floor may use those above it.
        let above = matches!(parts[..], ["lib.rs" | "main.rs"] | ["cli", ..]);
        if above || parts.ends_with(&["tests.rs"]) {
            continue;
        }
        let source = std::fs::read_to_string(&file).unwrap();
        seen += imports(&parts, &source, &floors).len();
        wrong.extend(violations(&parts, &source, &floors));
    }
    assert!(seen > 50, "only {seen} imports were found");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// The check finds what it must.
#[test]
fn wrong_imports_are_found() {
    let floors: BTreeMap<String, u32> =
        [("math", 0), ("comm", 2), ("device", 2), ("field", 3)].map(|(m, f)| (m.to_owned(), f)).into();
    let count = |path: &[&str], source: &str| violations(path, source, &floors).len();
    assert_eq!(count(&["comm", "mod.rs"], "use crate::math::ExactSum;"), 0);
    assert_eq!(count(&["comm", "mod.rs"], "use crate::device::Buffer;"), 1);
    assert_eq!(count(&["comm", "solo.rs"], "fn f(x: crate::field::Spinor) {}"), 1);
    assert_eq!(count(&["comm", "solo.rs"], "// see crate::field::Spinor"), 0);
    assert_eq!(count(&["comm", "solo.rs"], "use crate::{math::a, device::{b, field}, field};"), 2);
    assert_eq!(count(&["comm", "solo.rs"], "use super::super::device;"), 1);
    assert_eq!(count(&["comm", "mod.rs"], "use super::device;"), 1);
    assert_eq!(count(&["comm", "solo.rs"], "use super::device;"), 0, "a submodule of its own");
    assert_eq!(count(&["field", "mod.rs"], "use crate::comm; use crate::field::x; use crate::math;"), 0);
    assert_eq!(count(&["other.rs"], ""), 1);
    assert_eq!(table("//! | 3 | [`field`] | x |\n//! |---|---|---|"), [("field".to_owned(), 3)].into());
}

/// The rooms of `src/app`, of which each uses those that the list in its `mod.rs` names before it.
#[test]
fn rooms_of_the_program_use_earlier_ones() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/app");
    let list = std::fs::read_to_string(root.join("mod.rs")).unwrap();
    let room = |line: &str| Some(line.strip_prefix("//! - `")?.split_once('`')?.0.to_owned());
    let rooms: Vec<String> = list.lines().filter_map(room).collect();
    let place = |name: &str| rooms.iter().position(|room| room == name);
    let mut files = Vec::new();
    sources(&root, &mut files);
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for file in files.iter().filter(|file| **file != root.join("mod.rs")) {
        let parts = file.strip_prefix(&root).unwrap();
        let parts: Vec<&str> = parts.iter().map(|part| part.to_str().unwrap()).collect();
        let own =
            place(parts[0].trim_end_matches(".rs")).unwrap_or_else(|| panic!("{parts:?}: not in the list"));
        let source = std::fs::read_to_string(file).unwrap();
        let code = without_comments(&source);
        let mut named = segments(&code, "crate::app::");
        named.extend(segments(
            &code,
            &"super::".repeat(parts.len() - usize::from(parts.ends_with(&["mod.rs"]))),
        ));
        let used: Vec<usize> = named.iter().filter_map(|name| place(name)).collect();
        seen += used.len();
        wrong.extend(
            used.iter().filter(|used| **used > own).map(|used| format!("{parts:?} uses {}", rooms[*used])),
        );
    }
    assert!(seen > 50, "only {seen} imports were found");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
