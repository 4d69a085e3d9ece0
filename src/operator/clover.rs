//! The clover term `A = 4 + m0 + c_sw (i/4) sum_{mu nu} sigma_{mu nu} F_{mu nu}` in double: two hermitian
//! 6x6 blocks a site (Sheikholeslami, Wohlert, Nucl. Phys. B 259 (1985) 572), and what is made of it.

use super::OperatorError;
use crate::device::{Buffer, CloverArgs, Pointer, Precision};
use crate::field::{AlgebraField, Domain, FieldError, MatrixField, Spinor};
use crate::math::ExactSum;
use std::sync::Arc;

/// Reals of a site.
const REALS: usize = 72;

/// The term on both parities, and its inverse where it is asked for.
pub struct CloverTerm {
    domain: Arc<Domain>,
    diagonal: f64,
    c_sw: f64,
    term: Buffer,
    inverse: [Option<Buffer>; 2],
    log_det: [ExactSum; 2],
}

impl CloverTerm {
    /// Room for the term with diagonal 4 + m0, and for its inverse on the parities of `inverted`.
    ///
    /// # Errors
    /// No room.
    pub fn new(
        domain: &Arc<Domain>,
        diagonal: f64,
        c_sw: f64,
        inverted: [bool; 2],
    ) -> Result<Self, FieldError> {
        let half = domain.half() * domain.lanes().count() * REALS * 8;
        let buffer = |wanted: bool| wanted.then(|| domain.device().buffer(half)).transpose();
        Ok(Self {
            domain: Arc::clone(domain),
            diagonal,
            c_sw,
            term: domain.device().buffer(2 * half)?,
            inverse: [buffer(inverted[0])?, buffer(inverted[1])?],
            log_det: [ExactSum::default(); 2],
        })
    }

    fn args(&self) -> CloverArgs {
        CloverArgs {
            g: self.domain.geometry(),
            clover: self.term.pointer(),
            diagonal: self.diagonal,
            scale: self.c_sw,
            ..Default::default()
        }
    }

    /// Builds the term on `links` and inverts it.
    ///
    /// # Errors
    /// A pivot is not positive.
    pub fn update(&mut self, links: &MatrixField) -> Result<(), OperatorError> {
        let args = CloverArgs { links: links.pointer(), ..self.args() };
        self.domain.launch("clover_build", Precision::Double, &args, 2 * self.domain.half())?;
        for parity in 0..2 {
            let Some(inverse) = &self.inverse[parity] else { continue };
            let args = CloverArgs { inverse: inverse.pointer(), parity: parity as i32, ..self.args() };
            let sums = self.domain.sum("clover_invert", Precision::Double, &args, self.domain.half())?.sums;
            let pivots = sums[1].value();
            if pivots != 0.0 {
                return Err(OperatorError::Clover { pivots });
            }
            self.log_det[parity] = sums[0];
        }
        Ok(())
    }

    /// The term on one parity.
    pub fn term(&self, parity: usize) -> Pointer {
        self.term.at(parity * self.term.bytes() / 2)
    }

    /// Its inverse on one parity.
    pub fn inverse(&self, parity: usize) -> Option<Pointer> {
        self.inverse[parity].as_ref().map(Buffer::pointer)
    }

    /// `sum over sites of log det A` over the parities that are inverted.
    pub fn log_det(&self) -> ExactSum {
        self.log_det[0] + self.log_det[1]
    }

    /// Adds to the insertion what `-2 weight Re y^dag dA x` on sites of `parity` makes of it.
    ///
    /// # Errors
    /// The device is lost.
    pub fn insert_pair(
        &self,
        insertion: &mut MatrixField,
        x: &Spinor,
        y: &Spinor,
        parity: usize,
        weight: f64,
    ) -> Result<(), FieldError> {
        let args = CloverArgs {
            scale: weight * self.c_sw,
            insertion: insertion.pointer(),
            x: x.pointer(),
            y: y.pointer(),
            parity: parity as i32,
            ..self.args()
        };
        self.domain.launch("insert_pair", Precision::Double, &args, self.domain.half())
    }

    /// Adds to the insertion what `-2 weight d log det A` makes of it, over the parities that are inverted.
    ///
    /// # Errors
    /// The device is lost.
    pub fn insert_log_det(&self, insertion: &mut MatrixField, weight: f64) -> Result<(), FieldError> {
        for parity in 0..2 {
            let Some(inverse) = self.inverse(parity) else { continue };
            let args = CloverArgs {
                scale: weight * self.c_sw,
                insertion: insertion.pointer(),
                inverse,
                parity: parity as i32,
                ..self.args()
            };
            self.domain.launch("insert_inverse", Precision::Double, &args, self.domain.half())?;
        }
        Ok(())
    }

    /// Adds the force of the insertion through the leaves, of whichever terms the insertion is made.
    ///
    /// # Errors
    /// The device is lost.
    pub fn add_force(
        links: &MatrixField,
        insertion: &mut MatrixField,
        force: &mut AlgebraField,
    ) -> Result<(), FieldError> {
        insertion.fill_borders_to(1)?;
        let domain = links.domain();
        let args = CloverArgs {
            g: domain.geometry(),
            links: links.pointer(),
            insertion: insertion.pointer(),
            force: force.pointer(),
            ..Default::default()
        };
        domain.launch("clover_force", Precision::Double, &args, 2 * domain.half())
    }
}

/// `E` a site and the topological charge `Q` from the clover field strength, traces removed:
/// `E = -sum_{mu<nu} tr F^2`, `Q = -sum_x tr(F_xy F_zt - F_xz F_yt + F_xt F_yz) / (4 pi^2)`.
///
/// # Errors
/// The device is lost.
pub fn field_energy(links: &MatrixField) -> Result<(f64, f64), FieldError> {
    let domain = links.domain();
    let args = CloverArgs { g: domain.geometry(), links: links.pointer(), ..Default::default() };
    let sums = domain.sum("field_energy", Precision::Double, &args, 2 * domain.half())?.sums;
    Ok((sums[0].value() / domain.global_volume(), sums[1].value()))
}
