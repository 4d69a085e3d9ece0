//! Builds the kernels for the host and the Rust side of their arguments.
//!
//! - `kernels/args.h` and the lists in `kernels/*.cuh` -> `kernels.rs` (`#[repr(C)]` structs, and which kernel each is
//!   the argument of) and `args_check.h` (offsets, checked by C++).
//! - `kernels/host.cpp` -> one object per instruction set, lane count and precision.
//! - `tables.rs`: the tables of functions in those objects; `sources.rs`: the headers for NVRTC.
//!
//! An instruction set named `gpu` is the GPU's source, for checks without a GPU. Which objects are made is said by
//! `HMC_KERNEL_TARGETS`:
//! - unset: all of this machine's processor
//! - `auto`: of these, what a run takes: not the emulated GPU
//! - `all`: those of other processors, too
//! - `none`: for what is never linked
//! - `"v4:1,8 gpu:1"`: these alone, while developing
//!
//! Objects are kept in `target/kernels` under the hash of all that they depend on, whatever the profile.

mod args;
#[path = "../src/device/isa.rs"]
mod isa;
mod kernels;

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::{env, fs, thread};

fn main() {
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-changed=kernels");
    println!("cargo:rerun-if-changed=src/device/isa.rs");
    println!("cargo:rerun-if-env-changed=HMC_KERNEL_TARGETS");
    println!("cargo:rerun-if-env-changed=HMC_KERNEL_FLAGS");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let args = args::Args::read("args.h");
    fs::write(out.join("kernels.rs"), args.rust() + &kernels::rust(&args)).expect("OUT_DIR is writable");
    fs::write(out.join("args_check.h"), args.checks()).expect("OUT_DIR is writable");
    fs::write(out.join("sources.rs"), sources()).expect("OUT_DIR is writable");
    let targets = targets();
    fs::write(out.join("tables.rs"), tables(&targets, kernels::counts(&args))).expect("OUT_DIR is writable");
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

/// A table of kernels.
struct Target {
    isa: &'static str,
    lanes: usize,
    precision: &'static str,
}

/// Bytes of a register.
fn register(isa: &str) -> usize {
    match isa {
        "v3" => 32,
        "v4" => 64,
        _ => 0,
    }
}

/// Instruction sets, lanes and precisions. With more lanes than a register holds doubles there are only tables of lower
/// precisions: fields in double then have half the lanes.
fn targets() -> Vec<Target> {
    let x86 = env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "x86_64");
    let all: &[(&str, &[usize])] = if x86 {
        &[("base", &[1]), ("v3", &[1, 4, 8]), ("v4", &[1, 4, 8, 16]), ("gpu", &[1])]
    } else {
        &[("base", &[1]), ("gpu", &[1])]
    };
    let wanted = env::var("HMC_KERNEL_TARGETS").ok();
    let named = |wanted: &str, isa: &str, lanes: usize| {
        let pairs = wanted.split(' ').filter_map(|t| t.split_once(':'));
        pairs.into_iter().any(|(i, l)| i == isa && l.split(',').any(|l| l == lanes.to_string()))
    };
    // The widest that this processor has; a build for another one names its own.
    let best = ["v4", "v3", "base"].into_iter().find(|isa| isa::supported(isa)).unwrap_or("base");
    let keep = |t: &Target| match wanted.as_deref() {
        _ if t.precision == "double" && t.lanes > 1 && t.lanes * 8 > register(t.isa) => false,
        Some("all") => true,
        None | Some("") => ["base", "gpu", best].contains(&t.isa),
        Some("auto") => ["base", best].contains(&t.isa),
        Some(wanted) => {
            let wider = t.precision == "double" && 2 * t.lanes * 8 > register(t.isa);
            named(wanted, t.isa, t.lanes) || wider && named(wanted, t.isa, 2 * t.lanes)
        }
    };
    let each = |&(isa, lanes): &(&'static str, &'static [usize])| {
        let with = move |lanes: usize| PRECISIONS.map(|precision| Target { isa, lanes, precision });
        lanes.iter().copied().flat_map(with)
    };
    all.iter().flat_map(each).filter(keep).collect()
}

fn table_name(t: &Target) -> String {
    format!("hmc_table_{}_{}_{}", t.isa, t.lanes, t.precision)
}

/// The tables' declarations; `counts` are the kernels in each precision, behind which a table has an entry that ends it.
fn tables(targets: &[Target], counts: [usize; 3]) -> String {
    let number = |t: &Target| PRECISIONS.iter().position(|p| *p == t.precision).expect("one of three");
    let (mut statics, mut rows) = (String::new(), String::new());
    for t in targets {
        let (name, number) = (table_name(t), number(t));
        let _ = writeln!(statics, "    static {name}: [Entry; {}];", counts[number] + 1);
        let _ = writeln!(
            rows,
            "        Table {{ isa: {:?}, lanes: {}, precision: Precision::ALL[{number}], entries: &raw const {name} }},",
            t.isa, t.lanes
        );
    }
    format!(
        "unsafe extern \"C\" {{\n{statics}}}\npub(super) fn tables() -> Vec<Table> {{\n    vec![\n{rows}    ]\n}}\n"
    )
}

fn compile(targets: &[Target], out: &Path) {
    let mut jobs: Vec<&Target> = targets.iter().collect();
    jobs.sort_by_key(|t| t.lanes); // the longest last in the list, so first to be taken
    let (jobs, objects) = (Mutex::new(jobs), Mutex::new(Vec::new()));
    let workers = env::var("NUM_JOBS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let Some(target) = jobs.lock().expect("no worker panicked").pop() else { break };
                    let made = object(target, out);
                    objects.lock().expect("no worker panicked").push(made);
                }
            });
        }
    });
    let mut objects = objects.into_inner().expect("no worker panicked");
    objects.sort();
    cc::Build::new().objects(objects).cpp(true).cpp_link_stdlib(None).compile("hmc_kernels");
}

/// The flags of an object.
fn flags(target: &Target) -> Vec<String> {
    // The bit rule: no contraction but the named primitives.
    let mut flags: Vec<String> =
        ["-ffp-contract=off", "-fno-exceptions", "-fno-math-errno", "-fno-strict-aliasing"]
            .map(str::to_owned)
            .to_vec();
    match target.isa {
        "v3" | "v4" => flags.push(format!("-march=x86-64-{}", target.isa)),
        "gpu" => flags.extend(["-DHMC_EMULATION", "-Wno-unknown-pragmas"].map(str::to_owned)),
        _ => {}
    }
    flags.extend(env::var("HMC_KERNEL_FLAGS").unwrap_or_default().split_whitespace().map(str::to_owned));
    flags.push(format!("-DHMC_REGISTER={}", register(target.isa)));
    flags.push(format!("-DHMC_LANES={}", target.lanes));
    flags.push(format!("-DHMC_REAL={}", if target.precision == "double" { "double" } else { "float" }));
    flags.push(format!("-DHMC_TABLE={}", table_name(target)));
    match target.precision {
        "double" => flags.push("-DHMC_DOUBLE".to_owned()),
        "half" => flags.push("-DHMC_HALF".to_owned()),
        _ => {}
    }
    flags
}

/// What makes GCC keep a site's numbers in registers, twice as fast in all: loops over the reals of a spinor or a matrix
/// are unrolled before its arrays are taken apart, are not turned into `memcpy`, and are not made into other vectors than
/// those of the source; and instructions are ordered with the number of registers in view.
const TUNING: &[&str] = &[
    "-fno-tree-loop-distribute-patterns",
    "-mmemcpy-strategy=vector_loop:-1:noalign",
    "-mmemset-strategy=vector_loop:-1:noalign",
    "--param=max-completely-peel-times=72",
    "--param=max-completely-peeled-insns=1000",
    "-fno-tree-vectorize",
    "-fno-tree-pre",
    "-fno-tree-sink",
    "-fschedule-insns",
    "-fsched-pressure",
];

/// The object of a table: one that is kept, or a new one. Kernels take minutes to compile.
fn object(target: &Target, out: &Path) -> PathBuf {
    let name = table_name(target);
    let mut build = cc::Build::new();
    build.cpp(true).cpp_link_stdlib(None).cargo_metadata(false).std("c++17").debug(false);
    // Beside vectors, `base` only serves processors for which the program was not meant to be built.
    build.opt_level(if target.isa == "base" && isa::supported("v3") { 1 } else { 3 });
    build.flag_if_supported("-Wno-psabi").flag_if_supported("-Wno-maybe-uninitialized");
    let of_ones_own = env::var("HMC_KERNEL_FLAGS").is_ok_and(|flags| !flags.is_empty());
    for flag in TUNING.iter().filter(|_| !of_ones_own) {
        build.flag_if_supported(flag);
    }
    if target.isa == "gpu" {
        // Fused operations, where the processor has them, are not calls then.
        build.flag_if_supported("-march=x86-64-v3");
    }
    flags(target).iter().for_each(|flag| _ = build.flag(flag));
    // target/kernels, beside the folders of all profiles; OUT_DIR is target/PROFILE/build/PACKAGE/out.
    let folder = out.ancestors().nth(4).expect("cargo's OUT_DIR").join("kernels");
    let (flags, sources) = (hash_of_flags(&build), hash_of_sources(out));
    let kept = folder.join(format!("{name}-{flags:016x}-{sources:016x}.o"));
    if kept.exists() {
        return kept;
    }
    let made = build
        .file("kernels/host.cpp")
        .include(out)
        .include("kernels")
        .out_dir(out.join(&name))
        .compile_intermediates();
    let [made] = &made[..] else { panic!("one source, one object") };
    fs::create_dir_all(&folder).expect("target/kernels is writable");
    // One of older sources is of no use any more.
    let older = format!("{name}-{flags:016x}-");
    for entry in fs::read_dir(&folder).expect("target/kernels").flatten() {
        if entry.file_name().to_string_lossy().starts_with(&older) {
            let _ = fs::remove_file(entry.path());
        }
    }
    let aside = kept.with_extension("new");
    fs::copy(made, &aside).and_then(|_| fs::rename(&aside, &kept)).expect("target/kernels is writable");
    kept
}

/// The compiler, its version and its flags.
fn hash_of_flags(build: &cc::Build) -> u64 {
    let compiler = build.get_compiler();
    let mut hasher = DefaultHasher::new();
    (compiler.path(), compiler.args()).hash(&mut hasher);
    let version = compiler.to_command().arg("--version").output();
    version.map(|said| said.stdout).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}

/// All of `kernels/`, and what is made of it for the compiler.
fn hash_of_sources(out: &Path) -> u64 {
    let mut sources: Vec<PathBuf> =
        fs::read_dir("kernels").expect("kernels/").filter_map(|entry| Some(entry.ok()?.path())).collect();
    sources.sort();
    sources.push(out.join("args_check.h"));
    let mut hasher = DefaultHasher::new();
    for source in sources {
        fs::read(source).unwrap_or_default().hash(&mut hasher);
    }
    hasher.finish()
}
