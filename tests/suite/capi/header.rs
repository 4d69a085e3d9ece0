//! `src/capi/hmc.h` is what the signatures and comments of `src/capi` say. `HMC_UPDATE=1` rewrites it.

use crate::input::reference::assert_file;
use std::fs;
use std::path::Path;

const FRONT: &str = r#"/* The interface of hmc to C. Made of src/capi by tests/suite/capi/header.rs; docs/c.md tells more.
 *
 * Functions return a code; hmc_error() says why one failed. Null pointers and wrong numbers of reals are refused.
 * Arguments are never written unless said. Sites are [t][z][y][x], x fastest; complex numbers are [re, im]; mu = x, y, z, t.
 *
 * Any thread may call. Calls of one session take turns; a quark serves one call at a time, and what is freed is in no use.
 * Functions use the threads of [parallel].
 *
 * hmc_open() never calls MPI. hmc_open_mpi() takes a communicator of a program that has called MPI_Init_thread(). */
#ifndef HMC_H
#define HMC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
"#;

const BACK: &str = "
#ifdef __cplusplus
}
#endif

#endif
";

/// A type of Rust in C.
fn in_c(rust: &str) -> String {
    let pointer = |rest: &str, before: &str| {
        let inner = in_c(rest);
        format!("{before}{inner}{}*", if inner.ends_with('*') { "" } else { " " })
    };
    match rust {
        "c_int" => "int".into(),
        "c_char" => "char".into(),
        "c_void" => "void".into(),
        "usize" => "size_t".into(),
        "f64" => "double".into(),
        "u64" => "uint64_t".into(),
        _ => match (rust.strip_prefix("*const "), rust.strip_prefix("*mut ")) {
            (Some(rest), _) => pointer(rest, "const "),
            (_, Some(rest)) => pointer(rest, ""),
            _ if rust.starts_with("hmc_") => rust.into(),
            _ => panic!("{rust}: no type of C"),
        },
    }
}

/// A declaration, with `name` after its type.
fn declared(name: &str, rust: &str) -> String {
    let of = in_c(rust);
    format!("{of}{}{name}", if of.ends_with('*') { "" } else { " " })
}

/// Comments of Rust as one of C, without what is said of safety.
fn comment(lines: &[&str], indent: &str) -> String {
    let said: Vec<&str> = lines.iter().copied().take_while(|line| *line != "# Safety").collect();
    let text = said.join("\n").trim_end().replace('\n', &format!("\n{indent} * ")).replace("* \n", "*\n");
    format!("{indent}/* {text} */\n")
}

/// The prototype of a function from its signature.
fn prototype(signature: &str) -> String {
    let (head, back) = signature.split_once(" -> ").unwrap_or((signature, "()"));
    let (name, arguments) = head.split_once('(').unwrap();
    let arguments = arguments.trim().trim_end_matches(')');
    let arguments: Vec<String> = arguments
        .split(',')
        .filter_map(|one| one.trim().split_once(": "))
        .map(|(name, of)| declared(name, of))
        .collect();
    let arguments = if arguments.is_empty() { "void".to_owned() } else { arguments.join(", ") };
    let back = back.trim();
    let start = if back == "()" { format!("void {name}") } else { declared(name, back) };
    format!("{start}({arguments});\n")
}

/// What a file adds to the header.
fn part(source: &str) -> String {
    let (mut out, mut said) = (String::new(), Vec::new());
    let (mut exported, mut in_struct) = (false, None);
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        let plain = line.trim();
        if let Some(text) = plain.strip_prefix("///") {
            said.push(text.strip_prefix(' ').unwrap_or(text));
            continue;
        }
        let opaque = plain.strip_prefix("pub struct ").and_then(|rest| rest.split_once('('));
        if let Some((name, _)) = opaque {
            out += &format!("\n{}typedef struct {name} {name};\n", comment(&said, ""));
        } else if let Some(name) = plain.strip_prefix("pub struct ").and_then(|rest| rest.strip_suffix(" {"))
        {
            out += &format!("\n{}typedef struct {name} {{\n", comment(&said, ""));
            in_struct = Some(name);
        } else if let (Some(name), true) = (in_struct, plain == "}") {
            out += &format!("}} {name};\n");
            in_struct = None;
        } else if let (Some(_), Some((name, of))) = (in_struct, plain.trim_end_matches(',').split_once(": "))
        {
            let declared = declared(name.trim_start_matches("pub "), of);
            out += &format!("{}    {declared};\n", comment(&said, "    "));
        } else if let Some((name, value)) =
            plain.strip_prefix("pub const ").and_then(|rest| rest.split_once(": c_int = "))
        {
            out += &format!("\n{}#define {name} {}\n", comment(&said, ""), value.trim_end_matches(';'));
        } else if plain.starts_with("#[unsafe(no_mangle)]") {
            exported = true;
            continue;
        } else if exported {
            let mut signature = plain.to_owned();
            while !signature.ends_with('{') {
                signature += " ";
                signature += lines.next().unwrap().trim();
            }
            let at = signature.find("hmc_").unwrap();
            out += &format!("\n{}{}", comment(&said, ""), prototype(signature[at..].trim_end_matches(" {")));
            exported = false;
        }
        if !plain.starts_with("#[") {
            said.clear();
        }
    }
    out
}

#[test]
fn the_header_is_that_of_the_functions() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/capi");
    let parts = ["fault", "session", "links", "quark"]
        .map(|file| part(&fs::read_to_string(folder.join(file).with_extension("rs")).unwrap()));
    let header = FRONT.to_owned() + &parts.concat() + BACK;
    assert_eq!(header.matches("\nint hmc_").count(), 20);
    assert_file("src/capi/hmc.h", &header);
}

/// Every function of the header is on the page for its users.
#[test]
fn the_page_has_every_function() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let [header, page] =
        ["src/capi/hmc.h", "docs/c.md"].map(|path| fs::read_to_string(root.join(path)).unwrap());
    let words = header.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    for name in words.filter(|word| word.starts_with("hmc_") || word.starts_with("HMC_")) {
        assert!(name == "HMC_H" || page.contains(&format!("`{name}")), "docs/c.md does not name {name}");
    }
}
