//! The numbers of a report over all streams of an ensemble.

use super::Ensemble;
use super::derived::{Curve, Derived};
use super::digest::{Digest, ENOUGH, mean, observables};
use super::mean::Mean;
use super::series::{Series, column};
use crate::app::AppError;
use crate::app::chain::streams::{self, Stream};
use serde::Serialize;
use std::path::Path;

/// Streams that sample one distribution give a smaller Q this rarely.
const DOUBTFUL: f64 = 1e-3;

/// A stream with its name, as it is now.
pub(super) struct Member {
    pub name: String,
    pub chain: Ensemble,
}

/// Reads all streams of an ensemble: those that can be read, and why the others cannot.
///
/// # Errors
/// None can be read, or they are not of one ensemble.
pub(super) fn open(streams: Vec<Stream>) -> Result<(Vec<Member>, Vec<AppError>), AppError> {
    let (mut members, mut broken) = (Vec::new(), Vec::new());
    for Stream { name, folder, .. } in streams {
        match Ensemble::open(&folder) {
            Ok(chain) => members.push(Member { name, chain }),
            Err(error) => broken.push(error),
        }
    }
    if members.is_empty() {
        return Err(AppError::Several(broken));
    }
    for (n, b) in members.iter().enumerate() {
        for a in &members[..n] {
            streams::compare(&a.name, &a.chain.input, &b.name, &b.chain.input)?;
        }
    }
    Ok((members, broken))
}

/// What a report over all streams says.
#[derive(Serialize)]
pub(super) struct Merged {
    /// Of the ensemble.
    pub name: String,
    pub extents: [usize; 4],
    /// Trajectories of all streams.
    pub done: u64,
    pub planned: u64,
    /// Of all trajectories over which means are taken and that were not accepted whatever dH was.
    pub acceptance: f64,
    /// Over all streams; each begins after its own `from`. `None` if rows are missing.
    pub exp_minus_delta_h: Option<Mean>,
    pub observables: Vec<Mean>,
    pub curves: Vec<Curve>,
    pub advice: Vec<String>,
    /// The numbers of each.
    pub streams: Vec<Digest>,
}

impl Merged {
    /// The numbers of the streams in `folder`. Means are over trajectories after `from`, by default after the cut that is proposed
    /// for each.
    pub(super) fn of(folder: &Path, members: &[Member], from: Option<u64>) -> Self {
        let digest =
            |member: &Member| Digest { stream: Some(member.name.clone()), ..Digest::of(&member.chain, from) };
        let streams: Vec<Digest> = members.iter().map(digest).collect();
        let both = || members.iter().zip(&streams);
        let all: Vec<(Series, u64)> = both()
            .flat_map(|(member, digest)| {
                observables(&member.chain).into_iter().map(move |series| (series, digest.from))
            })
            .collect();
        let exponential = |(member, digest): (&Member, &Digest)| {
            let series = column(&member.chain, "delta_h", "<exp(-dH)>", |x| (-x).exp());
            (series, digest.from.max(digest.thermalisation))
        };
        let exponentials: Vec<_> = both().map(exponential).collect();
        let accepted = |(member, digest): (&Member, &Digest)| {
            let series = column(&member.chain, "accepted", "acceptance", |x| x);
            series.after(digest.from.max(digest.thermalisation)).to_vec()
        };
        let accepted: Vec<f64> = both().flat_map(accepted).collect();
        let (mut observables, uneven) = merge(all);
        let chains: Vec<_> = both().map(|(member, digest)| (&member.chain, digest.from)).collect();
        let derived = Derived::of(&chains, true);
        observables.extend(derived.means);
        let mut merged = Self {
            name: streams::name_of(folder),
            extents: streams[0].extents,
            done: streams.iter().map(|stream| stream.done).sum(),
            planned: streams.iter().map(|stream| stream.planned).sum(),
            acceptance: mean(&accepted),
            exp_minus_delta_h: Mean::of_streams(&exponentials),
            observables,
            curves: derived.curves,
            advice: Vec::new(),
            streams,
        };
        merged.advice = merged.advise(accepted.len(), &uneven);
        merged.advice.extend(derived.advice);
        merged
    }

    /// All means over all streams.
    pub(super) fn means(&self) -> impl Iterator<Item = &Mean> + Clone {
        self.exp_minus_delta_h.iter().chain(&self.observables)
    }

    /// What a user may want to change, besides the advice on each stream.
    fn advise(&self, decided: usize, uneven: &[String]) -> Vec<String> {
        let mut advice = Vec::new();
        for mean in self.means().filter(|mean| mean.q.is_some_and(|q| q < DOUBTFUL)) {
            advice.push(format!(
                "The streams do not agree on '{}': Q = {:.1e}. One of them may not have come to equilibrium, or stays in a part of the \
                 distribution for longer than it is long.",
                mean.name,
                mean.q.unwrap_or_default()
            ));
        }
        for name in uneven {
            advice.push(format!(
                "'{name}' has no mean over all streams: its values are not equally far from each other in all of them."
            ));
        }
        let timed = self.observables.iter().filter(|mean| mean.tau.is_finite());
        let slowest = timed.max_by(|a, b| a.tau.total_cmp(&b.tau));
        if let Some(slowest) =
            slowest.filter(|slowest| decided >= ENOUGH && (decided as f64) < 50.0 * slowest.tau)
        {
            advice.push(format!(
                "All streams together are {decided} trajectories long after their cuts, {:.0} times the autocorrelation time of '{}': \
                 errors are rough below about 50 times.",
                decided as f64 / slowest.tau,
                slowest.name
            ));
        }
        advice
    }
}

/// Means over streams of all series that have one name, in the order of the first ones; and the names of those that have none.
fn merge(mut rest: Vec<(Series, u64)>) -> (Vec<Mean>, Vec<String>) {
    let (mut means, mut uneven) = (Vec::new(), Vec::new());
    while let Some((first, _)) = rest.first() {
        let name = first.name.clone();
        let (own, others): (Vec<_>, Vec<_>) = rest.into_iter().partition(|(series, _)| series.name == name);
        match Mean::of_streams(&own) {
            Some(mean) => means.push(mean),
            None => uneven.push(name),
        }
        rest = others;
    }
    (means, uneven)
}
