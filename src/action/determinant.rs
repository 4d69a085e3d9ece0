//! A determinant of quarks, of a light quark (W) alone or over a heavy one (V):
//!
//! ```text
//! S = phi^dag V f(W^dag W) V^dag phi - n_f (log det A_W - log det A_V),
//! ```
//!
//! f(x) = 1/x for two degenerate flavours (n_f = 2), or a rational function close to x^(-1/2) for one flavour, or for an
//! operator on two flavours (n_f = 1). Without a heavy quark, V = 1; for one flavour, V stands for a rational function of it. A belongs to
//! Wilson-clover quarks: its determinant is over even sites, in the symmetric form over all sites. In a ratio the
//! determinants of A cancel if kappa and c_sw are equal.
//!
//! The weight is `|det W / det V|^n_f` times these determinants. A rational function may have several pseudofermions, each
//! with a root of f; the determinants of A count once. A chain of ratios in mass, twisted mass or both puts
//! the small forces of light quarks on a long step and the large forces of heavy quarks on a short one (Hasenbusch,
//! hep-lat/0107019; Hasenbusch, Jansen, hep-lat/0211042; Urbach et al., hep-lat/0506011). Details are in `two_flavours`
//! and `rational`.

use super::function::Function;
use super::rational::{RationalPower, Rationals};
use super::two_flavours::TwoFlavours;
use super::{
    Action, ActionError, Derivative, Fraction, PairForce, Pseudofermion, TermHeader, TermReport,
    pseudofermion,
};
use crate::field::{AlgebraField, Domain, FieldError, MatrixField, ODD, Spinor};
use crate::math::ExactSum;
use crate::quark::{OperatorParams, Quark, QuarkOperator, QuarkParams, TOGETHER};
use crate::solver::Bounds;
use std::sync::Arc;

/// The power of a determinant.
#[derive(Clone, Debug, PartialEq)]
pub enum Power {
    /// Two flavours: f(x) = 1/x.
    Inverse,
    /// One flavour: f(x) ~ x^(-1/2) by a rational function.
    Rational(RationalPower),
}

/// Parameters of a determinant.
#[derive(Clone, Debug, PartialEq)]
pub struct DeterminantParams<P> {
    /// Name and residuals.
    pub header: TermHeader,
    /// W, the quark of the numerator. With a rational power, solves start from zero for any `guess`.
    pub light: QuarkParams<P>,
    /// V, the quark of the denominator, if there is one.
    pub heavy: Option<QuarkParams<P>>,
    /// The number of flavours, and the function.
    pub power: Power,
}

/// A determinant, or a ratio of two.
///
/// ```
/// use hmc::prelude::*;
/// let domain = Domain::local([4; 4])?;
/// let schur = Schur::Symmetric;
/// let operator = WilsonParams { kappa: 0.12, mu: 0.0, twisted_mass: 0.0, c_sw: 1.0, clover: CloverForm::Linear, boundary: Boundary::ANTIPERIODIC, schur };
/// let solver = Settings::cg(Precision::Single, 1000);
/// let mut two_flavours = Determinant::<Wilson>::new(&domain, DeterminantParams {
///     header: TermHeader { name: "light".into(), number: 0, action_residual: 1e-10, force_residual: 1e-8 },
///     light: QuarkParams { operator, solver, link_reals: 12, guess: Past::NONE },
///     heavy: None,
///     power: Power::Inverse,
/// })?;
/// // The heat bath draws phi such that S = |W^-dag phi|^2 - log det is the weight that it was drawn with.
/// let links = MatrixField::hot(&domain, 1)?;
/// let drawn = two_flavours.refresh(&links, 1, 0)?.value();
/// let valued = two_flavours.value(&links)?.value();
/// assert!((valued / drawn - 1.0).abs() < 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Determinant<O: QuarkOperator> {
    header: TermHeader,
    quarks: Fraction<O>,
    function: Box<dyn Function<O>>,
    pairs: PairForce,
    /// More than one for several copies of a rational power.
    phi: Vec<Spinor>,
    /// The name of the part of the force with the greatest poles, if it has one.
    inner: Option<String>,
}

impl<O: Derivative> Determinant<O> {
    /// Makes the functions, and allocates the term.
    ///
    /// # Errors
    /// The rational function does not exist; memory runs out.
    ///
    /// # Panics
    /// The quarks have different Schur complements; a rational power lacks a range for a quark, or its `copies` or
    /// `check_every` is 0.
    pub fn new<P>(domain: &Arc<Domain>, params: DeterminantParams<P>) -> Result<Self, ActionError>
    where
        P: OperatorParams<Operator = O>,
        O: QuarkOperator<Params = P>,
    {
        let DeterminantParams { header, light, heavy, power } = params;
        let (copies, inner) = match &power {
            Power::Inverse => (1, None),
            Power::Rational(RationalPower { copies, inner, .. }) => {
                (*copies, inner.as_ref().map(|inner| inner.name.clone()))
            }
        };
        let (quarks, function): (_, Box<dyn Function<O>>) = match power {
            Power::Inverse => {
                let quark = |params: &QuarkParams<P>| Quark::new(domain, params);
                (Fraction::new(quark, &light, heavy.as_ref())?, Box::new(TwoFlavours))
            }
            Power::Rational(power) => {
                let rationals = Rationals::new(&power, heavy.is_some())?;
                let sides = TOGETHER.min(copies as usize);
                let quark = |params: &QuarkParams<P>| Quark::with_shifts(domain, params, sides);
                (Fraction::new(quark, &light, heavy.as_ref())?, Box::new(rationals))
            }
        };
        let phi = (0..copies).map(|_| quarks.light.spinor()).collect::<Result<_, _>>()?;
        Ok(Self { header, pairs: quarks.pairs()?, phi, quarks, function, inner })
    }

    /// Sets every pseudofermion, for tests, from reals as in `Spinor::read_host`.
    pub fn set_phi(&mut self, reals: &[f64]) -> Result<(), FieldError> {
        self.phi.iter_mut().try_for_each(|phi| phi.read_host(ODD, reals))
    }

    /// The ends of the spectra of W and V from the last measurement, for a rational power.
    pub fn measured(&self) -> [Option<Bounds>; 2] {
        self.function.measured()
    }

    /// `-n_f (log det A_W - log det A_V)` over the parities that belong to the action.
    fn log_det(&self) -> ExactSum {
        (0..self.function.flavours()).fold(ExactSum::default(), |sum, _| sum + self.quarks.log_det())
    }
}

impl<O: Derivative> Action for Determinant<O> {
    fn name(&self) -> &str {
        &self.header.name
    }

    fn refresh(&mut self, links: &MatrixField, seed: u64, trajectory: u64) -> Result<ExactSum, ActionError> {
        self.quarks.forget();
        self.quarks.update(links)?;
        self.function.begin(seed, trajectory);
        let mut sum = self.log_det();
        let residual = self.header.action_residual;
        let number = |number| pseudofermion(seed, trajectory, number);
        let addresses: Vec<_> = (self.header.number..).take(self.phi.len()).map(number).collect();
        let some = self.phi.chunks_mut(TOGETHER).zip(addresses.chunks(TOGETHER));
        for (n, (phi, addresses)) in some.enumerate() {
            sum += self.function.draw(&mut self.quarks, phi, addresses, residual, n == 0)?;
        }
        Ok(sum)
    }

    fn value(&mut self, links: &MatrixField) -> Result<ExactSum, ActionError> {
        self.quarks.update(links)?;
        let mut sum = self.log_det();
        for (n, phi) in self.phi.chunks(TOGETHER).enumerate() {
            let residual = self.header.action_residual;
            sum += self.function.value(&mut self.quarks, phi, residual, n == 0)?;
        }
        Ok(sum)
    }

    fn add_force(&mut self, links: &MatrixField, force: &mut AlgebraField) -> Result<usize, ActionError> {
        self.add_part(None, links, force)
    }

    fn parts(&self) -> Vec<&str> {
        self.inner.iter().flat_map(|inner| [self.header.name.as_str(), inner]).collect()
    }

    /// Determinants of A are large and cheap: they belong to the inner part.
    fn add_part(
        &mut self,
        part: Option<usize>,
        links: &MatrixField,
        force: &mut AlgebraField,
    ) -> Result<usize, ActionError> {
        self.quarks.update(links)?;
        let (quarks, residual) = (&mut self.quarks, self.header.force_residual);
        let mut sum = self.pairs.begin(links, force)?;
        let mut iterations = 0;
        for phi in self.phi.chunks(TOGETHER) {
            iterations += self.function.add_pairs(quarks, phi, &mut sum, residual, part)?;
        }
        if part != Some(0) {
            quarks.add_log_det(&mut sum, 0.5 * f64::from(self.function.flavours()))?;
        }
        sum.finish()?;
        Ok(iterations)
    }

    fn pseudofermions(&mut self) -> Vec<Pseudofermion<'_>> {
        self.quarks.forget();
        self.phi.iter_mut().map(Pseudofermion::odd).collect()
    }

    fn report(&self) -> Option<TermReport> {
        Some(TermReport::of(self.quarks.solves(), &self.function.report()))
    }
}
