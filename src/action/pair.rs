//! The force of pairs of spinors, `F = d/d eps` of
//!
//! ```text
//! sum_i w_i { -2 Re y_i^dag dW_i x_i } + sum_j w_j { -2 d log det A_j },
//! ```
//!
//! x and y on odd sites. An operator completes both to even sites (`Derivative`), such that the derivative of the
//! hopping term acts between them: with D of `kernels/wilson.cuh` a pair is `-2 w Re y^dag (-dD/2) x`, over all sites.
//!
//! The clover insertions of all pairs are added up, and go through the leaves once
//! (Jansen, Liu, hep-lat/9603008; openQCD, "Lattice QCD with twisted-mass Wilson-clover quarks").

use crate::device::{HopForceArgs, Pointer, Precision};
use crate::field::{
    AlgebraField, Domain, EVEN, FaceReals, FaceSource, Faces, FieldError, Kind, MatrixField, ODD, Spinor,
};
use crate::operator::CloverTerm;
use crate::quark::{Quark, QuarkOperator};
use std::sync::Arc;

/// An operator W whose derivative is one of hops, and of a clover term where it has one.
pub trait Derivative: QuarkOperator {
    /// Fills `pair` with the spinors between which `-2 weight Re y^dag dW x` is the derivative of the hopping
    /// term, and adds what of it goes through the clover term to the insertion. x and y are on odd sites; y is
    /// `W x` where it is not given.
    ///
    /// # Errors
    /// The device is lost.
    fn fill(
        &mut self,
        pair: &mut Pair,
        clover: Option<&CloverTerm>,
        x: &Spinor,
        y: Option<&Spinor>,
        weight: f64,
    ) -> Result<(), FieldError>;

    /// Boundary phases of its hops as kernels take them, and the mask of hops that meet one on this rank.
    fn phases(&mut self) -> (Pointer, i32);
}

/// Two spinors on even and odd sites, and the insertions of clover terms, where there are any.
pub struct Pair {
    /// On which W acts.
    pub x: [Spinor; 2],
    /// What it is multiplied with.
    pub y: [Spinor; 2],
    /// Of all pairs of a sum.
    pub insertion: Option<MatrixField>,
}

/// Workspace of forces.
pub struct PairForce {
    domain: Arc<Domain>,
    pair: Pair,
    faces_x: Faces,
    faces_y: Faces,
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
    /// Room for the forces of quarks of a kind, of which one has a clover term or none has.
    ///
    /// # Errors
    /// No room.
    pub fn new(domain: &Arc<Domain>, kind: Kind, clover: bool) -> Result<Self, FieldError> {
        let spinor = || Spinor::of(domain, kind, Precision::Double, 1);
        let reals = FaceReals { forward: 12, backward: 0 };
        let faces = || Faces::new(domain, Precision::Double, kind.slices(), reals);
        Ok(Self {
            domain: Arc::clone(domain),
            pair: Pair {
                x: [spinor()?, spinor()?],
                y: [spinor()?, spinor()?],
                insertion: clover.then(|| MatrixField::new(domain, 6)).transpose()?,
            },
            faces_x: faces()?,
            faces_y: faces()?,
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
        if let Some(insertion) = &mut self.pair.insertion {
            insertion.set_zero()?;
        }
        Ok(PairSum { room: self, links, force, pending: None })
    }

    fn hop_force(
        &mut self,
        links: &MatrixField,
        force: &mut AlgebraField,
        pending: &Pending,
    ) -> Result<(), FieldError> {
        let Pair { x, y, .. } = &self.pair;
        let slices = x[EVEN].kind().slices();
        for parity in [EVEN, ODD] {
            let source = |input: &Spinor, dagger| FaceSource {
                kernel: "face_18",
                input: input.pointer(),
                parity: 1 - parity,
                dagger,
                slices,
                ..Default::default()
            };
            self.faces_x.exchange(source(&x[1 - parity], false), slices, || Ok(()))?;
            self.faces_y.exchange(source(&y[1 - parity], true), slices, || Ok(()))?;
            let forward = |ghosts: [Pointer; 8]| std::array::from_fn(|mu| ghosts[2 * mu]);
            let args = HopForceArgs {
                g: self.domain.geometry(),
                links: links.pointer(),
                force: force.pointer(),
                x_here: x[parity].pointer(),
                y_here: y[parity].pointer(),
                x_there: x[1 - parity].pointer(),
                y_there: y[1 - parity].pointer(),
                ghost_x: forward(self.faces_x.ghosts()),
                ghost_y: forward(self.faces_y.ghosts()),
                phases: pending.phases,
                parity: parity as i32,
                ghost_mask: self.faces_x.mask(),
                phase_mask: pending.phase_mask,
                slices: slices as i32,
                scale: pending.weight,
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
    pub fn add_square<O: Derivative>(
        &mut self,
        quark: &mut Quark<O>,
        x: &Spinor,
        weight: f64,
    ) -> Result<(), FieldError> {
        self.add(quark, x, None, weight)
    }

    /// Adds the pair x, y. The quark has to live until the sum is finished.
    ///
    /// # Errors
    /// The device is lost.
    pub fn add_pair<O: Derivative>(
        &mut self,
        quark: &mut Quark<O>,
        x: &Spinor,
        y: &Spinor,
        weight: f64,
    ) -> Result<(), FieldError> {
        self.add(quark, x, Some(y), weight)
    }

    /// Adds `-2 weight Re y^dag (-dD/2) x`, x and y on even and odd sites. The quark, whose boundary phases count, has to
    /// live until the sum is finished.
    ///
    /// # Errors
    /// The device is lost.
    pub fn add_spinors<O: Derivative>(
        &mut self,
        quark: &mut Quark<O>,
        x: [&Spinor; 2],
        y: [&Spinor; 2],
        weight: f64,
    ) -> Result<(), FieldError> {
        self.flush()?;
        let pair = &mut self.room.pair;
        for parity in [EVEN, ODD] {
            pair.x[parity].copy_from(x[parity])?;
            pair.y[parity].copy_from(y[parity])?;
        }
        let (phases, phase_mask) = quark.operator().0.phases();
        self.pending = Some(Pending { phases, phase_mask, weight });
        Ok(())
    }

    /// Adds `-2 weight d log det A` of the sites that belong to the quark's action.
    ///
    /// # Errors
    /// The device is lost.
    pub fn add_log_det<O: Derivative>(&mut self, quark: &Quark<O>, weight: f64) -> Result<(), FieldError> {
        match (quark.clover(), &mut self.room.pair.insertion) {
            (Some(clover), Some(insertion)) => clover.insert_log_det(insertion, weight),
            _ => Ok(()),
        }
    }

    /// Adds all that was gathered to the force.
    ///
    /// # Errors
    /// The device is lost.
    pub fn finish(mut self) -> Result<(), FieldError> {
        if let Some(insertion) = &mut self.room.pair.insertion {
            CloverTerm::add_force(self.links, insertion, self.force)?;
        }
        self.flush()
    }

    fn add<O: Derivative>(
        &mut self,
        quark: &mut Quark<O>,
        x: &Spinor,
        y: Option<&Spinor>,
        weight: f64,
    ) -> Result<(), FieldError> {
        self.flush()?;
        let (operator, clover) = quark.operator();
        assert!(self.room.pair.insertion.is_some() || clover.is_none(), "room for a clover term");
        operator.fill(&mut self.room.pair, clover, x, y, weight)?;
        let (phases, phase_mask) = operator.phases();
        self.pending = Some(Pending { phases, phase_mask, weight });
        Ok(())
    }

    fn flush(&mut self) -> Result<(), FieldError> {
        match self.pending.take() {
            Some(pending) => self.room.hop_force(self.links, self.force, &pending),
            None => Ok(()),
        }
    }
}
