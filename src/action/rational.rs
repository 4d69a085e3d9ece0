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
//! Without V, only the first line remains, with `chi = phi`. With n copies S is the sum of this over n pseudofermions, all
//! exponents divided by n: the determinant is a product of n equal roots (the same paper). S is linear in r, so a force can
//! be divided by the poles of r: dear solves of small poles outside, the greater part of the force, which is cheap, on a
//! level inside. A trajectory fails if the spectrum leaves the range of the functions (`powers`).

use super::function::Function;
use super::powers::{Powers, Wanted};
use super::{ActionError, Derivative, Fraction, PairSum};
use crate::field::{Dagger, FieldError, ODD, RandomAddress, Spinor};
use crate::math::{ExactSum, Rational, RationalError};
use crate::quark::{Quark, combine};
use crate::solver::{Bounds, MultiInfo};

/// Parameters of the functions.
#[derive(Clone, Debug, PartialEq)]
pub struct RationalPower {
    /// The number of pseudofermions, each with all exponents divided by it; at least 1.
    pub copies: u32,
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
    /// The greatest poles of the force, if they are a part of their own.
    pub inner: Option<InnerPoles>,
}

/// The greatest poles of a force's function, which are cheap to solve for and make most of the force: a part of the
/// force with a level of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct InnerPoles {
    /// The part's name in the levels.
    pub name: String,
    /// Their number; at least 1.
    pub poles: usize,
}

impl InnerPoles {
    /// The function of the other poles and that of these.
    ///
    /// # Errors
    /// No other pole is left.
    pub fn split(&self, force: &Rational) -> Result<[Rational; 2], RationalError> {
        let all = force.poles.len();
        match all.checked_sub(self.poles) {
            Some(least @ 1..) => Ok(force.split(least)),
            _ => Err(RationalError::Inner { wanted: self.poles, all }),
        }
    }
}

/// The heavy quark's name in messages.
const HEAVY: &str = "heavy quark";

/// The functions of both quarks. Their fields, up to three per pole, exist only while they are used.
pub(super) struct Rationals {
    copies: u32,
    light: Powers,
    heavy: Option<Powers>,
    /// The light quark's function of the force, divided.
    parts: Option<[Rational; 2]>,
}

impl Rationals {
    /// Makes the functions.
    ///
    /// # Errors
    /// A rational function does not exist.
    ///
    /// # Panics
    /// `copies` or `check_every` is 0, or the heavy quark has no range.
    pub(super) fn new(power: &RationalPower, ratio: bool) -> Result<Self, RationalError> {
        assert!(power.copies > 0, "at least one pseudofermion");
        let powers = |heat_bath, action, range| {
            let &RationalPower { copies, action_error, force_error, check_every, .. } = power;
            let [heat_bath, action] = [heat_bath, action].map(|(p, q)| (p, q * copies));
            Powers::new(Wanted { heat_bath, action, range, action_error, force_error, check_every })
        };
        let heavy = |range| powers((-1, 4), (1, 4), range);
        let range = ratio.then(|| power.heavy_range.expect("a range for the heavy quark"));
        let light = powers((1, 4), (-1, 2), power.range)?;
        let parts = power.inner.as_ref().map(|inner| inner.split(&light.force)).transpose()?;
        Ok(Self { copies: power.copies, light, heavy: range.map(heavy).transpose()?, parts })
    }

    /// The light quark's name in messages.
    fn light_name(&self) -> &'static str {
        if self.heavy.is_some() { "light quark" } else { "quark" }
    }
}

impl<O: Derivative> Function<O> for Rationals {
    fn flavours(&self) -> u8 {
        1
    }

    fn begin(&mut self, seed: u64, trajectory: u64) {
        let Self { light, heavy, .. } = self;
        [Some(light), heavy.as_mut()].into_iter().flatten().for_each(|powers| powers.begin(seed, trajectory));
    }

    fn draw(
        &mut self,
        quarks: &mut Fraction<O>,
        phi: &mut [Spinor],
        addresses: &[RandomAddress],
        residual: f64,
        first: bool,
    ) -> Result<ExactSum, ActionError> {
        let (light, name) = (&mut quarks.light, self.light_name());
        let mut weight = ExactSum::default();
        for (phi, &address) in phi.iter_mut().zip(addresses) {
            phi.set_random(ODD, 0.5f64.sqrt(), address)?;
            weight += phi.norm2()?;
        }
        let solved = light.apply_function(phi, &self.light.heat_bath, residual)?;
        self.light.check(light, name, (&solved[0].0.lanczos, residual), first)?;
        drop(solved);
        if let (Some(heavy), Some(powers)) = (&mut quarks.heavy, &mut self.heavy) {
            let solved = heavy.apply_function(phi, &powers.heat_bath, residual)?;
            powers.check(heavy, HEAVY, (&solved[0].0.lanczos, residual), first)?;
        }
        Ok(weight)
    }

    fn value(
        &mut self,
        quarks: &mut Fraction<O>,
        phi: &[Spinor],
        residual: f64,
        first: bool,
    ) -> Result<ExactSum, ActionError> {
        let (light, name) = (&mut quarks.light, self.light_name());
        let mut chi = copies_of(phi)?;
        if let (Some(heavy), Some(powers)) = (&mut quarks.heavy, &mut self.heavy) {
            let solved = heavy.apply_function(&mut chi, &powers.action, residual)?;
            powers.check(heavy, HEAVY, (&solved[0].0.lanczos, residual), first)?;
        }
        let mut psi = copies_of(&chi)?;
        let solved = light.apply_function(&mut psi, &self.light.action, residual)?;
        self.light.check(light, name, (&solved[0].0.lanczos, residual), first)?;
        let mut products = chi.iter().zip(&psi);
        Ok(products
            .try_fold(ExactSum::default(), |sum, (chi, psi)| Ok::<_, FieldError>(sum + chi.real_dot(psi)?))?)
    }

    fn add_pairs(
        &mut self,
        Fraction { light, heavy, .. }: &mut Fraction<O>,
        phi: &[Spinor],
        sum: &mut PairSum,
        residual: f64,
        part: Option<usize>,
    ) -> Result<usize, ActionError> {
        let force = match (part, &self.parts) {
            (Some(part), Some(parts)) => &parts[part],
            _ => &self.light.force,
        };
        let (Some(heavy), Some(powers)) = (heavy, &self.heavy) else {
            let solved = light.solve_shifted(phi, &force.poles, residual)?;
            solved.iter().try_for_each(|(_, x)| add_squares(sum, light, x, &force.residues))?;
            return Ok(iterations(&solved));
        };
        let mut chi = copies_of(phi)?;
        let z = heavy.apply_function(&mut chi, &powers.force, residual)?;
        let mut x = light.solve_shifted(&chi, &force.poles, residual)?;
        let mut psi = chi;
        psi.iter_mut().zip(&x).try_for_each(|(psi, (_, x))| combine(psi, x, force))?;
        // Those of the first are added before the heavy quark's solves, which need their memory; sums keep their order.
        add_squares(sum, light, &x[0].1, &force.residues)?;
        x[0].1.clear();
        let y = heavy.solve_shifted(&psi, &powers.force.poles, residual)?;
        drop(psi);
        let (mut image_y, mut image_z) = (heavy.spinor()?, heavy.spinor()?);
        for (((_, x), (_, y)), (_, z)) in x.iter().zip(&y).zip(&z) {
            add_squares(sum, light, x, &force.residues)?;
            for ((y, z), &residue) in y.iter().zip(z).zip(&powers.force.residues) {
                heavy.apply(&mut image_y, y, Dagger::No)?;
                sum.add_pair(heavy, z, &image_y, residue)?;
                heavy.apply(&mut image_z, z, Dagger::No)?;
                sum.add_pair(heavy, y, &image_z, residue)?;
            }
        }
        Ok(iterations(&x) + iterations(&y) + iterations(&z))
    }

    fn measured(&self) -> [Option<Bounds>; 2] {
        [self.light.measured(), self.heavy.as_ref().and_then(Powers::measured)]
    }

    fn report(&self) -> String {
        let Self { copies, light, heavy, .. } = self;
        let copies = if *copies == 1 { String::new() } else { format!("; {copies} pseudofermions") };
        match heavy {
            None => format!("{copies}; {light}"),
            Some(heavy) => format!("{copies}; light: {light}; heavy: {heavy}"),
        }
    }
}

fn copies_of(fields: &[Spinor]) -> Result<Vec<Spinor>, FieldError> {
    let copy = |field: &Spinor| {
        let mut copy = Spinor::of(field.domain(), field.kind(), field.precision(), 1)?;
        copy.copy_from(field)?;
        Ok(copy)
    };
    fields.iter().map(copy).collect()
}

fn iterations(solved: &[(MultiInfo, Vec<Spinor>)]) -> usize {
    solved.iter().map(|(info, _)| info.total.iterations).sum()
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
