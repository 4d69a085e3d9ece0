//! Which steps and schemes are tried.

use crate::hmc::{Level, Scheme, forces};
use crate::input::SCHEMES;

/// Schemes that are tried on every level: the best of their kind at long and at short steps (Takaishi, de Forcrand,
/// hep-lat/0505020; Yin, Mawhinney, arXiv:1111.5059).
const TRIED: [&str; 3] = ["2mn", "omf4", "force-gradient"];

/// The same with separate levels in place of 3G1F, whose error is that of two levels at once: a step of the force-gradient
/// scheme for three forces outside, one of 4MN5FV in each of its drifts.
pub(super) fn separate(levels: &[Level]) -> Vec<Level> {
    let mut levels = levels.to_vec();
    if let Some(outer) = levels.iter().position(|level| level.scheme == Scheme::ThreeToOne) {
        let steps = (2 * levels[outer].steps).div_ceil(3);
        levels[outer] = Level { scheme: Scheme::ForceGradient, steps };
        levels[outer + 1] = Level { scheme: Scheme::Omelyan4, steps: 1 };
    }
    levels
}

/// The same with twice the steps on a level, and so half the step on all inside it.
pub(super) fn finer(levels: &[Level], level: usize) -> Vec<Level> {
    let mut levels = levels.to_vec();
    levels[level].steps *= 2;
    levels
}

/// Twice the steps on each level but the outermost: with `levels` they tell the error of each level.
pub(super) fn refined(levels: &[Level]) -> Vec<Vec<Level>> {
    (1..levels.len()).map(|level| finer(levels, level)).collect()
}

/// The trials that tell the error of each level and scheme: [`refined`], and the other schemes on each level, with about as
/// many forces. They complete `levels` and [`finer`] of the outermost.
pub(super) fn trials(levels: &[Level]) -> Vec<Vec<Level>> {
    let mut trials = refined(levels);
    for level in 0..levels.len() {
        let own = std::mem::discriminant(&levels[level].scheme);
        let tried = SCHEMES.iter().filter(|(word, _)| TRIED.contains(word)).map(|(_, scheme)| *scheme);
        let others = tried.filter(|scheme| std::mem::discriminant(scheme) != own);
        trials.extend(others.map(|scheme| with_scheme(levels, level, scheme)));
    }
    trials
}

/// The same without a level; steps inside it stay as long as its longest drift makes them, or shorter.
pub(super) fn without(levels: &[Level], level: usize) -> Vec<Level> {
    let mut levels = levels.to_vec();
    let gone = levels.remove(level);
    if let Some(inside) = levels.get_mut(level) {
        inside.steps = steps_of(*inside, 1.0 / longest_drift(gone));
    }
    levels
}

/// The longest drift of a level, in units of what the level walks.
fn longest_drift(Level { scheme, steps }: Level) -> f64 {
    scheme.drifts().into_iter().fold(0.0, f64::max) / f64::from(steps)
}

/// The steps of a level that walks `ratio` times as far, so that they are no longer.
fn steps_of(level: Level, ratio: f64) -> u32 {
    ((f64::from(level.steps) * ratio - 1e-9).ceil() as u32).max(1)
}

/// Another scheme on a level, with about as many forces there and no longer steps inside.
fn with_scheme(levels: &[Level], level: usize, scheme: Scheme) -> Vec<Level> {
    let own = levels[level];
    let dear = |scheme| {
        let count = |steps| forces(&[Level { scheme, steps }])[0];
        (count(2) - count(1)) as u32
    };
    let steps = ((2 * own.steps * dear(own.scheme) + dear(scheme)) / (2 * dear(scheme))).max(1);
    let mut levels = levels.to_vec();
    levels[level] = Level { scheme, steps };
    let ratio = longest_drift(levels[level]) / longest_drift(own);
    if let Some(inside) = levels.get_mut(level + 1) {
        inside.steps = steps_of(*inside, ratio);
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_schemes_have_as_many_forces() {
        let two = SCHEMES[1].1;
        let levels = [Level { scheme: two, steps: 6 }, Level { scheme: Scheme::Omelyan4, steps: 1 }];
        let choices: Vec<_> = trials(&levels)
            .iter()
            .map(|levels| levels.iter().map(|level| (level.scheme, level.steps)).collect::<Vec<_>>())
            .collect();
        let expected = [
            [(two, 6), (Scheme::Omelyan4, 2)],
            // Drifts of 0.28 instead of 0.083, and of 0.125.
            [(Scheme::Omelyan4, 2), (Scheme::Omelyan4, 4)],
            [(Scheme::ForceGradient, 4), (Scheme::Omelyan4, 2)],
            [(two, 6), (two, 3)],
            [(two, 6), (Scheme::ForceGradient, 2)],
        ];
        assert_eq!(choices, expected);
    }

    #[test]
    fn steps_inside_a_level_that_is_gone_are_no_longer() {
        let [two, four] = [SCHEMES[1].1, Scheme::Omelyan4];
        let levels = [Level { scheme: two, steps: 6 }, Level { scheme: four, steps: 2 }];
        // Two drifts of a half in each of 6 steps.
        assert_eq!(without(&levels, 0), [Level { scheme: four, steps: 24 }]);
        assert_eq!(without(&levels, 1), levels[..1]);
    }

    #[test]
    fn three_to_one_becomes_two_levels() {
        let level = |scheme, steps| Level { scheme, steps };
        let pair = [level(Scheme::ThreeToOne, 3), level(Scheme::ThreeToOne, 3)];
        assert_eq!(separate(&pair), [level(Scheme::ForceGradient, 2), level(Scheme::Omelyan4, 1)]);
        assert_eq!(finer(&separate(&pair), 0)[0].steps, 4);
    }
}
