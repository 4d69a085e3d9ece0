//! `hmc --check`: the plan of a run, and whether sizes, memory, the disk and the folder permit it. Nothing is written, and no
//! field is made.

use crate::app::chain::jobs;
use crate::app::chain::jobs::JOBS;
use crate::app::chain::memory::Counted;
use crate::app::chain::resume::{self, Found, Point};
use crate::app::chain::{assemble, lock, memory, plan, streams};
use crate::app::machine::{placement, start};
use crate::app::output;
use crate::app::output::{megabytes, say, span, warn};
use crate::app::{AppError, Ranks, RunOptions};
use crate::comm::Solo;
use crate::device::{DeviceError, Held, gpu_count, host_memory};
use crate::input::{Input, Start};
use crate::io::{self, IoError};
use crate::lattice::Partition;
use std::fmt::Display;
use std::io::Error;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What the driver and the code of kernels take of a GPU for a rank: 0.57 GB of an H100.
const OF_KERNELS: u64 = 600_000_000;
/// What the program and the driver take of a GPU's node for a rank.
const OF_DRIVER: u64 = 1_000_000_000;
/// What the program, its libraries and MPI take of a node for a rank: 28 MB alone, 46 with MPI; and what the C library keeps
/// of freed memory.
const OF_PROGRAM: u64 = 50_000_000;

/// What was found so far.
#[derive(Default)]
struct Findings {
    errors: Vec<AppError>,
    /// What the warnings are about.
    warned: Vec<&'static str>,
}

impl Findings {
    fn warn(&mut self, about: &'static str, text: impl Display) {
        warn(text);
        self.warned.push(about);
    }

    /// The value, if what was tried has one; else an error more.
    fn note<T>(&mut self, found: Result<T, AppError>) -> Option<T> {
        found.map_err(|error| self.errors.push(error)).ok()
    }

    /// Says whether a memory, free and in all, is enough; where it is not known, what it has to be.
    ///
    /// # Errors
    /// It is too small.
    fn fits(&mut self, need: &Need, memory: Option<[u64; 2]>) -> Result<(), AppError> {
        let text = |bytes: u64| megabytes(bytes as usize);
        let Need { ranks, each: [own, others], of: [place, what, more] } = *need;
        let all = own.saturating_add(others).saturating_mul(ranks as u64);
        let by = format!("{ranks} rank{}", if ranks == 1 { "" } else { "s" });
        let (need, others) = (text(all), format!("({} a rank for {what})", text(others)));
        let Some([free, total]) = memory else {
            return say(format_args!("fits           if {place} has {need} for {by} {others}"));
        };
        let has = text(total);
        if all > total {
            return Err(AppError::Refused(format!(
                "{need} are needed by {by} on {place} {others}, which has {has}; take more {more}, or a smaller lattice"
            )));
        }
        if all > free {
            self.warn("memory", format_args!("{need} are needed, {} are free just now", text(free)));
        }
        say(format_args!("fits           {need} for {by} on {place} {others}, which has {has}"))
    }

    /// The last line, or all errors.
    fn end(mut self) -> Result<(), AppError> {
        if !self.errors.is_empty() {
            return Err(AppError::Several(self.errors));
        }
        let count = self.warned.len();
        self.warned.sort_unstable();
        self.warned.dedup();
        match count {
            0 => say("nothing prevents the start"),
            _ => say(format_args!(
                "nothing prevents the start; warnings: {count} ({})",
                self.warned.join(", ")
            )),
        }
    }
}

/// Prints the plan for the current ranks, or for `options.ranks`; `warnings` were told of the input.
///
/// # Errors
/// Everything that prevents the run.
pub(super) fn check(
    input: &Input,
    warnings: usize,
    options: &RunOptions,
    comm: &Ranks,
) -> Result<(), AppError> {
    let ranks = options.ranks.unwrap_or(comm.size());
    let grid = input.parallel.grid_of(input.extents, ranks)?;
    let partition = Partition::new(input.extents, grid, ranks, 0)?.with_time(input.time);
    let (node_of, of_node) = match options.ranks {
        Some(ranks) => {
            let of_node = options.node_ranks.unwrap_or(ranks).min(ranks);
            ((0..ranks).map(|rank| rank / of_node).collect(), of_node)
        }
        None => (start::nodes(&**comm)?, placement::place_on_node(&**comm).1),
    };
    if comm.rank() != 0 {
        return Ok(());
    }
    say(plan::plan(input, &partition, ranks).trim_end())?;
    let folder = input.run.folder();
    let input = &chosen(input, &folder)?;
    let mut findings = Findings { errors: Vec::new(), warned: vec!["input"; warnings] };
    if let Some(held) = findings.note(memory::count(input, &partition, &node_of)) {
        tell(&held, input, options)?;
        let fits = fits(&held, input, &partition, of_node, options, &mut findings);
        findings.note(fits);
    }
    let told = findings.note(streams::judge(input, !streams::holds_chain(&folder)));
    told.into_iter().flatten().for_each(|text| findings.warn("streams", text));
    let done = chain(input, &folder, options, &mut findings);
    let done = findings.note(done).unwrap_or(0);
    let room = disk(input, &folder, done, &mut findings);
    findings.note(room);
    findings.end()
}

/// The input with the methods that the chain in `folder` has chosen, if there is one; prints them, or the candidates.
fn chosen(input: &Input, folder: &Path) -> Result<Input, AppError> {
    // What is wrong with the chain is reported later.
    let newest = resume::newest_header(folder).ok().flatten();
    let stored = newest.and_then(|(path, header)| resume::stored_input(&path, &header).ok());
    let choices = stored.map(|stored| stored.choices()).unwrap_or_default();
    for (term, candidates) in input.open_choices() {
        let text = match choices.get(term) {
            Some(choice) => format!("{choice}, as the chain has chosen"),
            None => {
                let all: Vec<String> = candidates.iter().map(ToString::to_string).collect();
                format!("the fastest of {}", all.join(", "))
            }
        };
        say(format_args!("solver         {term}: {text}"))?;
    }
    Ok(input.with_choices(&choices).unwrap_or_else(|_| input.clone()))
}

/// Prints the memory of a rank, and what it is used for.
fn tell(held: &Held, input: &Input, options: &RunOptions) -> Result<(), AppError> {
    let (all, whose) = (output::memory(held), if Counted::of(input) == Counted::Gpu { "GPU" } else { "CPU" });
    say(format_args!("memory         per rank on a {whose} {all}"))?;
    let share = |bytes: u64| 100.0 * bytes as f64 / held.bytes as f64;
    let rows = held.by.iter().filter(|(_, bytes)| options.memory && share(*bytes) >= 0.05);
    for (label, bytes) in rows {
        say(format_args!("  {:>12} {:5.1}%  {label}", megabytes(*bytes as usize), share(*bytes)))?;
    }
    Ok(())
}

/// What ranks take together of one memory.
struct Need {
    ranks: usize,
    /// Bytes of a rank: those of the run, and others.
    each: [u64; 2],
    /// The memory, what the others are, and what there can be more of.
    of: [&'static str; 3],
}

impl Need {
    /// Of a GPU.
    fn of_gpu(ranks: usize, held: u64) -> Self {
        Self { ranks, each: [held, OF_KERNELS], of: ["a GPU", "driver and kernels", "GPUs"] }
    }

    /// Of a node beside its GPUs.
    fn of_host(ranks: usize, held: u64) -> Self {
        Self { ranks, each: [held, OF_DRIVER], of: ["a node", "program and driver", "nodes"] }
    }

    /// Of a node, for what runs on its CPUs.
    fn of_node(ranks: usize, held: u64) -> Self {
        Self { ranks, each: [held, OF_PROGRAM], of: ["a node", "the program", "nodes"] }
    }
}

/// Says whether the memory of GPUs and nodes is enough, of those that are here, or as large as `options` say. A node has
/// `of_node` ranks.
fn fits(
    held: &Held,
    input: &Input,
    partition: &Partition,
    of_node: usize,
    options: &RunOptions,
    findings: &mut Findings,
) -> Result<(), AppError> {
    let is_here = options.ranks.is_none();
    let given = options.device_memory.map(|bytes| [bytes, bytes]);
    let open = || {
        let reach = assemble::layers(input, [&input.measure]).reach;
        let device = start::device(&input.parallel, partition, reach, &Solo)?;
        start::require_lanes(partition, &device, reach)?;
        let memory = device.backend().memory();
        let free = memory.map_or(String::new(), |[free, _]| format!(", {} free", megabytes(free as usize)));
        say(format_args!("device         {}{free}", device.backend().name()))?;
        Ok::<_, AppError>(memory)
    };
    if Counted::of(input) == Counted::Cpu {
        let here = if is_here { open()? } else { None };
        return findings.fits(&Need::of_node(of_node, held.bytes), given.or(here));
    }
    let (count, is_planned) = (gpu_count(), !is_here || options.device.is_some() || given.is_some());
    let here = match &count {
        Err(DeviceError::NoCuda) => return Err(DeviceError::NoCuda.into()),
        Err(error) if !is_planned => {
            findings.warn("GPU", format_args!("{error}; the plan is for others"));
            None
        }
        Ok(_) if given.is_none() => open()?,
        _ => None,
    };
    let (of_gpu, node) = match count {
        Ok(count) if is_here => (of_node.div_ceil(count), host_memory()),
        _ => (1, None),
    };
    let gpu = findings.fits(&Need::of_gpu(of_gpu, held.bytes), given.or(here));
    findings.note(gpu);
    findings.fits(&Need::of_host(of_node, held.aside + held.host), node)
}

/// Reports what a new or resumed run would find in the folder; returns the number of finished trajectories.
fn chain(
    input: &Input,
    folder: &Path,
    options: &RunOptions,
    findings: &mut Findings,
) -> Result<u64, AppError> {
    let taken = lock::judge(folder);
    findings.note(taken).flatten().into_iter().for_each(|text| findings.warn("lock", text));
    let newest = resume::newest_header(folder)?;
    let mut found = Found::look(folder, input, &Solo)?;
    let Some((path, header)) = newest else {
        if let Start::File(path) = &input.run.start {
            let header = io::header(path)?;
            if header.extents != input.extents {
                let (found, expected) = (header.extents, input.extents);
                return Err(IoError::WrongLattice { path: path.clone(), found, expected }.into());
            }
        }
        say("folder state   no chain yet: the run starts")?;
        return Ok(0);
    };
    if let Some(told) = found.replaced(folder, input, &Solo)? {
        say(format_args!("folder state   {told}"))?;
        return Ok(0);
    }
    let accepted = resume::judge(folder, &path, &header, input, options)?;
    let choices = resume::stored_input(&path, &header)?.choices();
    found.choose(&choices);
    let done = header.trajectory.unwrap_or(0);
    let changes = found.retuned(done, &input.with_choices(&choices)?);
    resume::told(&changes, done).iter().try_for_each(say)?;
    let mut point = Point::new(None, done, accepted);
    let repairs = found.repairs(&mut point, folder, &input.run, options.gaps, &Solo);
    point.warnings.iter().for_each(|text| findings.warn("records", text));
    repairs?;
    let (done, total) = (point.done, input.run.trajectories);
    say(format_args!(
        "folder state   resumes after {done} of {total} trajectories, from {}",
        path.display()
    ))?;
    time(folder, total.saturating_sub(done), options)?;
    Ok(done)
}

/// Estimates the time of the remaining trajectories from the history.
fn time(folder: &Path, left: u64, options: &RunOptions) -> Result<(), AppError> {
    let seconds = resume::seconds(folder);
    if seconds == 0.0 {
        return Ok(());
    }
    let jobs = jobs::recorded(folder);
    let last = jobs.last().and_then(|job| job.ranks);
    let on =
        last.map_or(String::new(), |ranks| format!(" on {ranks} rank{}", if ranks == 1 { "" } else { "s" }));
    let all = span(seconds * left as f64);
    say(format_args!("time           {} per trajectory{on}, {all} for the remaining {left}", span(seconds)))?;
    if let (Some(ranks), Some(last)) = (options.ranks, last)
        && ranks != last
    {
        let ideal = seconds * last as f64 / ranks as f64;
        say(format_args!("               {} per trajectory on {ranks}, with perfect scaling", span(ideal)))?;
    }
    Ok(())
}

/// Refuses what this process may not use in this way.
fn require_access(path: &Path, how: libc::c_int) -> Result<(), AppError> {
    let name = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap_or_default();
    // SAFETY: the text ends with a zero.
    if unsafe { libc::access(name.as_ptr(), how) } == 0 {
        return Ok(());
    }
    Err(AppError::Folder { path: path.into(), action: "write to", source: Error::last_os_error() })
}

/// Refuses folders and files of a chain that its next job could not write.
fn writable(input: &Input, folder: &Path) -> Result<(), AppError> {
    let formats = input.run.save_formats.iter().map(|format| format.ending());
    let within = ["cfg", "checkpoint"].into_iter().chain(formats).map(|place| folder.join(place));
    for path in within.filter(|path| path.symlink_metadata().is_ok()) {
        if !path.is_dir() {
            let source = std::io::ErrorKind::NotADirectory.into();
            return Err(AppError::Folder { path, action: "write to", source });
        }
        require_access(&path, libc::W_OK | libc::X_OK)?;
    }
    for path in ["lock", JOBS].map(|name| folder.join(name)) {
        let Ok(data) = path.symlink_metadata() else { continue };
        if !data.is_file() {
            let source = Error::other("it is no plain file");
            return Err(AppError::Folder { path, action: "write to", source });
        }
        require_access(&path, libc::W_OK)?;
    }
    Ok(())
}

/// Checks the free disk space for remaining files, and the permission to write.
fn disk(input: &Input, folder: &Path, done: u64, findings: &mut Findings) -> Result<(), AppError> {
    let exists = |path: &&Path| path.exists();
    let ancestors = folder.ancestors().map(|p| if p.as_os_str().is_empty() { Path::new(".") } else { p });
    let there: PathBuf = ancestors.into_iter().find(exists).unwrap_or(Path::new(".")).into();
    if !there.is_dir() {
        let source = std::io::ErrorKind::NotADirectory.into();
        return Err(AppError::Folder { path: there, action: "make a folder in", source });
    }
    require_access(&there, libc::W_OK | libc::X_OK)?;
    writable(input, folder)?;
    let Some(free) = io::free_bytes(&there) else { return Ok(()) };
    let run = &input.run;
    let left = run.trajectories.saturating_sub(done);
    let to_go = left / run.save_every.max(1);
    let one = plan::configuration(input);
    // Two checkpoints are kept, and a third file exists while it is written.
    let kept = plan::in_all_formats(input);
    let least = 3 * one + kept;
    let all = kept.saturating_mul(to_go as usize).saturating_add(3 * one + plan::history(input, left));
    let free_text = megabytes(free as usize);
    say(format_args!("disk           {free_text} free in {}", there.display()))?;
    if (least as u64) > free {
        return Err(IoError::DiskFull { path: there, needed: least as u64, free }.into());
    }
    if all as u64 > free {
        let all = megabytes(all);
        findings.warn("disk", format_args!("the whole chain needs {all}, but the disk has only {free_text}"));
    }
    Ok(())
}
