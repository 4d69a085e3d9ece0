//! The program as a user starts it, alone or under mpirun, in a folder of its own.
//!
//! Every wait has a limit, and what a test started is gone, with its folder, when the test ends.

/// The input of a chain of gauge fields: lines of `[run]`, extents, `[hmc]`, steps, other tables.
macro_rules! pure {
    ($run:literal, $extents:literal, $hmc:literal, $steps:literal, $rest:literal) => {
        concat!(
            "[run]\nname = \"pure\"\nseed = 3\n",
            $run,
            "[lattice]\nextents = ",
            $extents,
            "\n[gauge]\naction = \"wilson\"\nbeta = 5.7\n",
            $hmc,
            "[[hmc.level]]\nintegrator = \"2mn\"\nsteps = ",
            $steps,
            "\nterms = [\"gauge\"]\n",
            $rest
        )
    };
}

mod auto;
mod bench;
mod bits;
mod bundle;
mod chaos;
mod check;
mod cli;
mod cli_files;
mod crash;
mod drafts;
mod drivers;
mod exceptional;
mod exports;
mod faults;
mod folder;
mod inputs;
mod ladder;
mod large;
mod launch;
mod qcdml;
mod replay;
mod report;
mod restart;
mod retuning;
mod sizes;
mod stops;
mod streams;
mod tune;
mod verification;

use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// No run of these tests takes a tenth of this on a machine that has nothing else to do.
pub const LIMIT: Duration = Duration::from_secs(300);

/// Ranks that wait for each other need their cores at once: jobs of several ranks take turns.
static TURN: Mutex<()> = Mutex::new(());

/// How mpirun is to behave: more ranks than cores, root, containers; as in the Makefile.
const MPIRUN: [(&str, &str); 10] = [
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("OMPI_MCA_hwloc_base_binding_policy", "none"),
    ("OMPI_MCA_mpi_yield_when_idle", "1"),
    ("OMPI_MCA_btl_vader_single_copy_mechanism", "none"),
    ("PRTE_ALLOW_RUN_AS_ROOT", "1"),
    ("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"),
    ("PRTE_MCA_hwloc_default_binding_policy", "none"),
];
/// Where ranks keep shared memory, which nobody removes after a kill: put into the test's folder.
const SHARED_MEMORY: [&str; 2] =
    ["OMPI_MCA_btl_vader_backing_directory", "OMPI_MCA_btl_sm_backing_directory"];
/// By these the program believes to be a rank.
const LAUNCHERS: [&str; 19] = [
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
    "PMI_SIZE",
    "PMI_CONTROL_PORT",
    "PMIX_RANK",
    "MPI_LOCALRANKID",
    "I_MPI_PMI_LIBRARY",
    "MV2_COMM_WORLD_RANK",
    "MV2_COMM_WORLD_SIZE",
    "PALS_RANKID",
    "PALS_SIZE",
    "PALS_NRANKS",
    "FLUX_JOB_SIZE",
    "FLUX_TASK_RANK",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_JOB_END_TIME",
    "SLURM_PROCID",
    "SLURM_NTASKS",
];

/// A program that is no rank of whatever started the tests, does not outlive them, and has none of the files that other
/// tests hold open: locks last as long as anyone has the file.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for name in LAUNCHERS {
        command.env_remove(name);
    }
    // SAFETY: both may be called between fork and exec. An old kernel has no close_range, which is no error here.
    unsafe {
        command.pre_exec(|| {
            libc::close_range(3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC as libc::c_int);
            match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    command
}

/// Python with h5py, or a word that there is none.
pub fn python() -> Option<OsString> {
    let found = std::env::var_os("HMC_PYTHON");
    if found.is_none() {
        println!("skipped: HMC_PYTHON names no Python with h5py");
    }
    found
}

/// A folder that is removed at the end. Its path is short: sockets of mpirun lie in it.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("hmc-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file and returns its name, as the program, started in this folder, is to be given it.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        fs::write(self.at(name), content).unwrap();
        name.to_owned()
    }

    /// Starts `hmc` in this folder: on `ranks` ranks, 0 being one without mpirun.
    pub fn start(&self, ranks: usize, arguments: &[&str]) -> Job {
        self.start_with(ranks, arguments, &[])
    }

    /// As [`Self::start`], with these variables in the environment besides.
    pub fn start_with(&self, ranks: usize, arguments: &[&str], variables: &[(&str, &str)]) -> Job {
        self.start_program(Path::new(env!("CARGO_BIN_EXE_hmc")), ranks, arguments, variables)
    }

    /// As [`Self::start_with`], of another program.
    pub fn start_program(
        &self,
        program: &Path,
        ranks: usize,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Job {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut command = command(if ranks == 0 { program } else { Path::new("mpirun") });
        if ranks > 0 {
            command.args(["-n", &ranks.to_string()]).arg(program);
        }
        command.envs(MPIRUN).envs(SHARED_MEMORY.map(|name| (name, &self.0))).env("TMPDIR", &self.0);
        command.envs(variables.iter().copied());
        let [out, err] = ["out", "err"].map(|end| self.at(&format!("{number}.{end}")));
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        // A test that failed while it had its turn is no reason for others to fail.
        let turn = (ranks > 1).then(|| TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        let child = command.args(arguments).current_dir(&self.0).spawn().expect("hmc or mpirun starts");
        Job { child, out, err, ended: false, _turn: turn }
    }

    /// Runs `hmc` in this folder to its end.
    pub fn run(&self, ranks: usize, arguments: &[&str]) -> Ended {
        self.start(ranks, arguments).wait()
    }

    /// Runs a chain that must succeed.
    pub fn chain(&self, ranks: usize, text: &str) -> Ended {
        let input = self.write("run.toml", text);
        let ended = self.run(ranks, &[&input]);
        assert_eq!(ended.code, Some(0), "{ended:?}\n{text}");
        ended
    }

    /// `hmc measure` of configurations by the tables of an input.
    pub fn measure(&self, ranks: usize, text: &str, arguments: &[&str]) -> Ended {
        let input = self.write("measure.toml", text);
        self.run(ranks, &[&["measure", "--input", &input], arguments].concat())
    }

    /// `hmc info --json`, which reads all of a file.
    pub fn info(&self, file: &Path) -> Value {
        let ended = self.run(0, &["info", "--json", &file.display().to_string()]);
        ended.succeeded();
        serde_json::from_str(&ended.out).unwrap()
    }

    pub fn checksum(&self, file: &Path) -> String {
        self.info(file)["links_checksum"].as_str().expect("a text").to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A test that failed is the message; what a folder left behind adds is little.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// How a program ended.
#[derive(Debug)]
pub struct Ended {
    /// `None`: by a signal.
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ended {
    /// That it ended well.
    pub fn succeeded(&self) {
        assert_eq!(self.code, Some(0), "{self:?}");
    }

    /// That it failed with `code` and messages that have all of `parts`, and not by a fault of its own.
    pub fn failed(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        for part in parts {
            assert!(self.err.contains(part), "no '{part}' in {self:?}");
        }
        for fault in ["internal fault", "panicked", "RUST_BACKTRACE", "HDF5-DIAG"] {
            assert!(!self.err.contains(fault), "{self:?}");
        }
    }
}

/// A running program.
pub struct Job {
    child: Child,
    out: PathBuf,
    err: PathBuf,
    ended: bool,
    _turn: Option<MutexGuard<'static, ()>>,
}

impl Job {
    /// What it has said so far.
    pub fn said(&self) -> String {
        fs::read_to_string(&self.out).unwrap_or_default()
    }

    /// What it has warned of so far.
    pub fn warned(&self) -> String {
        fs::read_to_string(&self.err).unwrap_or_default()
    }

    pub fn is_running(&mut self) -> bool {
        self.ended = self.ended || self.child.try_wait().unwrap().is_some();
        !self.ended
    }

    /// Waits until it has said `text`.
    pub fn await_words(&mut self, text: &str) {
        let found = self.wait_until(|job| job.said().contains(text));
        assert!(
            found,
            "ended without '{text}': {}{}",
            self.said(),
            fs::read_to_string(&self.err).unwrap_or_default()
        );
    }

    /// Waits until `condition` holds; `false` when the program ends before.
    pub fn wait_until(&mut self, condition: impl Fn(&Self) -> bool) -> bool {
        let start = Instant::now();
        loop {
            let running = self.is_running();
            if condition(self) {
                return true;
            }
            if !running {
                return false;
            }
            if start.elapsed() > LIMIT {
                let said = self.said();
                self.kill();
                panic!("hangs: {said}");
            }
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Ended {
        self.wait_until(|_| false);
        let status = self.child.wait().unwrap();
        let [out, err] = [&self.out, &self.err].map(|path| {
            let text = fs::read(path).unwrap();
            fs::remove_file(path).unwrap();
            String::from_utf8_lossy(&text).into_owned()
        });
        Ended { code: status.code(), out, err }
    }

    /// The processes of the program itself, without mpirun.
    pub fn ranks(&self) -> Vec<i32> {
        let name = Path::new(env!("CARGO_BIN_EXE_hmc"));
        let is_rank = |pid: &i32| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|path| path == name);
        family(self.child.id() as i32).into_iter().filter(is_rank).collect()
    }

    /// kill -9 for mpirun and all ranks at once; answers whether that is what ended it.
    pub fn kill(&mut self) -> bool {
        if !self.is_running() {
            return false;
        }
        let parent = self.child.id() as i32;
        // A stopped mpirun starts no more ranks while the list is made.
        signal(parent, libc::SIGSTOP);
        let all = family(parent);
        all.iter().for_each(|pid| signal(*pid, libc::SIGKILL));
        let status = self.child.wait().unwrap();
        self.ended = true;
        // Ranks may be gone a little later, and hold the lock until then.
        while all.iter().any(|pid| is_alive(*pid)) {
            std::thread::sleep(Duration::from_millis(1));
        }
        status.code().is_none()
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends a signal to a process of this test.
pub fn signal(pid: i32, number: i32) {
    // SAFETY: no memory is involved. A process that is gone already is no mistake.
    unsafe { libc::kill(pid, number) };
}

/// State and parent of a process or of a thread, by its folder in `/proc`.
fn stat(folder: &Path) -> Option<(char, i32)> {
    let text = fs::read_to_string(folder.join("stat")).ok()?;
    let (_, rest) = text.rsplit_once(") ")?;
    let mut words = rest.split(' ');
    Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
}

fn process(pid: i32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}"))
}

/// Whether any thread of it is: its files and their locks are held until the last one is gone, and the first may go
/// before.
fn is_alive(pid: i32) -> bool {
    let threads = fs::read_dir(process(pid).join("task")).into_iter().flatten().flatten();
    threads.filter_map(|thread| stat(&thread.path())).any(|(state, _)| !"ZX".contains(state))
}

/// A process and all below it.
fn family(parent: i32) -> Vec<i32> {
    let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
    let parents: Vec<(i32, i32)> = pids.filter_map(|pid: i32| Some((pid, stat(&process(pid))?.1))).collect();
    let mut all = vec![parent];
    let mut next = 0;
    while let Some(&one) = all.get(next) {
        all.extend(parents.iter().filter(|(_, above)| *above == one).map(|(pid, _)| *pid));
        next += 1;
    }
    all
}

/// The text of `inputs/quickstart.toml`.
pub fn quickstart() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("inputs/quickstart.toml");
    fs::read_to_string(path).unwrap()
}

/// `text` with another value of `key`, which it must have once.
pub fn with(text: &str, key: &str, value: &str) -> String {
    let is_it = |line: &str| line.split_once('=').is_some_and(|(left, _)| left.trim() == key);
    assert_eq!(text.lines().filter(|line| is_it(line)).count(), 1, "{key} in {text}");
    let lines =
        text.lines().map(|line| if is_it(line) { format!("{key} = {value}\n") } else { format!("{line}\n") });
    lines.collect()
}

/// `[parallel]` on the CPU; `lanes` 0: the best.
pub fn parallel(grid: [usize; 4], lanes: usize, threads: usize) -> String {
    let lanes = if lanes == 0 { "\"auto\"".to_owned() } else { lanes.to_string() };
    format!("[parallel]\ndevice = \"cpu\"\ngrid = {grid:?}\nlanes = {lanes}\nthreads = {threads}\n")
}

/// A run on so many ranks, 0 being one without mpirun, which share the time direction.
pub fn on(text: &str, ranks: usize) -> String {
    format!("{text}\n{}", parallel([1, 1, 1, ranks.max(1)], 0, 1))
}

/// Lines of JSON.
pub fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

/// The names in a folder, sorted; none where there is no folder.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// All files under a folder with their bytes.
pub fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for name in names(folder) {
        let path = folder.join(name);
        if path.is_dir() {
            all.extend(contents(&path));
        } else {
            all.push((path.clone(), fs::read(path).unwrap()));
        }
    }
    all
}

/// All files of an ensemble with their bytes, but those that say which jobs were there.
pub fn chain_contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = contents(folder);
    all.retain(|(path, _)| !["lock", "jobs.jsonl"].iter().any(|name| path.ends_with(name)));
    all
}

/// What of a chain must not depend on the machine.
#[derive(Debug, PartialEq)]
pub struct Chain {
    /// Rows of the history as text: trajectory, dH, accepted, plaquette, unitarity.
    pub history: Vec<String>,
    /// All of `measurements.jsonl`.
    pub measurements: String,
}

/// Reads the folder of an ensemble.
pub fn read_chain(folder: &Path) -> Chain {
    let text = fs::read_to_string(folder.join("history.csv")).unwrap();
    let mut rows = text.lines().map(|row| row.split(',').take(5).collect::<Vec<_>>().join(","));
    assert_eq!(rows.next().as_deref(), Some("trajectory,delta_h,accepted,plaquette,unitarity"));
    let history = rows.collect();
    Chain { history, measurements: fs::read_to_string(folder.join("measurements.jsonl")).unwrap_or_default() }
}
