//! Files that are no inputs: no text, configurations, without an end.

use super::{GOOD, lines, mistakes, with};
use hmc::input;
use std::fs;
use std::path::{Path, PathBuf};

/// A file of this test, removed at its end.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str, content: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("hmc-input-{}-{name}", std::process::id()));
        fs::write(&path, content).expect("a temporary file");
        Self(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // What is left behind adds little to why a test failed.
        let _ = fs::remove_file(&self.0);
    }
}

fn refused(path: &Path) -> Vec<String> {
    lines(&input::load(path, 1).expect_err("it is no input"))
}

#[test]
fn text_that_is_not_utf8_is_told_with_its_place() {
    let file = Temporary::new("latin", b"[run]\n# of \xc3\xa9 and \xe9\nseed = 1\n");
    assert_eq!(refused(&file.0), [format!("{}:2:12: not UTF-8 text", file.0.display())]);
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
        let file = Temporary::new(format, start);
        let name = file.0.display();
        let expected =
            format!("{name}: is a configuration ({format}), not an input; `hmc info {name}` reads it");
        assert_eq!(refused(&file.0), [expected]);
    }
}

#[test]
fn reading_has_a_limit() {
    let start = std::time::Instant::now();
    assert_eq!(refused(Path::new("/dev/zero")), ["/dev/zero: larger than 16 MiB, too large for an input"]);
    assert!(start.elapsed().as_secs() < 5);
    let comment = Temporary::new("comment", format!("# {}\n{GOOD}", "x".repeat(15 << 20)).as_bytes());
    assert!(input::load(&comment.0, 1).is_ok());
}

#[test]
fn a_pipe_is_read() {
    let pipe = std::env::temp_dir().join(format!("hmc-input-{}-pipe", std::process::id()));
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    let writer = {
        let pipe = pipe.clone();
        std::thread::spawn(move || fs::write(pipe, GOOD))
    };
    let loaded = input::load(&pipe, 1);
    writer.join().expect("it writes").expect("the pipe is open");
    fs::remove_file(&pipe).expect("it is there");
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
