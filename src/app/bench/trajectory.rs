//! `hmc bench trajectory`: where the time of an input's trajectories goes, term by term. Nothing is written.
//!
//! Every share ends with a sum that the host reads from the device, so the host's clock is right on a GPU too.

use crate::app::chain::dry;
use crate::app::machine::energy::{Meter, unread};
use crate::app::machine::start;
use crate::app::output;
use crate::app::output::{complain, json, say, span};
use crate::app::{AppError, Ranks};
use crate::hmc::{Outcome, TermOutcome};
use crate::input::Input;
use crate::operator::GaugeLoops;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;

/// Trajectories to measure.
#[derive(Clone, Debug)]
pub struct BenchTrajectory {
    /// The input of a run.
    pub input: PathBuf,
    /// Where to start instead of at the run's start.
    pub links: Option<PathBuf>,
    /// The number of trajectories; means are over all but the first, in which kernels are compiled and chosen.
    pub trajectories: u64,
    /// One JSON object instead of a table.
    pub json: bool,
}

/// A term, or a part of a force, in the mean trajectory.
#[derive(Serialize)]
pub(in crate::app) struct TermRow {
    term: String,
    level: usize,
    forces: usize,
    /// Root mean square over links, and the greatest of any link.
    force: f64,
    force_max: f64,
    iterations: usize,
    heat_bath_seconds: f64,
    action_seconds: f64,
    force_seconds: f64,
    /// Change of the term in a trajectory: its standard deviation; `null` for further parts of a force.
    delta_deviation: Option<f64>,
}

/// The mean trajectory.
#[derive(Serialize)]
struct Table {
    lattice: String,
    ranks: usize,
    device: String,
    /// dH and plaquette of each trajectory.
    delta_h: Vec<f64>,
    plaquette: Vec<f64>,
    /// Seconds of the first trajectory, and of the mean of the others.
    first_seconds: f64,
    seconds: f64,
    trajectories_a_day: f64,
    /// Of the mean trajectory, on the devices of all ranks; `null` where they do not count.
    joules: Option<f64>,
    /// Of the first rank: its device's, and its host's that is page-locked.
    memory_bytes: u64,
    host_bytes: u64,
    /// Seconds of links and momenta.
    rest_seconds: f64,
    terms: Vec<TermRow>,
    /// The terms' own reports on the last trajectory.
    reports: Vec<String>,
    /// The memory, for the printed table.
    #[serde(skip)]
    memory: String,
}

/// Runs the trajectories and prints the table.
///
/// # Errors
/// Wrong input, or any error of a run.
pub fn bench_trajectory(args: &BenchTrajectory, comm: &Ranks) -> Result<(), AppError> {
    let input = dry::load(&args.input, args.links.as_deref(), comm)?;
    start::in_pool(&input.parallel, &**comm, || {
        let table = measure(&input, args.trajectories, comm, comm.rank() == 0 && !args.json)?;
        if comm.rank() > 0 {
            return Ok(());
        }
        if args.json { say(json(&table)) } else { print(&table) }
    })
}

/// `aloud`: each trajectory is printed when it ends.
fn measure(input: &Input, trajectories: u64, comm: &Ranks, aloud: bool) -> Result<Table, AppError> {
    let mut chain = dry::chain(input, comm)?;
    let domain = Arc::clone(chain.links.domain());
    if comm.rank() == 0 {
        unread(&domain).iter().for_each(|why| complain(format_args!("energy is not counted: {why}")));
    }
    let (lattice, ranks) = (crate::lattice::shape(input.extents), comm.size());
    let device = domain.device().backend().name();
    if aloud {
        say(format_args!("{lattice} on {ranks} rank{}; {device}", if ranks == 1 { "" } else { "s" }))?;
    }
    let (mut outcomes, mut joules, mut plaquettes) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..trajectories {
        let failed = |source| AppError::Trajectory { number: number + 1, source };
        let meter = Meter::start(&domain);
        let outcome = chain.trajectory(number, true).map_err(failed)?;
        joules.push(meter.joules(&domain));
        chain.links.unitarity(true)?;
        let plaquette = GaugeLoops::traces(&chain.links)?.plaquette();
        if aloud {
            let (number, seconds) = (number + 1, span(outcome.seconds));
            say(format_args!(
                "  trajectory {number}: dH {:+.5}, plaquette {plaquette:.8}, {seconds}",
                outcome.delta_h
            ))?;
        }
        outcomes.push(outcome);
        plaquettes.push(plaquette);
    }
    let slowest = |seconds: f64| comm.max(seconds);
    let cold = usize::from(outcomes.len() > 1);
    let (warm, joules) = (&outcomes[cold..], &joules[cold..]);
    let seconds = slowest(mean(warm, |outcome| outcome.seconds));
    let terms = term_rows(warm, &slowest);
    let known: f64 =
        terms.iter().map(|row| row.heat_bath_seconds + row.action_seconds + row.force_seconds).sum();
    let held = domain.device().held();
    let reports = chain.reports().into_iter().map(|(name, report)| format!("{name}: {}", report.text));
    Ok(Table {
        lattice,
        ranks,
        device,
        delta_h: outcomes.iter().map(|outcome| outcome.delta_h).collect(),
        plaquette: plaquettes,
        first_seconds: slowest(outcomes[0].seconds),
        seconds,
        trajectories_a_day: 86400.0 / seconds,
        joules: joules.iter().copied().sum::<Option<f64>>().map(|sum| sum / joules.len() as f64),
        memory_bytes: held.bytes,
        host_bytes: held.aside,
        memory: output::memory(&held),
        rest_seconds: seconds - known,
        terms,
        reports: reports.collect(),
    })
}

fn mean(outcomes: &[Outcome], of: impl Fn(&Outcome) -> f64) -> f64 {
    outcomes.iter().map(of).sum::<f64>() / outcomes.len() as f64
}

/// The terms in the mean of some trajectories; `slowest` is the maximum over ranks.
pub(in crate::app) fn term_rows(outcomes: &[Outcome], slowest: &dyn Fn(f64) -> f64) -> Vec<TermRow> {
    (0..outcomes[0].terms.len()).map(|n| row(outcomes, n, slowest)).collect()
}

fn row(outcomes: &[Outcome], n: usize, slowest: &dyn Fn(f64) -> f64) -> TermRow {
    let mean = |of: &dyn Fn(&TermOutcome) -> f64| mean(outcomes, |outcome| of(&outcome.terms[n]));
    let TermOutcome { name, level, delta, force, .. } = &outcomes[0].terms[n];
    let deltas: Option<Vec<f64>> = outcomes.iter().map(|outcome| outcome.terms[n].delta).collect();
    let deviation = |deltas: Vec<f64>| {
        let mean = deltas.iter().sum::<f64>() / deltas.len() as f64;
        (deltas.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / deltas.len() as f64).sqrt()
    };
    TermRow {
        term: name.clone(),
        level: *level,
        forces: force.kicks,
        force: mean(&|term| term.force.norm),
        force_max: outcomes.iter().map(|outcome| outcome.terms[n].force.max).fold(0.0, f64::max),
        iterations: mean(&|term| term.force.iterations as f64) as usize,
        heat_bath_seconds: slowest(mean(&|term| term.heat_bath_seconds)),
        action_seconds: slowest(mean(&|term| term.value_seconds)),
        force_seconds: slowest(mean(&|term| term.force.seconds)),
        delta_deviation: delta.and(deltas.filter(|_| outcomes.len() > 1).map(deviation)),
    }
}

/// What is known when all trajectories have ended.
fn print(table: &Table) -> Result<(), AppError> {
    let Table { seconds, first_seconds, .. } = table;
    say_terms(&table.terms, *seconds)?;
    let rest = 100.0 * table.rest_seconds / seconds;
    say(format_args!("  {:16} {:>75} {rest:7.1}%", "links, momenta", span(table.rest_seconds)))?;
    table.reports.iter().try_for_each(|report| say(format_args!("  {report}")))?;
    say(format_args!(
        "  a trajectory: {}, the first {}; {:.0} a day{}; memory {} per rank",
        span(*seconds),
        span(*first_seconds),
        table.trajectories_a_day,
        table.joules.map_or(String::new(), |joules| format!("; {joules:.0} J")),
        table.memory
    ))
}

/// Prints a line for each term; their shares are of the `seconds` of a trajectory.
pub(in crate::app) fn say_terms(terms: &[TermRow], seconds: f64) -> Result<(), AppError> {
    say(
        "  term              level  forces      |F|  max |F|  iterations  heat bath    action     force   share  sd of dS",
    )?;
    for row in terms {
        let own = row.heat_bath_seconds + row.action_seconds + row.force_seconds;
        let deviation = row.delta_deviation.map_or("-".to_owned(), |sd| format!("{sd:.3}"));
        say(format_args!(
            "  {:16} {:6} {:7} {:8.4} {:8.3} {:11} {:>10} {:>9} {:>9} {:6.1}% {:>9}",
            row.term,
            row.level,
            row.forces,
            row.force,
            row.force_max,
            row.iterations,
            span(row.heat_bath_seconds),
            span(row.action_seconds),
            span(row.force_seconds),
            100.0 * own / seconds,
            deviation
        ))?;
    }
    Ok(())
}
