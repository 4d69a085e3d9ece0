//! Domain-wall quarks: the propagator from wall to wall of the fifth dimension, and that to its midpoint.
//!
//! Place k lies between the slices k - 1 and k of 0 .. N_s - 1; place 0, between N_s - 1 and 0, is the walls. With
//! `D_- = 1 - sigma D_w`, from a source b on the walls,
//!
//! ```text
//! q_k = P_- x_k + P_+ x_{k-1},   D(m) x = D_- (P_+ b on slice 0, P_- b on slice N_s - 1).
//! ```
//!
//! q_0 is the quark's `M^-1 b` (Blum et al., hep-lat/0007038; Moebius quarks: Brower, Neff, Orginos, arXiv:1206.5214). With
//! q_k of the midpoint from a point source, and q' of the weights in reversed order,
//!
//! ```text
//! <J5q(x) P(0)> = Re tr q'_{N_s-k}(x)^dag q_k(x),
//! sum_x <J5q(x) P(0)> + m sum_x Re tr q'_0(x)^dag q_0(x) = Re tr q_0(0).
//! ```
//!
//! Both are exact on every configuration: `gamma_5 R A(m)^dag R gamma_5 = A'(m)` where `A = D_-^-1 D` and R reflects the slices; the
//! second is the Ward identity of opposite phases before and from place k. q'_0 = q_0 where omega_s - sigma_s is the same for all s,
//! as it is for all weights of an input.
//!
//! D_w acts on no source: where `(T^-1 + H) z = omega^-1/2 (1 + (1 - L) Y^-1 sigma) b_5` (`src/operator/domain_wall.rs`),
//! `x = Y^-1 omega^1/2 (z - omega^-1/2 sigma b_5)`.

use super::{DomainWall, DomainWallParams, SliceVector};
use crate::device::Precision;
use crate::field::{Domain, EVEN, FieldError, Kind, MatrixField, ODD, Spinor};
use crate::math::{SliceMatrix, WallWeights};
use crate::measure::{Fields, MeasureError, Quark, fields};
use crate::solver::{Cg, Params};
use std::sync::Arc;

/// Residuals in single precision are trusted as long as they fall by this.
const DELTA: f64 = 1e-3;

/// Domain-wall quarks: `M^-1` is the propagator from wall to wall.
pub struct WallQuark {
    propagator: Propagator,
    /// Of the weights in reversed order, where that is another one.
    reversed: Option<Propagator>,
}

impl WallQuark {
    /// The quark on `links`. `wanted`: of `C C^dag y = b` of the even-odd form.
    ///
    /// # Errors
    /// No room.
    pub fn new(links: &MatrixField, params: &DomainWallParams, wanted: Params) -> Result<Self, MeasureError> {
        let reversed = |w: &[f64]| w.iter().rev().copied().collect();
        let DomainWallParams { weights: WallWeights { omega, sigma }, .. } = params;
        let weights = WallWeights { omega: reversed(omega), sigma: reversed(sigma) };
        let reversed = (!params.weights.is_symmetric())
            .then(|| Propagator::new(links, &DomainWallParams { weights, ..params.clone() }, wanted))
            .transpose()?;
        Ok(Self { propagator: Propagator::new(links, params, wanted)?, reversed })
    }
}

impl Quark for WallQuark {
    fn domain(&self) -> &Arc<Domain> {
        self.propagator.solution[EVEN].domain()
    }

    fn kind(&self) -> Kind {
        Kind::Dirac
    }

    fn together(&self) -> usize {
        1
    }

    fn solve(&mut self, x: &mut Fields, b: &Fields) -> Result<(), MeasureError> {
        for n in 0..b[EVEN].len() {
            self.propagator.solve([&b[EVEN][n], &b[ODD][n]])?;
            for parity in [EVEN, ODD] {
                self.propagator.walls.sum(&mut x[parity][n], &self.propagator.solution[parity])?;
            }
        }
        Ok(())
    }

    fn midpoint(&mut self, b: &Fields) -> Result<Option<[Fields; 2]>, MeasureError> {
        let domain = Arc::clone(self.domain());
        let mut found = [fields(&domain, Kind::Dirac, 1)?, fields(&domain, Kind::Dirac, 1)?];
        if let Some(reversed) = &mut self.reversed {
            reversed.solve([&b[EVEN][0], &b[ODD][0]])?;
        }
        let there = &self.propagator;
        let back = self.reversed.as_ref().unwrap_or(there);
        for parity in [EVEN, ODD] {
            there.midpoints[0].sum(&mut found[0][parity][0], &there.solution[parity])?;
            back.midpoints[1].sum(&mut found[1][parity][0], &back.solution[parity])?;
        }
        Ok(Some(found))
    }
}

/// Solves from the walls, in one order of the weights.
struct Propagator {
    operator: DomainWall,
    single: DomainWall,
    solver: Cg,
    wanted: Params,
    /// `omega^-1/2 (1 + (1 - L) Y^-1 sigma)` and `omega^-1/2 sigma` on the walls.
    source: SliceVector,
    excess: SliceVector,
    /// q_0, and q_k and q_{N_s-k} of k = N_s / 2, rounded down, from `solution`.
    walls: SliceVector,
    midpoints: [SliceVector; 2],
    rhs: [Spinor; 2],
    /// `omega^-1/2 Y x` of the last source.
    solution: [Spinor; 2],
}

impl Propagator {
    fn new(links: &MatrixField, params: &DomainWallParams, wanted: Params) -> Result<Self, FieldError> {
        let domain = links.domain();
        let operator = |precision| {
            let mut operator = DomainWall::several(domain, precision, 18, 1, params)?;
            operator.update(links)?;
            Ok::<_, FieldError>(operator)
        };
        let slices = params.slices();
        let spinor = || Spinor::of(domain, params.kind(), Precision::Double, 1);
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
        Ok(Self {
            operator: operator(Precision::Double)?,
            single: operator(Precision::Single)?,
            solver: Cg::new(domain, params.kind(), Precision::Single, DELTA)?,
            wanted,
            source: numbers(source)?,
            excess: numbers(excess)?,
            walls: place(0)?,
            midpoints: [place(slices / 2)?, place(slices - slices / 2)?],
            rhs: [spinor()?, spinor()?],
            solution: [spinor()?, spinor()?],
        })
    }

    /// From a source on the walls to `solution`.
    fn solve(&mut self, b: [&Spinor; 2]) -> Result<(), MeasureError> {
        let Self { operator, single, solver, source, excess, rhs, solution, .. } = self;
        let [z_even, z_odd] = solution;
        let [b_even, b_odd] = rhs;
        source.spread(b_even, b[EVEN])?;
        source.spread(b_odd, b[ODD])?;
        // C z_o = the right-hand side, z_o = C^dag y; then even sites.
        operator.prepare(z_even, b_even, b_odd)?;
        b_odd.set_zero()?;
        solver.solve(operator, Some(single), b_odd, z_even, self.wanted)?;
        operator.schur(z_odd, b_odd, true)?;
        operator.finish(z_even, z_odd, b_even)?;
        for parity in [EVEN, ODD] {
            excess.spread(&mut rhs[parity], b[parity])?;
            solution[parity].axpy(-1.0, &rhs[parity])?;
        }
        Ok(())
    }
}

/// 1 on one slice.
fn unit(slices: usize, at: usize) -> Vec<f64> {
    (0..slices).map(|s| if s == at { 1.0 } else { 0.0 }).collect()
}
