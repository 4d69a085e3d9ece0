//! A doublet of quarks of two masses, as strange and charm (Frezzotti, Rossi, hep-lat/0306014), even-odd preconditioned on odd
//! sites:
//!
//! ```text
//! M = A + X - D/2,   X = i mubar gamma_5 tau_3 - epsbar tau_1,   X^2 = epsbar^2 - mubar^2,
//! Mhat = A_oo + X - D_oe (A_ee + X)^-1 D_eo / 4,   (A + X)^-1 = (A - X) (A^2 - X^2)^-1.
//! ```
//!
//! Fields have two slices, the flavours. `tau_1 gamma_5 M gamma_5 tau_1 = M^dag`, so det M is real. The weight is its modulus,
//! `det (M^dag M)^(1/2)` by a rational function, as of tmLQCD's NDCLOVERRAT; for `mubar > epsbar` det M is positive.

use super::action::{fill_even, fill_odd};
use super::{Schur, WilsonParams};
use crate::action::{Derivative, Pair};
use crate::device::Precision;
use crate::device::kernels::{DoubletHop, DoubletInverse};
use crate::field::{Dagger, Domain, EVEN, FieldError, Kind, LINK_REALS, MatrixField, ODD, Spinor, Workspace};
use crate::operator::{
    CloverBlocks, CloverForm, CloverParams, CloverTerm, HopPhases, Operator, Way, WilsonLinks, team, teams,
};
use crate::quark::{Eliminated, Fields, FullOperator, OperatorParams, QuarkError, QuarkOperator, Storage};
use std::sync::Arc;

/// Flavours, the slices of a field.
pub(super) const FLAVOURS: usize = 2;

/// The operator's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DoubletParams {
    /// What it has in common with degenerate quarks, and mubar, the twisted mass.
    pub wilson: WilsonParams,
    /// The mass splitting, not mubar.
    pub epsbar: f64,
}

impl DoubletParams {
    /// `-X^2`
    fn square(&self) -> f64 {
        self.wilson.twisted_mass.powi(2) - self.epsbar.powi(2)
    }

    /// `A^2 - X^2` without a clover term.
    fn constant_square(&self) -> f64 {
        self.wilson.diagonal().powi(2) + self.square()
    }

    fn clover_params(&self) -> Option<CloverParams> {
        self.wilson.clover_params().map(|params| CloverParams { square: self.square(), ..params })
    }
}

/// The preconditioned operator in one precision.
pub struct Doublet {
    params: DoubletParams,
    links: WilsonLinks,
    /// `(A^2 - X^2)^-1` and A on even sites, and A on odd sites, if there is a clover term; they exist after the first update.
    blocks: Option<[CloverBlocks; 3]>,
    /// Memory for them in lower precisions.
    own: Option<[CloverBlocks; 3]>,
    even: Workspace,
}

impl Doublet {
    /// Memory for the operator with links of `reals` (18, 12 or 8), for `fields` right-hand sides at once.
    ///
    /// # Panics
    /// `X^2 = 0`, or `(4 + m0)^2 - X^2` is not positive; the parameters are of a symmetric form, or of an exponential term.
    pub fn several(
        domain: &Arc<Domain>,
        precision: Precision,
        reals: usize,
        fields: usize,
        params: DoubletParams,
    ) -> Result<Self, FieldError> {
        let wilson = params.wilson;
        assert!(
            params.square() != 0.0 && params.constant_square() > 0.0,
            "masses that differ, and are small"
        );
        let (schur, clover) = (wilson.schur, wilson.clover);
        assert_eq!((schur, clover), (Schur::Asymmetric, CloverForm::Linear), "a doublet's form");
        let lower = params.clover_params().filter(|_| precision != Precision::Double);
        let own = lower.map(|clover| {
            let blocks = |parity, inverse| CloverBlocks::new(domain, precision, clover, (parity, inverse));
            Ok::<_, FieldError>([blocks(EVEN, true)?, blocks(EVEN, false)?, blocks(ODD, false)?])
        });
        Ok(Self {
            params,
            links: WilsonLinks::new(domain, precision, reals, FLAVOURS * fields, wilson.boundary)?,
            blocks: None,
            own: own.transpose()?,
            even: Workspace::new(domain, Kind::Wall(FLAVOURS), precision, fields, 0)?,
        })
    }

    /// The clover term that this operator needs; `None` without one.
    pub fn clover_term(
        domain: &Arc<Domain>,
        params: &DoubletParams,
    ) -> Result<Option<CloverTerm>, FieldError> {
        params.clover_params().map(|clover| CloverTerm::new(domain, clover, [true, false])).transpose()
    }

    /// Adopts new links, with a clover term that is up to date with them.
    pub fn update(&mut self, links: &MatrixField, clover: Option<&CloverTerm>) -> Result<(), FieldError> {
        self.links.update(links)?;
        let Some(clover) = clover else { return Ok(()) };
        let (Some(inverse), Some(term)) = (clover.inverse(EVEN), clover.beside_inverse()) else {
            unreachable!("a term with a square has both on even sites")
        };
        let mut blocks = [inverse, term, clover.term(ODD)];
        for (blocks, own) in blocks.iter_mut().zip(self.own.iter_mut().flatten()) {
            own.round_from(blocks)?;
            *blocks = own.clone();
        }
        self.blocks = Some(blocks);
        Ok(())
    }

    /// `1 / (A^2 - X^2)` if it is a number, else 1.
    fn inverse_square(&self) -> f64 {
        if self.blocks.is_some() { 1.0 } else { 1.0 / self.params.constant_square() }
    }

    /// `out = (A + X) x - D input / 2` on sites of `parity`; without x, `(A + X)^-1 D input / 2`, on even sites alone.
    fn hop(
        &mut self,
        out: &mut Spinor,
        x: Option<&Spinor>,
        input: &Spinor,
        parity: usize,
        dagger: Dagger,
    ) -> Result<(), FieldError> {
        let own = (self.links.precision(), Kind::Wall(FLAVOURS), input.fields());
        let fit = |s: &Spinor| (s.precision(), s.kind(), s.fields()) == own;
        assert!([Some(&*out), x, Some(input)].into_iter().flatten().all(fit), "fields of two flavours");
        let scale = if x.is_some() { 0.5 } else { 0.5 * self.inverse_square() };
        let Self { params: DoubletParams { wilson, epsbar }, links, blocks, .. } = self;
        let domain = Arc::clone(links.domain());
        domain.check([Some(&*out), x].into_iter().flatten().map(Spinor::domain));
        let (form, team) = ((links.precision(), links.reals()), team(&domain, links.precision(), FLAVOURS));
        assert!(blocks.is_some() || wilson.clover_params().is_none(), "an operator that was updated");
        links.cover(input, parity, Way::all(dagger), |hop| {
            let count = teams(hop.places.number(), input.fields());
            let kernel = DoubletHop {
                hop,
                out: out.fermions_mut(),
                x: x.map(Spinor::fermions),
                clover: blocks.as_ref().filter(|_| x.is_none()).map(|[inverse, ..]| inverse.blocks()),
                term: blocks.as_ref().map(|blocks| blocks[1 + parity].blocks()),
                diagonal: wilson.diagonal(),
                mubar: wilson.twisted_mass,
                epsbar: *epsbar,
                scale,
            };
            domain.launch_teams(form, &kernel, count, team)
        })
    }

    /// `out_e = (A_ee + X)^-1 D_eo x_o / 2`: extends a solution on odd sites to all sites.
    pub fn complete(&mut self, out: &mut Spinor, x: &Spinor, dagger: Dagger) -> Result<(), FieldError> {
        self.hop(out, None, x, EVEN, dagger)
    }

    /// `out_e = (A_ee + X)^-1 x_e` of a single field in double precision.
    pub fn even_inverse(&self, out: &mut Spinor, x: &Spinor) -> Result<(), FieldError> {
        let of = |s: &Spinor| (s.precision(), s.kind(), s.fields());
        let own = (Precision::Double, Kind::Wall(FLAVOURS), 1);
        assert_eq!([of(out), of(x), (self.links.precision(), own.1, 1)], [own; 3], "single fields in double");
        let domain = x.domain();
        domain.check([out.domain(), self.links.domain()]);
        let DoubletParams { wilson, epsbar } = self.params;
        let kernel = DoubletInverse {
            g: domain.geometry(),
            out: out.fermions_mut(),
            input: x.fermions(),
            clover: self.blocks.as_ref().map(|[inverse, ..]| inverse.blocks()),
            term: self.blocks.as_ref().map(|[_, term, _]| term.blocks()),
            diagonal: wilson.diagonal(),
            mubar: wilson.twisted_mass,
            epsbar,
            scale: self.inverse_square(),
        };
        domain.launch(&kernel, FLAVOURS * domain.half())
    }
}

impl Operator for Doublet {
    fn domain(&self) -> &Arc<Domain> {
        self.links.domain()
    }

    fn precision(&self) -> Precision {
        self.links.precision()
    }

    fn kind(&self) -> Kind {
        Kind::Wall(FLAVOURS)
    }

    fn apply(&mut self, out: &mut Spinor, x: &Spinor, dagger: Dagger) -> Result<(), FieldError> {
        let room = self.even.clone();
        let even = &mut *room.like(x);
        self.complete(even, x, dagger)?;
        self.hop(out, Some(x), even, ODD, dagger)
    }
}

impl OperatorParams for DoubletParams {
    type Operator = Doublet;
}

impl QuarkOperator for Doublet {
    type Params = DoubletParams;
    const FLAVOURS: u8 = 2;

    fn make(domain: &Arc<Domain>, storage: Storage, params: &DoubletParams) -> Result<Self, FieldError> {
        let Storage { precision, link_reals, fields, whole: _ } = storage;
        Self::several(domain, precision, link_reals, fields, *params)
    }

    fn clover_term(domain: &Arc<Domain>, params: &DoubletParams) -> Result<Option<CloverTerm>, FieldError> {
        Self::clover_term(domain, params)
    }

    fn update(&mut self, links: &MatrixField, clover: Option<&CloverTerm>) -> Result<(), FieldError> {
        self.update(links, clover)
    }

    /// `Mhat x_o = b_o + D_oe (A_ee + X)^-1 b_e / 2`
    fn eliminate(
        &mut self,
        rhs: &mut Spinor,
        b: [&Spinor; 2],
        spare: &mut Spinor,
    ) -> Result<Eliminated, FieldError> {
        self.even_inverse(spare, b[EVEN])?;
        self.links.hop(rhs, spare, ODD, Dagger::No)?;
        rhs.scale(0.5)?;
        rhs.axpy(1.0, b[ODD])?;
        Ok(Eliminated::Linear)
    }

    /// `x_o = y`, `x_e = (A_ee + X)^-1 (b_e + D_eo x_o / 2)`
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

impl Derivative for Doublet {
    /// As that of degenerate quarks of the asymmetric form: X is constant.
    fn fill(
        &mut self,
        pair: &mut Pair,
        clover: Option<&CloverTerm>,
        x: &Spinor,
        y: Option<&Spinor>,
        weight: f64,
    ) -> Result<(), FieldError> {
        fill_odd(self, pair, clover, (x, y), weight)?;
        fill_even(self, Self::complete, pair, clover, (x, weight))
    }

    fn phases(&mut self) -> HopPhases {
        self.links.phases()
    }
}

/// M on all sites, as peers' numbers have it.
pub struct DoubletOnAllSites(Doublet);

impl DoubletOnAllSites {
    /// M on `links`.
    ///
    /// # Errors
    /// A pivot of `A^2 - X^2` is not positive, or memory runs out.
    ///
    /// # Panics
    /// As [`Doublet::several`].
    pub fn new(links: &MatrixField, params: &DoubletParams) -> Result<Self, QuarkError> {
        let domain = links.domain();
        let mut doublet = Doublet::several(domain, Precision::Double, LINK_REALS, 1, *params)?;
        let mut clover = Doublet::clover_term(domain, params)?;
        clover.iter_mut().try_for_each(|clover| clover.update(links))?;
        doublet.update(links, clover.as_ref())?;
        Ok(Self(doublet))
    }
}

impl FullOperator for DoubletOnAllSites {
    fn domain(&self) -> &Arc<Domain> {
        self.0.domain()
    }

    fn kind(&self) -> Kind {
        self.0.kind()
    }

    fn apply(&mut self, out: &mut Fields, x: &Fields, dagger: Dagger) -> Result<(), QuarkError> {
        for parity in [EVEN, ODD] {
            for (n, out) in out[parity].iter_mut().enumerate() {
                self.0.hop(out, Some(&x[parity][n]), &x[1 - parity][n], parity, dagger)?;
            }
        }
        Ok(())
    }
}
