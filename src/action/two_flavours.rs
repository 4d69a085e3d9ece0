//! Two degenerate flavours, for one quark or a ratio:
//!
//! ```text
//! S = phi^dag (W^dag W)^-1 phi,   S = phi^dag V (W^dag W)^-1 V^dag phi.
//! ```
//!
//! Heat bath: `phi = W^dag eta`; with V, `phi = V (V^dag V)^-1 W^dag eta`, so that `V^dag phi = W^dag eta`. With
//! `X = (W^dag W)^-1 V^dag phi` the change under dU is `-2 Re (W X)^dag dW X + 2 Re phi^dag dV X`.

use super::determinant::Function;
use super::{ActionError, Derivative, Fraction, PairSum};
use crate::field::{Dagger, FieldError, ODD, RandomAddress, Spinor};
use crate::math::ExactSum;
use crate::quark::QuarkOperator;

/// f(x) = 1/x, with its fields.
pub(super) struct TwoFlavours {
    /// `V^dag phi`, if there is a V.
    source: Option<Spinor>,
    x: Spinor,
}

impl TwoFlavours {
    pub(super) fn new<O: QuarkOperator>(quarks: &Fraction<O>) -> Result<Self, FieldError> {
        let source = quarks.heavy.as_ref().map(|heavy| heavy.spinor()).transpose()?;
        Ok(Self { source, x: quarks.light.spinor()? })
    }
}

/// `V^dag phi`
fn source<'a, O: QuarkOperator>(
    room: &'a mut Option<Spinor>,
    quarks: &mut Fraction<O>,
    phi: &'a Spinor,
) -> Result<&'a Spinor, FieldError> {
    match (&mut quarks.heavy, room) {
        (Some(heavy), Some(source)) => {
            heavy.apply(source, phi, Dagger::Yes)?;
            Ok(source)
        }
        _ => Ok(phi),
    }
}

impl<O: Derivative> Function<O> for TwoFlavours {
    fn flavours(&self) -> u8 {
        2
    }

    fn draw(
        &mut self,
        Fraction { light, heavy, .. }: &mut Fraction<O>,
        phi: &mut Spinor,
        address: RandomAddress,
        residual: f64,
    ) -> Result<ExactSum, ActionError> {
        let eta = &mut self.x;
        eta.set_random(ODD, 0.5f64.sqrt(), address)?;
        let weight = eta.norm2()?;
        match (heavy, &mut self.source) {
            (Some(heavy), Some(source)) => {
                light.apply(source, eta, Dagger::Yes)?;
                heavy.solve(&mut self.x, source, residual)?;
                heavy.apply(phi, &self.x, Dagger::No)?;
            }
            _ => light.apply(phi, eta, Dagger::Yes)?,
        }
        Ok(weight)
    }

    fn value(
        &mut self,
        quarks: &mut Fraction<O>,
        phi: &Spinor,
        residual: f64,
    ) -> Result<ExactSum, ActionError> {
        let source = source(&mut self.source, quarks, phi)?;
        quarks.light.solve(&mut self.x, source, residual)?;
        Ok(source.real_dot(&self.x)?)
    }

    fn add_pairs(
        &mut self,
        quarks: &mut Fraction<O>,
        phi: &Spinor,
        sum: &mut PairSum,
        residual: f64,
    ) -> Result<usize, ActionError> {
        let source = source(&mut self.source, quarks, phi)?;
        let info = quarks.light.solve_guessed(&mut self.x, source, residual)?;
        sum.add_square(&mut quarks.light, &self.x, 1.0)?;
        if let Some(heavy) = &mut quarks.heavy {
            sum.add_pair(heavy, &self.x, phi, -1.0)?;
        }
        Ok(info.iterations)
    }
}
