//! The numbers of a report: the JSON of `hmc report --json`, which the page shows.

use super::Ensemble;
use super::derived::{Curve, Derived};
use super::mean::Mean;
use super::series::{Series, column, measured};
use crate::app::chain::plan;
use crate::app::chain::resume::seconds_of;
use crate::hmc::acceptance;
use crate::input;
use crate::math::thermalisation;
use serde::Serialize;

/// Fewer values say nothing of a start to be left out.
pub(super) const ENOUGH: usize = 20;
/// Fewer values say nothing of autocorrelation.
const ENOUGH_FOR_TAU: usize = 100;
/// So many rejections, and nothing else, say that steps are too long.
const MANY_REJECTIONS: usize = 5;
/// Acceptance below which more steps are worth their time, and above which fewer are.
const GOOD: [f64; 2] = [0.7, 0.95];

/// A term of the Hamiltonian, or a part of a force, in trajectories of the present tuning.
#[derive(Serialize)]
pub(super) struct Term {
    pub name: String,
    /// Its level, 0 is the outermost.
    pub level: usize,
    /// The variance of the change of its action; `null` for a part of a force.
    pub variance_of_ds: f64,
    /// Means of the root mean square and the greatest force, of iterations and seconds.
    pub force: f64,
    pub force_max: f64,
    pub iterations: f64,
    pub seconds: f64,
}

/// A stretch of the chain with one tuning.
#[derive(Serialize)]
pub(super) struct Tuning {
    /// The trajectory after which it came into force.
    pub after: u64,
    /// What changed, as the log told it; empty for the first one.
    pub changes: Vec<String>,
    pub trajectories: usize,
    pub acceptance: f64,
    /// Root mean square of dH after thermalisation.
    pub delta_h: f64,
    pub seconds: f64,
}

/// What was checked while the chain ran.
#[derive(Serialize)]
pub(super) struct Verification {
    /// Trajectories that were walked twice with the same bits.
    pub walked_twice: usize,
    /// Measurements of reversibility, and the greatest `max |U - U_back|` and `|dH|` there and back.
    pub reversibility: usize,
    pub distance: f64,
    pub delta_h: f64,
    /// Jobs that began with a self-test of their devices, of all.
    pub tested_jobs: usize,
    pub jobs: usize,
    /// Jobs that went on with another version or with gaps, as asked for.
    pub accepted: Vec<String>,
}

/// The rest of the chain, by the last trajectories; without any, its time is unknown.
#[derive(Serialize)]
pub(super) struct Forecast {
    /// Of a trajectory, and of all that are to come.
    pub seconds: f64,
    pub seconds_left: f64,
    /// Of the files of links now, and at the end.
    pub bytes: u64,
    pub bytes_at_end: u64,
}

/// What a report says.
#[derive(Serialize)]
pub(super) struct Digest {
    pub name: String,
    /// Its name among several chains of the ensemble.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    pub extents: [usize; 4],
    /// The job that works on it now.
    pub running: Option<String>,
    pub done: u64,
    pub planned: u64,
    /// Trajectories that were accepted whatever dH was.
    pub thermalisation: u64,
    /// As long as there are no others: `in thermalisation, 7 of 10`.
    pub in_thermalisation: Option<String>,
    /// So many trajectories are best left out by the plaquette and the flow; at least `thermalisation`.
    pub proposed_cut: u64,
    /// Means are over all trajectories after this one; 0 in thermalisation.
    pub from: u64,
    pub acceptance: f64,
    /// What the variance of dH predicts: erfc(sqrt(var / 8)).
    pub expected_acceptance: f64,
    pub exp_minus_delta_h: Mean,
    pub observables: Vec<Mean>,
    /// What follows from means at several places: t^2 E, correlators, effective masses, the static potential.
    pub curves: Vec<Curve>,
    pub terms: Vec<Term>,
    pub tunings: Vec<Tuning>,
    pub verification: Verification,
    pub forecast: Forecast,
    pub advice: Vec<String>,
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (values.len() as f64 - 1.0)
}

/// All observables that are plotted and averaged.
pub(super) fn observables(ensemble: &Ensemble) -> Vec<Series> {
    let mut all = vec![column(ensemble, "plaquette", "plaquette", |x| x)];
    all.extend(measured(ensemble));
    all
}

impl Digest {
    /// The name of the chain.
    pub(super) fn title(&self) -> String {
        self.stream.iter().fold(self.name.clone(), |name, stream| format!("{name}/{stream}"))
    }

    /// The numbers of an ensemble. Means are over trajectories after `from`, by default after the proposed cut.
    pub(super) fn of(ensemble: &Ensemble, from: Option<u64>) -> Self {
        let (input, done) = (&ensemble.input, ensemble.done());
        let all = observables(ensemble);
        let long = all.iter().filter(|series| series.values.len() >= ENOUGH);
        let cut = |series: &Series| match thermalisation(&series.values) {
            0 => 0,
            n => series.trajectories[n - 1],
        };
        let proposed_cut = long.map(cut).fold(input.run.thermalisation.min(done), u64::max);
        let in_thermalisation = (done <= input.run.thermalisation)
            .then(|| format!("in thermalisation, {done} of {}", input.run.thermalisation))
            .filter(|_| input.run.thermalisation > 0);
        let from = from.unwrap_or(if in_thermalisation.is_some() { 0 } else { proposed_cut });
        // Trajectories of the thermalisation were accepted whatever dH was.
        let decided = from.max(input.run.thermalisation);
        let derived = Derived::of(&[(ensemble, from)], false);
        let delta_h = column(ensemble, "delta_h", "dH", |x| x);
        let exponential = column(ensemble, "delta_h", "<exp(-dH)>", |x| (-x).exp());
        let accepted = column(ensemble, "accepted", "acceptance", |x| x);
        let mut digest = Self {
            name: input.run.name.clone(),
            stream: input.run.stream.clone(),
            extents: input.extents,
            running: ensemble.holder.clone(),
            done,
            planned: input.run.trajectories,
            thermalisation: input.run.thermalisation,
            in_thermalisation,
            proposed_cut,
            from,
            acceptance: mean(accepted.after(decided)),
            expected_acceptance: acceptance(variance(delta_h.after(decided))),
            exp_minus_delta_h: Mean::of(&exponential, decided),
            observables: all.iter().map(|series| Mean::of(series, from)).chain(derived.means).collect(),
            curves: derived.curves,
            terms: terms(ensemble, from),
            tunings: tunings(ensemble),
            verification: verification(ensemble),
            forecast: forecast(ensemble),
            advice: Vec::new(),
        };
        digest.advice = advice(&digest, ensemble, variance(delta_h.after(decided)));
        digest.advice.extend(derived.advice);
        digest
    }
}

fn terms(ensemble: &Ensemble, from: u64) -> Vec<Term> {
    let present =
        ensemble.history.reals("tuning").last().copied().filter(|n| n.is_finite()).unwrap_or_default();
    let first = from.max(present as u64);
    let levels = ensemble.input.hmc.terms.iter().enumerate();
    let named = levels.flat_map(|(level, terms)| terms.iter().map(move |name| (level, name)));
    let of = |what: &str, name: &str| {
        let series = column(ensemble, &format!("{what}_of_{name}"), "", |x| x);
        series.after(first).to_vec()
    };
    let term = |(level, name): (usize, &String)| Term {
        name: name.clone(),
        level,
        variance_of_ds: variance(&of("dS", name)),
        force: mean(&of("force", name)),
        force_max: mean(&of("force_max", name)),
        iterations: mean(&of("iterations", name)),
        seconds: mean(&of("seconds", name)),
    };
    named.map(term).collect()
}

fn tunings(ensemble: &Ensemble) -> Vec<Tuning> {
    let column = |name: &str| ensemble.history.reals(name);
    let number = |x: &f64| if x.is_nan() { 0 } else { *x as u64 };
    let thermalisation = ensemble.input.run.thermalisation as f64;
    let (numbers, in_force) = (column("trajectory"), column("tuning"));
    let in_force: Vec<u64> =
        if in_force.is_empty() { vec![0; numbers.len()] } else { in_force.iter().map(number).collect() };
    let mut starts = in_force.clone();
    starts.dedup();
    let readable: Vec<_> =
        ensemble.inputs.iter().filter_map(|kept| Some((kept.after, kept.input.as_ref()?))).collect();
    let tuning = |after: u64| {
        let rows = |name: &str, decided: bool| -> Vec<f64> {
            let values = column(name).into_iter().zip(&in_force).zip(&numbers);
            let own = values.filter(|((_, own), n)| **own == after && (!decided || **n > thermalisation));
            own.map(|((value, _), _)| value).collect()
        };
        let before = readable.iter().rev().find(|(n, _)| *n < after);
        let now = readable.iter().find(|(n, _)| *n == after);
        let changes = before.zip(now).filter(|_| after > 0).map_or_else(Vec::new, |((_, a), (_, b))| {
            input::compare(a, b).iter().map(ToString::to_string).collect()
        });
        let squares: Vec<f64> = rows("delta_h", true).iter().map(|x| x * x).collect();
        Tuning {
            after,
            changes,
            trajectories: rows("delta_h", false).len(),
            acceptance: mean(&rows("accepted", true)),
            delta_h: mean(&squares).sqrt(),
            seconds: mean(&rows("seconds", false)),
        }
    };
    starts.into_iter().map(tuning).collect()
}

fn verification(ensemble: &Ensemble) -> Verification {
    let [twice, distance, delta_h] = ["verified", "reversibility", "reversibility_dh"]
        .map(|name| column(ensemble, name, name, |x| x).values);
    let greatest = |values: &[f64]| values.iter().copied().fold(f64::NAN, f64::max);
    let accepted = ensemble.jobs.iter().flat_map(|job| job.accepted.iter().map(ToString::to_string));
    Verification {
        walked_twice: twice.iter().filter(|x| **x > 0.0).count(),
        reversibility: delta_h.len(),
        distance: greatest(&distance),
        delta_h: greatest(&delta_h),
        tested_jobs: ensemble.jobs.iter().filter(|job| job.self_test).count(),
        jobs: ensemble.jobs.len(),
        accepted: accepted.collect(),
    }
}

fn forecast(ensemble: &Ensemble) -> Forecast {
    let run = &ensemble.input.run;
    let seconds = Some(seconds_of(&ensemble.history)).filter(|_| ensemble.done() > 0).unwrap_or(f64::NAN);
    let left = run.trajectories.saturating_sub(ensemble.done());
    let (bytes, one) = (ensemble.bytes(), plan::in_all_formats(&ensemble.input) as u64);
    let to_come = left / run.save_every;
    Forecast {
        seconds,
        seconds_left: seconds * left as f64,
        bytes,
        bytes_at_end: bytes.saturating_add(to_come.saturating_mul(one)),
    }
}

/// What a user may want to change.
fn advice(digest: &Digest, ensemble: &Ensemble, variance: f64) -> Vec<String> {
    let mut advice = Vec::new();
    let decided = digest.done.saturating_sub(digest.from.max(digest.thermalisation));
    if digest.proposed_cut > digest.thermalisation && digest.done >= ENOUGH as u64 {
        advice.push(format!(
            "Leave out the first {} trajectories from means: the chain had not come to equilibrium (marginal standard error rule).",
            digest.proposed_cut
        ));
    }
    if decided >= ENOUGH as u64 && variance > 0.0 {
        let order = ensemble.input.hmc.levels.first().map_or(2, |level| level.scheme.order());
        // Var dH falls with the power 2 p of the number of steps.
        let factor = |goal: f64| {
            let wanted = (1..400).map(|n| f64::from(n) * 0.01).rev().find(|var| acceptance(*var) >= goal);
            wanted.map(|wanted| (variance / wanted).powf(0.5 / f64::from(order)))
        };
        let steps = ensemble.input.hmc.levels.first().map_or(1, |level| level.steps);
        let proposed = factor(0.85).map(|factor| (f64::from(steps) * factor).ceil().max(1.0) as u32);
        if let Some(proposed) = proposed.filter(|proposed| *proposed != steps) {
            if digest.acceptance < GOOD[0] {
                advice.push(format!(
                    "Acceptance is {:.2}: {proposed} steps on the outermost level instead of {steps} should give about 0.85. \
                     `hmc tune` weighs all levels; a chain may go on with other steps.",
                    digest.acceptance
                ));
            } else if digest.acceptance > GOOD[1] && proposed < steps {
                advice.push(format!(
                    "Acceptance is {:.2}: {proposed} steps on the outermost level instead of {steps} should still give about 0.85, \
                     for less time a trajectory.",
                    digest.acceptance
                ));
            }
        }
        let Mean { mean, error, .. } = digest.exp_minus_delta_h;
        // Of a great variance the mean of exp(-dH) is not known.
        if variance < 4.0 && (mean - 1.0).abs() > 3.0 * error {
            advice.push(format!(
                "<exp(-dH)> = {mean:.4} +- {error:.4} is {:.1} sigma from 1: perhaps the chain is not thermalised; else reversibility or \
                 the residuals of solvers are in doubt.",
                (mean - 1.0).abs() / error
            ));
        }
    } else if decided >= MANY_REJECTIONS as u64 && digest.acceptance == 0.0 {
        advice.push(format!(
            "All {decided} trajectories after thermalisation were rejected: take more steps on the outermost level, or see `hmc tune`."
        ));
    }
    let slowest =
        digest.observables.iter().filter(|mean| mean.tau.is_finite()).max_by(|a, b| a.tau.total_cmp(&b.tau));
    if (1..ENOUGH_FOR_TAU as u64).contains(&decided) {
        advice.push(format!(
            "The chain is {decided} trajectories long after the cut: below {ENOUGH_FOR_TAU}, autocorrelation times cannot be known, and errors \
             may be too small."
        ));
    } else if let Some(slowest) =
        slowest.filter(|slowest| decided > 0 && (decided as f64) < 50.0 * slowest.tau)
    {
        advice.push(format!(
            "The chain is {decided} trajectories long after the cut, {:.0} times the autocorrelation time of '{}': errors are rough \
             below about 50 times.",
            decided as f64 / slowest.tau,
            slowest.name
        ));
    }
    if digest.verification.delta_h > 1e-3 {
        advice
            .push("Molecular dynamics is not reversible to 1e-3: take a smaller force_residual.".to_owned());
    }
    if digest.verification.walked_twice == 0 {
        advice.push(
            "No trajectory was walked twice: verify_every = 100 in [hmc] would notice a bad GPU or node."
                .to_owned(),
        );
    }
    advice
}
