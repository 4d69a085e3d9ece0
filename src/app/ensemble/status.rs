//! `hmc status`: a few lines on where a chain stands, from another shell.

use super::Ensemble;
use super::digest::Digest;
use crate::app::AppError;
use crate::app::plan::megabytes;
use crate::app::report::{json, say, span, with_error};
use crate::lattice::shape;
use std::path::Path;
use std::time::SystemTime;

/// `hmc status [--json] DIR`: where the chain stands. Nothing is changed, and a run may be under way.
///
/// # Errors
/// The folder is no ensemble's, or a file cannot be read.
pub fn status(folder: &Path, as_json: bool) -> Result<(), AppError> {
    let ensemble = Ensemble::open(folder)?;
    let digest = Digest::of(&ensemble, None);
    if as_json {
        return say(json(&digest));
    }
    let Digest { name, extents, done, planned, forecast, .. } = &digest;
    say(format_args!("{name}: {done} of {planned} trajectories on {}", shape(*extents)))?;
    let age = || {
        SystemTime::now().duration_since(folder.join("history.csv").metadata().ok()?.modified().ok()?).ok()
    };
    let last = age().map_or(String::new(), |age| format!("; last row {} ago", span(age.as_secs_f64())));
    match (&digest.running, ensemble.jobs.last()) {
        (Some(who), _) => say(format_args!("running   {who}{last}"))?,
        (None, Some(job)) => say(format_args!("stopped   last job {job}{last}"))?,
        (None, None) => say("stopped   no job yet")?,
    }
    let plaquette = &digest.observables[0];
    if *done == 0 {
        say("numbers   none yet")?;
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
    say(format_args!("time      {} a trajectory, {left}", span(forecast.seconds)))?;
    let newest = ensemble.states.first();
    let newest = newest.map_or("no checkpoint".to_owned(), |(_, path)| format!("newest {}", path.display()));
    say(format_args!(
        "files     {newest}; {}, {} at the end",
        megabytes(forecast.bytes as usize),
        megabytes(forecast.bytes_at_end as usize)
    ))
}
