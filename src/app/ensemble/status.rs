//! `hmc status`: a few lines on where a chain stands, or the streams of an ensemble, from another shell.

use super::digest::Digest;
use super::merged::{Member, Merged};
use super::{Ensemble, Opened};
use crate::app::AppError;
use crate::app::output::megabytes;
use crate::app::output::{say, span, warn, with_error};
use crate::lattice::shape;
use std::path::Path;
use std::time::SystemTime;

/// `hmc status [--json] DIR`: where the chain stands, or each stream of an ensemble. Nothing is changed, and a run may be under
/// way. A stream that cannot be read is left out, with a warning.
///
/// # Errors
/// The folder is no ensemble's, or no file can be read.
pub fn status(folder: &Path, as_json: bool) -> Result<(), AppError> {
    let (opened, broken) = Opened::look(folder)?;
    broken.iter().for_each(|error| warn(format_args!("left out: {error}")));
    if as_json {
        return say(opened.json(None));
    }
    match &opened {
        Opened::Chain(chain) => of_chain(folder, chain),
        Opened::Streams(folder, members) => of_streams(folder, members),
    }
}

/// Five lines.
fn of_chain(folder: &Path, ensemble: &Ensemble) -> Result<(), AppError> {
    let digest = Digest::of(ensemble, None);
    let Digest { extents, done, planned, forecast, .. } = &digest;
    say(format_args!("{}: {done} of {planned} trajectories on {}", digest.title(), shape(*extents)))?;
    let last = age(folder).map_or(String::new(), |age| format!("; last row {age} ago"));
    match (&digest.running, ensemble.jobs.last()) {
        (Some(who), _) => say(format_args!("running   {who}{last}"))?,
        (None, Some(job)) => say(format_args!("stopped   last job {job}{last}"))?,
        (None, None) if *done > 0 => say("stopped   of the jobs so far jobs.jsonl does not tell")?,
        (None, None) => say("stopped   no job yet")?,
    }
    let plaquette = &digest.observables[0];
    if *done == 0 {
        say("numbers   none yet")?;
    } else if let Some(state) = &digest.in_thermalisation {
        say(format_args!(
            "numbers   {state}; plaquette {} over all so far",
            with_error(plaquette.mean, plaquette.error)
        ))?;
    } else {
        say(format_args!(
            "numbers   acceptance {:.2}, <exp(-dH)> {}, plaquette {}, after trajectory {}",
            digest.acceptance,
            with_error(digest.exp_minus_delta_h.mean, digest.exp_minus_delta_h.error),
            with_error(plaquette.mean, plaquette.error),
            digest.from
        ))?;
    }
    let left = match planned - done.min(planned) {
        0 => "none left".to_owned(),
        _ => format!("{} left", span(forecast.seconds_left)),
    };
    match *done {
        0 => say("time      no trajectory yet")?,
        _ => say(format_args!("time      {} a trajectory, {left}", span(forecast.seconds)))?,
    }
    let newest = ensemble.states.first();
    let newest = newest.map_or("no checkpoint".to_owned(), |(_, path)| format!("newest {}", path.display()));
    say(format_args!(
        "files     {newest}; {}, {} at the end",
        megabytes(forecast.bytes as usize),
        megabytes(forecast.bytes_at_end as usize)
    ))
}

/// A line for all, one for each stream, and one with the numbers over all.
fn of_streams(folder: &Path, members: &[Member]) -> Result<(), AppError> {
    let merged = Merged::of(folder, members, None);
    let Merged { name, extents, done, planned, streams, .. } = &merged;
    let many = if streams.len() == 1 { "1 stream".to_owned() } else { format!("{} streams", streams.len()) };
    say(format_args!("{name}: {many}, {done} of {planned} trajectories on {}", shape(*extents)))?;
    let width = members.iter().map(|member| member.name.len()).max().unwrap_or(0).max("all".len());
    for (member, digest) in members.iter().zip(streams) {
        let Digest { done, planned, running, forecast, .. } = digest;
        let state = running.as_ref().map_or("stopped".to_owned(), |who| format!("running, {who}"));
        let last =
            age(&folder.join(&member.name)).map_or(String::new(), |age| format!(", last row {age} ago"));
        let state_of = digest.in_thermalisation.clone();
        let numbers = state_of.unwrap_or_else(|| format!("acceptance {:.2}", digest.acceptance));
        let pace = match (*done, planned - done.min(planned)) {
            (0, _) => String::new(),
            (_, 0) => format!(", {numbers}"),
            _ => format!(", {numbers}, {} left", span(forecast.seconds_left)),
        };
        say(format_args!("{:<width$}  {done} of {planned}, {state}{last}{pace}", member.name))?;
    }
    let numbers = merged.means().filter(|mean| ["<exp(-dH)>", "plaquette"].contains(&mean.name.as_str()));
    let numbers = numbers.filter(|mean| mean.count > 0).map(|mean| {
        let fit = mean.q.filter(|q| q.is_finite()).map_or(String::new(), |q| format!(" (Q = {q:.2})"));
        format!(", {} {}{fit}", mean.name, with_error(mean.mean, mean.error))
    });
    match *done {
        0 => say(format_args!("{:<width$}  no trajectory yet", "all")),
        _ if merged.acceptance.is_nan() => say(format_args!("{:<width$}  in thermalisation", "all")),
        _ => say(format_args!(
            "{:<width$}  acceptance {:.2}{}",
            "all",
            merged.acceptance,
            numbers.collect::<String>()
        )),
    }
}

/// The time since the last row of a chain's history.
fn age(folder: &Path) -> Option<String> {
    let written = folder.join("history.csv").metadata().ok()?.modified().ok()?;
    Some(span(SystemTime::now().duration_since(written).ok()?.as_secs_f64()))
}
