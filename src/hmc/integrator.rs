//! A trajectory as a list of moves: kicks by the terms of a level, and drifts of the links.
//!
//! ```text
//! dU/dtau = i P U,  dP/dtau = -F.   K(e): P <- P - e F,   D(e): U <- exp(i e P) U
//! leapfrog  K(1/2) D(1) K(1/2)
//! 2MN       K(l) D(1/2) K(1-2l) D(1/2) K(l)
//! 2MN pos.  D(l) K(1/2) D(1-2l) K(1/2) D(l)
//! 4MN5FV    K(r1) D(r2) K(r3) D(r4) K(1/2-r1-r3) D(1-2(r2+r4)) and back
//! gradient  K(1/6) D(1/2) K'(2/3) D(1/2) K(1/6)
//! ```
//!
//! All arguments are in units of the step e. K' takes its force at exp(-i e^2 F / 24) U: the force-gradient scheme
//! (Omelyan, Mryglod, Folk, Comput. Phys. Commun. 151 (2003) 272; Yin, Mawhinney, arXiv:1111.5059). On all levels
//! except the innermost, a drift consists of the steps of the level inside (Sexton, Weingarten, Nucl. Phys. B 380
//! (1992) 665).
//!
//! 3G1F (MILC's) combines the two innermost levels without nesting: one step of `2MN pos.` with l = 1/5 on the outer
//! level accompanies three on the inner level, and the links drift from kick to kick. In fifteenths of the step, the
//! outer level kicks at 3 and 12 with weight 1/2, the inner one at 1, 4, 6, 9, 11 and 14 with weight 1/6.

/// The scheme of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scheme {
    /// Second order, one force evaluation.
    Leapfrog,
    /// Second order, two force evaluations.
    Omelyan2 {
        /// The weight of the first and last kick.
        lambda: f64,
    },
    /// Second order, two force evaluations, drift first.
    Omelyan2Position {
        /// The weight of the first and last drift.
        lambda: f64,
    },
    /// Fourth order, five force evaluations.
    Omelyan4,
    /// Fourth order, three force evaluations.
    ForceGradient,
    /// Second order, two force evaluations of this level and six of the level inside (3G1F). Both levels have this
    /// scheme. The inner level has 3 steps and is the innermost.
    ThreeToOne,
}

impl Scheme {
    /// The power p of the step with which the error of H grows.
    #[must_use]
    pub fn order(self) -> i32 {
        match self {
            Self::Leapfrog | Self::Omelyan2 { .. } | Self::Omelyan2Position { .. } | Self::ThreeToOne => 2,
            Self::Omelyan4 | Self::ForceGradient => 4,
        }
    }

    /// The drifts of a step, as fractions of it: the level inside walks each of them. Those of 3G1F are of both levels.
    #[must_use]
    pub fn drifts(self) -> Vec<f64> {
        match self {
            Self::Leapfrog => vec![1.0],
            Self::Omelyan2 { .. } | Self::ForceGradient => vec![0.5; 2],
            Self::Omelyan2Position { lambda } => vec![lambda, 1.0 - 2.0 * lambda, lambda],
            Self::Omelyan4 => {
                let [_, r2, _, r4] = OMF4;
                vec![r2, r4, 1.0 - 2.0 * (r2 + r4), r4, r2]
            }
            Self::ThreeToOne => {
                THREE_TO_ONE.iter().map(|(drift, _)| *drift).chain([1.0]).map(|drift| drift / 15.0).collect()
            }
        }
    }
}

/// A level: its scheme, and its number of steps per drift of the level outside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// The scheme of a step.
    pub scheme: Scheme,
    /// At least 1.
    pub steps: u32,
}

/// One elementary move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Move {
    /// `P <- P - eps F` with the terms of a level.
    Kick {
        /// 0 is the outermost.
        level: usize,
        /// Weight.
        eps: f64,
    },
    /// As `Kick`, with the force at `exp(-i shift F) U`.
    GradientKick {
        /// 0 is the outermost.
        level: usize,
        /// Weight.
        eps: f64,
        /// How far the links are shifted along the force.
        shift: f64,
    },
    /// `U <- exp(i eps P) U`
    Drift {
        /// Time.
        eps: f64,
    },
}

/// The moves of a trajectory of length `tau`; `levels` from the outermost.
///
/// # Panics
/// [`Scheme::ThreeToOne`] is not on exactly the two innermost levels, or the inner one does not have 3 steps.
pub fn plan(levels: &[Level], tau: f64) -> Vec<Move> {
    let mut moves = Vec::new();
    push_level(&mut moves, levels, 0, tau);
    moves
}

/// Omelyan, Mryglod, Folk, table 2: 4MN5FV.
#[expect(clippy::excessive_precision, reason = "the digits of the paper")]
const OMF4: [f64; 4] =
    [0.083_983_152_628_766_93, 0.253_978_510_841_059_5, 0.682_236_533_571_909_1, -0.032_302_867_652_699_67];

/// 3G1F: the drift before each kick, in fifteenths of the step, and the level that kicks; 0 is the outer one.
const THREE_TO_ONE: [(f64, usize); 8] =
    [(1.0, 1), (2.0, 0), (1.0, 1), (2.0, 1), (3.0, 1), (2.0, 1), (1.0, 0), (2.0, 1)];

fn push_level(moves: &mut Vec<Move>, levels: &[Level], level: usize, tau: f64) {
    let Some(&Level { scheme, steps }) = levels.get(level) else {
        push_drift(moves, tau);
        return;
    };
    let eps = tau / f64::from(steps);
    for _ in 0..steps {
        let kick = |moves: &mut Vec<Move>, weight: f64| push_kick(moves, level, weight * eps);
        let inner = |moves: &mut Vec<Move>, weight: f64| push_level(moves, levels, level + 1, weight * eps);
        match scheme {
            Scheme::Leapfrog => {
                kick(moves, 0.5);
                inner(moves, 1.0);
                kick(moves, 0.5);
            }
            Scheme::Omelyan2 { lambda } => {
                kick(moves, lambda);
                inner(moves, 0.5);
                kick(moves, 1.0 - 2.0 * lambda);
                inner(moves, 0.5);
                kick(moves, lambda);
            }
            Scheme::Omelyan2Position { lambda } => {
                inner(moves, lambda);
                kick(moves, 0.5);
                inner(moves, 1.0 - 2.0 * lambda);
                kick(moves, 0.5);
                inner(moves, lambda);
            }
            Scheme::ThreeToOne => {
                let beside = levels.get(level + 1..);
                assert!(
                    matches!(beside, Some([Level { scheme: Scheme::ThreeToOne, steps: 3 }])),
                    "3G1F is for the two innermost levels"
                );
                for (drift, beside) in THREE_TO_ONE {
                    push_drift(moves, drift / 15.0 * eps);
                    push_kick(moves, level + beside, if beside == 0 { 0.5 * eps } else { eps / 6.0 });
                }
                push_drift(moves, eps / 15.0);
            }
            Scheme::Omelyan4 => {
                let [r1, r2, r3, r4] = OMF4;
                let (r5, r6) = (0.5 - r1 - r3, 1.0 - 2.0 * (r2 + r4));
                for (k, d) in [(r1, r2), (r3, r4), (r5, r6), (r5, r4), (r3, r2)] {
                    kick(moves, k);
                    inner(moves, d);
                }
                kick(moves, r1);
            }
            Scheme::ForceGradient => {
                kick(moves, 1.0 / 6.0);
                inner(moves, 0.5);
                moves.push(Move::GradientKick { level, eps: 2.0 / 3.0 * eps, shift: eps * eps / 24.0 });
                inner(moves, 0.5);
                kick(moves, 1.0 / 6.0);
            }
        }
    }
}

/// Merges the drift with the one just before, since the momenta are the same.
fn push_drift(moves: &mut Vec<Move>, eps: f64) {
    if let Some(Move::Drift { eps: sum }) = moves.last_mut() {
        *sum += eps;
    } else {
        moves.push(Move::Drift { eps });
    }
}

/// Merges the kick with one of its level since the last drift: same links, same force, one solve.
fn push_kick(moves: &mut Vec<Move>, level: usize, eps: f64) {
    for step in moves.iter_mut().rev() {
        match step {
            Move::Drift { .. } => break,
            Move::Kick { level: l, eps: sum } if *l == level => {
                *sum += eps;
                return;
            }
            _ => {}
        }
    }
    moves.push(Move::Kick { level, eps });
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAMBDA: f64 = 0.193_183_327_503_783_6;

    /// dH of the oscillator p^2/2 + 5 q^2/2 over tau = 1, with stiffness 1 on the outer level and 4 on the inner one.
    fn delta_h(levels: &[Level]) -> f64 {
        let stiffness = [1.0, 4.0];
        let h = |p: f64, q: f64| 0.5 * (p * p + 5.0 * q * q);
        let (mut p, mut q) = (0.3, 1.0);
        let before = h(p, q);
        for step in plan(levels, 1.0) {
            match step {
                Move::Kick { level, eps } => p -= eps * stiffness[level] * q,
                Move::GradientKick { level, eps, shift } => {
                    p -= eps * stiffness[level] * (q - shift * stiffness[level] * q);
                }
                Move::Drift { eps } => q += eps * p,
            }
        }
        h(p, q) - before
    }

    fn level(scheme: Scheme, steps: u32) -> Level {
        Level { scheme, steps }
    }

    #[test]
    fn schemes_have_their_order() {
        let two = Scheme::Omelyan2 { lambda: LAMBDA };
        let position = Scheme::Omelyan2Position { lambda: LAMBDA };
        for (outer, inner, order) in [
            (Scheme::Leapfrog, level(Scheme::Leapfrog, 2), 2.0),
            (two, level(two, 2), 2.0),
            (position, level(position, 2), 2.0),
            (position, level(two, 2), 2.0),
            (two, level(position, 2), 2.0),
            (Scheme::ThreeToOne, level(Scheme::ThreeToOne, 3), 2.0),
            (Scheme::Omelyan4, level(Scheme::Omelyan4, 2), 4.0),
            (Scheme::ForceGradient, level(Scheme::ForceGradient, 2), 4.0),
        ] {
            let error = |steps| delta_h(&[level(outer, steps), inner]);
            let found = (error(16) / error(32)).abs().log2();
            assert!((found - order).abs() < 0.1, "{outer:?} around {inner:?}: order {found}");
        }
    }

    /// The total weight of a level's kicks.
    fn weight(moves: &[Move], wanted: usize) -> f64 {
        let of = |step: &Move| match *step {
            Move::Kick { level, eps } | Move::GradientKick { level, eps, .. } if level == wanted => eps,
            _ => 0.0,
        };
        moves.iter().map(of).sum()
    }

    #[test]
    fn drifts_fill_the_trajectory() {
        let position = Scheme::Omelyan2Position { lambda: LAMBDA };
        for levels in [
            [level(Scheme::Omelyan4, 3), level(Scheme::ForceGradient, 2)],
            [level(position, 4), level(position, 3)],
            [level(position, 4), level(Scheme::Leapfrog, 3)],
            [level(Scheme::ThreeToOne, 5), level(Scheme::ThreeToOne, 3)],
        ] {
            let moves = plan(&levels, 1.5);
            let time: f64 = moves.iter().map(|m| if let Move::Drift { eps } = m { *eps } else { 0.0 }).sum();
            assert!((time - 1.5).abs() < 1e-13);
            for wanted in 0..2 {
                let weight = weight(&moves, wanted);
                assert!((weight - 1.5).abs() < 1e-13, "level {wanted}: {weight}");
            }
        }
    }

    /// MILC's comment on 3G1F in units of eps, half of our step, with alpha = beta = 0.1.
    #[test]
    fn three_to_one_kicks_at_the_times_of_milc() {
        let (alpha, beta, steps, tau) = (0.1, 0.1, 3, 1.2);
        let eps = tau / f64::from(2 * steps);
        let gauge = [
            1.0 / 6.0 - alpha / 3.0,
            0.5 + alpha / 3.0,
            5.0 / 6.0 - alpha / 3.0,
            7.0 / 6.0 + alpha / 3.0,
            1.5 - alpha / 3.0,
            11.0 / 6.0 + alpha / 3.0,
        ];
        let fermion = [0.5 - beta, 1.5 + beta];
        let mut expected = Vec::new();
        for step in 0..steps {
            let start = 2.0 * f64::from(step);
            expected.extend(gauge.map(|time| (eps * (start + time), 1, eps / 3.0)));
            expected.extend(fermion.map(|time| (eps * (start + time), 0, eps)));
        }
        expected.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut time, mut found) = (0.0, Vec::new());
        for step in plan(&[level(Scheme::ThreeToOne, steps), level(Scheme::ThreeToOne, 3)], tau) {
            match step {
                Move::Drift { eps } => time += eps,
                Move::Kick { level, eps } => found.push((time, level, eps)),
                Move::GradientKick { .. } => panic!("3G1F has none"),
            }
        }
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            assert!(
                (found.0 - expected.0).abs() < 1e-14 && (found.2 - expected.2).abs() < 1e-15,
                "{found:?}"
            );
            assert_eq!(found.1, expected.1, "{found:?}");
        }
    }

    #[test]
    fn drifts_of_neighbouring_steps_are_one() {
        let position = Scheme::Omelyan2Position { lambda: 0.2 };
        let drift = |m: &Move| matches!(m, Move::Drift { .. });
        // n steps on one level: n + 1 drifts at the ends of steps, n in the middles.
        assert_eq!(plan(&[level(position, 6)], 1.0).iter().filter(|m| drift(m)).count(), 13);
        for levels in [
            [level(position, 4), level(position, 3)],
            [level(Scheme::ThreeToOne, 4), level(Scheme::ThreeToOne, 3)],
        ] {
            let moves = plan(&levels, 1.0);
            assert!(!moves.windows(2).any(|pair| drift(&pair[0]) && drift(&pair[1])));
        }
    }

    #[test]
    #[should_panic(expected = "innermost")]
    fn three_to_one_is_of_two_levels() {
        plan(&[level(Scheme::ThreeToOne, 4)], 1.0);
    }
}
