//! The Wilson(-clover) operator, even-odd preconditioned, on odd sites:
//!
//! ```text
//! M = A - D/2,  asymmetric: Mhat = A_oo - D_oe A_ee^-1 D_eo / 4,
//!               symmetric:  Mhat = 1 - A_oo^-1 D_oe A_ee^-1 D_eo / 4.
//! ```
//!
//! D is that of `kernels/wilson.cuh`, and A = 4 + m0 + clover. A twisted mass mu adds `i mu gamma_5` to the asymmetric
//! form and `i mu A_oo^-1 gamma_5` to the symmetric one: a regulator on odd sites alone. That of a doublet, the twist,
//! adds `i twist gamma_5` to A on all sites, in the asymmetric form, where
//! `(A + i twist gamma_5)^-1 = (A - i twist gamma_5) (A^2 + twist^2)^-1`. Each operator keeps its own copy of the links, in
//! its precision, with 18, 12 or 8 reals per link; boundary phases multiply hops, never links.

use crate::device::kernels::Epilogue;
use crate::device::{Precision, Stamp};
use crate::field::{Dagger, Domain, EVEN, FieldError, Kind, MatrixField, ODD, Spinor, Workspace};
use crate::lattice::Boundary;
use crate::operator::{
    Blocks, CloverBlocks, CloverForm, CloverParams, CloverTerm, Ending, Made, Operator, SchwarzOperator,
    Twists, Way, WholeOperator, WilsonLinks, clover_apply,
};
use crate::solver::Multigrid;
use std::sync::Arc;

/// The Schur complement.
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
    /// Twisted mass of the even-odd form: a regulator.
    pub mu: f64,
    /// Twisted mass of M: of the first flavour of a doublet, the second has its negative.
    pub twisted_mass: f64,
    /// Clover coefficient; 0 without a clover term.
    pub c_sw: f64,
    /// The form of the clover term.
    pub clover: CloverForm,
    /// Factors of hops over the edge of the lattice.
    pub boundary: Boundary,
    /// The Schur complement.
    pub schur: Schur,
}

impl WilsonParams {
    /// `4 + m0`
    pub fn diagonal(&self) -> f64 {
        0.5 / self.kappa
    }

    /// The clover term, if there is one: also without F, if A differs beside walls in time.
    pub fn clover_params(&self) -> Option<CloverParams> {
        let c_f = self.boundary.c_f();
        let (diagonal, form) = (self.diagonal(), self.clover);
        let params = CloverParams { diagonal, c_sw: self.c_sw, form, c_f, square: self.twisted_mass.powi(2) };
        (self.c_sw != 0.0 || c_f != [1.0; 2]).then_some(params)
    }
}

/// The preconditioned operator in one precision.
pub struct Wilson {
    params: WilsonParams,
    links: WilsonLinks,
    a: Diagonal,
    even: Workspace,
    /// For `A_oo^-1 x`, in the symmetric form with a clover term.
    spare: Option<Workspace>,
    /// A on both parities, if the operator also acts on all sites.
    whole: Option<Whole>,
}

/// A on both parities, which the operator's own inverses replace.
struct Whole {
    /// `None` without a clover term, and with a twist.
    term: Option<CloverTerm>,
    /// In lower precisions.
    own: Option<[CloverBlocks; 2]>,
}

impl Whole {
    fn new(domain: &Arc<Domain>, precision: Precision, params: &WilsonParams) -> Result<Self, FieldError> {
        // A doublet keeps A on both parities by itself.
        let clover = params.clover_params().filter(|params| params.square == 0.0);
        let term = clover.map(|clover| CloverTerm::new(domain, clover, [false; 2])).transpose()?;
        let lower = clover.filter(|_| precision != Precision::Double);
        let own = lower.map(|clover| {
            let blocks = |parity| CloverBlocks::new(domain, precision, clover, (parity, false));
            Ok::<_, FieldError>([blocks(EVEN)?, blocks(ODD)?])
        });
        Ok(Self { term, own: own.transpose()? })
    }

    fn update(&mut self, links: &MatrixField) -> Result<(), FieldError> {
        let Some(term) = &mut self.term else { return Ok(()) };
        term.build(links)?;
        for (parity, own) in self.own.iter_mut().flatten().enumerate() {
            own.round_from(&term.term(parity))?;
        }
        Ok(())
    }

    /// A on sites of one parity, unless the operator keeps it.
    fn on(&self, parity: usize) -> Option<CloverBlocks> {
        match &self.own {
            Some(own) => Some(own[parity].clone()),
            None => self.term.as_ref().map(|term| term.term(parity)),
        }
    }
}

/// The diagonal part of M: A, and its inverses.
struct Diagonal {
    /// 4 + m0, used without a clover term.
    constant: f64,
    /// The twisted mass on all sites.
    twist: f64,
    /// Whether there is a clover term; its blocks exist after the first update.
    clover: bool,
    /// In lower precisions: memory for the inverse on even sites, and on odd sites for the term or (symmetric) its
    /// inverse.
    own: Option<[CloverBlocks; 2]>,
    /// With a twist, the term on even sites, and in lower precisions memory for it.
    even: Option<CloverBlocks>,
    own_even: Option<CloverBlocks>,
    /// The term on odd sites.
    odd: Option<CloverBlocks>,
    odd_inverse: Option<CloverBlocks>,
    even_inverse: Option<CloverBlocks>,
}

impl Diagonal {
    /// The epilogue that turns a hop into `A_ee^-1 D_eo / 2`, with a twist `(A_ee +- i twist gamma_5)^-1 D_eo / 2`.
    fn first(&self, dagger: Dagger) -> Ending<'_> {
        if self.twist != 0.0 {
            let twist = if dagger == Dagger::Yes { -self.twist } else { self.twist };
            let [clover, term] =
                [&self.even_inverse, &self.even].map(|own| own.as_ref().map(CloverBlocks::blocks));
            let square = if self.clover { 1.0 } else { self.constant.powi(2) + twist * twist };
            let (epilogue, shift) = (Epilogue::Twisted, self.constant);
            return Ending { epilogue, clover, term, shift, twist, ..Ending::plain(0.5 / square) };
        }
        if self.clover {
            let clover = self.even_inverse.as_ref().map(CloverBlocks::blocks);
            Ending { epilogue: Epilogue::Clover, clover, ..Ending::plain(0.5) }
        } else {
            Ending::plain(0.5 / self.constant)
        }
    }

    /// `out = A^-1 x`; with a clover term, by the given blocks.
    fn invert(&self, blocks: Option<&CloverBlocks>, out: &mut Spinor, x: &Spinor) -> Result<(), FieldError> {
        if !self.clover {
            out.copy_from(x)?;
            return out.scale(1.0 / self.constant);
        }
        clover_apply(out, x, blocks.expect("an operator that was updated"))
    }
}

impl Wilson {
    /// Memory for the operator with links of `reals` (18, 12 or 8), for `fields` spinors at once.
    pub fn several(
        domain: &Arc<Domain>,
        precision: Precision,
        reals: usize,
        fields: usize,
        params: WilsonParams,
    ) -> Result<Self, FieldError> {
        let symmetric = params.schur == Schur::Symmetric;
        let lower = params.clover_params().filter(|_| precision != Precision::Double);
        let own = lower.map(|clover| {
            let blocks = |parity, inverse| CloverBlocks::new(domain, precision, clover, (parity, inverse));
            Ok::<_, FieldError>([blocks(EVEN, true)?, blocks(ODD, symmetric)?])
        });
        let own_even = lower.filter(|clover| clover.square != 0.0);
        let own_even = own_even.map(|clover| CloverBlocks::new(domain, precision, clover, (EVEN, false)));
        let (own, clover) = (own.transpose()?, params.clover_params().is_some());
        let room = |number| Workspace::new(domain, Kind::Dirac, precision, fields, number);
        Ok(Self {
            params,
            links: WilsonLinks::new(domain, precision, reals, fields, params.boundary)?,
            a: Diagonal {
                constant: params.diagonal(),
                // As the term has it, also where it is all but 0.
                twist: if params.twisted_mass.powi(2) == 0.0 { 0.0 } else { params.twisted_mass },
                clover,
                own,
                even: None,
                own_even: own_even.transpose()?,
                odd: None,
                odd_inverse: None,
                even_inverse: None,
            },
            even: room(0)?,
            spare: (symmetric && clover).then(|| room(1)).transpose()?,
            whole: None,
        })
    }

    /// Memory for the operator on single spinors.
    pub fn new(
        domain: &Arc<Domain>,
        precision: Precision,
        reals: usize,
        params: WilsonParams,
    ) -> Result<Self, FieldError> {
        Self::several(domain, precision, reals, 1, params)
    }

    /// The operator that also acts on all sites ([`WholeOperator`]), with memory for as many spinors as a [`Multigrid`] takes at
    /// once.
    pub fn on_all_sites(
        domain: &Arc<Domain>,
        precision: Precision,
        reals: usize,
        params: WilsonParams,
    ) -> Result<Self, FieldError> {
        let whole = Some(Whole::new(domain, precision, &params)?);
        Ok(Self { whole, ..Self::several(domain, precision, reals, Multigrid::TOGETHER, params)? })
    }

    /// The clover term that this operator needs; `None` without one.
    pub fn clover_term(
        domain: &Arc<Domain>,
        params: &WilsonParams,
    ) -> Result<Option<CloverTerm>, FieldError> {
        let inverted = [true, params.schur == Schur::Symmetric];
        params.clover_params().map(|clover| CloverTerm::new(domain, clover, inverted)).transpose()
    }

    /// The parameters.
    pub fn params(&self) -> &WilsonParams {
        &self.params
    }

    /// The hopping term.
    pub fn links(&mut self) -> &mut WilsonLinks {
        &mut self.links
    }

    /// Adopts new links, with a clover term that is up to date with them.
    pub fn update(&mut self, links: &MatrixField, clover: Option<&CloverTerm>) -> Result<(), FieldError> {
        self.links.update(links)?;
        if let Some(whole) = &mut self.whole {
            whole.update(links)?;
        }
        let (Some(clover), true) = (clover, self.a.clover) else { return Ok(()) };
        self.links.domain().check([clover.domain()]);
        let symmetric = self.params.schur == Schur::Symmetric;
        let mut even_inverse = clover.inverse(EVEN);
        let mut odd = if symmetric { clover.inverse(ODD) } else { Some(clover.term(ODD)) };
        if let Some(own) = &mut self.a.own {
            for (blocks, own) in [&mut even_inverse, &mut odd].into_iter().zip(own) {
                if let Some(double) = blocks {
                    own.round_from(double)?;
                    *blocks = Some(own.clone());
                }
            }
        }
        let mut even = clover.beside_inverse();
        if let (Some(own), Some(double)) = (&mut self.a.own_even, &mut even) {
            own.round_from(double)?;
            *double = own.clone();
        }
        (self.a.even, self.a.even_inverse) = (even, even_inverse);
        (self.a.odd, self.a.odd_inverse) = if symmetric { (None, odd) } else { (odd, None) };
        Ok(())
    }

    /// `out_e = A_ee^-1 D_eo x_o / 2`: extends a solution on odd sites to all sites.
    pub fn complete(&mut self, out: &mut Spinor, x: &Spinor, dagger: Dagger) -> Result<(), FieldError> {
        self.links.run(out, x, EVEN, Way::all(dagger), &self.a.first(dagger))
    }

    /// `out_o = A_oo^-1 x_o`, only for the symmetric form.
    pub fn odd_inverse(&self, out: &mut Spinor, x: &Spinor) -> Result<(), FieldError> {
        self.a.invert(self.a.odd_inverse.as_ref(), out, x)
    }

    /// `out_e = A_ee^-1 x_e`, with a twist `(A_ee + i twist gamma_5)^-1 x_e`
    pub fn even_inverse(&self, out: &mut Spinor, x: &Spinor) -> Result<(), FieldError> {
        let Diagonal { constant, twist, even, even_inverse, .. } = &self.a;
        if *twist == 0.0 {
            return self.a.invert(even_inverse.as_ref(), out, x);
        }
        let (Some(term), Some(inverse)) = (even, even_inverse) else {
            let square = constant * constant + twist * twist;
            out.copy_from(x)?;
            out.scale(constant / square)?;
            return out.add_twist(-twist / square, x);
        };
        let between = &mut *self.even.like(x);
        clover_apply(between, x, inverse)?;
        clover_apply(out, between, term)?;
        out.add_twist(-twist, between)
    }

    /// The right-hand side on odd sites of `M x = b` after elimination of the even ones:
    /// `b_o + D_oe A_ee^-1 b_e / 2`, times `A_oo^-1` in the symmetric form. `spare` is overwritten.
    pub fn prepare(
        &mut self,
        out: &mut Spinor,
        b: [&Spinor; 2],
        spare: &mut Spinor,
    ) -> Result<(), FieldError> {
        // shift x - scale D in, with scale -1/2
        let end = Ending { epilogue: Epilogue::Shift, x: Some(b[ODD]), shift: 1.0, ..Ending::plain(-0.5) };
        let way = Way::all(Dagger::No);
        if self.params.schur == Schur::Asymmetric {
            self.even_inverse(spare, b[EVEN])?;
            return self.links.run(out, spare, ODD, way, &end);
        }
        self.even_inverse(out, b[EVEN])?;
        self.links.run(spare, out, ODD, way, &end)?;
        self.odd_inverse(out, spare)
    }
}

impl Wilson {
    /// A on sites of one parity, of an operator on all sites; `None` without a clover term.
    fn term_on(&self, parity: usize) -> Option<CloverBlocks> {
        match &self.a {
            Diagonal { even, odd, twist, .. } if *twist != 0.0 => [even, odd][parity].clone(),
            _ => self.whole.as_ref().and_then(|whole| whole.on(parity)),
        }
    }

    fn apply_on(&mut self, out: &mut Spinor, x: &Spinor, way: Way) -> Result<(), FieldError> {
        match self.spare.clone() {
            Some(room) if way.dagger == Dagger::Yes => {
                let inverse = &mut *room.like(x);
                self.odd_inverse(inverse, x)?;
                self.adjoint_from_inverse(out, x, inverse, way)
            }
            _ => self.apply_with(out, None, x, way),
        }
    }

    /// `out = M^dag x` in the symmetric form with a clover term, from `inverse = A_oo^-1 x`.
    fn adjoint_from_inverse(
        &mut self,
        out: &mut Spinor,
        x: &Spinor,
        inverse: &Spinor,
        way: Way,
    ) -> Result<(), FieldError> {
        let Self { params, links, a, even, .. } = self;
        let even = &mut *even.like(x);
        links.run(even, inverse, EVEN, way, &a.first(way.dagger))?;
        let end = Ending { epilogue: Epilogue::Shift, shift: 1.0, x: Some(x), ..Ending::plain(0.5) };
        links.run(out, even, ODD, way, &end)?;
        if params.mu == 0.0 { Ok(()) } else { out.add_twist(-params.mu, inverse) }
    }

    /// `out = M x`. Also `out = M^dag x`, except in the symmetric form with a clover term. In that form `inverse`, if given,
    /// becomes `A_oo^-1 out`.
    fn apply_with(
        &mut self,
        out: &mut Spinor,
        inverse: Option<&mut Spinor>,
        x: &Spinor,
        way: Way,
    ) -> Result<(), FieldError> {
        let Self { params, links, a, even, .. } = self;
        let even = &mut *even.like(x);
        let mu = params.mu + params.twisted_mass;
        let mu = if way.dagger == Dagger::Yes { -mu } else { mu };
        let plain = Ending { x: Some(x), ..Ending::plain(0.5) };
        links.run(even, x, EVEN, way, &a.first(way.dagger))?;
        let (epilogue, constant) = (Epilogue::Shift, a.constant);
        let last = match (params.schur, a.clover) {
            (Schur::Asymmetric, true) => Ending {
                epilogue: Epilogue::CloverMinus,
                clover: a.odd.as_ref().map(CloverBlocks::blocks),
                twist: mu,
                ..plain
            },
            // x - A^-1 (D in / 2 - i mu gamma_5 x)
            (Schur::Symmetric, true) => {
                let clover = a.odd_inverse.as_ref().map(CloverBlocks::blocks);
                Ending { epilogue: Epilogue::MinusClover, clover, twist: -2.0 * mu, ..plain }
            }
            (Schur::Asymmetric, false) => Ending { epilogue, shift: constant, twist: mu, ..plain },
            (Schur::Symmetric, false) => {
                Ending { epilogue, shift: 1.0, scale: 0.5 / constant, twist: mu / constant, ..plain }
            }
        };
        links.run_with(out, inverse, even, ODD, way, &last)
    }
}

impl Operator for Wilson {
    fn domain(&self) -> &Arc<Domain> {
        self.links.domain()
    }

    fn precision(&self) -> Precision {
        self.links.precision()
    }

    fn apply(&mut self, out: &mut Spinor, x: &Spinor, dagger: Dagger) -> Result<(), FieldError> {
        self.apply_on(out, x, Way::all(dagger))
    }

    /// In the symmetric form with a clover term, M ends with what its adjoint begins with: `A_oo^-1` of the result.
    fn apply_both(&mut self, out: &mut Spinor, middle: &mut Spinor, x: &Spinor) -> Result<(), FieldError> {
        let [forward, back] = [Dagger::No, Dagger::Yes].map(Way::all);
        let Some(room) = self.spare.clone() else {
            self.apply_on(middle, x, forward)?;
            return self.apply_on(out, middle, back);
        };
        let inverse = &mut *room.like(x);
        self.apply_with(middle, Some(inverse), x, forward)?;
        self.adjoint_from_inverse(out, middle, inverse, back)
    }

    fn blocked(&mut self, blocks: &Blocks) -> Result<Option<&mut dyn SchwarzOperator>, FieldError> {
        self.links.set_blocks(blocks)?;
        Ok(Some(self))
    }

    fn whole(&mut self, blocks: &Blocks) -> Result<Option<&mut dyn WholeOperator>, FieldError> {
        self.links.set_blocks(blocks)?;
        Ok(if self.whole.is_some() { Some(self) } else { None })
    }
}

impl WholeOperator for Wilson {
    fn apply_within(&mut self, out: &mut Spinor, x: [&Spinor; 2], parity: usize) -> Result<(), FieldError> {
        let clover = self.term_on(parity);
        let plain = Ending { x: Some(x[parity]), ..Ending::plain(0.5) };
        let end = match &clover {
            Some(clover) => {
                Ending { epilogue: Epilogue::CloverMinus, clover: Some(clover.blocks()), ..plain }
            }
            None => Ending { epilogue: Epilogue::Shift, shift: self.a.constant, ..plain },
        };
        self.links.run(out, x[1 - parity], parity, Way { dagger: Dagger::No, made: Made::Within }, &end)
    }

    fn apply_across(
        &mut self,
        out: &mut Spinor,
        x: &Spinor,
        parity: usize,
        mu: usize,
    ) -> Result<(), FieldError> {
        let way = Way { dagger: Dagger::No, made: Made::Across(mu) };
        self.links.run(out, x, parity, way, &Ending::plain(-0.5))
    }

    fn complete(&mut self, even: &mut Spinor, odd: &Spinor) -> Result<(), FieldError> {
        self.complete(even, odd, Dagger::No)
    }

    fn weigh(&self, out: &mut Spinor, x: &Spinor) -> Result<(), FieldError> {
        match self.term_on(ODD) {
            _ if self.params.schur == Schur::Asymmetric => out.copy_each(x),
            Some(clover) => clover_apply(out, x, &clover),
            None => {
                out.copy_each(x)?;
                out.scale_each(&vec![self.a.constant; x.fields()])
            }
        }
    }

    fn twists(&self) -> Twists {
        Twists { odd: self.params.mu, all: self.params.twisted_mass }
    }

    fn adopted(&self) -> Stamp {
        self.links.adopted().expect("an operator that was updated")
    }

    fn name(&self) -> String {
        format!("{:?}", WilsonParams { mu: 0.0, ..self.params })
    }
}

impl SchwarzOperator for Wilson {
    fn apply_in_blocks(&mut self, out: &mut Spinor, x: &Spinor, dagger: Dagger) -> Result<(), FieldError> {
        self.apply_on(out, x, Way { dagger, made: Made::Within })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::Solo;
    use crate::device::{Cpu, Device};
    use crate::field::{Halo, Purpose, RandomAddress};
    use crate::lattice::Partition;

    /// The operator shares the blocks of the clover term, so the term may be dropped.
    #[test]
    fn the_clover_term_may_be_dropped() {
        let partition = Partition::new([4; 4], [1; 4], 1, 0).unwrap();
        let device = Device::new(Cpu::new(1).unwrap());
        let domain = Domain::new(partition, device, Arc::new(Solo), 0, Halo::Staged).unwrap();
        let address = |n| RandomAddress { seed: 7, trajectory: 0, purpose: Purpose::Probe(n) };
        let mut links = MatrixField::new(&domain, 4).unwrap();
        links.set_random(address(0)).unwrap();
        let schur = Schur::Symmetric;
        let params = WilsonParams {
            kappa: 0.1,
            mu: 0.2,
            twisted_mass: 0.0,
            c_sw: 1.0,
            clover: CloverForm::Linear,
            boundary: Boundary::ANTIPERIODIC,
            schur,
        };
        let mut clover = Wilson::clover_term(&domain, &params).unwrap().unwrap();
        clover.update(&links).unwrap();
        let mut operator = Wilson::new(&domain, Precision::Double, 18, params).unwrap();
        operator.update(&links, Some(&clover)).unwrap();
        let spinor = || Spinor::new(&domain, Precision::Double).unwrap();
        let (mut x, mut before, mut after) = (spinor(), spinor(), spinor());
        x.set_random(ODD, 1.0, address(1)).unwrap();
        operator.apply(&mut before, &x, Dagger::No).unwrap();
        drop(clover);
        // Memory of the same sizes, which would reuse freed memory.
        let mut other = CloverTerm::new(
            &domain,
            CloverParams { diagonal: 40.0, c_sw: 2.0, form: CloverForm::Linear, c_f: [1.0; 2], square: 0.0 },
            [true, true],
        )
        .unwrap();
        other.update(&links).unwrap();
        operator.apply(&mut after, &x, Dagger::No).unwrap();
        after.axpy(-1.0, &before).unwrap();
        assert_eq!(after.norm2().unwrap().value(), 0.0);
    }
}
