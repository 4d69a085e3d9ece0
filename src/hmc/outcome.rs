//! What a trajectory, its levels and its terms report.

use crate::field::Domain;

/// Statistics of the kicks of one level, or of one term, in a trajectory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KickReport {
    /// Force evaluations.
    pub kicks: usize,
    /// Mean over kicks of the root mean square over links of |F|, `|F|^2 = sum_a F_a^2`.
    pub norm: f64,
    /// The greatest |F| of any link.
    pub max: f64,
    /// Total iterations of all solves.
    pub iterations: usize,
    /// Wall time.
    pub seconds: f64,
}

/// A term, or a part of its force that has a level of its own, in a trajectory.
#[derive(Clone, Debug, PartialEq)]
pub struct TermOutcome {
    /// Its name in the input.
    pub name: String,
    /// The level of its force; 0 is the outermost.
    pub level: usize,
    /// The term's value at the end minus its value at the start; the first part of a divided force has it.
    pub delta: Option<f64>,
    /// Wall time of the heat bath.
    pub heat_bath_seconds: f64,
    /// Wall time of the value at the end.
    pub value_seconds: f64,
    /// Its force.
    pub force: KickReport,
}

/// The result of a trajectory; of one in [cycles](super::Smd), dH and its decision are those of the last one.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// H at the end minus H at the start.
    pub delta_h: f64,
    /// Whether the new links were accepted.
    pub accepted: bool,
    /// How many cycles were accepted.
    pub accepted_cycles: u64,
    /// For each level, from the outermost.
    pub levels: Vec<KickReport>,
    /// For each term and part of a force, the outermost level first.
    pub terms: Vec<TermOutcome>,
    /// Wall time.
    pub seconds: f64,
}

impl Outcome {
    /// This cycle after others.
    pub(super) fn after(mut self, before: &Self) -> Self {
        self.accepted_cycles += before.accepted_cycles;
        self.seconds += before.seconds;
        self.levels.iter_mut().zip(&before.levels).for_each(|(own, before)| own.join(before));
        for (own, before) in self.terms.iter_mut().zip(&before.terms) {
            own.heat_bath_seconds += before.heat_bath_seconds;
            own.value_seconds += before.value_seconds;
            own.force.join(&before.force);
        }
        self
    }
}

impl KickReport {
    /// This one and another together.
    fn join(&mut self, other: &Self) {
        let kicks = self.kicks + other.kicks;
        let sum = self.norm * self.kicks as f64 + other.norm * other.kicks as f64;
        *self = Self {
            kicks,
            norm: sum / kicks.max(1) as f64,
            max: self.max.max(other.max),
            iterations: self.iterations + other.iterations,
            seconds: self.seconds + other.seconds,
        };
    }

    /// Counts a force with this `|F|^2` summed over links, and this greatest |F|. The mean is divided at the end.
    pub(super) fn add_kick(&mut self, norm2: f64, max: f64, domain: &Domain) {
        self.kicks += 1;
        self.norm += (norm2 / (4.0 * domain.global_volume())).sqrt();
        self.max = self.max.max(max);
    }
}

impl TermOutcome {
    pub(super) fn new(name: &str, level: usize) -> Self {
        Self {
            name: name.to_owned(),
            level,
            delta: None,
            heat_bath_seconds: 0.0,
            value_seconds: 0.0,
            force: KickReport::default(),
        }
    }
}
