//! The Wilson(-clover) operator, even-odd preconditioned, on odd sites:
//!
//! ```text
//! M = A - D/2,  asymmetric: Mhat = A_oo - D_oe A_ee^-1 D_eo / 4,
//!               symmetric:  Mhat = 1 - A_oo^-1 D_oe A_ee^-1 D_eo / 4.
//! ```
//!
//! D as in `kernels/wilson.cuh`, A = 4 + m0 + clover. A twisted mass mu adds `i mu gamma_5` to the asymmetric form,
//! `i mu A_oo^-1 gamma_5` to the symmetric one. An operator keeps its own copy of the links, in its
//! precision, with 18, 12 or 8 reals a link; boundary phases multiply hops, never links.

use crate::device::{BlasArgs, Buffer, HopArgs, Pointer, Precision};
use crate::field::{Domain, EVEN, FieldError, MatrixField, ODD, Spinor};
use crate::operator::{Blocks, CloverTerm, Epilogue, HopKind, Operator, SchwarzOperator, Way, WilsonLinks};
use std::sync::Arc;

/// Which Schur complement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schur {
    /// `A_oo - D_oe A_ee^-1 D_eo / 4`
    Asymmetric,
    /// `1 - A_oo^-1 D_oe A_ee^-1 D_eo / 4`
    Symmetric,
}

/// The operator's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WilsonParams {
    /// kappa = 1 / (2 (4 + m0))
    pub kappa: f64,
    /// Twisted mass of the even-odd form.
    pub mu: f64,
    /// Clover coefficient; 0: no clover term.
    pub c_sw: f64,
    /// Phase of a hop that crosses the boundary, a direction, in units of pi.
    pub boundary: [f64; 4],
    /// Which Schur complement.
    pub schur: Schur,
}

impl WilsonParams {
    /// `4 + m0`
    pub fn diagonal(&self) -> f64 {
        0.5 / self.kappa
    }
}

/// The preconditioned operator in one precision.
pub struct Wilson {
    params: WilsonParams,
    links: WilsonLinks,
    /// In lower precisions: the term on odd sites or (symmetric) its inverse there, and the inverse on even sites.
    own: Option<[Buffer; 2]>,
    odd: Pointer,
    odd_inverse: Pointer,
    even_inverse: Pointer,
    even: Spinor,
    spare: Option<Spinor>,
}

impl Wilson {
    /// Room for the operator with links of `reals` (18, 12 or 8), for `fields` spinors at once.
    ///
    /// # Errors
    /// No room.
    pub fn several(
        domain: &Arc<Domain>,
        precision: Precision,
        reals: usize,
        fields: usize,
        params: WilsonParams,
    ) -> Result<Self, FieldError> {
        let bytes = domain.half() * domain.lanes().count() * 2 * precision.stored(36, 1);
        let own = (precision != Precision::Double && params.c_sw != 0.0)
            .then(|| Ok::<_, FieldError>([domain.device().buffer(bytes)?, domain.device().buffer(bytes)?]))
            .transpose()?;
        let symmetric = params.schur == Schur::Symmetric;
        Ok(Self {
            params,
            links: WilsonLinks::new(domain, precision, reals, fields, params.boundary)?,
            own,
            odd: Pointer::default(),
            odd_inverse: Pointer::default(),
            even_inverse: Pointer::default(),
            even: Spinor::several(domain, precision, fields)?,
            spare: if symmetric { Some(Spinor::several(domain, precision, fields)?) } else { None },
        })
    }

    /// Room for the operator on single spinors.
    ///
    /// # Errors
    /// No room.
    pub fn new(
        domain: &Arc<Domain>,
        precision: Precision,
        reals: usize,
        params: WilsonParams,
    ) -> Result<Self, FieldError> {
        Self::several(domain, precision, reals, 1, params)
    }

    /// The clover term that this operator needs; `None` without one.
    ///
    /// # Errors
    /// No room.
    pub fn clover_term(
        domain: &Arc<Domain>,
        params: &WilsonParams,
    ) -> Result<Option<CloverTerm>, FieldError> {
        if params.c_sw == 0.0 {
            return Ok(None);
        }
        let inverted = [true, params.schur == Schur::Symmetric];
        CloverTerm::new(domain, params.diagonal(), params.c_sw, inverted).map(Some)
    }

    /// What it was made of.
    pub fn params(&self) -> &WilsonParams {
        &self.params
    }

    /// The hopping term.
    pub fn links(&mut self) -> &mut WilsonLinks {
        &mut self.links
    }

    /// Takes over new links and the clover term that was updated on them.
    ///
    /// # Errors
    /// The device is lost.
    pub fn update(&mut self, links: &MatrixField, clover: Option<&CloverTerm>) -> Result<(), FieldError> {
        self.links.update(links)?;
        let Some(clover) = clover else { return Ok(()) };
        let even_inverse = clover.inverse(EVEN).unwrap_or_default();
        let odd = match self.params.schur {
            Schur::Asymmetric => clover.term(ODD),
            Schur::Symmetric => clover.inverse(ODD).unwrap_or_default(),
        };
        let [even_inverse, odd] = match &self.own {
            None => [even_inverse, odd],
            Some(own) => {
                for (from, to) in [even_inverse, odd].into_iter().zip(own) {
                    let domain = self.links.domain();
                    let args = BlasArgs {
                        x: from,
                        y: to.pointer(),
                        half: domain.half() as i32,
                        ..Default::default()
                    };
                    domain.launch("clover_from_double", self.links.precision(), &args, domain.half())?;
                }
                [own[0].pointer(), own[1].pointer()]
            }
        };
        self.even_inverse = even_inverse;
        (self.odd, self.odd_inverse) = match self.params.schur {
            Schur::Asymmetric => (odd, Pointer::default()),
            Schur::Symmetric => (Pointer::default(), odd),
        };
        Ok(())
    }

    fn has_clover(&self) -> bool {
        self.params.c_sw != 0.0
    }

    /// The epilogue that makes `A_ee^-1 D_eo / 2`.
    fn first(&self) -> Epilogue<'static> {
        if self.has_clover() {
            Epilogue { kind: HopKind::Clover, clover: self.even_inverse, ..Epilogue::plain(0.5) }
        } else {
            Epilogue::plain(0.5 / self.params.diagonal())
        }
    }

    /// Lets the spinors of its own hold as many fields as `x`.
    fn fit(&mut self, x: &Spinor) {
        [Some(&mut self.even), self.spare.as_mut()]
            .into_iter()
            .flatten()
            .for_each(|own| own.set_active(x.fields()));
    }

    /// `out_e = A_ee^-1 D_eo x_o / 2`: what completes a solution on odd sites to all sites.
    ///
    /// # Errors
    /// The device is lost.
    pub fn complete(&mut self, out: &mut Spinor, x: &Spinor, dagger: bool) -> Result<(), FieldError> {
        let epilogue = self.first();
        self.links.run(out, x, EVEN, Way { dagger, blocked: false }, &epilogue)
    }

    /// `out_o = A_oo^-1 x_o`, with the symmetric form alone.
    ///
    /// # Errors
    /// The device is lost.
    pub fn odd_inverse(&self, out: &mut Spinor, x: &Spinor) -> Result<(), FieldError> {
        self.inverse(out, x, self.odd_inverse)
    }

    /// `out = A^-1 x` on one parity, `inverse` the packed inverse if there is a clover term.
    fn inverse(&self, out: &mut Spinor, x: &Spinor, inverse: Pointer) -> Result<(), FieldError> {
        if self.has_clover() {
            return self.clover_apply(out, x, inverse);
        }
        out.copy_from(x)?;
        out.scale(1.0 / self.params.diagonal())
    }

    /// `out = C x` on one parity, field by field, C a packed clover field in this operator's precision.
    fn clover_apply(&self, out: &mut Spinor, x: &Spinor, clover: Pointer) -> Result<(), FieldError> {
        let domain = self.links.domain();
        (0..x.fields()).try_for_each(|n| {
            let args = HopArgs {
                g: domain.geometry(),
                out: out.pointer_of(n),
                x: x.pointer_of(n),
                clover,
                ..Default::default()
            };
            domain.launch("clover_apply", self.links.precision(), &args, domain.half())
        })
    }

    /// `out_e = A_ee^-1 x_e`
    ///
    /// # Errors
    /// The device is lost.
    pub fn even_inverse(&self, out: &mut Spinor, x: &Spinor) -> Result<(), FieldError> {
        self.inverse(out, x, self.even_inverse)
    }

    /// The right-hand side on odd sites of `M x = b` after elimination of the even ones:
    /// `b_o + D_oe A_ee^-1 b_e / 2`, times `A_oo^-1` in the symmetric form. `spare` is overwritten.
    ///
    /// # Errors
    /// The device is lost.
    pub fn prepare(
        &mut self,
        out: &mut Spinor,
        b: [&Spinor; 2],
        spare: &mut Spinor,
    ) -> Result<(), FieldError> {
        // shift x - scale D in, with scale -1/2
        let epilogue =
            Epilogue { kind: HopKind::Shift, x: Some(b[ODD]), shift: 1.0, ..Epilogue::plain(-0.5) };
        let way = Way { dagger: false, blocked: false };
        if self.params.schur == Schur::Asymmetric {
            self.even_inverse(spare, b[EVEN])?;
            return self.links.run(out, spare, ODD, way, &epilogue);
        }
        self.even_inverse(out, b[EVEN])?;
        self.links.run(spare, out, ODD, way, &epilogue)?;
        self.odd_inverse(out, spare)
    }
}

impl Wilson {
    fn apply_on(&mut self, out: &mut Spinor, x: &Spinor, way: Way) -> Result<(), FieldError> {
        self.fit(x);
        let (clover, diagonal) = (self.has_clover(), self.params.diagonal());
        let mu = if way.dagger { -self.params.mu } else { self.params.mu };
        let first = self.first();
        let last = |kind: HopKind, clover: Pointer, shift: f64, scale: f64, twist: f64| Epilogue {
            kind,
            clover,
            x: Some(x),
            scale,
            shift,
            twist,
        };
        if way.dagger && clover && self.params.schur == Schur::Symmetric {
            let mut spare = self.spare.take().expect("the symmetric form has a spare spinor");
            let end = last(HopKind::Shift, Pointer::default(), 1.0, 0.5, 0.0);
            let mut done = self
                .odd_inverse(&mut spare, x)
                .and_then(|()| self.links.run(&mut self.even, &spare, EVEN, way, &first))
                .and_then(|()| self.links.run(out, &self.even, ODD, way, &end));
            if mu != 0.0 {
                done = done.and_then(|()| out.add_twist(mu, &spare));
            }
            self.spare = Some(spare);
            return done;
        }
        self.links.run(&mut self.even, x, EVEN, way, &first)?;
        let last = match (self.params.schur, clover) {
            (Schur::Asymmetric, true) => last(HopKind::CloverMinus, self.odd, 0.0, 0.5, mu),
            // x - A^-1 (D in / 2 - i mu gamma_5 x)
            (Schur::Symmetric, true) => last(HopKind::MinusClover, self.odd_inverse, 0.0, 0.5, -2.0 * mu),
            (Schur::Asymmetric, false) => last(HopKind::Shift, Pointer::default(), diagonal, 0.5, mu),
            (Schur::Symmetric, false) => {
                last(HopKind::Shift, Pointer::default(), 1.0, 0.5 / diagonal, mu / diagonal)
            }
        };
        self.links.run(out, &self.even, ODD, way, &last)
    }
}

impl Operator for Wilson {
    fn domain(&self) -> &Arc<Domain> {
        self.links.domain()
    }

    fn precision(&self) -> Precision {
        self.links.precision()
    }

    fn apply(&mut self, out: &mut Spinor, x: &Spinor, dagger: bool) -> Result<(), FieldError> {
        self.apply_on(out, x, Way { dagger, blocked: false })
    }

    fn blocked(&mut self, blocks: &Blocks) -> Result<Option<&mut dyn SchwarzOperator>, FieldError> {
        self.links.set_blocks(blocks)?;
        Ok(Some(self))
    }
}

impl SchwarzOperator for Wilson {
    fn apply_in_blocks(&mut self, out: &mut Spinor, x: &Spinor, dagger: bool) -> Result<(), FieldError> {
        self.apply_on(out, x, Way { dagger, blocked: true })
    }
}
