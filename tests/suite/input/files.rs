//! Files that are no inputs: no text, configurations, without an end.

use super::{GOOD, lines, mistakes, seconds_of_this_thread, with};
use crate::program::{self, Scratch};
use hmc::input;
use std::fs;
use std::path::{Path, PathBuf};

/// A file that goes with its folder.
fn temporary(content: &[u8]) -> (Scratch, PathBuf) {
    let scratch = Scratch::new();
    scratch.write("file", content);
    let path = scratch.at("file");
    (scratch, path)
}

fn refused(path: &Path) -> Vec<String> {
    lines(&input::load(path, 1).expect_err("it is no input"))
}

#[test]
fn text_that_is_not_utf8_is_told_with_its_place() {
    let (_scratch, file) = temporary(b"[run]\n# of \xc3\xa9 and \xe9\nseed = 1\n");
    assert_eq!(refused(&file), [format!("{}:2:12: not UTF-8 text", file.display())]);
}

#[test]
fn configurations_are_known_as_such() {
    for (format, start) in [
        ("HDF5", &b"\x89HDF\r\n\x1a\n\0\0"[..]),
        ("NERSC", b"BEGIN_HEADER\nHDR_VERSION = 1.0\n\xff"),
        ("ILDG", b"\x45\x67\x89\xab\0\x01"),
        ("MILC", b"\x87\x4e\0\0\x08\0\0\0"),
        ("MILC", b"\0\0\x4e\x87\0\0\0\x08"),
    ] {
        let (_scratch, file) = temporary(start);
        let name = file.display();
        let expected =
            format!("{name}: is a configuration ({format}), not an input; `hmc info {name}` reads it");
        assert_eq!(refused(&file), [expected]);
    }
}

#[test]
fn reading_has_a_limit() {
    let start = seconds_of_this_thread();
    assert_eq!(refused(Path::new("/dev/zero")), ["/dev/zero: larger than 16 MiB, too large for an input"]);
    assert!(seconds_of_this_thread() - start < 5.0);
    let (_scratch, comment) = temporary(format!("# {}\n{GOOD}", "x".repeat(15 << 20)).as_bytes());
    assert!(input::load(&comment, 1).is_ok());
}

#[test]
fn a_pipe_is_read() {
    let scratch = Scratch::new();
    let pipe = scratch.at("pipe");
    let made = program::command("mkfifo").arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    let writer = {
        let pipe = pipe.clone();
        std::thread::spawn(move || fs::write(pipe, GOOD))
    };
    let loaded = input::load(&pipe, 1);
    writer.join().expect("it writes").expect("the pipe is open");
    assert_eq!(loaded.expect("right").input, super::input(GOOD));
}

#[test]
fn broken_lines_say_what_to_change() {
    let cases = [
        (
            with("5.6", "5.7 5"),
            "9:8: not valid TOML: '5' after the value 5.7 is not understood: a key has one value",
        ),
        (
            with("seed = 1", "seed = 1\nseed = 2"),
            "4:1: not valid TOML: the key 'seed' is there already, in line 3: keep one of both",
        ),
        (
            with("[hmc]", "[gauge]\n[hmc]"),
            "14:2: not valid TOML: the table '[gauge]' is there already, in line 7: keep one of both",
        ),
        (
            with("seed = 1", "seed = 1\nstart = \"\""),
            "4:9: start: an empty text is neither a name nor a path",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(mistakes(&text, 1), [format!("run.toml:{expected}")]);
    }
}
