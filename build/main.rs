//! Builds the kernels for the host and the Rust side of their arguments.
//!
//! - `kernels/args.h` and the lists in `kernels/*.cuh` -> `kernels.rs` (`#[repr(C)]` structs, and which kernel each is
//!   the argument of) and `args_check.h` (offsets, checked by C++).
//! - `kernels/host.cpp` -> one object per instruction set, lane count and precision.
//! - `tables.rs`: the tables of functions in those objects; `sources.rs`: the headers for NVRTC.
//!
//! An instruction set named `gpu` is the GPU's source, for checks without a GPU.
//! `HMC_KERNEL_TARGETS="v4:1,8 gpu:1"` restricts the objects while developing.

mod args;
mod kernels;

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::{env, fs, thread};

fn main() {
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-changed=kernels");
    println!("cargo:rerun-if-env-changed=HMC_KERNEL_TARGETS");
    println!("cargo:rerun-if-env-changed=HMC_KERNEL_FLAGS");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let args = args::Args::read("args.h");
    fs::write(out.join("kernels.rs"), args.rust() + &kernels::rust(&args)).expect("OUT_DIR is writable");
    fs::write(out.join("args_check.h"), args.checks()).expect("OUT_DIR is writable");
    fs::write(out.join("sources.rs"), sources()).expect("OUT_DIR is writable");
    let targets = targets();
    fs::write(out.join("tables.rs"), tables(&targets)).expect("OUT_DIR is writable");
    // What is only checked or documented is never linked.
    if env::var("HMC_KERNEL_TARGETS").is_ok_and(|wanted| wanted == "none") {
        return;
    }
    compile(&targets, &out);
}

/// Every header of `kernels/`, for compilation at run time.
fn sources() -> String {
    let mut names: Vec<PathBuf> = fs::read_dir("kernels")
        .expect("kernels/")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "cuh" || e == "h"))
        .collect();
    names.sort();
    let mut text = String::from("&[\n");
    for path in names {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let path = fs::canonicalize(&path).expect("kernels/");
        let _ = writeln!(text, "    ({name:?}, include_str!({path:?})),");
    }
    text + "]"
}

/// Of the tables, as `Precision` numbers them.
const PRECISIONS: [&str; 3] = ["double", "float", "half"];

struct Target {
    isa: &'static str,
    lanes: usize,
}

/// Instruction sets and lanes; the first is the one that runs anywhere.
fn targets() -> Vec<Target> {
    let x86 = env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "x86_64");
    let all: &[(&str, &[usize])] = if x86 {
        &[("base", &[1]), ("v3", &[1, 4]), ("v4", &[1, 4, 8, 16]), ("gpu", &[1])]
    } else {
        &[("base", &[1]), ("gpu", &[1])]
    };
    let wanted = env::var("HMC_KERNEL_TARGETS").ok();
    let keep = |isa: &str, lanes: usize| {
        wanted.as_ref().is_none_or(|w| {
            w.split(' ')
                .filter_map(|t| t.split_once(':'))
                .any(|(i, l)| i == isa && l.split(',').any(|l| l == lanes.to_string()))
        })
    };
    all.iter()
        .flat_map(|&(isa, lanes)| lanes.iter().map(move |&lanes| Target { isa, lanes }))
        .filter(|t| t.isa == "base" || keep(t.isa, t.lanes))
        .collect()
}

fn table_name(target: &Target, precision: &str) -> String {
    format!("hmc_table_{}_{}_{precision}", target.isa, target.lanes)
}

fn tables(targets: &[Target]) -> String {
    let mut text = String::from("unsafe extern \"C\" {\n");
    for t in targets {
        for precision in PRECISIONS {
            let _ = writeln!(text, "    static {}: Entry;", table_name(t, precision));
        }
    }
    text += "}\n/// Instruction set, lanes, tables in double, single and half.\npub(super) fn tables() -> Vec<(&'static str, usize, [*const Entry; 3])> {\n    vec![\n";
    for t in targets {
        let names = PRECISIONS.map(|precision| format!("&raw const {}", table_name(t, precision)));
        let _ = writeln!(text, "        ({:?}, {}, [{}]),", t.isa, t.lanes, names.join(", "));
    }
    text + "    ]\n}\n"
}

fn compile(targets: &[Target], out: &Path) {
    let mut jobs: Vec<(&Target, &str)> =
        targets.iter().flat_map(|t| PRECISIONS.map(|precision| (t, precision))).collect();
    jobs.sort_by_key(|(t, _)| t.lanes); // the longest last in the list, so first to be taken
    let (jobs, objects) = (Mutex::new(jobs), Mutex::new(Vec::new()));
    let workers = env::var("NUM_JOBS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let Some((target, precision)) = jobs.lock().expect("no worker panicked").pop() else {
                        break;
                    };
                    let made = compile_one(target, precision, out);
                    objects.lock().expect("no worker panicked").extend(made);
                }
            });
        }
    });
    let mut objects = objects.into_inner().expect("no worker panicked");
    objects.sort();
    cc::Build::new().objects(objects).cpp(true).cpp_link_stdlib(None).compile("hmc_kernels");
}

fn compile_one(target: &Target, precision: &str, out: &Path) -> Vec<PathBuf> {
    let folder = out.join(table_name(target, precision));
    fs::create_dir_all(&folder).expect("OUT_DIR is writable");
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .cpp_link_stdlib(None)
        .std("c++17")
        .opt_level(3)
        .debug(false)
        .file("kernels/host.cpp")
        .out_dir(&folder);
    build.include(out).include("kernels").cargo_metadata(false);
    // The bit rule: no contraction but the named primitives.
    for flag in ["-ffp-contract=off", "-fno-exceptions", "-fno-math-errno", "-fno-strict-aliasing"] {
        build.flag(flag);
    }
    build.flag_if_supported("-Wno-psabi").flag_if_supported("-Wno-maybe-uninitialized");
    let register = match target.isa {
        "v3" => "32",
        "v4" => "64",
        _ => "0",
    };
    if let "v3" | "v4" = target.isa {
        build.flag(format!("-march=x86-64-{}", target.isa));
    }
    if target.isa == "gpu" {
        // Fused operations, where the processor has them, are not calls then.
        build
            .define("HMC_EMULATION", None)
            .flag_if_supported("-march=x86-64-v3")
            .flag("-Wno-unknown-pragmas");
    }
    for flag in env::var("HMC_KERNEL_FLAGS").unwrap_or_default().split_whitespace() {
        build.flag(flag);
    }
    build.define("HMC_REGISTER", register).define("HMC_LANES", target.lanes.to_string().as_str());
    build.define("HMC_REAL", if precision == "double" { "double" } else { "float" });
    build.define("HMC_TABLE", table_name(target, precision).as_str());
    match precision {
        "double" => build.define("HMC_DOUBLE", None),
        "half" => build.define("HMC_HALF", None),
        _ => &mut build,
    };
    // Kernels take minutes to compile: an object of the same sources and flags is kept.
    let stamp = stamp(target, precision, &build);
    let (stamp_file, object) = (folder.join("stamp"), folder.join("object"));
    let kept = || fs::read_to_string(&object).ok().map(PathBuf::from).filter(|o| o.exists());
    if fs::read_to_string(&stamp_file).is_ok_and(|kept| kept == stamp)
        && let Some(object) = kept()
    {
        return vec![object];
    }
    let objects = build.compile_intermediates();
    if let [only] = &objects[..] {
        let _ = fs::write(&object, only.to_string_lossy().as_bytes());
        let _ = fs::write(&stamp_file, stamp);
    }
    objects
}

/// What an object depends on.
fn stamp(target: &Target, precision: &str, build: &cc::Build) -> String {
    let mut sources: Vec<PathBuf> =
        fs::read_dir("kernels").expect("kernels/").filter_map(|entry| Some(entry.ok()?.path())).collect();
    sources.sort();
    let mut hasher = DefaultHasher::new();
    for source in sources {
        fs::read(source).unwrap_or_default().hash(&mut hasher);
    }
    let compiler = build.get_compiler();
    (compiler.path(), compiler.args()).hash(&mut hasher);
    (target.isa, target.lanes, precision, env::var("HMC_KERNEL_FLAGS").ok()).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
