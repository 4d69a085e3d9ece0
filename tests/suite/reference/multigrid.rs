//! Two-level adaptive aggregation multigrid of the full Wilson-clover operator (Brannick et al., arXiv:0707.4018; Babich et al.,
//! arXiv:1005.3043; its set-up by inverse iterations as in Frommer et al., arXiv:1303.1377). The coarse operator is a dense
//! matrix, made column by column from P^dag M P, and its systems are solved by elimination.

use super::domain_wall::{Dense, dense, inverse};
use super::wilson::{Dirac, Spinor, axpy, dot, random_field, restrict, zero_field};
use hmc::lattice::{Extents, coordinates, volume};
use num_complex::Complex64;
use rayon::prelude::*;

/// Aggregates of sites, which keep chirality: spins 0, 1 and spins 2, 3 are apart.
#[derive(Clone, Copy, Debug)]
pub struct Aggregates {
    /// Of the lattice.
    pub lattice: Extents,
    /// Of one aggregate.
    pub block: Extents,
}

impl Aggregates {
    /// Their number in each direction.
    pub fn counts(&self) -> Extents {
        std::array::from_fn(|mu| self.lattice[mu] / self.block[mu])
    }

    /// The aggregate of a site.
    pub fn of(&self, site: usize) -> usize {
        let (x, counts) = (coordinates(self.lattice, site), self.counts());
        (0..4).rev().fold(0, |index, mu| index * counts[mu] + x[mu] / self.block[mu])
    }
}

/// A two-level hierarchy.
pub struct TwoLevel<'a> {
    dirac: &'a Dirac<'a>,
    aggregates: Aggregates,
    /// The vectors of P, orthonormal in each aggregate and chirality.
    vectors: Vec<Vec<Spinor>>,
    /// P^dag M P and its inverse.
    pub coarse: Dense,
    inverse: Dense,
    /// Minimal-residual steps after the coarse correction.
    steps: usize,
}

/// Minimal-residual steps for M x = b on the odd sites, with the Schur complement A_oo - H_oe A_ee^-1 H_eo; the even sites
/// follow exactly.
pub fn smooth(dirac: &Dirac, x: &mut [Spinor], b: &[Spinor], steps: usize) {
    let extents = dirac.gauge.extents;
    let part = |psi: &[Spinor], parity| restrict(extents, psi, parity);
    let r = axpy(b, -1.0, &dirac.apply(x));
    let inner = part(&dirac.diagonal_inverse(&r), 0);
    let mut r = axpy(&part(&r, 1), -1.0, &part(&dirac.hop(&inner), 1));
    let mut change = zero_field(extents);
    for _ in 0..steps {
        let product = dirac.schur_asymmetric(&r);
        let length = dot(&product, &r) / dot(&product, &product).re;
        add(&mut change, length, &r);
        add(&mut r, -length, &product);
    }
    let even = axpy(&inner, -1.0, &part(&dirac.diagonal_inverse(&dirac.hop(&change)), 0));
    let one = Complex64::from(1.0);
    add(x, one, &change);
    add(x, one, &even);
}

fn add(x: &mut [Spinor], a: Complex64, y: &[Spinor]) {
    for (x, y) in x.iter_mut().flatten().flatten().zip(y.iter().flatten().flatten()) {
        *x += a * y;
    }
}

/// |a|
pub fn norm(a: &[Spinor]) -> f64 {
    dot(a, a).re.sqrt()
}

impl<'a> TwoLevel<'a> {
    /// `count` vectors: random ones smoothed `steps` times, then `rounds` times replaced by what a cycle makes of them.
    pub fn new(
        dirac: &'a Dirac<'a>,
        aggregates: Aggregates,
        count: usize,
        steps: usize,
        rounds: usize,
    ) -> Self {
        let zero = zero_field(aggregates.lattice);
        let first = |n: usize| {
            let mut v = random_field(aggregates.lattice, 1000 + n as u64);
            smooth(dirac, &mut v, &zero, 4 * steps);
            v
        };
        let vectors = (0..count).into_par_iter().map(first).collect();
        let mut made = Self::of(dirac, aggregates, vectors, steps);
        for _ in 0..rounds {
            let better = made.vectors.par_iter().map(|v| made.cycle(v)).collect();
            made = Self::of(dirac, aggregates, better, steps);
        }
        made
    }

    fn of(dirac: &'a Dirac<'a>, aggregates: Aggregates, vectors: Vec<Vec<Spinor>>, steps: usize) -> Self {
        let vectors = orthonormal(aggregates, vectors);
        let mut made = Self { dirac, aggregates, vectors, coarse: Vec::new(), inverse: Vec::new(), steps };
        let unit =
            |column| (0..made.size()).map(move |row| Complex64::from(f64::from(u8::from(row == column))));
        let columns: Vec<Vec<Complex64>> = (0..made.size())
            .into_par_iter()
            .map(|column| made.restrict(&dirac.apply(&made.prolong(&unit(column).collect::<Vec<_>>()))))
            .collect();
        made.coarse = dense(made.size(), |i, j| columns[j][i]);
        made.inverse = inverse(&made.coarse);
        made
    }

    /// The number of coarse components: for each aggregate, chirality and vector.
    pub fn size(&self) -> usize {
        volume(self.aggregates.counts()) * 2 * self.vectors.len()
    }

    fn index(&self, site: usize, spin: usize) -> usize {
        (self.aggregates.of(site) * 2 + spin / 2) * self.vectors.len()
    }

    /// P c
    pub fn prolong(&self, c: &[Complex64]) -> Vec<Spinor> {
        let mut out = zero_field(self.aggregates.lattice);
        for (site, out) in out.iter_mut().enumerate() {
            for (spin, out) in out.iter_mut().enumerate() {
                for (c, v) in c[self.index(site, spin)..].iter().zip(&self.vectors) {
                    (0..3).for_each(|colour| out[colour] += c * v[site][spin][colour]);
                }
            }
        }
        out
    }

    /// P^dag psi
    pub fn restrict(&self, psi: &[Spinor]) -> Vec<Complex64> {
        let mut out = vec![Complex64::default(); self.size()];
        for (site, psi) in psi.iter().enumerate() {
            for (spin, psi) in psi.iter().enumerate() {
                let at = self.index(site, spin);
                for (out, v) in out[at..].iter_mut().zip(&self.vectors) {
                    *out +=
                        (0..3).map(|colour| v[site][spin][colour].conj() * psi[colour]).sum::<Complex64>();
                }
            }
        }
        out
    }

    /// The coarse solution of A c = P^dag r, prolonged.
    pub fn correction(&self, r: &[Spinor]) -> Vec<Spinor> {
        let r = self.restrict(r);
        let row = |row: &Vec<Complex64>| row.iter().zip(&r).map(|(a, r)| a * r).sum();
        self.prolong(&self.inverse.iter().map(row).collect::<Vec<Complex64>>())
    }

    /// What a cycle makes of a residual: the coarse correction, then the smoother.
    pub fn cycle(&self, r: &[Spinor]) -> Vec<Spinor> {
        let mut x = self.correction(r);
        smooth(self.dirac, &mut x, r, self.steps);
        x
    }
}

/// Vectors orthonormal in each aggregate and chirality: Gram-Schmidt, twice.
fn orthonormal(aggregates: Aggregates, mut vectors: Vec<Vec<Spinor>>) -> Vec<Vec<Spinor>> {
    let sites = 0..volume(aggregates.lattice);
    for aggregate in 0..volume(aggregates.counts()) {
        let own: Vec<usize> = sites.clone().filter(|site| aggregates.of(*site) == aggregate).collect();
        for chirality in 0..2 {
            let spins = 2 * chirality..2 * chirality + 2;
            let all = || own.iter().flat_map(|site| spins.clone().map(move |spin| (*site, spin)));
            for n in 0..vectors.len() {
                let (past, rest) = vectors.split_at_mut(n);
                let v = &mut rest[0];
                for u in past.iter().chain(past.iter()) {
                    let overlap: Complex64 = all()
                        .map(|(x, s)| (0..3).map(|c| u[x][s][c].conj() * v[x][s][c]).sum::<Complex64>())
                        .sum();
                    all().for_each(|(x, s)| (0..3).for_each(|c| v[x][s][c] -= overlap * u[x][s][c]));
                }
                let square: f64 =
                    all().map(|(x, s)| v[x][s].iter().map(Complex64::norm_sqr).sum::<f64>()).sum();
                all().for_each(|(x, s)| v[x][s].iter_mut().for_each(|z| *z /= square.sqrt()));
            }
        }
    }
    vectors
}

/// Flexible GCR for M x = b from zero: the residuals of its iterations relative to |b|, until `tolerance` or `most`.
pub fn gcr(
    dirac: &Dirac,
    preconditioner: impl Fn(&[Spinor]) -> Vec<Spinor>,
    b: &[Spinor],
    tolerance: f64,
    most: usize,
) -> Vec<f64> {
    let (mut r, mut images, mut fell): (Vec<Spinor>, Vec<Vec<Spinor>>, Vec<f64>) =
        (b.to_vec(), vec![], vec![]);
    while fell.last().is_none_or(|last| *last > tolerance) && fell.len() < most {
        let mut z = dirac.apply(&preconditioner(&r));
        for past in &images {
            let overlap = dot(past, &z);
            add(&mut z, -overlap, past);
        }
        let size = norm(&z);
        z.iter_mut().flatten().flatten().for_each(|c| *c /= size);
        let overlap = dot(&z, &r);
        add(&mut r, -overlap, &z);
        images.push(z);
        fell.push(norm(&r) / norm(b));
    }
    fell
}
