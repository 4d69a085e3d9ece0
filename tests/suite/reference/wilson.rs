//! Wilson-clover operator in the DeGrand-Rossi basis.
//!
//! (M psi)(x) = A(x) psi(x) - (1/2) sum_mu [ (1-g_mu) U_mu(x) psi(x+mu) + (1+g_mu) U_mu(x-mu)^dag psi(x-mu) ],
//! A(x) = 4 + m0 + c_sw (i/4) sum_{mu,nu} sigma_{mu nu} F_{mu nu}(x), sigma = (i/2) [g_mu, g_nu].
//! The hop that leaves the lattice forward gets e^{i pi theta_mu}, the one backward its conjugate.
//!
//! Gammas: g_mu = ((0, e_mu), (e_mu^dag, 0)), e = (i s_1, -i s_2, i s_3, 1) for x, y, z, t;
//! g5 = g_x g_y g_z g_t = diag(1, 1, -1, -1).

use super::block::{M12, eliminate};
use super::flow::field_strength;
use super::gauge::{Gauge, neighbour, parity};
use super::su3::{self, I, M3, ONE, Rng, ZERO};
use hmc::lattice::{Extents, coordinates, site, volume};
use num_complex::Complex64;

/// `[spin][colour]`.
pub type Spinor = [[Complex64; 3]; 4];
/// Matrix of spin.
pub type M4 = [[Complex64; 4]; 4];

/// Mass, clover coefficient, boundary phases.
#[derive(Clone, Copy, Debug)]
pub struct Parameters {
    /// m0.
    pub mass: f64,
    /// c_sw.
    pub c_sw: f64,
    /// theta in units of pi: x, y, z, t.
    pub phases: [f64; 4],
}

impl Parameters {
    /// Periodic in space, antiperiodic in time; m0 = 1/(2 kappa) - 4.
    pub fn from_kappa(kappa: f64, c_sw: f64) -> Self {
        Self { mass: 0.5 / kappa - 4.0, c_sw, phases: [0.0, 0.0, 0.0, 1.0] }
    }
}

/// g_x, g_y, g_z, g_t.
pub fn gamma(mu: usize) -> M4 {
    let e = match mu {
        0 => [[ZERO, I], [I, ZERO]],
        1 => [[ZERO, -ONE], [ONE, ZERO]],
        2 => [[I, ZERO], [ZERO, -I]],
        _ => [[ONE, ZERO], [ZERO, ONE]],
    };
    let mut g = [[ZERO; 4]; 4];
    for a in 0..2 {
        for b in 0..2 {
            g[a][2 + b] = e[a][b];
            g[2 + a][b] = e[b][a].conj();
        }
    }
    g
}

/// The product of spin matrices.
pub fn mul4(a: &M4, b: &M4) -> M4 {
    std::array::from_fn(|i| std::array::from_fn(|j| (0..4).map(|k| a[i][k] * b[k][j]).sum()))
}

/// g5 = g_x g_y g_z g_t.
pub fn gamma5() -> M4 {
    (1..4).fold(gamma(0), |product, mu| mul4(&product, &gamma(mu)))
}

/// sigma_{mu nu} = (i/2) [g_mu, g_nu].
pub fn sigma(mu: usize, nu: usize) -> M4 {
    let (ab, ba) = (mul4(&gamma(mu), &gamma(nu)), mul4(&gamma(nu), &gamma(mu)));
    std::array::from_fn(|i| std::array::from_fn(|j| I / 2.0 * (ab[i][j] - ba[i][j])))
}

/// S with psi(DeGrand-Rossi) = S psi(openQCD): g_mu(DeGrand-Rossi) = S g_mu(openQCD) S^dag,
/// S = ((0, i s_2), (-i s_2, 0)); openQCD has e_t = -1, e_k = -i s_k. g5(openQCD) = -g_x g_y g_z g_t.
pub fn from_openqcd() -> M4 {
    let (p, m) = (ONE, -ONE);
    [[ZERO, ZERO, ZERO, p], [ZERO, ZERO, m, ZERO], [ZERO, m, ZERO, ZERO], [p, ZERO, ZERO, ZERO]]
}

/// Spin matrix times spinor.
pub fn spin_mul(s: &M4, psi: &Spinor) -> Spinor {
    std::array::from_fn(|a| std::array::from_fn(|c| (0..4).map(|b| s[a][b] * psi[b][c]).sum()))
}

/// g5 psi on a field.
pub fn gamma5_field(psi: &[Spinor]) -> Vec<Spinor> {
    psi.iter().map(|&[a, b, c, d]| [a, b, c.map(|z| -z), d.map(|z| -z)]).collect()
}

/// Zero everywhere.
pub fn zero_field(extents: Extents) -> Vec<Spinor> {
    vec![[[ZERO; 3]; 4]; volume(extents)]
}

/// Real and imaginary parts unit Gaussians.
pub fn random_field(extents: Extents, seed: u64) -> Vec<Spinor> {
    let mut rng = Rng(seed);
    (0..volume(extents)).map(|_| std::array::from_fn(|_| std::array::from_fn(|_| rng.complex()))).collect()
}

/// psi on the sites of one parity, zero elsewhere.
pub fn restrict(extents: Extents, psi: &[Spinor], p: usize) -> Vec<Spinor> {
    let keep = |x| if parity(extents, x) == p { psi[x] } else { [[ZERO; 3]; 4] };
    (0..psi.len()).map(keep).collect()
}

/// a^dag b.
pub fn dot(a: &[Spinor], b: &[Spinor]) -> Complex64 {
    a.iter().flatten().flatten().zip(b.iter().flatten().flatten()).map(|(a, b)| a.conj() * b).sum()
}

/// a + s b.
pub fn axpy(a: &[Spinor], s: f64, b: &[Spinor]) -> Vec<Spinor> {
    let site =
        |(a, b): (&Spinor, &Spinor)| std::array::from_fn(|i| std::array::from_fn(|c| a[i][c] + b[i][c] * s));
    a.iter().zip(b).map(site).collect()
}

/// psi(x) -> g(x) psi(x).
pub fn transformed(psi: &[Spinor], g: &[M3]) -> Vec<Spinor> {
    psi.iter().zip(g).map(|(psi, g)| psi.map(|v| su3::mul_vector(g, &v))).collect()
}

/// A(x) as a matrix with index 3 spin + colour.
pub fn clover_matrix(gauge: &Gauge, parameters: &Parameters, x: usize) -> M12 {
    let mut a = [[ZERO; 12]; 12];
    for i in 0..12 {
        a[i][i] = (4.0 + parameters.mass).into();
    }
    if parameters.c_sw == 0.0 {
        return a;
    }
    for mu in 0..4 {
        for nu in (0..4).filter(|&nu| nu != mu) {
            let (s, f) = (sigma(mu, nu), field_strength(gauge, x, mu, nu));
            for i in 0..12 {
                for j in 0..12 {
                    a[i][j] += I / 4.0 * parameters.c_sw * s[i / 3][j / 3] * f[i % 3][j % 3];
                }
            }
        }
    }
    a
}

fn apply_block(a: &M12, psi: &Spinor) -> Spinor {
    let entry = |i: usize| (0..12).map(|j| a[i][j] * psi[j / 3][j % 3]).sum();
    std::array::from_fn(|s| std::array::from_fn(|c| entry(3 * s + c)))
}

/// The operator on one gauge field, with A and its inverse made once.
pub struct Dirac<'a> {
    /// The links.
    pub gauge: &'a Gauge,
    /// Mass, clover coefficient, phases.
    pub parameters: Parameters,
    /// A(x).
    pub clover: Vec<M12>,
    /// A(x)^-1.
    pub clover_inverse: Vec<M12>,
    /// det A(x).
    pub clover_det: Vec<Complex64>,
}

impl<'a> Dirac<'a> {
    /// Makes A, its inverse and determinant.
    pub fn new(gauge: &'a Gauge, parameters: Parameters) -> Self {
        let sites = 0..gauge.links.len();
        let clover: Vec<M12> = sites.map(|x| clover_matrix(gauge, &parameters, x)).collect();
        let (clover_det, clover_inverse) = clover.iter().map(eliminate).unzip();
        Self { gauge, parameters, clover, clover_inverse, clover_det }
    }

    /// The hopping part of M, factor -1/2 included.
    pub fn hop(&self, psi: &[Spinor]) -> Vec<Spinor> {
        let extents = self.gauge.extents;
        let projector = |mu: usize, sign: f64| -> M4 {
            let g = gamma(mu);
            std::array::from_fn(|i| std::array::from_fn(|j| g[i][j] * sign + if i == j { 1.0 } else { 0.0 }))
        };
        let mut out = zero_field(extents);
        for mu in 0..4 {
            let (minus, plus) = (projector(mu, -1.0), projector(mu, 1.0));
            let phase = Complex64::from_polar(1.0, std::f64::consts::PI * self.parameters.phases[mu]);
            for x in 0..out.len() {
                let (forward, back) = (neighbour(extents, x, (mu, 1)), neighbour(extents, x, (mu, -1)));
                let at = coordinates(extents, x)[mu];
                let ahead = if at == extents[mu] - 1 { phase } else { ONE };
                let behind = if at == 0 { phase.conj() } else { ONE };
                let (u, v) = (&self.gauge.links[x][mu], su3::adjoint(&self.gauge.links[back][mu]));
                let a = spin_mul(&minus, &psi[forward].map(|c| su3::mul_vector(u, &c)));
                let b = spin_mul(&plus, &psi[back].map(|c| su3::mul_vector(&v, &c)));
                for s in 0..4 {
                    for c in 0..3 {
                        out[x][s][c] -= 0.5 * (ahead * a[s][c] + behind * b[s][c]);
                    }
                }
            }
        }
        out
    }

    /// A psi.
    pub fn diagonal(&self, psi: &[Spinor]) -> Vec<Spinor> {
        self.clover.iter().zip(psi).map(|(a, psi)| apply_block(a, psi)).collect()
    }

    /// A^-1 psi.
    pub fn diagonal_inverse(&self, psi: &[Spinor]) -> Vec<Spinor> {
        self.clover_inverse.iter().zip(psi).map(|(a, psi)| apply_block(a, psi)).collect()
    }

    /// M psi.
    pub fn apply(&self, psi: &[Spinor]) -> Vec<Spinor> {
        axpy(&self.diagonal(psi), 1.0, &self.hop(psi))
    }

    /// M^dag psi = g5 M g5 psi.
    pub fn apply_dagger(&self, psi: &[Spinor]) -> Vec<Spinor> {
        gamma5_field(&self.apply(&gamma5_field(psi)))
    }

    /// Asymmetric Schur form on the sites of parity p, q the other: A_pp - D_pq A_qq^-1 D_qp.
    /// psi vanishes on the sites of parity q.
    pub fn schur_asymmetric(&self, psi: &[Spinor]) -> Vec<Spinor> {
        let there_and_back = self.hop(&self.diagonal_inverse(&self.hop(psi)));
        axpy(&self.diagonal(psi), -1.0, &there_and_back)
    }

    /// The adjoint of the asymmetric form, g5 Mhat g5.
    pub fn schur_asymmetric_dagger(&self, psi: &[Spinor]) -> Vec<Spinor> {
        gamma5_field(&self.schur_asymmetric(&gamma5_field(psi)))
    }

    /// Symmetric Schur form: 1 - A_pp^-1 D_pq A_qq^-1 D_qp. psi vanishes on the sites of parity q.
    pub fn schur_symmetric(&self, psi: &[Spinor]) -> Vec<Spinor> {
        let once = self.diagonal_inverse(&self.hop(psi));
        axpy(psi, -1.0, &self.diagonal_inverse(&self.hop(&once)))
    }

    /// The adjoint of the symmetric form: g5 (1 - D_pq A_qq^-1 D_qp A_pp^-1) g5.
    pub fn schur_symmetric_dagger(&self, psi: &[Spinor]) -> Vec<Spinor> {
        let psi = gamma5_field(psi);
        let once = self.hop(&self.diagonal_inverse(&psi));
        gamma5_field(&axpy(&psi, -1.0, &self.hop(&self.diagonal_inverse(&once))))
    }

    /// sum over the sites of parity p of ln det A(x). Asserts that every det is positive.
    pub fn log_det(&self, p: usize) -> f64 {
        let sites = (0..self.clover.len()).filter(|&x| parity(self.gauge.extents, x) == p);
        sites
            .map(|x| {
                assert!(self.clover_det[x].re > 0.0, "det A = {} at site {x}", self.clover_det[x]);
                self.clover_det[x].re.ln()
            })
            .sum()
    }

    /// M^-1 b = (M^dag M)^-1 M^dag b.
    pub fn solve(&self, b: &[Spinor], tolerance: f64) -> Vec<Spinor> {
        cg(|psi| self.apply_dagger(&self.apply(psi)), &self.apply_dagger(b), tolerance)
    }

    /// C(t) = sum over space, source spin and colour of |M^-1|^2, t counted from the source.
    pub fn pion(&self, source: Extents, tolerance: f64) -> Vec<f64> {
        let extents = self.gauge.extents;
        let mut correlator = vec![0.0; extents[3]];
        for (spin, colour) in (0..4).flat_map(|s| (0..3).map(move |c| (s, c))) {
            let mut eta = zero_field(extents);
            eta[site(extents, source)][spin][colour] = ONE;
            for (x, psi) in self.solve(&eta, tolerance).iter().enumerate() {
                let t = (coordinates(extents, x)[3] + extents[3] - source[3]) % extents[3];
                correlator[t] += psi.iter().flatten().map(Complex64::norm_sqr).sum::<f64>();
            }
        }
        correlator
    }
}

/// As the program's fields have them: real and imaginary part of colour 0, ...
pub fn reals(field: &[Spinor]) -> Vec<f64> {
    field.iter().flatten().flatten().flat_map(|z| [z.re, z.im]).collect()
}

/// The inverse of [`reals`].
pub fn spinors(reals: &[f64]) -> Vec<Spinor> {
    let entry = |r: &[f64], s: usize, c: usize| Complex64::new(r[6 * s + 2 * c], r[6 * s + 2 * c + 1]);
    let spinor = |r: &[f64]| std::array::from_fn(|s| std::array::from_fn(|c| entry(r, s, c)));
    reals.chunks_exact(24).map(spinor).collect()
}

/// `|a - b| / |b|`
pub fn distance(a: &[Spinor], b: &[Spinor]) -> f64 {
    let d = axpy(a, -1.0, b);
    (dot(&d, &d).re / dot(b, b).re).sqrt()
}

/// openQCD's test spinor, psi(x)_{s,c} = sin(1+.7x+1.3y+.4z+2.1t+.9c+1.9s) + i cos(.3+1.1x+.6y+1.7z+.8t+.5c+2.3s).
pub fn sincos(extents: Extents) -> Vec<Spinor> {
    sincos_of_flavour(extents, 0.0)
}

/// The same with .35f in the sine and -.8f in the cosine, for the flavours f = 0, 1 of a doublet.
pub fn sincos_of_flavour(extents: Extents, f: f64) -> Vec<Spinor> {
    let entry = |x: usize, s: usize, c: usize| {
        let v = coordinates(extents, x).map(|x| x as f64);
        let (s, c) = (s as f64, c as f64);
        let a = 1.0 + 0.7 * v[0] + 1.3 * v[1] + 0.4 * v[2] + 2.1 * v[3] + 0.9 * c + 1.9 * s + 0.35 * f;
        let b = 0.3 + 1.1 * v[0] + 0.6 * v[1] + 1.7 * v[2] + 0.8 * v[3] + 0.5 * c + 2.3 * s - 0.8 * f;
        Complex64::new(a.sin(), b.cos())
    };
    (0..volume(extents)).map(|x| std::array::from_fn(|s| std::array::from_fn(|c| entry(x, s, c)))).collect()
}

/// Conjugate gradients for a positive operator, from 0 to |r| <= tolerance |b|.
///
/// # Panics
/// No convergence in 5000 iterations.
pub fn cg(apply: impl Fn(&[Spinor]) -> Vec<Spinor>, b: &[Spinor], tolerance: f64) -> Vec<Spinor> {
    let mut x = axpy(b, -1.0, b);
    let (mut r, mut p) = (b.to_vec(), b.to_vec());
    let mut rr = dot(&r, &r).re;
    let goal = tolerance * tolerance * rr;
    for _ in 0..5000 {
        if rr <= goal {
            return x;
        }
        let ap = apply(&p);
        let alpha = rr / dot(&p, &ap).re;
        x = axpy(&x, alpha, &p);
        r = axpy(&r, -alpha, &ap);
        let next = dot(&r, &r).re;
        p = axpy(&r, next / rr, &p);
        rr = next;
    }
    panic!("no convergence: |r|^2 = {rr:e}, goal {goal:e}");
}
