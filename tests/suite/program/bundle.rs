//! `tools/bundle.sh check` and `move`: what a bundle must be to run on other machines, seen on small ones.

use super::{Scratch, command};
use std::fs;
use std::process::Output;

/// `cc` in the scratch folder; whether it is there.
fn cc(scratch: &Scratch, arguments: &[&str]) -> bool {
    let built = command("cc").args(arguments).current_dir(scratch.at("")).status();
    built.is_ok_and(|status| status.success())
}

#[test]
fn a_bundle_is_judged_before_it_leaves() {
    let scratch = Scratch::new();
    for folder in ["bin", "lib", "inputs"] {
        fs::create_dir_all(scratch.at("b").join(folder)).unwrap();
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tools/bundle.sh");
    let tool = |arguments: &[&str]| -> Output {
        command("bash").arg(script).args(arguments).current_dir(scratch.at("")).output().unwrap()
    };
    let refused = |arguments: &[&str], word: &str| {
        let output = tool(arguments);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains(word), "{arguments:?}: {told}");
    };
    refused(&["check", "b"], "has no bin/hmc");
    scratch.write("own.c", "int own(void) { return 0; }\n");
    scratch.write(
        "main.c",
        "#include <stdio.h>\nint own(void);\nint main(void) { puts(\"ran\"); return own(); }\n",
    );
    if !cc(&scratch, &["-shared", "-fPIC", "-o", "b/lib/libown.so", "own.c"]) {
        println!("skipped: no C compiler to make a small bundle");
        return;
    }
    let main = |path: &str| {
        let path = format!("-Wl,-rpath,{path}");
        assert!(cc(&scratch, &["-o", "b/bin/hmc", "main.c", "-Lb/lib", "-lown", &path]));
    };
    main("$ORIGIN/../lib");
    let whole = tool(&["check", "b", "99.0"]);
    let told = String::from_utf8_lossy(&whole.stdout).into_owned();
    assert!(whole.status.success() && told.contains("bundle: needs glibc 2."), "{told} {whole:?}");
    refused(&["check", "b", "2.1"], "2.1 was promised");
    // A copy elsewhere runs, and does not without its library.
    fs::write(scratch.at("b/inputs/quickstart.toml"), "trajectories = 20\n").unwrap();
    assert!(tool(&["move", "b"]).status.success());
    fs::rename(scratch.at("b/lib/libown.so"), scratch.at("aside.so")).unwrap();
    refused(&["check", "b"], "needs libown.so, which is not in the bundle");
    refused(&["move", "b"], "elsewhere does not run");
    fs::rename(scratch.at("aside.so"), scratch.at("b/lib/libown.so")).unwrap();
    // One that finds its library here alone.
    main(scratch.at("b/lib").to_str().unwrap());
    refused(&["check", "b"], "looks for libraries in");
}
