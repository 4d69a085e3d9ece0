//! `grid = "tuned"`: a trial of the grids of ranks before a job's first trajectory.
//!
//! A trial is two forces of each term, as in [`choose`](super::choose), on the links from which the job goes on; the faster
//! of them counts as often as a trajectory has this force, by the clock of the slowest rank. The bits are those of any grid.

use super::assemble::{self, Layers};
use super::choose::Forces;
use super::job::Recorded;
use super::{AppError, Ranks, rehearsal, start};
use crate::field::{Domain, MatrixField};
use crate::hmc::forces;
use crate::input::{GridChoice, Input, Parallel};
use crate::lattice::{Extents, Partition, all_grids, shape};
use std::sync::Arc;

/// Grids whose faces have at most so many times the sites of the least are tried, and so many at most.
const SURFACE: usize = 2;
const TRIED: usize = 8;

/// The grids to try, those with the least surface first.
fn candidates(input: &Input, layers: Layers, ranks: usize) -> Vec<Extents> {
    let grids = all_grids(input.extents, ranks);
    let most = grids.first().map_or(0, |(surface, _)| SURFACE * surface);
    let fits = |grid: &Extents| {
        let fits = |partition: Partition| {
            let lanes = start::lanes(&input.parallel, &partition, layers.reach);
            start::lane_grid(&partition, lanes.double.max(lanes.lower), layers.reach).is_some()
        };
        Partition::new(input.extents, *grid, ranks, 0).is_ok_and(fits) && input.fits(*grid)
    };
    let near = grids.into_iter().filter(|(surface, _)| *surface <= most).map(|(_, grid)| grid);
    near.filter(fits).take(TRIED).collect()
}

/// The grid that a job on so many ranks has found to be the fastest.
fn known(jobs: &[Recorded], ranks: usize) -> Option<Extents> {
    jobs.iter().rev().find(|job| job.tuned && job.ranks == Some(ranks)).and_then(|job| job.grid)
}

/// `[parallel]` with the grid settled: what one of `jobs` has found on as many ranks, else the fastest on the links that
/// `links_on` reads. Collective.
///
/// # Errors
/// No grid fits, a term failed, or memory runs out.
pub(super) fn settle(
    input: &Input,
    layers: Layers,
    jobs: &[Recorded],
    comm: &Ranks,
    links_on: impl Fn(&Arc<Domain>) -> Result<MatrixField, AppError>,
    say: impl Fn(&str),
) -> Result<Parallel, AppError> {
    let of = |grid| Parallel { grid: GridChoice::Of(grid), ..input.parallel.clone() };
    if input.parallel.grid != GridChoice::Tuned || comm.size() == 1 {
        return Ok(input.parallel.clone());
    }
    let grids = candidates(input, layers, comm.size());
    // All ranks follow the first one's reading of the jobs.
    let known = known(jobs, comm.size()).map(shape).unwrap_or_default();
    let known = comm.gather(known.as_bytes()).swap_remove(0);
    if let Some(grid) = grids.iter().find(|grid| shape(**grid).as_bytes() == known) {
        say(&format!("grid, \"tuned\": {}, as an earlier job found", shape(*grid)));
        return Ok(of(*grid));
    }
    let mut tried = Vec::new();
    for grid in grids {
        tried.push((trial(input, &of(grid), layers, comm, &links_on)?, grid));
    }
    let list = |tried: &[(f64, Extents)]| {
        let each = tried.iter().map(|(seconds, grid)| format!("{} {seconds:.3} s", shape(*grid)));
        each.collect::<Vec<_>>().join(", ")
    };
    match tried.iter().min_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((_, grid)) => {
            say(&format!("grid, \"tuned\": forces of a trajectory take {}: {}", list(&tried), shape(*grid)));
            Ok(of(*grid))
        }
        None => {
            let (extents, ranks) = (shape(input.extents), comm.size());
            Err(AppError::Refused(format!("grid: no grid of {ranks} ranks fits {extents}")))
        }
    }
}

/// Seconds of a trajectory's forces on a grid.
fn trial(
    input: &Input,
    parallel: &Parallel,
    layers: Layers,
    comm: &Ranks,
    links_on: impl Fn(&Arc<Domain>) -> Result<MatrixField, AppError>,
) -> Result<f64, AppError> {
    // Terms that still have to choose a method take their first.
    let first = input.open_choices().into_iter().map(|(term, all)| (term.to_owned(), all[0].clone()));
    let input = Input { parallel: parallel.clone(), ..input.with_choices(&first.collect())? };
    let domain = assemble::domain(&input.parallel, input.extents, layers, comm)?;
    rehearsal::prepare(&input, &domain, comm, |_| ())?;
    let links = links_on(&domain)?;
    let mut of_links = Forces::new(&links, &**comm)?;
    let counts: Vec<u64> = forces(&input.hmc.levels);
    let mut seconds = 0.0;
    for mut action in assemble::terms(&domain, &input)? {
        let level = input.hmc.terms.iter().position(|names| names.iter().any(|name| name == action.name()));
        let count = counts[level.expect("every term is on a level")];
        // Where a solve fails, it fails on all grids, after as many iterations.
        seconds += of_links.fastest(&mut *action)?.0 * count as f64;
    }
    Ok(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_tried_decides() {
        let job = |grid: Extents, tuned| Recorded {
            ranks: Some(grid.iter().product()),
            grid: Some(grid),
            tuned,
            accepted: Vec::new(),
            ..Recorded::default()
        };
        let jobs = [
            job([1, 2, 2, 1], true),
            job([1, 1, 2, 2], true),
            job([1, 1, 1, 2], true),
            job([4, 1, 1, 1], false),
            job([1, 1, 1, 8], false),
        ];
        assert_eq!(known(&jobs, 4), Some([1, 1, 2, 2]));
        assert_eq!(known(&jobs, 2), Some([1, 1, 1, 2]));
        assert_eq!(known(&jobs, 8), None);
    }
}
