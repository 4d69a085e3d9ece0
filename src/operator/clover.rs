//! The clover term in double precision, two hermitian 6x6 blocks per site; its inverse, determinant and force. With
//! `F = c_sw (i/4) sum_{mu nu} sigma_{mu nu} F_{mu nu}` it is
//!
//! ```text
//! A = 4 + m0 + F                        linear (Sheikholeslami, Wohlert, Nucl. Phys. B 259 (1985) 572)
//! A = (4 + m0) exp(F / (4 + m0))        exponential (Francis, Fritzsch, Luscher, Rago, arXiv:1911.04533)
//! ```
//!
//! Between walls in time F is zero on the walls, where A is 1, and 4 + m0 beside them is 4 + m0 + c_F - 1; F keeps its 4 + m0.
//!
//! The exponential is positive, and its determinant does not depend on links. A force's matrices P = X Y^dag, summed over all
//! pairs, become `int_0^1 ds exp((1 - s) M) P exp(s M)` with M = F / (4 + m0); from there on the terms have the same force.

use super::OperatorError;
use crate::device::kernels::{
    Clover, CloverApply, CloverBuild, CloverExponential, CloverForce, CloverFromDouble, CloverInvert,
    CloverProduct, ExponentialGradient, FieldEnergy, In, InsertInverse, InsertPair, PairBlocks, int,
};
use crate::device::{Buffer, Precision};
use crate::field::{
    AlgebraField, Domain, EVEN, FieldError, Kind, MatrixField, ODD, Shared, Spinor, number_of,
};
use crate::math::ExactSum;
use std::sync::{Arc, Mutex};

/// Reals per site.
const REALS: usize = 72;

/// How the term depends on F.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloverForm {
    /// `4 + m0 + F`
    Linear,
    /// `(4 + m0) exp(F / (4 + m0))`
    Exponential,
}

/// A term's numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CloverParams {
    /// `4 + m0`
    pub diagonal: f64,
    /// The coefficient of F.
    pub c_sw: f64,
    /// The form.
    pub form: CloverForm,
    /// c_F: what is added to `4 + m0` beside the lower and the upper wall in time, and 1.
    pub c_f: [f64; 2],
    /// Not 0 for an operator with `A + X`, `X^2 = -square`, as `X = i mu gamma_5`: then the inverse is `(A^2 + square)^-1`, and the
    /// term is kept beside it.
    pub square: f64,
}

/// The term on each parity, or its inverse.
pub struct CloverTerm {
    domain: Arc<Domain>,
    params: CloverParams,
    content: Shared<Content>,
    inverted: [bool; 2],
}

/// Sums of X Y^dag for a force, of several terms.
pub struct Insertion {
    /// With the sigma_{mu nu} traced: a matrix per plane.
    planes: MatrixField,
    /// The blocks of exponential terms.
    exponentials: Vec<(CloverParams, Buffer)>,
}

/// Blocks of both parities, and sums of log det A over the sites of those that are inverted; with a square, of
/// `log det (A^2 + square) / 2`, and the inverse on even sites behind both.
struct Content {
    blocks: Buffer,
    /// Bytes of a parity.
    half: usize,
    log_det: Mutex<[ExactSum; 2]>,
}

/// Blocks of one parity. An operator shares them with their term, and they live as long as either.
///
/// The term writes them anew, so neither goes to another thread:
///
/// ```compile_fail,E0277
/// fn is_send<T: Send>() {}
/// is_send::<hmc::operator::CloverBlocks>();
/// ```
#[derive(Clone)]
pub struct CloverBlocks {
    domain: Arc<Domain>,
    content: Shared<Content>,
    offset: usize,
    precision: Precision,
}

impl CloverBlocks {
    /// Memory for the blocks of one parity of a term; `inverse`: they are inverted.
    pub(crate) fn new(
        domain: &Arc<Domain>,
        precision: Precision,
        params: CloverParams,
        (parity, inverse): (usize, bool),
    ) -> Result<Self, FieldError> {
        let layout = domain.layout(precision);
        let bytes = layout.half() * layout.lanes().count() * 2 * precision.stored(REALS / 2, 1);
        let name = format!("{params:?} in {precision:?}, parity {parity}, inverse {inverse}");
        let content = Shared::new(domain, name, || Content::new(domain, bytes, 1))?;
        Ok(Self { domain: Arc::clone(domain), content, offset: 0, precision })
    }

    /// Rounds blocks in double precision to this one.
    pub(crate) fn round_from(&mut self, from: &Self) -> Result<(), FieldError> {
        assert_eq!(from.precision, Precision::Double, "blocks are rounded from double");
        let (domain, precision) = (&self.domain, self.precision);
        domain.check([&from.domain]);
        let links = from.content.adopted().expect("blocks of a term that was updated");
        self.content.adopt(links, |own| {
            let (y, x) = (own.blocks.shared_output(), from.blocks());
            let layout = domain.layout(precision);
            domain.launch_as(precision, &CloverFromDouble { g: layout.geometry(), y, x }, layout.half())
        })
    }

    /// The argument of kernels.
    pub(crate) fn blocks(&self) -> In<'_, Clover> {
        self.content.get().blocks.input_at(self.offset)
    }
}

impl Content {
    /// Memory for so many halves of a lattice.
    fn new(domain: &Domain, half: usize, number: usize) -> Result<Self, FieldError> {
        Ok(Self { blocks: domain.device().buffer(number * half)?, half, log_det: Mutex::default() })
    }

    /// Where the blocks of a parity begin.
    fn offset(&self, parity: usize) -> usize {
        assert!(parity <= ODD, "there is no parity {parity}");
        parity * self.half
    }

    /// Where its inverse begins: with a square behind both.
    fn inverse_offset(&self, parity: usize, square: f64) -> usize {
        if square == 0.0 { self.offset(parity) } else { 2 * self.half }
    }
}

/// `out = A x` or `out = A^-1 x` on one parity, for each field; spinors and blocks have the same precision.
pub(crate) fn clover_apply(out: &mut Spinor, x: &Spinor, clover: &CloverBlocks) -> Result<(), FieldError> {
    let of = |s: &Spinor| (s.precision(), s.kind(), s.fields());
    assert_eq!(of(out), (x.precision(), Kind::Dirac, x.fields()), "spinors, equally many in and out");
    assert_eq!(
        (x.kind(), x.precision()),
        (Kind::Dirac, clover.precision),
        "spinors in the blocks' precision"
    );
    let (domain, precision) = (x.domain(), x.precision());
    domain.check([out.domain(), &clover.domain]);
    let layout = x.layout();
    (0..x.fields()).try_for_each(|n| {
        let (out, x) = (out.fermions_of_mut(n), x.fermions_of(n));
        let kernel = CloverApply { g: layout.geometry(), out, clover: clover.blocks(), x };
        domain.launch_as(precision, &kernel, layout.half())
    })
}

impl CloverTerm {
    /// Memory for the term, which is replaced by its inverse on the parities of `inverted`.
    ///
    /// # Panics
    /// A square goes with an inverse on odd sites, or with an exponential.
    pub fn new(domain: &Arc<Domain>, params: CloverParams, inverted: [bool; 2]) -> Result<Self, FieldError> {
        domain.check_border(1);
        let is_plain = !inverted[ODD] && params.form == CloverForm::Linear;
        assert!(params.square == 0.0 || is_plain, "a term with a square of the asymmetric form, linear in F");
        let name = format!("{params:?}, inverse {inverted:?}");
        let halves = if params.square == 0.0 { 2 } else { 3 };
        let content = Shared::new(domain, name, || Content::new(domain, bytes(domain) / 2, halves))?;
        Ok(Self { domain: Arc::clone(domain), params, content, inverted })
    }

    /// This rank's box.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// Builds the term on `links`, and inverts it where it is wanted.
    ///
    /// # Errors
    /// A pivot is not positive.
    pub fn update(&mut self, links: &MatrixField) -> Result<(), OperatorError> {
        let Self { domain, params, content, inverted } = self;
        domain.check([links.domain()]);
        let (g, half) = (domain.geometry(), domain.half());
        content.adopt(links.stamp(), |own| {
            if params.form == CloverForm::Exponential {
                params.build_exponent(links, &own.blocks)?;
                for (parity, inverted) in inverted.iter().enumerate() {
                    let clover = own.blocks.shared_output_at(own.offset(parity));
                    let (sign, power) = if *inverted { (-1.0, -1) } else { (1.0, 1) };
                    let factor = params.diagonal.powi(power);
                    let next = params.beside_walls().map(|next| next.powi(power));
                    let kernel = CloverExponential { g, clover, parity: int(parity), sign, factor, next };
                    domain.launch(&kernel, 2 * half)?;
                }
                return Ok(());
            }
            build(links, &own.blocks, [params.diagonal, 1.0], params.beside_walls(), params.c_sw)?;
            for parity in (0..2).filter(|parity| inverted[*parity]) {
                // In place, but for a square: each site is read before it is written.
                let to = own.inverse_offset(parity, params.square);
                let (clover, inverse) = (own.blocks.input(), own.blocks.shared_output_at(to));
                let kernel = CloverInvert { g, clover, inverse, parity: int(parity), square: params.square };
                let sums = domain.sum(&kernel, half)?.sums;
                let pivots = sums[1].value();
                if pivots != 0.0 {
                    return Err(OperatorError::Clover { pivots });
                }
                own.log_det.lock().expect("no panic holds it")[parity] = sums[0];
            }
            Ok(())
        })
    }

    /// As [`CloverTerm::update`], for a term that is inverted nowhere.
    pub(crate) fn build(&mut self, links: &MatrixField) -> Result<(), FieldError> {
        assert_eq!(self.inverted, [false; 2], "a term without inverses");
        match self.update(links) {
            Ok(()) | Err(OperatorError::Clover { .. }) => Ok(()),
            Err(OperatorError::Field(error)) => Err(error),
        }
    }

    fn on(&self, parity: usize) -> CloverBlocks {
        self.at(self.content.get().offset(parity))
    }

    /// The term on even sites, where a square keeps it beside the inverse.
    pub(crate) fn beside_inverse(&self) -> Option<CloverBlocks> {
        (self.params.square != 0.0).then(|| self.on(EVEN))
    }

    fn at(&self, offset: usize) -> CloverBlocks {
        let content = self.content.clone();
        CloverBlocks { domain: Arc::clone(&self.domain), content, offset, precision: Precision::Double }
    }

    /// The term on one parity.
    ///
    /// # Panics
    /// It is inverted there; a parity that is neither even nor odd.
    pub fn term(&self, parity: usize) -> CloverBlocks {
        let blocks = self.on(parity);
        assert!(!self.inverted[parity], "the term on parity {parity} was replaced by its inverse");
        blocks
    }

    /// Its inverse on one parity, if it is inverted there.
    pub fn inverse(&self, parity: usize) -> Option<CloverBlocks> {
        self.inverted[parity].then(|| self.at(self.content.get().inverse_offset(parity, self.params.square)))
    }

    /// `out = A x` on one parity, in double precision.
    ///
    /// # Panics
    /// The spinors are not in double precision, or their numbers differ.
    pub fn apply(&self, out: &mut Spinor, x: &Spinor, parity: usize) -> Result<(), FieldError> {
        clover_apply(out, x, &self.term(parity))
    }

    /// `sum over sites of log det A` over the parities with an inverse.
    pub fn log_det(&self) -> ExactSum {
        let [even, odd] = *self.content.get().log_det.lock().expect("no panic holds it");
        even + odd
    }

    /// Adds the contribution of `-2 weight Re y^dag dA x` on sites of `parity` to the insertion.
    pub fn insert_pair(
        &self,
        insertion: &mut Insertion,
        x: &Spinor,
        y: &Spinor,
        parity: usize,
        weight: f64,
    ) -> Result<(), FieldError> {
        let of = |s: &Spinor| (s.precision(), s.kind(), s.fields());
        assert_eq!([of(x), of(y)], [(Precision::Double, x.kind(), 1); 2], "single fields in double");
        assert_eq!(x.kind().reals(), Kind::Dirac.reals(), "fields of Dirac spinors");
        self.domain.check([insertion.planes.domain(), x.domain(), y.domain()]);
        let slices = x.kind().slices();
        let (g, x, y, number) = (self.domain.geometry(), x.fermions(), y.fermions(), number_of(parity));
        if self.params.form == CloverForm::Exponential {
            let blocks = insertion.blocks_of(self.params)?;
            let at = parity * blocks.bytes() / 2;
            let blocks = blocks.output_at(at);
            assert_eq!(slices, 1, "an exponential term of Dirac spinors");
            return self.domain.launch(&PairBlocks { g, blocks, x, y, weight }, self.domain.half());
        }
        let (insertion, scale) = (insertion.planes.matrices_mut(6), weight * self.params.c_sw);
        let kernel = InsertPair { g, insertion, x, y, parity: number, slices: int(slices), scale };
        self.domain.launch(&kernel, self.domain.half())
    }

    /// Adds the contribution of `-2 weight d log det A` to the insertion, over the parities with an inverse.
    pub fn insert_log_det(&self, insertion: &mut Insertion, weight: f64) -> Result<(), FieldError> {
        if self.params.form == CloverForm::Exponential {
            return Ok(());
        }
        let scale = weight * self.params.c_sw;
        if let (Some(inverse), Some(term)) = (self.inverse(EVEN), self.beside_inverse()) {
            // d log det (A^2 + square) / 2 = tr (A^2 + square)^-1 A dA
            let g = self.domain.geometry();
            let mut out = self.domain.device().buffer(self.content.get().half)?;
            let kernel = CloverProduct { g, out: out.output(), x: inverse.blocks(), y: term.blocks() };
            self.domain.launch(&kernel, self.domain.half())?;
            return insertion.add_blocks(EVEN, out.input(), scale);
        }
        (0..2).try_for_each(|parity| match self.inverse(parity) {
            Some(inverse) => insertion.add_blocks(parity, inverse.blocks(), scale),
            None => Ok(()),
        })
    }
}

/// Bytes of the blocks of both parities.
fn bytes(domain: &Domain) -> usize {
    2 * domain.half() * domain.lanes().count() * REALS * 8
}

/// `diagonal + scale F / c_sw` on both parities; in place of the diagonal stands `wall` on walls, and `next` beside them.
fn build(
    links: &MatrixField,
    blocks: &Buffer,
    [diagonal, wall]: [f64; 2],
    next: [f64; 2],
    scale: f64,
) -> Result<(), FieldError> {
    let domain = links.domain();
    let (g, links, clover) = (domain.geometry(), links.links(), blocks.shared_output());
    domain.launch(&CloverBuild { g, links, clover, diagonal, wall, next, scale }, 2 * 2 * domain.half())
}

impl CloverParams {
    /// `F / (4 + m0)`
    fn build_exponent(&self, links: &MatrixField, blocks: &Buffer) -> Result<(), FieldError> {
        build(links, blocks, [0.0; 2], [0.0; 2], self.c_sw / self.diagonal)
    }

    /// `4 + m0` beside the lower and the upper wall in time.
    fn beside_walls(&self) -> [f64; 2] {
        self.c_f.map(|c_f| self.diagonal + (c_f - 1.0))
    }
}

impl Insertion {
    /// Zero.
    pub fn new(domain: &Arc<Domain>) -> Result<Self, FieldError> {
        Ok(Self { planes: MatrixField::new(domain, 6)?, exponentials: Vec::new() })
    }

    /// Those of an exponential term.
    fn blocks_of(&mut self, params: CloverParams) -> Result<&mut Buffer, FieldError> {
        let known = self.exponentials.iter().position(|(own, _)| *own == params);
        let n = known.unwrap_or(self.exponentials.len());
        if known.is_none() {
            let domain = self.planes.domain();
            self.exponentials.push((params, domain.device().buffer(bytes(domain))?));
        }
        Ok(&mut self.exponentials[n].1)
    }

    /// Adds blocks on sites of a parity.
    fn add_blocks(&mut self, parity: usize, inverse: In<Clover>, scale: f64) -> Result<(), FieldError> {
        let domain = Arc::clone(self.planes.domain());
        let (g, insertion) = (domain.geometry(), self.planes.matrices_mut(6));
        let kernel = InsertInverse { g, insertion, inverse, parity: int(parity), scale };
        domain.launch(&kernel, domain.half())
    }

    /// Adds the force through the leaves of `links`.
    pub fn add_force(mut self, links: &MatrixField, force: &mut AlgebraField) -> Result<(), FieldError> {
        let domain = links.domain();
        domain.check([self.planes.domain(), force.domain()]);
        for (params, blocks) in std::mem::take(&mut self.exponentials) {
            let exponent = domain.device().buffer(blocks.bytes())?;
            params.build_exponent(links, &exponent)?;
            for parity in 0..2 {
                let (g, at) = (domain.geometry(), parity * blocks.bytes() / 2);
                let (clover, own) = (exponent.input_at(at), blocks.shared_output_at(at));
                let next = params.beside_walls().map(|next| next / params.diagonal);
                let kernel = ExponentialGradient { g, blocks: own, clover, parity: int(parity), next };
                domain.launch(&kernel, 2 * domain.half())?;
                self.add_blocks(parity, blocks.input_at(at), params.c_sw)?;
            }
        }
        self.planes.fill_borders_to(1)?;
        let (g, links, insertion) = (domain.geometry(), links.links(), self.planes.matrices(6));
        domain.launch(&CloverForce { g, links, insertion, force: force.algebra_mut() }, 4 * 2 * domain.half())
    }
}

/// `E` per site (not counting walls in time, where the field strength is zero) and the topological charge `Q` from the clover
/// field strength, traces removed:
/// `E = -sum_{mu<nu} tr F^2`, `Q = -sum_x tr(F_xy F_zt - F_xz F_yt + F_xt F_yz) / (4 pi^2)`.
pub fn field_energy(links: &MatrixField) -> Result<(f64, f64), FieldError> {
    let domain = links.domain();
    domain.check_border(1);
    let [energy, charge] = field_energy_of(links, -1)?;
    Ok((energy / domain.quark_volume(), charge))
}

/// The same for each slice, E per site of it.
pub fn slice_field_energy(links: &MatrixField) -> Result<Vec<(f64, f64)>, FieldError> {
    let (extent, volume) = (links.domain().partition().global[3], links.domain().global_volume());
    let of = |t: usize| {
        let [energy, charge] = field_energy_of(links, int(t))?;
        Ok((energy / (volume / extent as f64), charge))
    };
    (0..extent).map(of).collect()
}

/// Sums over a slice, or with -1 over all.
fn field_energy_of(links: &MatrixField, slice: i32) -> Result<[f64; 2], FieldError> {
    let domain = links.domain();
    let kernel = FieldEnergy { g: domain.geometry(), links: links.links(), slice };
    let sums = domain.sum(&kernel, 2 * domain.half())?.sums;
    Ok([sums[0].value(), sums[1].value()])
}
