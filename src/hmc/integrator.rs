//! A trajectory as a list of moves: kicks by the terms of a level, drifts of the links.
//!
//! ```text
//! dU/dtau = i P U,  dP/dtau = -F.   K(e): P <- P - e F,   D(e): U <- exp(i e P) U
//! leapfrog  K(1/2) D(1) K(1/2)
//! 2MN       K(l) D(1/2) K(1-2l) D(1/2) K(l)
//! 4MN5FV    K(r1) D(r2) K(r3) D(r4) K(1/2-r1-r3) D(1-2(r2+r4)) and back
//! gradient  K(1/6) D(1/2) K'(2/3) D(1/2) K(1/6)
//! ```
//!
//! times the step e. K' takes its force at exp(-i e^2 F / 24) U: the force-gradient scheme (Omelyan, Mryglod,
//! Folk, Comput. Phys. Commun. 151 (2003) 272; Yin, Mawhinney, arXiv:1111.5059). On all levels but the innermost
//! a drift is the steps of the level inside (Sexton, Weingarten, Nucl. Phys. B 380 (1992) 665).

/// The scheme of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scheme {
    /// Second order, one force evaluation.
    Leapfrog,
    /// Second order, two force evaluations.
    Omelyan2 {
        /// The position of the outer kicks' weight.
        lambda: f64,
    },
    /// Fourth order, five force evaluations.
    Omelyan4,
    /// Fourth order, three force evaluations.
    ForceGradient,
}

/// A level: its scheme, and its steps in one drift of the level outside.
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
    /// The same with the force at `exp(-i shift F) U`.
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
pub fn plan(levels: &[Level], tau: f64) -> Vec<Move> {
    let mut moves = Vec::new();
    push_level(&mut moves, levels, 0, tau);
    moves
}

/// Omelyan, Mryglod, Folk, table 2: 4MN5FV.
#[expect(clippy::excessive_precision, reason = "the digits of the paper")]
const OMF4: [f64; 4] =
    [0.083_983_152_628_766_93, 0.253_978_510_841_059_5, 0.682_236_533_571_909_1, -0.032_302_867_652_699_67];

fn push_level(moves: &mut Vec<Move>, levels: &[Level], level: usize, tau: f64) {
    let Some(&Level { scheme, steps }) = levels.get(level) else {
        moves.push(Move::Drift { eps: tau });
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

/// Merges the kick into one of its level since the last drift: same links, same force, one solve.
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

    /// dH of an oscillator p^2/2 + 5 q^2/2 over tau = 1, stiffness 1 outside and 4 inside.
    fn delta_h(outer: Scheme, inner: Scheme, steps: u32) -> f64 {
        let stiffness = [1.0, 4.0];
        let h = |p: f64, q: f64| 0.5 * (p * p + 5.0 * q * q);
        let (mut p, mut q) = (0.3, 1.0);
        let before = h(p, q);
        for step in plan(&[Level { scheme: outer, steps }, Level { scheme: inner, steps: 2 }], 1.0) {
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

    #[test]
    fn schemes_have_their_order() {
        let two = Scheme::Omelyan2 { lambda: 0.193_183_327_503_783_6 };
        for (scheme, order) in
            [(Scheme::Leapfrog, 2.0), (two, 2.0), (Scheme::Omelyan4, 4.0), (Scheme::ForceGradient, 4.0)]
        {
            let found = (delta_h(scheme, scheme, 16) / delta_h(scheme, scheme, 32)).abs().log2();
            assert!((found - order).abs() < 0.1, "{scheme:?}: order {found}");
        }
    }

    #[test]
    fn drifts_fill_the_trajectory() {
        let levels =
            [Level { scheme: Scheme::Omelyan4, steps: 3 }, Level { scheme: Scheme::ForceGradient, steps: 2 }];
        let moves = plan(&levels, 1.5);
        let time: f64 = moves.iter().map(|m| if let Move::Drift { eps } = m { *eps } else { 0.0 }).sum();
        assert!((time - 1.5).abs() < 1e-13);
        for wanted in 0..2 {
            let weight: f64 = moves
                .iter()
                .map(|m| match m {
                    Move::Kick { level, eps } | Move::GradientKick { level, eps, .. } if *level == wanted => {
                        *eps
                    }
                    _ => 0.0,
                })
                .sum();
            assert!((weight - 1.5).abs() < 1e-13, "level {wanted}: {weight}");
        }
    }
}
