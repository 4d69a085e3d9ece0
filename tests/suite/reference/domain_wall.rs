//! Domain-wall operator of any weights, by dense matrices in the fifth dimension.
//!
//! D = D_w (omega + sigma L) + 1 - L, D_w of mass -M5, L = P_+ L_+ + P_- L_-, (L_+)_{ss'} = delta_{s-1,s'}, -m at
//! (1, N_s), L_- its transposed; each chirality has its own m. Its parts, with Y = omega + sigma L:
//!
//!   omega^-1/2 D Y^-1 omega^1/2 = D_w + K = T^-1 + H,  K = omega^-1/2 (1 - L) Y^-1 omega^1/2,  T^-1 = 4 - M5 + K,
//!   C = 1 - T H_oe T H_eo, det D = det X det C, X = (4 - M5) Y + 1 - L.

use super::gauge::Gauge;
use super::su3::{ONE, ZERO};
use super::wilson::{Dirac, Parameters, Spinor, axpy, gamma5_field};
use num_complex::Complex64;

/// `[slice][site]`.
pub type Field = Vec<Vec<Spinor>>;
/// `[row][column]`.
pub type Dense = Vec<Vec<Complex64>>;

/// The matrix of size n with these elements.
pub fn dense(n: usize, element: impl Fn(usize, usize) -> Complex64) -> Dense {
    (0..n).map(|i| (0..n).map(|j| element(i, j)).collect()).collect()
}

/// 1.
pub fn unit(n: usize) -> Dense {
    dense(n, |i, j| if i == j { ONE } else { ZERO })
}

/// a b.
pub fn mul(a: &Dense, b: &Dense) -> Dense {
    let n = a.len();
    let mut c = dense(n, |_, _| ZERO);
    for (i, k) in (0..n).flat_map(|i| (0..n).map(move |k| (i, k))) {
        for j in 0..n {
            c[i][j] += a[i][k] * b[k][j];
        }
    }
    c
}

/// a + s b.
pub fn plus(a: &Dense, s: f64, b: &Dense) -> Dense {
    dense(a.len(), |i, j| a[i][j] + s * b[i][j])
}

/// The transposed matrix.
pub fn transposed(a: &Dense) -> Dense {
    dense(a.len(), |i, j| a[j][i])
}

/// (log |det a|, a^-1 b), by elimination with partial pivoting.
pub fn eliminate(mut a: Dense, mut b: Dense) -> (f64, Dense) {
    let (n, mut log_det) = (a.len(), 0.0);
    for k in 0..n {
        let size = |i: &usize| a[*i][k].norm_sqr();
        let pivot = (k..n).max_by(|i, j| size(i).total_cmp(&size(j))).unwrap();
        a.swap(k, pivot);
        b.swap(k, pivot);
        log_det += a[k][k].norm().ln();
        let (row, right) = (a[k].clone(), b[k].clone());
        for i in k + 1..n {
            let factor = a[i][k] / row[k];
            for j in k + 1..n {
                a[i][j] -= factor * row[j];
            }
            for j in 0..right.len() {
                b[i][j] -= factor * right[j];
            }
        }
    }
    for k in (0..n).rev() {
        let pivot = a[k][k];
        b[k].iter_mut().for_each(|x| *x /= pivot);
        let right = b[k].clone();
        for i in 0..k {
            for j in 0..right.len() {
                b[i][j] -= a[i][k] * right[j];
            }
        }
    }
    (log_det, b)
}

/// log |det a|.
pub fn log_det(a: Dense) -> f64 {
    let nothing = vec![Vec::new(); a.len()];
    eliminate(a, nothing).0
}

/// det a / |det a|.
pub fn phase_of_det(mut a: Dense) -> Complex64 {
    let (n, mut phase) = (a.len(), ONE);
    for k in 0..n {
        let best = (k..n).max_by(|&i, &j| a[i][k].norm().total_cmp(&a[j][k].norm())).unwrap();
        if best != k {
            a.swap(best, k);
            phase = -phase;
        }
        let pivot = a[k].clone();
        phase *= pivot[k] / pivot[k].norm();
        for row in &mut a[k + 1..] {
            let factor = row[k] / pivot[k];
            row.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= factor * p);
        }
    }
    phase
}

/// a^-1.
pub fn inverse(a: &Dense) -> Dense {
    eliminate(a.clone(), unit(a.len())).1
}

/// Four spins of three colours on each of some sites, slice by slice, as one vector.
pub fn flat(field: &Field) -> Vec<Complex64> {
    field.iter().flatten().flatten().flatten().copied().collect()
}

/// The field of so many slices that `flat` makes `vector` of.
pub fn shaped(vector: &[Complex64], slices: usize) -> Field {
    let site = |v: &[Complex64]| std::array::from_fn(|s| std::array::from_fn(|c| v[3 * s + c]));
    vector
        .chunks_exact(vector.len() / slices)
        .map(|slice| slice.chunks_exact(12).map(site).collect())
        .collect()
}

/// The matrix of a linear operator between the components `kept` of `flat` fields, of `slices` of `sites`.
pub fn matrix_of(
    kept: &[usize],
    [slices, sites]: [usize; 2],
    mut apply: impl FnMut(&Field) -> Field,
) -> Dense {
    let columns: Dense = kept
        .iter()
        .map(|&k| {
            let mut one = vec![ZERO; 12 * sites * slices];
            one[k] = ONE;
            let image = flat(&apply(&shaped(&one, slices)));
            kept.iter().map(|&k| image[k]).collect()
        })
        .collect();
    transposed(&columns)
}

/// a + s b.
pub fn add(a: &Field, s: f64, b: &Field) -> Field {
    a.iter().zip(b).map(|(a, b)| axpy(a, s, b)).collect()
}

/// gamma_5 R psi, R the reflection of the fifth dimension.
pub fn reflected(psi: &Field) -> Field {
    psi.iter().rev().map(|slice| gamma5_field(slice)).collect()
}

/// A matrix on slices for the upper and one for the lower chirality.
pub fn on_slices(matrices: &[Dense; 2], psi: &Field) -> Field {
    let element = |s: usize, x: usize, spin: usize, colour: usize| -> Complex64 {
        (0..psi.len()).map(|from| matrices[spin / 2][s][from] * psi[from][x][spin][colour]).sum()
    };
    let site = |s, x| std::array::from_fn(|spin| std::array::from_fn(|colour| element(s, x, spin, colour)));
    (0..psi.len()).map(|s| (0..psi[s].len()).map(|x| site(s, x)).collect()).collect()
}

/// The operator on one gauge field.
pub struct Wall<'a> {
    /// D_w.
    pub wilson: Dirac<'a>,
    omega: Vec<f64>,
    sigma: Vec<f64>,
    mass: [f64; 2],
}

impl<'a> Wall<'a> {
    /// Of weights omega and sigma, height M5, masses of the upper and the lower chirality, phases in units of pi.
    pub fn new(
        gauge: &'a Gauge,
        [omega, sigma]: [&[f64]; 2],
        m5: f64,
        mass: [f64; 2],
        phases: [f64; 4],
    ) -> Self {
        let wilson = Dirac::new(gauge, Parameters { mass: -m5, c_sw: 0.0, phases });
        Self { wilson, omega: omega.to_vec(), sigma: sigma.to_vec(), mass }
    }

    /// N_s.
    pub fn slices(&self) -> usize {
        self.omega.len()
    }

    fn diagonal(&self, element: impl Fn(usize) -> f64) -> Dense {
        dense(self.slices(), |i, j| if i == j { element(i).into() } else { ZERO })
    }

    /// L of the upper (0) or lower (1) chirality.
    pub fn l(&self, chirality: usize) -> Dense {
        let last = self.slices() - 1;
        let upper = dense(self.slices(), |s, from| match (s, from) {
            (0, from) if from == last => (-self.mass[chirality]).into(),
            (s, from) if s == from + 1 => ONE,
            _ => ZERO,
        });
        if chirality == 0 { upper } else { transposed(&upper) }
    }

    /// Y = omega + sigma L.
    pub fn y(&self, chirality: usize) -> Dense {
        let shifted = mul(&self.diagonal(|s| self.sigma[s]), &self.l(chirality));
        plus(&self.diagonal(|s| self.omega[s]), 1.0, &shifted)
    }

    /// 1 - L.
    fn one_minus_l(&self, chirality: usize) -> Dense {
        plus(&unit(self.slices()), -1.0, &self.l(chirality))
    }

    /// X = (4 - M5) Y + 1 - L.
    pub fn x(&self, chirality: usize) -> Dense {
        plus(&self.one_minus_l(chirality), 4.0 + self.wilson.parameters.mass, &self.y(chirality))
    }

    /// omega^-1/2 a b^-1 omega^1/2.
    fn quotient(&self, a: &Dense, b: &Dense) -> Dense {
        let [left, right] = [-0.5, 0.5].map(|power| self.diagonal(|s| self.omega[s].powf(power)));
        mul(&left, &mul(&mul(a, &inverse(b)), &right))
    }

    /// T of each chirality.
    pub fn t(&self) -> [Dense; 2] {
        [0, 1].map(|chirality| self.quotient(&self.y(chirality), &self.x(chirality)))
    }

    /// K of each chirality.
    pub fn k(&self) -> [Dense; 2] {
        [0, 1].map(|chirality| self.quotient(&self.one_minus_l(chirality), &self.y(chirality)))
    }

    /// D_w on every slice.
    pub fn kernel(&self, psi: &Field) -> Field {
        psi.iter().map(|slice| self.wilson.apply(slice)).collect()
    }

    /// D psi.
    pub fn apply(&self, psi: &Field) -> Field {
        let [y, rest] =
            [Self::y, Self::one_minus_l].map(|part| on_slices(&[0, 1].map(|c| part(self, c)), psi));
        add(&self.kernel(&y), 1.0, &rest)
    }

    /// (D_w + K) psi.
    pub fn symmetrised(&self, psi: &Field) -> Field {
        add(&self.kernel(psi), 1.0, &on_slices(&self.k(), psi))
    }

    /// C psi, or C^dag psi; psi vanishes on even sites.
    pub fn schur(&self, psi: &Field, dagger: bool) -> Field {
        let hop = |psi: &Field| -> Field { psi.iter().map(|slice| self.wilson.hop(slice)).collect() };
        let gamma5 = |psi: &Field| -> Field { psi.iter().map(|slice| gamma5_field(slice)).collect() };
        let t = self.t();
        let once = |psi: &Field| on_slices(&t, &hop(psi));
        // H^dag = gamma_5 H gamma_5
        let turned = t.each_ref().map(transposed);
        let once_adjoint = |psi: &Field| gamma5(&hop(&gamma5(&on_slices(&turned, psi))));
        let twice = if dagger { once_adjoint(&once_adjoint(psi)) } else { once(&once(psi)) };
        add(psi, -1.0, &twice)
    }

    /// (1 + m)/2 + (1 - m)/2 gamma_5 S(H), to which D is equivalent for one mass m of both chiralities, with
    /// H = gamma_5 D_w (1 + k/2 D_w)^-1 and S of the module `math::wall_weights`, where omega_s - sigma_s = k.
    pub fn overlap(&self) -> Dense {
        let (volume, m) = (self.wilson.gauge.links.len(), self.mass[0]);
        let all: Vec<usize> = (0..12 * volume).collect();
        let kernel = matrix_of(&all, [1, volume], |psi| self.kernel(psi));
        let one = unit(all.len());
        let gamma5 =
            dense(all.len(), |i, j| if i == j { ONE - 2.0 * f64::from(i % 12 / 6 == 1) } else { ZERO });
        let k = self.omega[0] - self.sigma[0];
        let h = mul(&gamma5, &mul(&kernel, &inverse(&plus(&one, 0.5 * k, &kernel))));
        // As the tanh of a sum, which has no pole: S of w_1 .. w_n and w is (S + w H) / (1 + w S H).
        let sign =
            self.omega.iter().zip(&self.sigma).fold(dense(all.len(), |_, _| ZERO), |sign, (omega, sigma)| {
                let w = 0.5 * (omega + sigma);
                mul(&plus(&sign, w, &h), &inverse(&plus(&one, w, &mul(&sign, &h))))
            });
        let chiral = mul(&gamma5, &sign);
        dense(all.len(), |i, j| 0.5 * (1.0 + m) * one[i][j] + 0.5 * (1.0 - m) * chiral[i][j])
    }
}
