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
}

impl Mean {
    /// Of the values after trajectory `from`.
    pub(super) fn of(series: &Series, from: u64) -> Self {
        Self::of_found(series, ChainMean::of(series.after(from)), None)
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
        let found = ChainMean::of_replicas(&values);
        Some(Self::of_found(first, found, Some(found.q)))
    }

    fn of_found(series: &Series, found: ChainMean, q: Option<f64>) -> Self {
        let (name, spacing) = (series.name.clone(), series.spacing());
        let ChainMean { mean, error, window, count, .. } = found;
        let [tau, tau_error] = [found.tau, found.tau_error].map(|time| spacing as f64 * time);
        Self { name, mean, error, tau, tau_error, window, count, spacing, q }
    }
}
