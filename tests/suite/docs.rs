//! The documentation: every link leads somewhere, every page is in the book, and a few phrases that are not English stay out.

use std::collections::BTreeSet;
use std::fs;
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
