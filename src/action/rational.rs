//! One flavour by rational functions (RHMC), for one quark or a ratio:
//!
//! ```text
//! S = phi^dag r(W^dag W) phi,   S = phi^dag R r(W^dag W) R phi,   r(x) ~ x^(-1/2),   R = R(V^dag V) ~ (V^dag V)^(1/4)
//! ```
//!
//! (Clark, Kennedy, hep-lat/0608015; Grid's OneFlavourEvenOddRatioRational). Heat bath: `phi = h(W^dag W) eta`; with V,
//! `phi = g(V^dag V) h(W^dag W) eta`, `g(x) ~ x^(-1/4)`, `h(x) ~ x^(1/4)`.
//!
//! Let a_i, p_i be the residues and poles of r, and b_j, q_j those of R; `chi = R phi`, `psi = r chi`. The change under
//! dU is
//!
//! ```text
//! sum_i a_i { -2 Re (W X_i)^dag dW X_i }                                        X_i = (W^dag W + p_i)^-1 chi
//! + sum_j b_j { -2 Re (V Y_j)^dag dV Z_j - 2 Re (V Z_j)^dag dV Y_j },   Y_j, Z_j = (V^dag V + q_j)^-1 {psi, phi},
//! ```
//!
//! Without V, only the first line remains, with `chi = phi`. A trajectory fails if the spectrum leaves the range of the
//! functions (`powers`).

use super::determinant::Function;
use super::powers::{Powers, Wanted};
use super::{ActionError, Derivative, Fraction, PairSum};
use crate::field::{Dagger, FieldError, ODD, RandomAddress, Spinor};
use crate::math::{ExactSum, RationalError};
use crate::quark::{Quark, QuarkOperator};
use crate::solver::Bounds;

/// Parameters of the functions.
#[derive(Clone, Debug, PartialEq)]
pub struct RationalPower {
    /// The range of the spectrum of `W^dag W`.
    pub range: [f64; 2],
    /// The range of the spectrum of `V^dag V`, if there is a V.
    pub heavy_range: Option<[f64; 2]>,
    /// Relative error of the functions on the ranges, for heat bath and action.
    pub action_error: f64,
    /// Relative error of the functions on the ranges, for the force.
    pub force_error: f64,
    /// The number of trajectories between measurements of the spectra; at least 1.
    pub check_every: u64,
}

/// The functions of both quarks.
pub(super) struct Rationals {
    light: Powers,
    heavy: Option<Powers>,
}

/// The functions with their fields.
pub(super) struct WithFields {
    powers: Rationals,
    /// eta, or R phi.
    chi: Spinor,
    psi: Spinor,
    /// Solutions X or Y for all shifts.
    x: Vec<Spinor>,
    heavy: Option<HeavyFields>,
}

/// Further fields for a heavy quark.
struct HeavyFields {
    z: Vec<Spinor>,
    /// V Y and V Z
    images: [Spinor; 2],
}

impl Rationals {
    /// Makes the functions.
    ///
    /// # Errors
    /// A rational function does not exist.
    ///
    /// # Panics
    /// `check_every` is 0, or the heavy quark has no range.
    pub(super) fn new(power: &RationalPower, ratio: bool) -> Result<Self, RationalError> {
        let powers = |heat_bath, action, range| {
            let &RationalPower { action_error, force_error, check_every, .. } = power;
            Powers::new(Wanted { heat_bath, action, range, action_error, force_error, check_every })
        };
        let heavy = |range| powers((-1, 4), (1, 4), range);
        let range = ratio.then(|| power.heavy_range.expect("a range for the heavy quark"));
        Ok(Self { light: powers((1, 4), (-1, 2), power.range)?, heavy: range.map(heavy).transpose()? })
    }

    /// The number of poles of the function with the most poles.
    pub(super) fn poles(&self) -> usize {
        self.heavy.as_ref().map_or(0, Powers::poles).max(self.light.poles())
    }

    /// Allocates the fields.
    pub(super) fn with_fields<O: QuarkOperator>(
        self,
        quarks: &Fraction<O>,
    ) -> Result<WithFields, FieldError> {
        let spinor = || quarks.light.spinor();
        let several = |count| (0..count).map(|_| spinor()).collect::<Result<Vec<_>, _>>();
        let heavy = self.heavy.as_ref().map(|heavy| {
            Ok::<_, FieldError>(HeavyFields {
                z: several(heavy.force.poles.len())?,
                images: [spinor()?, spinor()?],
            })
        });
        Ok(WithFields {
            chi: spinor()?,
            psi: spinor()?,
            x: several(self.poles())?,
            heavy: heavy.transpose()?,
            powers: self,
        })
    }

    /// Measures the spectra, if this trajectory does.
    fn check<O: QuarkOperator>(&mut self, quarks: &mut Fraction<O>) -> Result<(), ActionError> {
        match (&mut quarks.heavy, &mut self.heavy) {
            (Some(heavy), Some(powers)) => {
                self.light.check(&mut quarks.light, "light quark")?;
                powers.check(heavy, "heavy quark")
            }
            _ => self.light.check(&mut quarks.light, "quark"),
        }
    }
}

impl<O: Derivative> Function<O> for WithFields {
    fn flavours(&self) -> u8 {
        1
    }

    fn begin(&mut self, seed: u64, trajectory: u64) {
        let Rationals { light, heavy } = &mut self.powers;
        [Some(light), heavy.as_mut()].into_iter().flatten().for_each(|powers| powers.begin(seed, trajectory));
    }

    fn draw(
        &mut self,
        quarks: &mut Fraction<O>,
        phi: &mut Spinor,
        address: RandomAddress,
        residual: f64,
    ) -> Result<ExactSum, ActionError> {
        self.powers.check(quarks)?;
        let Self { powers, chi: eta, psi: source, x, .. } = self;
        eta.set_random(ODD, 0.5f64.sqrt(), address)?;
        let light = &powers.light.heat_bath;
        match (&mut quarks.heavy, &powers.heavy) {
            (Some(heavy), Some(powers)) => {
                quarks.light.apply_function(source, eta, light, x, residual)?;
                heavy.apply_function(phi, source, &powers.heat_bath, x, residual)?;
            }
            _ => {
                quarks.light.apply_function(phi, eta, light, x, residual)?;
            }
        }
        Ok(eta.norm2()?)
    }

    fn value(
        &mut self,
        quarks: &mut Fraction<O>,
        phi: &Spinor,
        residual: f64,
    ) -> Result<ExactSum, ActionError> {
        self.powers.check(quarks)?;
        let Self { powers, chi, psi, x, .. } = self;
        let chi = match (&mut quarks.heavy, &powers.heavy) {
            (Some(heavy), Some(powers)) => {
                heavy.apply_function(chi, phi, &powers.action, x, residual)?;
                &*chi
            }
            _ => phi,
        };
        quarks.light.apply_function(psi, chi, &powers.light.action, x, residual)?;
        Ok(chi.real_dot(psi)?)
    }

    fn add_pairs(
        &mut self,
        Fraction { light, heavy, .. }: &mut Fraction<O>,
        phi: &Spinor,
        sum: &mut PairSum,
        residual: f64,
    ) -> Result<usize, ActionError> {
        let Self { powers, chi, psi, x, heavy: fields } = self;
        let force = &powers.light.force;
        let (Some(heavy), Some(powers), Some(fields)) = (heavy, &powers.heavy, fields) else {
            let x = &mut x[..force.poles.len()];
            let info = light.solve_shifted(x, phi, &force.poles, residual)?;
            add_squares(sum, light, x, &force.residues)?;
            return Ok(info.total.iterations);
        };
        let HeavyFields { z, images: [image_y, image_z] } = fields;
        let mut iterations = heavy.apply_function(chi, phi, &powers.force, z, residual)?.iterations;
        iterations += light.apply_function(psi, chi, force, x, residual)?.iterations;
        add_squares(sum, light, x, &force.residues)?;
        let y = &mut x[..z.len()];
        iterations += heavy.solve_shifted(y, psi, &powers.force.poles, residual)?.total.iterations;
        for ((y, z), &residue) in y.iter().zip(z.iter()).zip(&powers.force.residues) {
            heavy.apply(image_y, y, Dagger::No)?;
            sum.add_pair(heavy, z, image_y, residue)?;
            heavy.apply(image_z, z, Dagger::No)?;
            sum.add_pair(heavy, y, image_z, residue)?;
        }
        Ok(iterations)
    }

    fn measured(&self) -> [Option<Bounds>; 2] {
        [self.powers.light.measured(), self.powers.heavy.as_ref().and_then(Powers::measured)]
    }

    fn report(&self) -> String {
        match &self.powers {
            Rationals { light, heavy: None } => format!("; {light}"),
            Rationals { light, heavy: Some(heavy) } => format!("; light: {light}; heavy: {heavy}"),
        }
    }
}

/// Adds `sum_i a_i { -2 Re (W X_i)^dag dW X_i }`.
fn add_squares<O: Derivative>(
    sum: &mut PairSum,
    quark: &mut Quark<O>,
    x: &[Spinor],
    residues: &[f64],
) -> Result<(), FieldError> {
    x.iter().zip(residues).try_for_each(|(x, &residue)| sum.add_square(quark, x, residue))
}
