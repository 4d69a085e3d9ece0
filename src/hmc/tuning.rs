//! What dH and which time to expect of steps and schemes, from trajectories that were walked with others.
//!
//! A symmetric scheme of order p conserves H + h^p O + .. (the shadow of H; Kennedy, Clark, Silva, PoS LAT2009
//! 021, arXiv:0910.2950). With nested levels the errors add up, so that from one start
//!
//! ```text
//! dH = sum_l c_l X_l,   c_l = <h_l^p>,   X_l: a number of the start, the level and its scheme
//! ```
//!
//! to leading order. h_l is the step of level l in units of time; the drifts of a level outside need not be equally long,
//! so h_l^p is averaged over the trajectory:
//!
//! ```text
//! c_l = (tau / n_l)^p prod_(k outside l) sum_j d_kj |d_kj|^p / n_k^p,   d_kj: the drifts of a step of k, sum_j d_kj = 1
//! ```
//!
//! Trajectories from the same start, with the same momenta and pseudofermions, differ in c alone, so a few of them give
//! every X by least squares. A trial with a root mean square r of dH has the weight 1 / (r (1 + r^2)): higher orders count
//! with r, and beyond r = 1 they rule.
//!
//! dH is Gaussian on large lattices, with `<dH> = <dH^2>/2` for small dH (Creutz, Phys. Rev. D 38 (1988) 1228), so the
//! acceptance is erfc(sqrt(<dH^2> / 8)) (Gupta, Irback, Karsch, Petersson, Phys. Lett. B 242 (1990) 437).
//!
//! The time of a level is its number of forces times the seconds of one, s n^-g for n forces: solves that start from past
//! solutions have less iterations in shorter steps. g, from 0 to 0.9, is that of the iterations, which no other work of the
//! machine disturbs, and s the least of any trial. Heat baths and actions, and each drift, take their least of any trial.

use super::integrator::{Level, Scheme};

/// How much longer than in any trial a step may be: further, higher orders count.
const LONGER: f64 = 1.3;

/// A choice of steps and schemes that was run from each of some starts.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// From the outermost.
    pub levels: Vec<Level>,
    /// dH from each start.
    pub delta_h: Vec<f64>,
    /// Of all solves for the forces of each level, in a trajectory; 0 if there are none.
    pub iterations: Vec<f64>,
    /// Of a trajectory, in the forces of each level.
    pub force_seconds: Vec<f64>,
    /// Of a trajectory, in heat baths and actions.
    pub end_seconds: f64,
    /// Of a trajectory, in all else.
    pub drift_seconds: f64,
}

impl Trial {
    /// `<dH^2>` over the starts.
    #[must_use]
    pub fn mean_square(&self) -> f64 {
        mean_square(&self.delta_h)
    }

    /// Of a trajectory.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.end_seconds + self.drift_seconds + self.force_seconds.iter().sum::<f64>()
    }
}

/// What is expected of a choice of steps and schemes.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// dH from each start of the trials.
    pub delta_h: Vec<f64>,
    /// `<dH^2>`; at least the sum over levels, since errors that cancel on a few starts need not cancel on others.
    pub mean_square: f64,
    /// Of a trajectory.
    pub seconds: f64,
}

/// The error of a level with a scheme.
#[derive(Clone, Debug)]
struct Source {
    level: usize,
    scheme: Scheme,
    /// X from each start.
    errors: Vec<f64>,
    /// The greatest c of any trial.
    coarsest: f64,
}

/// The error and the time of trajectories as functions of steps and schemes.
#[derive(Clone, Debug)]
pub struct Model {
    tau: f64,
    sources: Vec<Source>,
    /// For each level: the seconds of a single force, and g.
    costs: Vec<(f64, f64)>,
    /// Seconds of heat baths and actions, and those of a drift.
    rest: (f64, f64),
    /// dH of what was walked.
    known: Vec<(Vec<Level>, Vec<f64>)>,
}

/// The acceptance at this `<dH^2>`.
#[must_use]
pub fn acceptance(mean_square: f64) -> f64 {
    // Abramowitz, Stegun 7.1.26: to 1.5e-7.
    const A: [f64; 5] = [0.254_829_592, -0.284_496_736, 1.421_413_741, -1.453_152_027, 1.061_405_429];
    let x = (mean_square / 8.0).sqrt();
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    A.iter().rev().fold(0.0, |sum, a| (sum + a) * t) * (-x * x).exp()
}

/// The force evaluations of each level in a trajectory; a step of the force-gradient scheme has three.
#[must_use]
pub fn forces(levels: &[Level]) -> Vec<u64> {
    let mut walks = 1;
    let mut counts = Vec::new();
    for level in levels {
        let (count, inside) = of_level(walks, *level);
        counts.push(count);
        walks = inside;
    }
    counts
}

/// The forces of a level that is walked so many times, and how often the level inside is.
fn of_level(walks: u64, Level { scheme, steps }: Level) -> (u64, u64) {
    // The inner level of 3G1F has its six forces in the step of the outer one, which hands its number of steps down.
    let all = walks * u64::from(steps);
    match scheme {
        // The last kick of a step is one with the first of the next.
        Scheme::Leapfrog => (all + 1, all),
        Scheme::Omelyan2 { .. } => (2 * all + 1, 2 * all),
        Scheme::Omelyan2Position { .. } => (2 * all, 3 * all),
        Scheme::Omelyan4 => (5 * all + 1, 5 * all),
        Scheme::ForceGradient => (3 * all + 1, 2 * all),
        Scheme::ThreeToOne => (2 * all, all),
    }
}

fn mean_square(values: &[f64]) -> f64 {
    values.iter().map(|x| x * x).sum::<f64>() / values.len() as f64
}

/// `sum_j d_j |d_j|^p` over the drifts of a step.
fn moment(scheme: Scheme, order: i32) -> f64 {
    scheme.drifts().iter().map(|d| d * d.abs().powi(order)).sum()
}

/// c of each level.
fn coarseness(levels: &[Level], tau: f64) -> Vec<f64> {
    let power = |l: usize, order: i32| {
        let outside = levels[..l].iter().map(|k| moment(k.scheme, order) / f64::from(k.steps).powi(order));
        (tau / f64::from(levels[l].steps)).powi(order) * outside.product::<f64>()
    };
    levels.iter().enumerate().map(|(l, level)| power(l, level.scheme.order())).collect()
}

/// Whether a trial tells of levels one by one: 3G1F has the error of two at once.
fn is_separable(levels: &[Level]) -> bool {
    levels.iter().all(|level| level.scheme != Scheme::ThreeToOne)
}

impl Source {
    /// Whether a step is so much longer than those of trials that higher orders count. The next whole number of steps is
    /// never too far.
    fn is_too_long(&self, c: f64, steps: u32) -> bool {
        let order = self.scheme.order();
        let next = (f64::from(steps) / f64::from(steps + 1)).powi(order) * c.abs();
        c.abs() > LONGER.powi(order) * self.coarsest && next > 1.000_001 * self.coarsest
    }
}

impl Model {
    /// The model of these trials, all from the same starts; those with 3G1F are left out. `None` if they do not suffice
    /// for each level and scheme in them.
    #[must_use]
    pub fn of(trials: &[Trial], tau: f64) -> Option<Self> {
        let trials: Vec<&Trial> = trials.iter().filter(|trial| is_separable(&trial.levels)).collect();
        let depth = trials.first()?.levels.len();
        let mut sources: Vec<Source> = Vec::new();
        for trial in &trials {
            let coarse = coarseness(&trial.levels, tau);
            for (level, (own, c)) in trial.levels.iter().zip(coarse).enumerate() {
                match sources.iter_mut().find(|s| s.level == level && s.scheme == own.scheme) {
                    Some(source) => source.coarsest = source.coarsest.max(c.abs()),
                    None => sources.push(Source {
                        level,
                        scheme: own.scheme,
                        errors: Vec::new(),
                        coarsest: c.abs(),
                    }),
                }
            }
        }
        // Columns in units of the coarsest step, rows in units of their error.
        let rows: Vec<(Vec<f64>, f64)> = trials
            .iter()
            .map(|trial| {
                let coarse = coarseness(&trial.levels, tau);
                let rms = trial.mean_square().sqrt().max(1e-12);
                let weight = 1.0 / (rms * (1.0 + rms * rms));
                let row = sources.iter().map(|source| {
                    let same = trial.levels[source.level].scheme == source.scheme;
                    if same { weight * coarse[source.level] / source.coarsest } else { 0.0 }
                });
                (row.collect(), weight)
            })
            .collect();
        for start in 0..trials[0].delta_h.len() {
            let values = rows.iter().zip(&trials).map(|((_, weight), trial)| weight * trial.delta_h[start]);
            let matrix: Vec<&[f64]> = rows.iter().map(|(row, _)| &row[..]).collect();
            let found = least_squares(&matrix, &values.collect::<Vec<_>>())?;
            for (source, error) in sources.iter_mut().zip(found) {
                source.errors.push(error / source.coarsest);
            }
        }
        let costs = (0..depth).map(|l| cost(&trials, l)).collect();
        let known = trials.iter().map(|trial| (trial.levels.clone(), trial.delta_h.clone())).collect();
        Some(Self { tau, sources, costs, rest: rest(&trials), known })
    }

    /// dH from each start, if these levels were walked.
    fn known(&self, levels: &[Level]) -> Option<&Vec<f64>> {
        self.known.iter().find(|(known, _)| known == levels).map(|(_, delta_h)| delta_h)
    }

    fn source(&self, level: usize, scheme: Scheme) -> Option<&Source> {
        self.sources.iter().find(|source| source.level == level && source.scheme == scheme)
    }

    /// The root mean square over starts of what each level contributes to dH; `None` where its scheme was not tried.
    #[must_use]
    pub fn shares(&self, levels: &[Level]) -> Vec<Option<f64>> {
        let coarse = coarseness(levels, self.tau);
        let own = levels.iter().zip(coarse).enumerate();
        own.map(|(l, (level, c))| Some(mean_square(&self.source(l, level.scheme)?.errors).sqrt() * c.abs()))
            .collect()
    }

    /// What to expect of these levels: the dH that was found, if they were walked. `None` if a scheme was not tried on its
    /// level.
    #[must_use]
    pub fn expected(&self, levels: &[Level]) -> Option<Expected> {
        let sources: Vec<&Source> = levels
            .iter()
            .enumerate()
            .map(|(l, level)| self.source(l, level.scheme))
            .collect::<Option<_>>()?;
        let mut delta_h = vec![0.0; sources.first()?.errors.len()];
        let mut alone = 0.0;
        for (source, c) in sources.iter().zip(coarseness(levels, self.tau)) {
            add(&mut delta_h, c, &source.errors);
            alone += c * c * mean_square(&source.errors);
        }
        let delta_h = self.known(levels).cloned().unwrap_or(delta_h);
        let (mut seconds, mut walks) = (self.rest.0, 1);
        for (l, level) in levels.iter().enumerate() {
            let (count, inside) = of_level(walks, *level);
            seconds += self.force_seconds(l, count);
            walks = inside;
        }
        seconds += self.rest.1 * walks as f64;
        Some(Expected { mean_square: mean_square(&delta_h).max(alone), delta_h, seconds })
    }

    /// Of so many forces of a level.
    fn force_seconds(&self, level: usize, count: u64) -> f64 {
        let (single, gain) = self.costs[level];
        single * (count as f64).powf(1.0 - gain)
    }

    /// The fastest levels with at least this acceptance, of all schemes that were tried; `None` if there are none. No step
    /// is longer than 1.3 times the longest that was tried, unless one step more would not be longer than that; nor is one
    /// on the outermost level as long as those in `refused`.
    #[must_use]
    pub fn fastest(&self, wanted: f64, refused: &[Level]) -> Option<(Vec<Level>, Expected)> {
        let starts = self.sources.first()?.errors.len();
        let mut search = Search { model: self, wanted, refused, levels: Vec::new(), best: None };
        search.descend(&Partial {
            walks: 1,
            seconds: self.rest.0,
            powers: [self.tau.powi(2), self.tau.powi(4)],
            delta_h: vec![0.0; starts],
            alone: 0.0,
        });
        let (_, levels) = search.best?;
        let expected = self.expected(&levels)?;
        Some((levels, expected))
    }
}

/// What is known of a trajectory when the steps of the outer levels are chosen.
struct Partial {
    walks: u64,
    seconds: f64,
    /// c of the next level with one step, for order 2 and 4.
    powers: [f64; 2],
    delta_h: Vec<f64>,
    alone: f64,
}

struct Search<'a> {
    model: &'a Model,
    wanted: f64,
    refused: &'a [Level],
    levels: Vec<Level>,
    /// Seconds, levels.
    best: Option<(f64, Vec<Level>)>,
}

impl Search<'_> {
    const MOST_STEPS: u32 = 300;

    /// Tries all schemes and steps of the next level, the longest step first.
    fn descend(&mut self, outside: &Partial) {
        let model = self.model;
        let level = self.levels.len();
        if level == model.costs.len() {
            let seconds = outside.seconds + model.rest.1 * outside.walks as f64;
            let delta_h = model.known(&self.levels).unwrap_or(&outside.delta_h);
            let square = mean_square(delta_h).max(outside.alone);
            if acceptance(square) >= self.wanted && self.best.as_ref().is_none_or(|(best, _)| seconds < *best)
            {
                self.best = Some((seconds, self.levels.clone()));
            }
            return;
        }
        for source in model.sources.iter().filter(|source| source.level == level) {
            let order = source.scheme.order();
            let moments = [2, 4].map(|order| moment(source.scheme, order));
            for steps in 1..=Self::MOST_STEPS {
                let own = Level { scheme: source.scheme, steps };
                let as_long =
                    |other: &Level| level == 0 && other.scheme == own.scheme && steps <= other.steps;
                if self.refused.iter().any(as_long) {
                    continue;
                }
                let (count, walks) = of_level(outside.walks, own);
                let seconds = outside.seconds + model.force_seconds(level, count);
                if self.best.as_ref().is_some_and(|(best, _)| seconds >= *best) {
                    break;
                }
                let shorter = f64::from(steps);
                let c = outside.powers[usize::from(order == 4)] / shorter.powi(order);
                let alone = outside.alone + c * c * mean_square(&source.errors);
                if source.is_too_long(c, steps) || acceptance(alone) < self.wanted {
                    continue;
                }
                let mut delta_h = outside.delta_h.clone();
                add(&mut delta_h, c, &source.errors);
                let [two, four] = outside.powers;
                let powers = [two * moments[0] / shorter.powi(2), four * moments[1] / shorter.powi(4)];
                self.levels.push(own);
                self.descend(&Partial { walks, seconds, powers, delta_h, alone });
                self.levels.pop();
            }
        }
    }
}

fn add(sum: &mut [f64], factor: f64, values: &[f64]) {
    sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += factor * value);
}

/// Seconds of a single force of a level, and g.
fn cost(trials: &[&Trial], level: usize) -> (f64, f64) {
    let count = |trial: &Trial| forces(&trial.levels)[level] as f64;
    let points = trials.iter().map(|trial| {
        let count = count(trial);
        (count.ln(), (trial.iterations[level].max(1.0) / count).ln())
    });
    let gain = if trials.iter().all(|trial| trial.iterations[level] > 0.0) {
        (-slope(&points.collect::<Vec<_>>())).clamp(0.0, 0.9)
    } else {
        0.0
    };
    let single = trials.iter().map(|trial| trial.force_seconds[level] / count(trial).powf(1.0 - gain));
    (single.fold(f64::INFINITY, f64::min), gain)
}

/// Seconds of a trajectory beside its forces and drifts, and those of a drift.
fn rest(trials: &[&Trial]) -> (f64, f64) {
    let least =
        |of: &dyn Fn(&Trial) -> f64| trials.iter().map(|trial| of(trial)).fold(f64::INFINITY, f64::min);
    let drifts = |trial: &Trial| trial.levels.iter().fold(1, |walks, level| of_level(walks, *level).1) as f64;
    (least(&|trial| trial.end_seconds), least(&|trial| trial.drift_seconds / drifts(trial)))
}

/// The slope of the line of least squares through points; 0 if all are at one place.
fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(&|p| p.0), mean(&|p| p.1));
    let (xx, xy) = (mean(&|p| (p.0 - x) * (p.0 - x)), mean(&|p| (p.0 - x) * (p.1 - y)));
    if xx > 1e-12 * x * x { xy / xx } else { 0.0 }
}

/// x of least |A x - b|, by the normal equations; `None` if they are singular.
fn least_squares(a: &[&[f64]], b: &[f64]) -> Option<Vec<f64>> {
    let n = a.first()?.len();
    let mut rows: Vec<Vec<f64>> = (0..n)
        .map(|i| {
            let products = (0..n).map(|j| a.iter().map(|row| row[i] * row[j]).sum());
            let right = a.iter().zip(b).map(|(row, b)| row[i] * b).sum();
            products.chain([right]).collect()
        })
        .collect();
    // Scaled to ones on the diagonal, so that a small pivot means dependence and not units.
    let scale: Vec<f64> = (0..n).map(|i| rows[i][i].sqrt()).collect();
    for (row, own) in rows.iter_mut().zip(&scale) {
        let others = scale.iter().copied().chain([1.0]);
        row.iter_mut().zip(others).for_each(|(value, other)| *value /= own * other);
    }
    for i in 0..n {
        // Positive definite: the diagonal is the pivot.
        let pivot = rows[i][i];
        if pivot.is_nan() || pivot <= 1e-10 {
            return None;
        }
        let own = rows[i].clone();
        for row in &mut rows[i + 1..] {
            let factor = row[i] / pivot;
            row.iter_mut().zip(&own).for_each(|(value, own)| *value -= factor * own);
        }
    }
    let mut x = vec![0.0; n];
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|j| rows[i][j] * x[j]).sum();
        x[i] = (rows[i][n] - known) / rows[i][i];
    }
    Some(x.iter().zip(&scale).map(|(x, scale)| x / scale).collect())
}

#[cfg(test)]
mod tests {
    use super::super::integrator::{Move, plan};
    use super::*;

    const TWO: Scheme = Scheme::Omelyan2 { lambda: 0.19 };
    const POSITION: Scheme = Scheme::Omelyan2Position { lambda: 0.19 };

    fn levels(choice: &[(Scheme, u32)]) -> Vec<Level> {
        choice.iter().map(|&(scheme, steps)| Level { scheme, steps }).collect()
    }

    #[test]
    fn forces_are_those_of_the_moves() {
        let schemes = [Scheme::Leapfrog, TWO, POSITION, Scheme::Omelyan4, Scheme::ForceGradient];
        let mut choices: Vec<Vec<Level>> = Vec::new();
        for outer in schemes {
            for inner in schemes {
                choices.push(levels(&[(outer, 3), (inner, 2), (TWO, 1)]));
            }
        }
        choices.push(levels(&[(TWO, 2), (Scheme::ThreeToOne, 3), (Scheme::ThreeToOne, 3)]));
        for choice in choices {
            let mut counts = vec![0; 3];
            for step in plan(&choice, 1.0) {
                match step {
                    Move::Kick { level, .. } => counts[level] += 1,
                    Move::GradientKick { level, .. } => counts[level] += 2,
                    Move::Drift { .. } => {}
                }
            }
            assert_eq!(forces(&choice), counts, "{choice:?}");
        }
    }

    #[test]
    fn drifts_fill_a_step() {
        for scheme in
            [Scheme::Leapfrog, TWO, POSITION, Scheme::Omelyan4, Scheme::ForceGradient, Scheme::ThreeToOne]
        {
            let all: f64 = scheme.drifts().iter().sum();
            assert!((all - 1.0).abs() < 1e-14, "{scheme:?}: {all}");
        }
    }

    /// erfc(1/2) and erfc(1): Abramowitz, Stegun, table 7.1.
    #[test]
    fn acceptance_is_the_complementary_error_function() {
        for (mean_square, erfc) in [(0.0, 1.0), (2.0, 0.479_500_122), (8.0, 0.157_299_207)] {
            assert!((acceptance(mean_square) - erfc).abs() < 3e-7);
        }
    }

    /// The X of two levels from three starts, for each scheme on each of them.
    fn error(level: usize, scheme: Scheme, start: usize) -> f64 {
        let sign = if (start + level).is_multiple_of(2) { 1.0 } else { -0.7 };
        let size = [20.0, 3000.0][level] * (1.0 + start as f64 / 4.0);
        sign * size * if scheme.order() == 4 { 8.0 } else { 1.0 }
    }

    /// A trial whose dH is exactly as in the model, with forces of 0.2 and 0.001 s.
    fn trial(levels: Vec<Level>, tau: f64) -> Trial {
        let coarse = coarseness(&levels, tau);
        let delta_h =
            |start| levels.iter().enumerate().map(|(l, own)| coarse[l] * error(l, own.scheme, start)).sum();
        let counts = forces(&levels);
        let drifts = levels.iter().fold(1, |walks, level| of_level(walks, *level).1);
        Trial {
            delta_h: (0..3).map(delta_h).collect(),
            force_seconds: vec![0.2 * counts[0] as f64, 0.001 * counts[1] as f64],
            iterations: vec![30.0 * counts[0] as f64, 0.0],
            end_seconds: 0.5,
            drift_seconds: 1e-4 * drifts as f64,
            levels,
        }
    }

    fn trials() -> Vec<Trial> {
        let schemes: [&[(Scheme, u32)]; 5] = [
            &[(TWO, 6), (TWO, 4)],
            &[(TWO, 6), (TWO, 8)],
            &[(TWO, 12), (TWO, 4)],
            &[(Scheme::ForceGradient, 4), (TWO, 6)],
            &[(TWO, 6), (Scheme::Omelyan4, 2)],
        ];
        schemes.iter().map(|choice| trial(levels(choice), 1.5)).collect()
    }

    #[test]
    fn exact_data_are_extrapolated_exactly() {
        let model = Model::of(&trials(), 1.5).unwrap();
        let choice = levels(&[(Scheme::ForceGradient, 5), (Scheme::Omelyan4, 3)]);
        let (expected, exact) = (model.expected(&choice).unwrap(), trial(choice.clone(), 1.5));
        for (found, exact) in expected.delta_h.iter().zip(&exact.delta_h) {
            assert!((found / exact - 1.0).abs() < 1e-9, "{found} {exact}");
        }
        assert!(expected.mean_square >= exact.mean_square() * (1.0 - 1e-9));
        assert!((expected.seconds / exact.seconds() - 1.0).abs() < 1e-9);
        let shares: Vec<f64> = model.shares(&choice).into_iter().flatten().collect();
        let alone = shares.iter().map(|share| share * share).sum::<f64>();
        assert!((expected.mean_square / alone.max(exact.mean_square()) - 1.0).abs() < 1e-9);
        assert_eq!(model.expected(&levels(&[(POSITION, 5), (TWO, 3)])), None);
    }

    /// No neighbour of the choice with the wanted acceptance is faster, and one step less on any level is not enough.
    #[test]
    fn the_fastest_is_found() {
        let model = Model::of(&trials(), 1.5).unwrap();
        for wanted in [0.6, 0.8, 0.95] {
            let (choice, expected) = model.fastest(wanted, &[]).unwrap();
            assert!(acceptance(expected.mean_square) >= wanted);
            let mut others = Vec::new();
            for outer in [TWO, Scheme::ForceGradient] {
                for inner in [TWO, Scheme::Omelyan4] {
                    for steps in 1..=20 {
                        others.extend((1..=12).map(|inside| levels(&[(outer, steps), (inner, inside)])));
                    }
                }
            }
            let longest = |choice: &[Level]| {
                coarseness(choice, 1.5).iter().enumerate().all(|(l, c)| {
                    !model.source(l, choice[l].scheme).unwrap().is_too_long(*c, choice[l].steps)
                })
            };
            let fits = |other: &Expected| acceptance(other.mean_square) >= wanted;
            let tried =
                others.iter().filter(|other| longest(other)).filter_map(|other| model.expected(other));
            let best = tried.filter(fits).map(|other| other.seconds).fold(f64::MAX, f64::min);
            assert!((expected.seconds - best).abs() < 1e-9, "{choice:?}: {} {best}", expected.seconds);
            let (other, _) = model.fastest(wanted, &choice[..1]).unwrap();
            assert!(other[0].scheme != choice[0].scheme || other[0].steps > choice[0].steps);
        }
    }

    #[test]
    fn too_few_trials_are_no_model() {
        let all = trials();
        assert!(Model::of(&all[..1], 1.5).is_none());
        assert!(Model::of(&all[..2], 1.5).is_some());
        // The same levels, all twice as short, tell nothing of each alone.
        assert!(Model::of(&[all[0].clone(), all[2].clone()], 1.5).is_none());
        let pair =
            Trial { levels: levels(&[(Scheme::ThreeToOne, 4), (Scheme::ThreeToOne, 3)]), ..all[0].clone() };
        assert!(Model::of(&[pair], 1.5).is_none());
    }

    /// Seconds of a force that fall with the number of forces.
    #[test]
    fn guesses_make_forces_of_short_steps_cheaper() {
        let mut all = trials();
        for trial in &mut all {
            let count = forces(&trial.levels)[0] as f64;
            trial.iterations[0] = 90.0 * count.powf(0.7);
            trial.force_seconds[0] = 0.3 * count.powf(0.7);
        }
        // Other work on the machine.
        all[1].force_seconds.iter_mut().for_each(|seconds| *seconds *= 3.0);
        let model = Model::of(&all, 1.5).unwrap();
        assert!((model.force_seconds(0, 31) / (0.3 * 31f64.powf(0.7)) - 1.0).abs() < 1e-9);
    }
}
