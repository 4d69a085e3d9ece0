//! Domain-wall quarks: propagators from the walls of the fifth dimension to the walls and to the midpoint.
//!
//! Place k lies between the slices k - 1 and k of 0 .. N_s - 1. Place 0, between N_s - 1 and 0, is the walls. With
//! `D_- = 1 - sigma D_w`, a source b on the walls gives
//!
//! ```text
//! q_k = P_- x_k + P_+ x_{k-1},   D_5(m) x = D_- (P_+ b on slice 0, P_- b on slice N_s - 1).
//! ```
//!
//! q_0 is the quark's `M^-1 b` (Blum et al., hep-lat/0007038; Moebius quarks: Brower, Neff, Orginos, arXiv:1206.5214).
//! Let q_k be at the midpoint for a point source, and q' belong to the weights in reversed order. Then
//!
//! ```text
//! <J5q(x) P(0)> = Re tr q'_{N_s-k}(x)^dag q_k(x),
//! sum_x <J5q(x) P(0)> + m sum_x Re tr q'_0(x)^dag q_0(x) = Re tr q_0(0).
//! ```
//!
//! Both are exact on every configuration: `gamma_5 R B(m)^dag R gamma_5 = B'(m)`, where `B = D_-^-1 D_5` and R reflects
//! the slices. The second is the Ward identity for opposite phases before and after place k. q'_0 = q_0 if omega_s -
//! sigma_s does not depend on s, as for all weights of an input.
//!
//! D_w is not applied to the source: let `K z = omega^-1/2 (1 + (1 - L) Y^-1 sigma) b_5` (`operator.rs`), then
//! `x = Y^-1 omega^1/2 (z - omega^-1/2 sigma b_5)`.

use super::{DomainWall, DomainWallParams};
use crate::field::{Domain, EVEN, Kind, MatrixField, ODD};
use crate::math::{SliceMatrix, WallWeights};
use crate::operator::SliceVector;
use crate::quark::{Fields, FullInverse, Inverse, QuarkError, QuarkParams, fields};
use crate::solver::Info;
use std::sync::Arc;

/// Sources solved at once. More would gain little, since the slices of one source share links already.
const TOGETHER: usize = 2;

/// Domain-wall quarks: `M^-1` is the propagator from wall to wall.
pub struct WallQuark {
    propagator: Propagator,
    /// The propagator with the weights in reversed order, if these are different.
    reversed: Option<Propagator>,
}

impl WallQuark {
    /// The quark on `links`. `residual` is that of the even-odd system `C C^dag y = b`.
    pub fn new(
        links: &MatrixField,
        params: &QuarkParams<DomainWallParams>,
        residual: f64,
    ) -> Result<Self, QuarkError> {
        let reversed = |w: &[f64]| w.iter().rev().copied().collect();
        let WallWeights { omega, sigma } = &params.operator.weights;
        let weights = WallWeights { omega: reversed(omega), sigma: reversed(sigma) };
        let operator = DomainWallParams { weights, ..params.operator.clone() };
        let reversed = (!params.operator.weights.is_symmetric())
            .then(|| Propagator::new(links, &QuarkParams { operator, ..params.clone() }, residual))
            .transpose()?;
        Ok(Self { propagator: Propagator::new(links, params, residual)?, reversed })
    }
}

impl Inverse for WallQuark {
    fn domain(&self) -> &Arc<Domain> {
        self.propagator.inverse.domain()
    }

    fn kind(&self) -> Kind {
        Kind::Dirac
    }

    fn together(&self) -> usize {
        self.propagator.inverse.together()
    }

    fn solve(&mut self, x: &mut Fields, b: &Fields) -> Result<Info, QuarkError> {
        let info = self.propagator.solve(b)?;
        self.propagator.at(&self.propagator.walls, x)?;
        Ok(info)
    }

    fn midpoint(&mut self, b: &Fields) -> Result<Option<[Fields; 2]>, QuarkError> {
        let count = b[EVEN].len();
        let found = || fields(self.domain(), Kind::Dirac, count);
        let [mut x, mut y] = [found()?, found()?];
        if let Some(reversed) = &mut self.reversed {
            reversed.solve(b)?;
        }
        let there = &self.propagator;
        let back = self.reversed.as_ref().unwrap_or(there);
        there.at(&there.midpoints[0], &mut x)?;
        back.at(&back.midpoints[1], &mut y)?;
        Ok(Some([x, y]))
    }
}

/// The propagator from the walls, for one order of the weights.
struct Propagator {
    inverse: FullInverse<DomainWall>,
    /// `omega^-1/2 (1 + (1 - L) Y^-1 sigma)` and `omega^-1/2 sigma` on the walls.
    source: SliceVector,
    excess: SliceVector,
    /// They give q_0, and q_k and q_{N_s-k} for k = N_s / 2 (rounded down), from `solution`.
    walls: SliceVector,
    midpoints: [SliceVector; 2],
    rhs: Fields,
    /// `omega^-1/2 Y x` for the last sources.
    solution: Fields,
}

impl Propagator {
    fn new(
        links: &MatrixField,
        quark: &QuarkParams<DomainWallParams>,
        residual: f64,
    ) -> Result<Self, QuarkError> {
        let domain = links.domain();
        let inverse = FullInverse::on(links, quark, TOGETHER, residual)?;
        let (params, slices) = (&quark.operator, quark.operator.slices());
        let numbers = |[upper, lower]: [Vec<f64>; 2]| SliceVector::new(domain, [&upper, &lower]);
        let times = |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a * b).collect() };

        let below = params.omega(-0.5);
        let walls = [unit(slices, 0), unit(slices, slices - 1)];
        let excess = walls.each_ref().map(|wall| times(&times(&below, &params.weights.sigma), wall));
        let coupling = params.coupling();
        let source = [0, 1].map(|chirality| {
            let coupled = coupling[chirality].apply(&excess[chirality]);
            times(&below, &walls[chirality])
                .iter()
                .zip(&coupled)
                .map(|(wall, coupled)| wall + coupled)
                .collect()
        });
        let place = |k: usize| {
            let [upper, lower] = params.to_quark().map(SliceMatrix::transposed);
            numbers([upper.apply(&unit(slices, (k + slices - 1) % slices)), lower.apply(&unit(slices, k))])
        };
        let several = || fields(domain, params.kind(), inverse.together());
        let (rhs, solution) = (several()?, several()?);
        Ok(Self {
            inverse,
            source: numbers(source)?,
            excess: numbers(excess)?,
            walls: place(0)?,
            midpoints: [place(slices / 2)?, place(slices - slices / 2)?],
            rhs,
            solution,
        })
    }

    /// Solves for sources on the walls; the result is `solution`.
    fn solve(&mut self, b: &Fields) -> Result<Info, QuarkError> {
        let Self { inverse, source, excess, rhs, solution, .. } = self;
        for parity in [EVEN, ODD] {
            b[parity].iter().zip(&mut rhs[parity]).try_for_each(|(b, rhs)| source.spread(rhs, b))?;
        }
        let count = b[EVEN].len();
        let info = inverse.solve_some(solution, rhs, count)?;
        for parity in [EVEN, ODD] {
            for ((b, rhs), solution) in b[parity].iter().zip(&mut rhs[parity]).zip(&mut solution[parity]) {
                excess.spread(rhs, b)?;
                solution.axpy(-1.0, rhs)?;
            }
        }
        Ok(info)
    }

    /// The last solution at a place of the fifth dimension.
    fn at(&self, place: &SliceVector, x: &mut Fields) -> Result<(), QuarkError> {
        for parity in [EVEN, ODD] {
            x[parity].iter_mut().zip(&self.solution[parity]).try_for_each(|(x, z)| place.sum(x, z))?;
        }
        Ok(())
    }
}

/// 1 on one slice.
fn unit(slices: usize, at: usize) -> Vec<f64> {
    (0..slices).map(|s| if s == at { 1.0 } else { 0.0 }).collect()
}
