//! `hmc --check`: the plan of a run, and whether this machine, the disk and the folder permit it. Nothing is written.

use super::memory::Counted;
use super::report::{say, span, warn};
use super::resume::{self, Found, Point};
use super::{AppError, Ranks, RunOptions, assemble, job, lock, memory, plan, start, streams};
use crate::comm::Solo;
use crate::device::{Held, gpu_count};
use crate::input::{Input, Start};
use crate::io::{self, IoError};
use crate::lattice::Partition;
use std::io::Error;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Prints the plan for the current ranks, or for `options.ranks`.
///
/// # Errors
/// Everything that prevents the run.
pub(super) fn check(input: &Input, options: &RunOptions, comm: &Ranks) -> Result<(), AppError> {
    let ranks = options.ranks.unwrap_or(comm.size());
    let grid = input.parallel.grid.of(input.extents, ranks)?;
    let partition = Partition::new(input.extents, grid, ranks, 0)?;
    // The current ranks share their nodes; for planned ranks the sharing is unknown.
    let sharing = if options.ranks.is_some() { 1 } else { start::place_on_node(&**comm).1 };
    let node_of = match options.ranks {
        Some(ranks) => (0..ranks).map(|rank| rank / options.node_ranks.unwrap_or(ranks)).collect(),
        None => start::nodes(&**comm)?,
    };
    if comm.rank() != 0 {
        return Ok(());
    }
    say(plan::plan(input, &partition, ranks).trim_end())?;
    let folder = input.run.folder();
    let input = &chosen(input, &folder)?;
    let mut errors = Vec::new();
    let mut note = |found: Result<(), AppError>| errors.extend(found.err());
    let held = memory::count(input, &partition, &node_of);
    if let Ok(held) = &held {
        tell(held, input, options)?;
    }
    note(held.and_then(|held| device(input, &partition, sharing, held.bytes)));
    note(streams::judge(input));
    let done = chain(input, &folder, options);
    note(disk(input, &folder, done.as_ref().map_or(0, |done| *done)));
    note(done.map(drop));
    match errors.len() {
        0 => say("nothing stands in the way of this run"),
        _ => Err(AppError::Several(errors)),
    }
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
    let all = plan::memory(held);
    match Counted::of(input) {
        Counted::Cpu => say(format_args!("memory         {all} per rank on a CPU"))?,
        Counted::Gpu => {
            say(format_args!(
                "memory         per rank on a GPU {all}, besides the driver's and the kernels' own"
            ))?;
        }
    }
    let share = |bytes: u64| 100.0 * bytes as f64 / held.bytes as f64;
    let rows = held.by.iter().filter(|(_, bytes)| options.memory && share(*bytes) >= 0.05);
    for (label, bytes) in rows {
        say(format_args!("  {:>12} {:5.1}%  {label}", plan::megabytes(*bytes as usize), share(*bytes)))?;
    }
    Ok(())
}

/// Reports the device of rank 0 and its memory. A rank needs `needed` bytes; `sharing` ranks of its node share the
/// memory, or its GPUs.
fn device(input: &Input, partition: &Partition, sharing: usize, needed: u64) -> Result<(), AppError> {
    let layers = assemble::layers(input, [&input.measure]);
    let device = start::device(&input.parallel, partition, layers.reach, &Solo)?;
    start::require_lanes(partition, &device, layers.reach)?;
    let Some([free, total]) = device.backend().memory() else { return Ok(()) };
    let free_text = plan::megabytes(free as usize);
    say(format_args!("device         {}, {free_text} free", device.backend().name()))?;
    let devices = if device.backend().is_host() { 1 } else { gpu_count().unwrap_or(1) };
    let sharing = sharing.div_ceil(devices.max(1));
    let all = needed.saturating_mul(sharing as u64);
    if all > total {
        return Err(AppError::Refused(format!(
            "{} are needed by {sharing} rank{} on this node's device, which has {}; take more nodes, or a smaller lattice",
            plan::megabytes(all as usize),
            if sharing == 1 { "" } else { "s" },
            plan::megabytes(total as usize)
        )));
    }
    if all > free {
        let all = plan::megabytes(all as usize);
        warn(format_args!("{all} are needed, {free_text} are free just now"));
    }
    Ok(())
}

/// Reports what a new or resumed run would find in the folder; returns the number of finished trajectories.
fn chain(input: &Input, folder: &Path, options: &RunOptions) -> Result<u64, AppError> {
    if let Some(who) = lock::holder(folder) {
        warn(format_args!("{}: another job works on this chain just now: {who}", folder.display()));
    }
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
    let accepted = resume::judge(folder, &path, &header, input, options)?;
    let choices = resume::stored_input(&path, &header)?.choices();
    found.choose(&choices);
    let done = header.trajectory.unwrap_or(0);
    let changes = found.retuned(done, &input.with_choices(&choices)?);
    resume::told(&changes, done).iter().try_for_each(say)?;
    let mut point = Point::new(None, done, accepted);
    let repairs = found.repairs(&mut point, folder, &input.run, options.gaps, &Solo);
    point.warnings.iter().for_each(warn);
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
    let jobs = job::recorded(folder);
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

/// Checks the free disk space for remaining files, and the permission to write.
fn disk(input: &Input, folder: &Path, done: u64) -> Result<(), AppError> {
    let exists = |path: &&Path| path.exists();
    let ancestors = folder.ancestors().map(|p| if p.as_os_str().is_empty() { Path::new(".") } else { p });
    let there: PathBuf = ancestors.into_iter().find(exists).unwrap_or(Path::new(".")).into();
    if !there.is_dir() {
        let source = std::io::ErrorKind::NotADirectory.into();
        return Err(AppError::Folder { path: there, action: "make a folder in", source });
    }
    let name = std::ffi::CString::new(there.as_os_str().as_bytes()).unwrap_or_default();
    // SAFETY: the text ends with a zero.
    if unsafe { libc::access(name.as_ptr(), libc::W_OK | libc::X_OK) } != 0 {
        return Err(AppError::Folder { path: there, action: "write to", source: Error::last_os_error() });
    }
    let Some(free) = io::free_bytes(&there) else { return Ok(()) };
    let run = &input.run;
    let to_go = run.trajectories.saturating_sub(done) / run.save_every.max(1);
    let one = plan::configuration(input);
    // Two checkpoints are kept, and a third file exists while it is written.
    let kept = plan::in_all_formats(input);
    let (least, all) = (3 * one + kept, kept.saturating_mul(to_go as usize).saturating_add(3 * one));
    let free_text = plan::megabytes(free as usize);
    say(format_args!("disk           {free_text} free in {}", there.display()))?;
    if (least as u64) > free {
        return Err(IoError::DiskFull { path: there, needed: least as u64, free }.into());
    }
    if all as u64 > free {
        warn(format_args!(
            "the whole chain needs {}, but the disk has only {free_text}",
            plan::megabytes(all)
        ));
    }
    Ok(())
}
