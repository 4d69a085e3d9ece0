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

/// The trials that tell the error of each level and scheme: twice the steps on each level but the outermost, and the other
/// schemes on each level, with about as many forces. They complete `levels` and [`finer`] of the outermost.
pub(super) fn trials(levels: &[Level]) -> Vec<Vec<Level>> {
    let mut trials: Vec<_> = (1..levels.len()).map(|level| finer(levels, level)).collect();
    for level in 0..levels.len() {
        let own = std::mem::discriminant(&levels[level].scheme);
        let tried = SCHEMES.iter().filter(|(word, _)| TRIED.contains(word)).map(|(_, scheme)| *scheme);
        let others = tried.filter(|scheme| std::mem::discriminant(scheme) != own);
        trials.extend(others.map(|scheme| with_scheme(levels, level, scheme)));
    }
    trials
}

/// Another scheme on a level, with about as many forces there and no longer steps inside.
fn with_scheme(levels: &[Level], level: usize, scheme: Scheme) -> Vec<Level> {
    let Level { scheme: own, steps } = levels[level];
    let dear = |scheme| {
        let count = |steps| forces(&[Level { scheme, steps }])[0];
        (count(2) - count(1)) as u32
    };
    let new = ((2 * steps * dear(own) + dear(scheme)) / (2 * dear(scheme))).max(1);
    let mut levels = levels.to_vec();
    levels[level] = Level { scheme, steps: new };
    if let Some(inside) = levels.get_mut(level + 1) {
        let longest =
            |scheme: Scheme, steps: u32| scheme.drifts().into_iter().fold(0.0, f64::max) / f64::from(steps);
        let ratio = longest(scheme, new) / longest(own, steps);
        inside.steps = ((f64::from(inside.steps) * ratio - 1e-9).ceil() as u32).max(1);
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
    fn three_to_one_becomes_two_levels() {
        let level = |scheme, steps| Level { scheme, steps };
        let pair = [level(Scheme::ThreeToOne, 3), level(Scheme::ThreeToOne, 3)];
        assert_eq!(separate(&pair), [level(Scheme::ForceGradient, 2), level(Scheme::Omelyan4, 1)]);
        assert_eq!(finer(&separate(&pair), 0)[0].steps, 4);
    }
}
