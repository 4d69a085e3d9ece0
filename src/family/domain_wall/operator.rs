//! Domain-wall quarks with any weights, even-odd preconditioned in four dimensions, on odd sites.
//!
//! The operator on N_s slices is `D_5(m) = D_w (omega + sigma L) + 1 - L`. D_w is the Wilson operator of mass -M5, and
//! `L = P_+ L_+ + P_- L_-` shifts slices, with `-m` in the corner. With `Y = omega + sigma L` and
//!
//! ```text
//! T = omega^-1/2 Y X^-1 omega^1/2,   X = (4 - M5) Y + 1 - L:
//! omega^-1/2 D_5 Y^-1 omega^1/2 = T^-1 - D/2 = K,   C = 1 - T D_oe T D_eo / 4,
//! ```
//!
//! where D is the hopping term. det D_5 is det C times a determinant without links (Chiu, Phys. Rev. Lett. 90 (2003)
//! 071601, hep-lat/0209153; Mao, Chiu, TWQCD, PoS LATTICE2010 030). T is applied in O(N_s) operations
//! (`src/math/slices.rs`). The chiralities may have different masses, as the exact one-flavour action requires.

use super::OnSlices;
use crate::device::Precision;
use crate::device::kernels::{Epilogue, MOST_SLICES};
use crate::field::{Dagger, Domain, EVEN, FieldError, Kind, MatrixField, ODD, Spinor, Workspace};
use crate::lattice::Boundary;
use crate::math::{SliceMatrix, TwoTerms, WallWeights};
use crate::operator::{Ending, Operator, Way, WilsonLinks};
use std::sync::Arc;

/// The operator's parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct DomainWallParams {
    /// omega and sigma of each slice.
    pub weights: WallWeights,
    /// The height of the wall, above 0 and below 2.
    pub m5: f64,
    /// The mass m in the corners of L_+ and of L_-; 1 for Pauli-Villars.
    pub mass: [f64; 2],
    /// Factors of hops over the edge of the lattice.
    pub boundary: Boundary,
}

impl DomainWallParams {
    /// Slices of the fifth dimension.
    pub fn slices(&self) -> usize {
        self.weights.n_s()
    }

    /// The kind of a quark's fields.
    pub fn kind(&self) -> Kind {
        Kind::Wall(self.slices())
    }

    /// These parameters with other masses.
    #[must_use]
    pub fn with_mass(&self, mass: [f64; 2]) -> Self {
        Self { mass, ..self.clone() }
    }

    /// The mass whose [coupling](Self::coupling) lies the fraction `share` of the way from that of `one` to that of
    /// `other`.
    pub fn mass_between(&self, one: f64, other: f64, share: f64) -> f64 {
        // The coupling is linear in m / (1 + m g).
        let WallWeights { omega, sigma } = &self.weights;
        let g: f64 = omega.iter().zip(sigma).map(|(omega, sigma)| -sigma / omega).product();
        let [one, other] = [one, other].map(|m| m / (1.0 + m * g));
        let between = one + share * (other - one);
        between / (1.0 - between * g)
    }

    /// For each chirality, `numerator denominator^-1`, where both are matrices with the two terms below.
    fn quotients(
        &self,
        of: impl Fn(&Self) -> [Vec<f64>; 2],
        over: impl Fn(&Self) -> [Vec<f64>; 2],
    ) -> [SliceMatrix; 2] {
        let ([p, q], [over_p, over_q]) = (of(self), over(self));
        [0, 1].map(|chirality| {
            let (numerator, denominator) = (TwoTerms { p: &p, q: &q }, TwoTerms { p: &over_p, q: &over_q });
            SliceMatrix::quotient(chirality, numerator, denominator, self.mass[chirality])
        })
    }

    /// `omega + sigma L`
    fn y(&self) -> [Vec<f64>; 2] {
        [self.weights.omega.clone(), self.weights.sigma.clone()]
    }

    /// `(4 - M5) Y + 1 - L`
    fn x(&self) -> [Vec<f64>; 2] {
        let of = |weights: &[f64], unit: f64| weights.iter().map(|w| (4.0 - self.m5) * w + unit).collect();
        [of(&self.weights.omega, 1.0), of(&self.weights.sigma, -1.0)]
    }

    fn constants(&self, p: f64, q: f64) -> [Vec<f64>; 2] {
        [vec![p; self.slices()], vec![q; self.slices()]]
    }

    /// `omega^power`
    pub fn omega(&self, power: f64) -> Vec<f64> {
        self.weights.omega.iter().map(|w| w.powf(power)).collect()
    }

    /// `omega^-1/2 t omega^1/2`
    fn symmetrised(&self, t: [SliceMatrix; 2]) -> [SliceMatrix; 2] {
        let [below, above] = [-0.5, 0.5].map(|power| self.omega(power));
        t.map(|t| t.between(&below, &above))
    }

    /// T for each chirality.
    pub fn propagator(&self) -> [SliceMatrix; 2] {
        self.symmetrised(self.quotients(Self::y, Self::x))
    }

    /// `omega^-1/2 (1 - L) Y^-1 omega^1/2` for each chirality: the part of K from the fifth dimension.
    pub fn coupling(&self) -> [SliceMatrix; 2] {
        self.symmetrised(self.quotients(|p| p.constants(1.0, -1.0), Self::y))
    }

    /// X and Y for each chirality.
    pub fn factors(&self) -> [[SliceMatrix; 2]; 2] {
        let one = |p: &Self| p.constants(1.0, 0.0);
        [self.quotients(Self::x, one), self.quotients(Self::y, one)]
    }

    /// One number per slice, for each chirality.
    pub fn diagonal(&self, numbers: &[f64]) -> [SliceMatrix; 2] {
        let zero = vec![0.0; numbers.len()];
        self.quotients(|_| [numbers.to_vec(), zero.clone()], |p| p.constants(1.0, 0.0))
    }

    /// `Y^-1 omega^1/2` for each chirality: it takes the solution of `K z = omega^-1/2 b` to that of `D_5 x = b`.
    pub fn to_quark(&self) -> [SliceMatrix; 2] {
        let (unit, above) = (vec![1.0; self.slices()], self.omega(0.5));
        self.quotients(|p| p.constants(1.0, 0.0), Self::y).map(|t| t.between(&unit, &above))
    }
}

/// The preconditioned operator in one precision, `M = C^dag`, so that `M^dag M = C C^dag`.
pub struct DomainWall {
    params: DomainWallParams,
    links: WilsonLinks,
    /// T / 2 and its transpose.
    half: [OnSlices; 2],
    spare: [Workspace; 2],
}

impl DomainWall {
    /// Memory for the operator with links of `reals` (18, 12 or 8), for `fields` right-hand sides at once.
    ///
    /// # Panics
    /// An omega is not positive, or there are more than 48 slices.
    pub fn several(
        domain: &Arc<Domain>,
        precision: Precision,
        reals: usize,
        fields: usize,
        params: &DomainWallParams,
    ) -> Result<Self, FieldError> {
        domain.require_periodic("domain-wall quarks")?;
        assert!(params.weights.omega.iter().all(|&omega| omega > 0.0), "the weights omega are positive");
        assert!(params.slices() <= MOST_SLICES, "the fifth dimension has {MOST_SLICES} slices at most");
        let room = |number| Workspace::new(domain, params.kind(), precision, fields, number);
        let links = WilsonLinks::new(domain, precision, reals, fields * params.slices(), params.boundary)?;
        Ok(Self {
            half: halves(domain, precision, params)?,
            params: params.clone(),
            links,
            spare: [room(0)?, room(1)?],
        })
    }

    /// The parameters.
    pub fn params(&self) -> &DomainWallParams {
        &self.params
    }

    /// The hopping term.
    pub fn links(&mut self) -> &mut WilsonLinks {
        &mut self.links
    }

    /// Adopts new links.
    pub fn update(&mut self, links: &MatrixField) -> Result<(), FieldError> {
        self.links.update(links)
    }

    /// Changes the masses.
    pub fn set_mass(&mut self, mass: [f64; 2]) -> Result<(), FieldError> {
        self.params.mass = mass;
        self.half = halves(self.links.domain(), self.links.precision(), &self.params)?;
        Ok(())
    }

    /// `out = scale T x + shift y`, or with the adjoint of T, on either parity.
    pub fn propagate(
        &self,
        out: &mut Spinor,
        x: &Spinor,
        dagger: Dagger,
        scale: f64,
        shifted: Option<(f64, &Spinor)>,
    ) -> Result<(), FieldError> {
        self.half[dagger as usize].apply(out, x, 2.0 * scale, shifted)
    }

    /// `out = C x`, or `C^dag x`.
    pub fn schur(&mut self, out: &mut Spinor, x: &Spinor, dagger: Dagger) -> Result<(), FieldError> {
        let Self { links, half: [half, transposed], spare, .. } = self;
        let [one, other] = &mut spare.each_ref().map(|spare| spare.like(x));
        if dagger == Dagger::Yes {
            transposed.apply(one, x, 1.0, None)?;
            transposed.apply_after_hop(links, other, one, (EVEN, Dagger::Yes), 1.0, None)?;
            let end = Ending { epilogue: Epilogue::Shift, x: Some(x), shift: 1.0, ..Ending::plain(1.0) };
            links.run(out, other, ODD, Way::all(Dagger::Yes), &end)
        } else {
            half.apply_after_hop(links, one, x, (EVEN, Dagger::No), 1.0, None)?;
            half.apply_after_hop(links, out, one, (ODD, Dagger::No), -1.0, Some((1.0, x)))
        }
    }

    /// The even part of the force's right spinors, `out_e = T D_eo x_o / 2`.
    pub fn complete(&mut self, out: &mut Spinor, x: &Spinor) -> Result<(), FieldError> {
        let Self { links, half: [half, _], .. } = self;
        half.apply_after_hop(links, out, x, (EVEN, Dagger::No), 1.0, None)
    }

    /// The even part of the force's left spinors, `out_e = T^dag D_oe^dag x_o / 2`.
    pub fn complete_adjoint(&mut self, out: &mut Spinor, x: &Spinor) -> Result<(), FieldError> {
        let Self { links, half: [_, transposed], .. } = self;
        transposed.apply_after_hop(links, out, x, (EVEN, Dagger::Yes), 1.0, None)
    }

    /// The right-hand side of `C z_o = out` from `K z = b`: `T (b_o + D_oe T b_e / 2)`.
    pub fn prepare(&mut self, out: &mut Spinor, b_even: &Spinor, b_odd: &Spinor) -> Result<(), FieldError> {
        let Self { links, half: [half, _], spare, .. } = self;
        let [one, other] = &mut spare.each_ref().map(|spare| spare.like(b_odd));
        half.apply(one, b_even, 1.0, None)?;
        let plain = Ending::plain(1.0);
        // b - (-1) D T b_e / 2
        let end = Ending { epilogue: Epilogue::Shift, x: Some(b_odd), shift: 1.0, scale: -1.0, ..plain };
        links.run(other, one, ODD, Way::all(Dagger::No), &end)?;
        half.apply(out, other, 2.0, None)
    }

    /// The even part of the solution, `z_e = T (b_e + D_eo z_o / 2)`.
    pub fn finish(&mut self, z_even: &mut Spinor, z_odd: &Spinor, b_even: &Spinor) -> Result<(), FieldError> {
        let plain = Ending::plain(1.0);
        let end = Ending { epilogue: Epilogue::Shift, x: Some(b_even), shift: 1.0, scale: -0.5, ..plain };
        let Self { links, half: [half, _], spare: [spare, _], .. } = self;
        let spare = &mut *spare.like(b_even);
        links.run(spare, z_odd, EVEN, Way::all(Dagger::No), &end)?;
        half.apply(z_even, spare, 2.0, None)
    }
}

/// T / 2 and its transpose.
fn halves(
    domain: &Domain,
    precision: Precision,
    params: &DomainWallParams,
) -> Result<[OnSlices; 2], FieldError> {
    let t = params.propagator().map(|t| t.scaled(0.5));
    let transposed = t.clone().map(SliceMatrix::transposed);
    Ok([OnSlices::new(domain, precision, &t)?, OnSlices::new(domain, precision, &transposed)?])
}

impl Operator for DomainWall {
    fn domain(&self) -> &Arc<Domain> {
        self.links.domain()
    }

    fn precision(&self) -> Precision {
        self.links.precision()
    }

    fn kind(&self) -> Kind {
        self.params.kind()
    }

    fn apply(&mut self, out: &mut Spinor, x: &Spinor, dagger: Dagger) -> Result<(), FieldError> {
        self.schur(out, x, !dagger)
    }
}
