//! The force from pairs of spinors, `F = d/d eps` of
//!
//! ```text
//! sum_i w_i { -2 Re y_i^dag dW_i x_i } + sum_j w_j { -2 d log det A_j },
//! ```
//!
//! x and y are on odd sites. An operator extends both to even sites (`Derivative`) such that the derivative of the
//! hopping term acts between them: with D of `kernels/wilson.cuh`, a pair is `-2 w Re y^dag (-dD/2) x`, over all sites.
//!
//! The clover insertions of all pairs are summed first, and then differentiated through the leaves once (Jansen, Liu,
//! hep-lat/9603008; openQCD, "Lattice QCD with twisted-mass Wilson-clover quarks").

use crate::device::Precision;
use crate::device::kernels::HopForce;
use crate::field::{
    AlgebraField, Crossing, Dagger, Domain, EVEN, FaceData, FaceSource, Faces, FieldError, Kind, MatrixField,
    ODD, Spinor,
};
use crate::operator::{CloverTerm, HopPhases, Insertion};
use crate::quark::{Quark, QuarkOperator};
use std::sync::Arc;

/// An operator W whose derivative consists of hops, and of a clover term if it has one.
pub trait Derivative: QuarkOperator {
    /// Fills `pair` with the spinors between which `-2 weight Re y^dag dW x` is the derivative of the hopping term.
    /// Adds the part from the clover term to the insertion. x and y are on odd sites; if y is `None`, it is `W x`.
    fn fill(
        &mut self,
        pair: &mut Pair,
        clover: Option<&CloverTerm>,
        x: &Spinor,
        y: Option<&Spinor>,
        weight: f64,
    ) -> Result<(), FieldError>;

    /// Boundary phases of the hops.
    fn phases(&mut self) -> HopPhases;
}

/// Two spinors on even and odd sites, and the clover insertion, if there is one.
pub struct Pair {
    /// The right spinor, on which W acts.
    pub x: [Spinor; 2],
    /// The left spinor.
    pub y: [Spinor; 2],
    /// The clover insertion, summed over the pairs.
    pub insertion: Option<Insertion>,
}

/// The force of quarks of one kind. The memory of a pair is taken for each force.
pub struct PairForce {
    domain: Arc<Domain>,
    kind: Kind,
    /// Whether a quark has a clover term.
    clover: bool,
    faces_x: Faces,
    faces_y: Faces,
}

/// A sum of pairs for a force.
#[must_use = "the force is complete after `finish`"]
pub struct PairSum<'a> {
    room: &'a mut PairForce,
    pair: Pair,
    links: &'a MatrixField,
    force: &'a mut AlgebraField,
    /// What `pair` holds, if it is not yet in `force`.
    pending: Option<Pending>,
}

/// Parameters of the hop force.
struct Pending {
    phases: HopPhases,
    weight: f64,
}

impl PairForce {
    /// The forces of quarks of one kind; `clover`: at least one of them has a clover term.
    pub fn new(domain: &Arc<Domain>, kind: Kind, clover: bool) -> Result<Self, FieldError> {
        let what = (Crossing::HalfSpinor, &[true][..]);
        let faces = || Faces::new(domain, Precision::Double, kind.slices(), what, 0);
        Ok(Self { domain: Arc::clone(domain), kind, clover, faces_x: faces()?, faces_y: faces()? })
    }

    /// Starts a sum of pairs. [`PairSum::finish`] completes its addition to `force`.
    pub fn begin<'a>(
        &'a mut self,
        links: &'a MatrixField,
        force: &'a mut AlgebraField,
    ) -> Result<PairSum<'a>, FieldError> {
        let spinor = || Spinor::of(&self.domain, self.kind, Precision::Double, 1);
        let pair = Pair {
            x: [spinor()?, spinor()?],
            y: [spinor()?, spinor()?],
            insertion: self.clover.then(|| Insertion::new(&self.domain)).transpose()?,
        };
        Ok(PairSum { room: self, pair, links, force, pending: None })
    }

    fn hop_force(
        &mut self,
        Pair { x, y, .. }: &Pair,
        links: &MatrixField,
        force: &mut AlgebraField,
        pending: &Pending,
    ) -> Result<(), FieldError> {
        let Self { domain, faces_x, faces_y, .. } = self;
        domain.check([links.domain(), force.domain()]);
        // Whoever filled the pair may have put other fields in its place.
        let spinors = || x.iter().chain(y);
        domain.check(spinors().map(Spinor::domain));
        let own = (Precision::Double, self.kind, 1);
        let fit = |s: &Spinor| (s.precision(), s.kind(), s.fields()) == own;
        assert!(spinors().all(fit), "single fields of the kind that there is room for, in double");
        pending.phases.check(domain, Precision::Double);
        let slices = self.kind.slices();
        for parity in [EVEN, ODD] {
            for (faces, input, dagger) in [(&mut *faces_x, x, Dagger::No), (&mut *faces_y, y, Dagger::Yes)] {
                let data = FaceData::Spinors { input: input[1 - parity].fermions(), dagger, slices };
                faces.exchange(FaceSource { parity: 1 - parity, data }, slices)?;
            }
            let kernel = HopForce {
                g: domain.geometry(),
                links: links.links(),
                force: force.algebra_mut(),
                x_here: x[parity].fermions(),
                y_here: y[parity].fermions(),
                x_there: x[1 - parity].fermions(),
                y_there: y[1 - parity].fermions(),
                ghost_x: faces_x.ghosts_of(true),
                ghost_y: faces_y.ghosts_of(true),
                phases: pending.phases.table(),
                parity: parity as i32,
                ghost_mask: faces_x.mask(),
                phase_mask: pending.phases.mask(),
                slices: slices as i32,
                scale: pending.weight,
            };
            domain.launch(&kernel, domain.half())?;
        }
        Ok(())
    }
}

impl PairSum<'_> {
    /// Adds the pair x, `W x`.
    pub fn add_square<O: Derivative>(
        &mut self,
        quark: &mut Quark<O>,
        x: &Spinor,
        weight: f64,
    ) -> Result<(), FieldError> {
        self.add(quark, x, None, weight)
    }

    /// Adds the pair x, y.
    pub fn add_pair<O: Derivative>(
        &mut self,
        quark: &mut Quark<O>,
        x: &Spinor,
        y: &Spinor,
        weight: f64,
    ) -> Result<(), FieldError> {
        self.add(quark, x, Some(y), weight)
    }

    /// Adds `-2 weight Re y^dag (-dD/2) x`, with x and y on even and odd sites, and the quark's boundary phases.
    pub fn add_spinors<O: Derivative>(
        &mut self,
        quark: &mut Quark<O>,
        x: [&Spinor; 2],
        y: [&Spinor; 2],
        weight: f64,
    ) -> Result<(), FieldError> {
        self.flush()?;
        let pair = &mut self.pair;
        for parity in [EVEN, ODD] {
            pair.x[parity].copy_from(x[parity])?;
            pair.y[parity].copy_from(y[parity])?;
        }
        let phases = quark.operator().0.phases();
        self.pending = Some(Pending { phases, weight });
        Ok(())
    }

    /// Adds `-2 weight d log det A` over the sites that belong to the quark's action.
    pub fn add_log_det<O: Derivative>(&mut self, quark: &Quark<O>, weight: f64) -> Result<(), FieldError> {
        match (quark.clover(), &mut self.pair.insertion) {
            (Some(clover), Some(insertion)) => clover.insert_log_det(insertion, weight),
            _ => Ok(()),
        }
    }

    /// Adds everything to the force.
    pub fn finish(mut self) -> Result<(), FieldError> {
        if let Some(insertion) = self.pair.insertion.take() {
            insertion.add_force(self.links, self.force)?;
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
        assert!(self.pair.insertion.is_some() || clover.is_none(), "room for a clover term");
        operator.fill(&mut self.pair, clover, x, y, weight)?;
        let phases = operator.phases();
        self.pending = Some(Pending { phases, weight });
        Ok(())
    }

    fn flush(&mut self) -> Result<(), FieldError> {
        match self.pending.take() {
            Some(pending) => self.room.hop_force(&self.pair, self.links, self.force, &pending),
            None => Ok(()),
        }
    }
}
