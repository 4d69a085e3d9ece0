//! Two degenerate flavours, for one quark or a ratio:
//!
//! ```text
//! S = phi^dag (W^dag W)^-1 phi,   S = phi^dag V (W^dag W)^-1 V^dag phi.
//! ```
//!
//! Heat bath: `phi = W^dag eta`; with V, `phi = V (V^dag V)^-1 W^dag eta`, so that `V^dag phi = W^dag eta`. With
//! `X = (W^dag W)^-1 V^dag phi` the change under dU is `-2 Re (W X)^dag dW X + 2 Re phi^dag dV X`.

use super::function::Function;
use super::{ActionError, Derivative, Fraction, PairSum};
use crate::field::{Dagger, FieldError, ODD, RandomAddress, Spinor};
use crate::math::ExactSum;
use crate::quark::QuarkOperator;

/// f(x) = 1/x
pub(super) struct TwoFlavours;

/// `V^dag phi`; without V, `room` is not used.
fn source<'a, O: QuarkOperator>(
    room: &'a mut Option<Spinor>,
    quarks: &mut Fraction<O>,
    phi: &'a Spinor,
) -> Result<&'a Spinor, FieldError> {
    let Some(heavy) = &mut quarks.heavy else { return Ok(phi) };
    let source = room.insert(heavy.spinor()?);
    heavy.apply(source, phi, Dagger::Yes)?;
    Ok(source)
}

impl<O: Derivative> Function<O> for TwoFlavours {
    fn flavours(&self) -> u8 {
        2
    }

    fn draw(
        &mut self,
        Fraction { light, heavy, .. }: &mut Fraction<O>,
        phi: &mut [Spinor],
        addresses: &[RandomAddress],
        residual: f64,
        _first: bool,
    ) -> Result<ExactSum, ActionError> {
        let (mut weight, mut eta) = (ExactSum::default(), light.spinor()?);
        for (phi, &address) in phi.iter_mut().zip(addresses) {
            eta.set_random(ODD, 0.5f64.sqrt(), address)?;
            weight += eta.norm2()?;
            light.apply(phi, &eta, Dagger::Yes)?;
            if let Some(heavy) = heavy {
                heavy.solve(&mut eta, phi, residual)?;
                heavy.apply(phi, &eta, Dagger::No)?;
            }
        }
        Ok(weight)
    }

    fn value(
        &mut self,
        quarks: &mut Fraction<O>,
        phi: &[Spinor],
        residual: f64,
        _first: bool,
    ) -> Result<ExactSum, ActionError> {
        let (mut sum, mut room, mut x) = (ExactSum::default(), None, quarks.light.spinor()?);
        for phi in phi {
            let source = source(&mut room, quarks, phi)?;
            quarks.light.solve(&mut x, source, residual)?;
            sum += source.real_dot(&x)?;
        }
        Ok(sum)
    }

    fn add_pairs(
        &mut self,
        quarks: &mut Fraction<O>,
        phi: &[Spinor],
        sum: &mut PairSum,
        residual: f64,
        _part: Option<usize>,
    ) -> Result<usize, ActionError> {
        let mut iterations = 0;
        for phi in phi {
            let (mut room, mut x) = (None, quarks.light.spinor()?);
            let source = source(&mut room, quarks, phi)?;
            iterations += quarks.light.solve_guessed(&mut x, source, residual)?.iterations;
            drop(room);
            sum.add_square(&mut quarks.light, &x, 1.0)?;
            if let Some(heavy) = &mut quarks.heavy {
                sum.add_pair(heavy, &x, phi, -1.0)?;
            }
        }
        Ok(iterations)
    }
}
