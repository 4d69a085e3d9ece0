//! Wilson(-clover) quarks and their derivative. W is `Mhat`; with a twisted mass mu it is `Mhat + i mu gamma_5`
//! (symmetric form: `Mhat + i mu A_oo^-1 gamma_5`).
//!
//! In the asymmetric form `dW = dMhat`. Both spinors of a pair are extended to even sites by `A_ee^-1 D_eo / 2` (its
//! adjoint for y), and the full dM acts between them. In the symmetric form `W = A_oo^-1 B`, so
//! `dW = A_oo^-1 (dB - dA_oo W)`: y is replaced by `A_oo^-1 y`, and the clover term on odd sites acts on `x - W x`. The
//! twisted mass is constant in `Mhat + i mu gamma_5` and in B, and changes nothing here.

use super::{Schur, Wilson, WilsonParams};
use crate::action::{Derivative, Pair};
use crate::field::{Dagger, Domain, EVEN, FieldError, MatrixField, ODD, Spinor};
use crate::operator::{CloverTerm, HopPhases, Operator};
use crate::quark::{Eliminated, OperatorParams, QuarkOperator, Storage};
use std::sync::Arc;

impl OperatorParams for WilsonParams {
    type Operator = Wilson;
}

impl QuarkOperator for Wilson {
    type Params = WilsonParams;

    fn make(domain: &Arc<Domain>, storage: Storage, params: &WilsonParams) -> Result<Self, FieldError> {
        let Storage { precision, link_reals, fields, whole } = storage;
        if whole {
            Self::on_all_sites(domain, precision, link_reals, *params)
        } else {
            Self::several(domain, precision, link_reals, fields, *params)
        }
    }

    fn clover_term(domain: &Arc<Domain>, params: &WilsonParams) -> Result<Option<CloverTerm>, FieldError> {
        Self::clover_term(domain, params)
    }

    fn update(&mut self, links: &MatrixField, clover: Option<&CloverTerm>) -> Result<(), FieldError> {
        self.update(links, clover)
    }

    /// # Panics
    /// The quarks have different Schur complements: the determinants of A_oo would not match.
    fn determinants_cancel(one: &WilsonParams, other: &WilsonParams) -> bool {
        assert_eq!(one.schur, other.schur, "both quarks of a ratio have the same Schur complement");
        one.clover_params() == other.clover_params()
    }

    /// `W x_o = prepared b`
    fn eliminate(
        &mut self,
        rhs: &mut Spinor,
        b: [&Spinor; 2],
        spare: &mut Spinor,
    ) -> Result<Eliminated, FieldError> {
        self.prepare(rhs, b, spare)?;
        Ok(Eliminated::Linear)
    }

    /// `x_o = y`, `x_e = A_ee^-1 (b_e + D_eo x_o / 2)`
    fn reconstruct(
        &mut self,
        [x_even, x_odd]: [&mut Spinor; 2],
        y: &Spinor,
        b_even: &Spinor,
        spare: &mut Spinor,
    ) -> Result<(), FieldError> {
        x_odd.copy_from(y)?;
        self.complete(x_even, x_odd, Dagger::No)?;
        self.even_inverse(spare, b_even)?;
        x_even.axpy(1.0, spare)
    }
}

impl Derivative for Wilson {
    fn fill(
        &mut self,
        pair: &mut Pair,
        clover: Option<&CloverTerm>,
        x: &Spinor,
        y: Option<&Spinor>,
        weight: f64,
    ) -> Result<(), FieldError> {
        if self.params().schur == Schur::Asymmetric {
            fill_odd(self, pair, clover, (x, y), weight)?;
        } else {
            let Pair { x: [x_even, _], y: [y_even, y_odd], insertion } = &mut *pair;
            // W x, in the memory of even sites
            if y.is_none() || clover.is_some() {
                self.apply(y_even, x, Dagger::No)?;
            }
            self.odd_inverse(y_odd, y.unwrap_or(y_even))?;
            if let (Some(clover), Some(insertion)) = (clover, insertion) {
                x_even.copy_from(x)?;
                x_even.axpy(-1.0, y_even)?;
                clover.insert_pair(insertion, x_even, y_odd, ODD, weight)?;
            }
        }
        fill_even(self, Self::complete, pair, clover, (x, weight))
    }

    fn phases(&mut self) -> HopPhases {
        self.links().phases()
    }
}

/// The pair on odd sites, and dA between them, in the asymmetric form.
pub(super) fn fill_odd(
    w: &mut impl Operator,
    pair: &mut Pair,
    clover: Option<&CloverTerm>,
    (x, y): (&Spinor, Option<&Spinor>),
    weight: f64,
) -> Result<(), FieldError> {
    let Pair { y: [_, y_odd], insertion, .. } = pair;
    match y {
        None => w.apply(y_odd, x, Dagger::No)?,
        Some(y) => y_odd.copy_from(y)?,
    }
    match (clover, insertion) {
        (Some(clover), Some(insertion)) => clover.insert_pair(insertion, x, y_odd, ODD, weight),
        _ => Ok(()),
    }
}

/// `out_e = A_ee^-1 D_eo x_o / 2`, or its adjoint.
type Complete<O> = fn(&mut O, &mut Spinor, &Spinor, Dagger) -> Result<(), FieldError>;

/// Extends the pair to even sites, with dA between them there.
pub(super) fn fill_even<O>(
    w: &mut O,
    complete: Complete<O>,
    pair: &mut Pair,
    clover: Option<&CloverTerm>,
    (x, weight): (&Spinor, f64),
) -> Result<(), FieldError> {
    let Pair { x: [x_even, x_odd], y: [y_even, y_odd], insertion } = pair;
    x_odd.copy_from(x)?;
    complete(w, x_even, x_odd, Dagger::No)?;
    complete(w, y_even, y_odd, Dagger::Yes)?;
    match (clover, insertion) {
        (Some(clover), Some(insertion)) => clover.insert_pair(insertion, x_even, y_even, EVEN, weight),
        _ => Ok(()),
    }
}
