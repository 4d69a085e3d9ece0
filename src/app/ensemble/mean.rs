//! A mean along a chain, or along the streams of an ensemble.

use super::series::Series;
use crate::math::ChainMean;
use serde::Serialize;

/// A mean with its error and autocorrelation; `null` where it is unknown.
#[derive(Serialize)]
pub(super) struct Mean {
    pub name: String,
    pub mean: f64,
    pub error: f64,
    /// Integrated autocorrelation time in trajectories, and its error.
    pub tau: f64,
    pub tau_error: f64,
    /// The window of its sum, in values.
    pub window: usize,
    /// The number of values.
    pub count: usize,
    /// Trajectories between them.
    pub spacing: u64,
    /// Over several streams: the goodness of fit of one mean to all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub q: Option<f64>,
    /// Of t0 and w0: the number of configurations whose own flow reaches them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached: Option<usize>,
}

impl Mean {
    /// Of the values after trajectory `from`.
    pub(super) fn of(series: &Series, from: u64) -> Self {
        Self::of_chains(&series.name, series.spacing(), &[series.after(from)], false)
    }

    /// Of several streams, each after a trajectory of its own; `None` if their values are not equally far from each other, so that
    /// they have no common autocorrelation function.
    pub(super) fn of_streams(streams: &[(Series, u64)]) -> Option<Self> {
        let mut long = streams.iter().map(|(series, _)| series).filter(|series| series.values.len() > 1);
        let (first, _) = streams.first()?;
        let first = long.next().unwrap_or(first);
        if long.any(|series| series.spacing() != first.spacing()) {
            return None;
        }
        let values: Vec<&[f64]> = streams.iter().map(|(series, from)| series.after(*from)).collect();
        Some(Self::of_chains(&first.name, first.spacing(), &values, true))
    }

    /// Of chains with values every `spacing` trajectories.
    pub(super) fn of_chains(name: &str, spacing: u64, chains: &[&[f64]], are_streams: bool) -> Self {
        let found = ChainMean::of_replicas(chains);
        let ChainMean { mean, error, window, count, .. } = found;
        let [tau, tau_error] = [found.tau, found.tau_error].map(|time| spacing as f64 * time);
        let q = are_streams.then_some(found.q);
        Self { name: name.to_owned(), mean, error, tau, tau_error, window, count, spacing, q, reached: None }
    }
}
