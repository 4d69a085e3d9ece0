//! The force of pairs of spinors, `F = d/d eps` of
//!
//! ```text
//! sum_i w_i { -2 Re y_i^dag dW_i x_i } + sum_j w_j { -2 d log det A_j },
//! ```
//!
//! x and y on odd sites. In the asymmetric form `dW = dMhat`; both spinors are completed to even sites by
//! `A_ee^-1 D_eo / 2` (its adjoint for y), and the full dM acts. In the symmetric one `W = A_oo^-1 B`, so
//! `dW = A_oo^-1 (dB - dA_oo W)`: y goes in as `A_oo^-1 y`, and the clover term on odd sites acts on `x - W x`.
//! A twisted mass is constant in `Mhat + i mu gamma_5` and in B, and changes nothing in this.
//!
//! The clover insertions of all pairs are added up, and go through the leaves once
//! (Jansen, Liu, hep-lat/9603008; openQCD, "Lattice QCD with twisted-mass Wilson-clover quarks").

use super::Quark;
use crate::device::{HopForceArgs, Pointer, Precision};
use crate::field::{AlgebraField, Domain, EVEN, FaceSource, Faces, FieldError, MatrixField, ODD, Spinor};
use crate::operator::CloverTerm;
use std::sync::Arc;

/// Workspace of forces.
pub struct PairForce {
    domain: Arc<Domain>,
    x: [Spinor; 2],
    y: [Spinor; 2],
    faces_x: Faces,
    faces_y: Faces,
    insertion: Option<MatrixField>,
}

/// A force in the making.
#[must_use = "the force is complete after `finish`"]
pub struct PairSum<'a> {
    room: &'a mut PairForce,
    links: &'a MatrixField,
    force: &'a mut AlgebraField,
    /// The pair that the spinors of `room` hold, not yet in `force`.
    pending: Option<Pending>,
}

/// What the hop force needs besides spinors.
struct Pending {
    phases: Pointer,
    phase_mask: i32,
    weight: f64,
}

impl PairForce {
    /// Room for the forces of quarks, of which one has a clover term or none has.
    ///
    /// # Errors
    /// No room.
    pub fn new(domain: &Arc<Domain>, clover: bool) -> Result<Self, FieldError> {
        let spinor = || Spinor::new(domain, Precision::Double);
        let faces = || Faces::new(domain, Precision::Double, 1, true);
        Ok(Self {
            domain: Arc::clone(domain),
            x: [spinor()?, spinor()?],
            y: [spinor()?, spinor()?],
            faces_x: faces()?,
            faces_y: faces()?,
            insertion: clover.then(|| MatrixField::new(domain, 6)).transpose()?,
        })
    }

    /// Starts a sum that [`PairSum::finish`] will have added to `force`.
    ///
    /// # Errors
    /// The device is lost.
    pub fn begin<'a>(
        &'a mut self,
        links: &'a MatrixField,
        force: &'a mut AlgebraField,
    ) -> Result<PairSum<'a>, FieldError> {
        if let Some(insertion) = &mut self.insertion {
            insertion.set_zero()?;
        }
        Ok(PairSum { room: self, links, force, pending: None })
    }

    fn hop_force(
        &mut self,
        links: &MatrixField,
        force: &mut AlgebraField,
        pair: &Pending,
    ) -> Result<(), FieldError> {
        for parity in [EVEN, ODD] {
            let source = |input: &Spinor, dagger| FaceSource {
                input: input.pointer(),
                parity: 1 - parity,
                links: Default::default(),
                reals: 18,
                dagger,
            };
            self.faces_x.exchange(source(&self.x[1 - parity], false), || Ok(()))?;
            self.faces_y.exchange(source(&self.y[1 - parity], true), || Ok(()))?;
            let forward = |ghosts: [Pointer; 8]| std::array::from_fn(|mu| ghosts[2 * mu]);
            let args = HopForceArgs {
                g: self.domain.geometry(),
                links: links.pointer(),
                force: force.pointer(),
                x_here: self.x[parity].pointer(),
                y_here: self.y[parity].pointer(),
                x_there: self.x[1 - parity].pointer(),
                y_there: self.y[1 - parity].pointer(),
                ghost_x: forward(self.faces_x.ghosts()),
                ghost_y: forward(self.faces_y.ghosts()),
                phases: pair.phases,
                parity: parity as i32,
                ghost_mask: self.faces_x.mask(),
                phase_mask: pair.phase_mask,
                pad: 0,
                scale: pair.weight,
            };
            self.domain.launch("hop_force", Precision::Double, &args, self.domain.half())?;
        }
        Ok(())
    }
}

impl PairSum<'_> {
    /// Adds the pair x, `W x`. The quark has to live until the sum is finished.
    ///
    /// # Errors
    /// The device is lost.
    pub fn add_square(&mut self, quark: &mut Quark, x: &Spinor, weight: f64) -> Result<(), FieldError> {
        self.flush()?;
        let [image, y] = &mut self.room.y;
        if quark.is_symmetric() {
            quark.apply(image, x, false)?;
            quark.operator().odd_inverse(y, image)?;
        } else {
            quark.apply(y, x, false)?;
        }
        self.add(quark, x, weight)
    }

    /// Adds the pair x, y. The quark has to live until the sum is finished.
    ///
    /// # Errors
    /// The device is lost.
    pub fn add_pair(
        &mut self,
        quark: &mut Quark,
        x: &Spinor,
        y: &Spinor,
        weight: f64,
    ) -> Result<(), FieldError> {
        self.flush()?;
        let [image, own_y] = &mut self.room.y;
        if quark.is_symmetric() {
            if quark.clover().is_some() {
                quark.apply(image, x, false)?;
            }
            quark.operator().odd_inverse(own_y, y)?;
        } else {
            own_y.copy_from(y)?;
        }
        self.add(quark, x, weight)
    }

    /// Adds `-2 weight d log det A` of the sites that belong to the quark's action.
    ///
    /// # Errors
    /// The device is lost.
    pub fn add_log_det(&mut self, quark: &Quark, weight: f64) -> Result<(), FieldError> {
        match (quark.clover(), &mut self.room.insertion) {
            (Some(clover), Some(insertion)) => clover.insert_log_det(insertion, weight),
            _ => Ok(()),
        }
    }

    /// Adds all that was gathered to the force.
    ///
    /// # Errors
    /// The device is lost.
    pub fn finish(mut self) -> Result<(), FieldError> {
        if let Some(insertion) = &mut self.room.insertion {
            CloverTerm::add_force(self.links, insertion, self.force)?;
        }
        self.flush()
    }

    /// The pair of x and what `room.y` holds: y on odd sites, and in the symmetric form `W x` in the place of
    /// even ones.
    fn add(&mut self, quark: &mut Quark, x: &Spinor, weight: f64) -> Result<(), FieldError> {
        let PairForce { x: [x_even, x_odd], y: [y_even, y_odd], insertion, .. } = &mut *self.room;
        assert!(insertion.is_some() || quark.clover().is_none(), "room for a clover term");
        if let (Some(clover), Some(insertion)) = (quark.clover(), &mut *insertion) {
            if quark.is_symmetric() {
                x_even.copy_from(x)?;
                x_even.axpy(-1.0, y_even)?;
                clover.insert_pair(insertion, x_even, y_odd, ODD, weight)?;
            } else {
                clover.insert_pair(insertion, x, y_odd, ODD, weight)?;
            }
        }
        x_odd.copy_from(x)?;
        quark.operator().complete(x_even, x_odd, false)?;
        quark.operator().complete(y_even, y_odd, true)?;
        if let (Some(clover), Some(insertion)) = (quark.clover(), insertion) {
            clover.insert_pair(insertion, x_even, y_even, EVEN, weight)?;
        }
        let (phases, phase_mask) = quark.operator().links().phases();
        self.pending = Some(Pending { phases, phase_mask, weight });
        Ok(())
    }

    fn flush(&mut self) -> Result<(), FieldError> {
        match self.pending.take() {
            Some(pair) => self.room.hop_force(self.links, self.force, &pair),
            None => Ok(()),
        }
    }
}
