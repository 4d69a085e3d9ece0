//! Improved staggered quarks: smeared links (fat7, asqtad, HISQ), the operator, the pion correlator.
//!
//! (D chi)(x) = sum_mu eta_mu(x) { X_mu(x) chi(x+mu) - X_mu(x-mu)^dag chi(x-mu)
//!                               + N_mu(x) chi(x+3mu) - N_mu(x-3mu)^dag chi(x-3mu) },  M = 2m + D,
//! eta_t = 1, eta_x = (-1)^t, eta_y = (-1)^(t+x), eta_z = (-1)^(t+x+y): MILC's phases and normalisation.
//! Each time a hop passes the edge of the lattice it gets e^{i pi theta_mu} forward, the conjugate backward.
//!
//! X is a sum over paths from x+mu to x, N a multiple of U_mu(x) U_mu(x+mu) U_mu(x+2mu), both of links without
//! phases: Orginos, Toussaint, Sugar, hep-lat/9903032; Lepage, hep-lat/9809157. HISQ: Follana et al.,
//! hep-lat/0610092; MILC, 1004.0342.

use super::gauge::{Gauge, Step, neighbour, parity};
use super::su3::{self, I, M3, Rng, ZERO};
use hmc::lattice::{Extents, coordinates, volume};
use num_complex::Complex64;

/// A colour vector.
pub type Vector = [Complex64; 3];

/// Antiperiodic in time: theta in units of pi.
pub const ANTIPERIODIC: [f64; 4] = [0.0, 0.0, 0.0, 1.0];

/// What each kind of path is multiplied by; a path beside mu comes with every choice of transverse directions
/// and signs: 1, 6, 24, 48 and 6 paths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paths {
    /// U_mu.
    pub one: f64,
    /// nu, mu, -nu.
    pub three: f64,
    /// nu, rho, mu, -rho, -nu.
    pub five: f64,
    /// nu, rho, sigma, mu, -sigma, -rho, -nu.
    pub seven: f64,
    /// nu, nu, mu, -nu, -nu.
    pub lepage: f64,
    /// mu, mu, mu: the long link.
    pub naik: f64,
}

impl Paths {
    /// The first smearing of HISQ: tree-level couplings to gluons of momentum pi vanish.
    pub fn fat7() -> Self {
        let (three, five, seven) = (1.0 / 16.0, 1.0 / 64.0, 1.0 / 384.0);
        Self { one: 1.0 / 8.0, three, five, seven, lepage: 0.0, naik: 0.0 }
    }

    /// asqtad: each path of n links divided by u0^(n-1).
    pub fn asqtad(u0: f64) -> Self {
        let fat7 = Self::fat7();
        Self {
            one: 5.0 / 8.0,
            three: fat7.three / u0.powi(2),
            five: fat7.five / u0.powi(4),
            seven: fat7.seven / u0.powi(6),
            lepage: -1.0 / 16.0 / u0.powi(4),
            naik: -1.0 / 24.0 / u0.powi(2),
        }
    }

    /// The second smearing of HISQ; eps_N is the charm quark's correction.
    pub fn hisq(eps_naik: f64) -> Self {
        let (one, naik) = (1.0 + eps_naik / 8.0, -(1.0 + eps_naik) / 24.0);
        Self { one, lepage: -1.0 / 8.0, naik, ..Self::fat7() }
    }

    /// The paths of X_mu with their coefficients.
    pub fn fat(&self, mu: usize) -> Vec<(f64, Vec<Step>)> {
        let mut paths = Vec::new();
        let mut around = |coefficient: f64, out: &[Step]| {
            let back = out.iter().rev().map(|&(nu, sign)| (nu, -sign));
            paths.push((coefficient, out.iter().copied().chain([(mu, 1)]).chain(back).collect()));
        };
        let sides = || (0..4).filter(|&nu| nu != mu).flat_map(|nu| [(nu, 1), (nu, -1)]);
        around(self.one, &[]);
        for a in sides() {
            around(self.three, &[a]);
            around(self.lepage, &[a, a]);
            for b in sides().filter(|b| b.0 != a.0) {
                around(self.five, &[a, b]);
                for c in sides().filter(|c| c.0 != a.0 && c.0 != b.0) {
                    around(self.seven, &[a, b, c]);
                }
            }
        }
        paths
    }

    /// The path of N_mu with its coefficient.
    pub fn long(&self, mu: usize) -> Vec<(f64, Vec<Step>)> {
        vec![(self.naik, vec![(mu, 1); 3])]
    }
}

/// At each link the sum over `paths(mu)` of coefficient times product: no longer unitary.
pub fn smear(gauge: &Gauge, paths: impl Fn(usize) -> Vec<(f64, Vec<Step>)>) -> Gauge {
    let mut links = vec![[su3::zero(); 4]; gauge.links.len()];
    for mu in 0..4 {
        for (coefficient, path) in paths(mu).iter().filter(|(coefficient, _)| *coefficient != 0.0) {
            for (x, sums) in links.iter_mut().enumerate() {
                sums[mu] = su3::add(&sums[mu], &su3::scale(*coefficient, &gauge.product(x, path)));
            }
        }
    }
    Gauge { extents: gauge.extents, links }
}

/// W = V (V^dag V)^(-1/2), the unitary factor of V. One-sided Jacobi: rotations J of pairs of columns until
/// those of A = V J are orthogonal, A = Q diag(s), Q and J unitary; then V = Q diag(s) J^dag and W = Q J^dag. Small
/// singular values s keep their digits (Demmel, Veselic, SIAM J. Matrix Anal. Appl. 13, 1204 (1992)).
pub fn project_u3(v: &M3) -> M3 {
    // Row k is column k of A and of J.
    let (mut a, mut j) = (su3::adjoint(v).map(|row| row.map(|z| z.conj())), su3::one());
    let product = |a: &Vector, b: &Vector| -> Complex64 { (0..3).map(|i| a[i].conj() * b[i]).sum() };
    for sweep in 0.. {
        assert!(sweep < 60, "no convergence for {v:?}");
        let mut rotated = false;
        for (p, q) in [(0, 1), (0, 2), (1, 2)] {
            let overlap = product(&a[p], &a[q]);
            let (length_p, length_q) = (product(&a[p], &a[p]).re, product(&a[q], &a[q]).re);
            // Rounding of the product of two columns.
            if overlap.norm() <= 1e-15 * (length_p * length_q).sqrt() {
                continue;
            }
            rotated = true;
            let zeta = (length_q - length_p) / (2.0 * overlap.norm());
            let tan = zeta.signum() / (zeta.abs() + 1.0_f64.hypot(zeta));
            let cos = 1.0 / 1.0_f64.hypot(tan);
            let (sin, phase) = (cos * tan, overlap / overlap.norm());
            for columns in [&mut a, &mut j] {
                let (old_p, old_q) = (columns[p], columns[q]);
                for i in 0..3 {
                    columns[p][i] = cos * old_p[i] - sin * phase.conj() * old_q[i];
                    columns[q][i] = sin * phase * old_p[i] + cos * old_q[i];
                }
            }
        }
        if !rotated {
            break;
        }
    }
    let s: [f64; 3] = std::array::from_fn(|k| product(&a[k], &a[k]).re.sqrt());
    assert!(s.iter().all(|&s| s > 0.0), "singular: {v:?}");
    std::array::from_fn(|i| std::array::from_fn(|l| (0..3).map(|k| a[k][i] * j[k][l].conj() / s[k]).sum()))
}

/// HISQ's W: fat7 of U, projected to U(3), not to SU(3).
pub fn reunitarised_fat7(gauge: &Gauge) -> Gauge {
    let v = smear(gauge, |mu| Paths::fat7().fat(mu));
    Gauge { extents: v.extents, links: v.links.iter().map(|v| v.map(|v| project_u3(&v))).collect() }
}

/// eta_mu(x).
pub fn eta(extents: Extents, x: usize, mu: usize) -> f64 {
    let [x, y, _, t] = coordinates(extents, x);
    let power = [t, t + x, t + x + y, 0][mu];
    if power % 2 == 0 { 1.0 } else { -1.0 }
}

/// Where a hop leads, and its factor.
type Hop = (usize, Complex64);

/// So many steps, and the phase of the edges passed.
fn walk(extents: Extents, x: usize, step: Step, length: usize, theta: f64) -> Hop {
    let (mu, sign) = step;
    let (mut y, mut edges) = (x, 0.0);
    for _ in 0..length {
        let next = neighbour(extents, y, step);
        let entered = coordinates(extents, if sign > 0 { next } else { y })[mu];
        if entered == 0 {
            edges += f64::from(sign);
        }
        y = next;
    }
    (y, (I * std::f64::consts::PI * theta * edges).exp())
}

/// D of given links.
pub struct Staggered {
    /// X.
    pub fat: Gauge,
    /// N.
    pub long: Gauge,
    /// For each site, hops forward and backward by one and by three: where to, and eta_mu times the phase.
    hops: Vec<[[[Hop; 2]; 2]; 4]>,
}

impl Staggered {
    /// asqtad.
    pub fn asqtad(gauge: &Gauge, u0: f64, phases: [f64; 4]) -> Self {
        Self::of_paths(gauge, &Paths::asqtad(u0), phases)
    }

    /// HISQ.
    pub fn hisq(gauge: &Gauge, eps_naik: f64, phases: [f64; 4]) -> Self {
        Self::of_paths(&reunitarised_fat7(gauge), &Paths::hisq(eps_naik), phases)
    }

    /// The links given, each smeared once.
    pub fn of_paths(gauge: &Gauge, paths: &Paths, phases: [f64; 4]) -> Self {
        Self::of_links(smear(gauge, |mu| paths.fat(mu)), smear(gauge, |mu| paths.long(mu)), phases)
    }

    /// X and N as they are.
    pub fn of_links(fat: Gauge, long: Gauge, phases: [f64; 4]) -> Self {
        let extents = fat.extents;
        let hop = |x, mu, sign, length| {
            let (y, phase) = walk(extents, x, (mu, sign), length, phases[mu]);
            (y, eta(extents, x, mu) * phase)
        };
        let both = |x, mu, length| [hop(x, mu, 1, length), hop(x, mu, -1, length)];
        let hops = |x| std::array::from_fn(|mu| [both(x, mu, 1), both(x, mu, 3)]);
        Self { fat, long, hops: (0..volume(extents)).map(hops).collect() }
    }

    /// D chi.
    pub fn apply(&self, chi: &[Vector]) -> Vec<Vector> {
        let row = |x: usize| {
            let mut sum = [ZERO; 3];
            for mu in 0..4 {
                for (links, hop) in [&self.fat.links, &self.long.links].into_iter().zip(&self.hops[x][mu]) {
                    let [(ahead, phase), (behind, back)] = *hop;
                    let forward = su3::mul_vector(&links[x][mu], &chi[ahead]);
                    let backward = su3::mul_vector(&su3::adjoint(&links[behind][mu]), &chi[behind]);
                    for c in 0..3 {
                        sum[c] += phase * forward[c] - back * backward[c];
                    }
                }
            }
            sum
        };
        (0..chi.len()).map(row).collect()
    }

    /// M^dag M chi = (4 m^2 - D^2) chi: a field on the sites of one parity stays there.
    pub fn normal(&self, mass: f64, chi: &[Vector]) -> Vec<Vector> {
        self.shifted(4.0 * mass * mass, chi)
    }

    /// (shift - D^2) chi.
    pub fn shifted(&self, shift: f64, chi: &[Vector]) -> Vec<Vector> {
        axpy(&scaled(shift, chi), -1.0, &self.apply(&self.apply(chi)))
    }

    /// (M^dag M)^(-1) b by conjugate gradients, to a residual relative to |b|.
    pub fn solve_normal(&self, mass: f64, b: &[Vector], tolerance: f64) -> Vec<Vector> {
        self.solve_shifted(4.0 * mass * mass, b, tolerance)
    }

    /// (shift - D^2)^(-1) b.
    pub fn solve_shifted(&self, shift: f64, b: &[Vector], tolerance: f64) -> Vec<Vector> {
        let (mut x, mut r, mut p) = (scaled(0.0, b), b.to_vec(), b.to_vec());
        let goal = dot(b, b).re * tolerance * tolerance;
        let mut rr = dot(&r, &r).re;
        for _ in 0..10_000 {
            if rr <= goal {
                return x;
            }
            let ap = self.shifted(shift, &p);
            let alpha = rr / dot(&p, &ap).re;
            x = axpy(&x, alpha, &p);
            r = axpy(&r, -alpha, &ap);
            let old = std::mem::replace(&mut rr, dot(&r, &r).re);
            p = axpy(&r, rr / old, &p);
        }
        panic!("no convergence: {:e}", (rr / dot(b, b).re).sqrt());
    }
}

/// Real and imaginary parts unit Gaussians.
pub fn random_field(extents: Extents, seed: u64) -> Vec<Vector> {
    let mut rng = Rng(seed);
    (0..volume(extents)).map(|_| std::array::from_fn(|_| rng.complex())).collect()
}

/// chi on the sites of parity p, 0 elsewhere.
pub fn restrict(extents: Extents, chi: &[Vector], p: usize) -> Vec<Vector> {
    let at = |(x, chi): (usize, &Vector)| if parity(extents, x) == p { *chi } else { [ZERO; 3] };
    chi.iter().enumerate().map(at).collect()
}

/// sum conj(a) b.
pub fn dot(a: &[Vector], b: &[Vector]) -> Complex64 {
    a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| a.conj() * b).sum()
}

/// s a.
pub fn scaled(s: f64, a: &[Vector]) -> Vec<Vector> {
    a.iter().map(|a| a.map(|a| s * a)).collect()
}

/// a + s b.
pub fn axpy(a: &[Vector], s: f64, b: &[Vector]) -> Vec<Vector> {
    a.iter().zip(b).map(|(a, b)| std::array::from_fn(|c| a[c] + s * b[c])).collect()
}

/// g(x) chi(x).
pub fn transformed(chi: &[Vector], g: &[M3]) -> Vec<Vector> {
    chi.iter().zip(g).map(|(chi, g)| su3::mul_vector(g, chi)).collect()
}

/// As the program's fields have them: real and imaginary part of colour 0, ...
pub fn reals(field: &[Vector]) -> Vec<f64> {
    field.iter().flatten().flat_map(|z| [z.re, z.im]).collect()
}

/// The inverse of [`reals`].
pub fn vectors(reals: &[f64]) -> Vec<Vector> {
    reals.chunks_exact(6).map(|z| std::array::from_fn(|c| Complex64::new(z[2 * c], z[2 * c + 1]))).collect()
}

/// MILC's test vector, chi(x)_c = sin(1+.7x+1.3y+.4z+2.1t+.9c) + i cos(.3+1.1x+.6y+1.7z+.8t+.5c).
pub fn sincos(extents: Extents) -> Vec<Vector> {
    let entry = |x: usize, c: usize| {
        let v = coordinates(extents, x).map(|x| x as f64);
        let a = 1.0 + 0.7 * v[0] + 1.3 * v[1] + 0.4 * v[2] + 2.1 * v[3] + 0.9 * c as f64;
        let b = 0.3 + 1.1 * v[0] + 0.6 * v[1] + 1.7 * v[2] + 0.8 * v[3] + 0.5 * c as f64;
        Complex64::new(a.sin(), b.cos())
    };
    (0..volume(extents)).map(|x| std::array::from_fn(|c| entry(x, c))).collect()
}
