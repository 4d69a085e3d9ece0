//! 3x3 complex matrices, the group SU(3) and a small random generator.
//!
//! Generators T_a = lambda_a / 2 (Gell-Mann), hermitian, tr T_a T_b = delta_ab / 2.

use num_complex::Complex64;

/// Matrix of colour, `[row][column]`.
pub type M3 = [[Complex64; 3]; 3];

/// 0.
pub const ZERO: Complex64 = Complex64::new(0.0, 0.0);
/// 1.
pub const ONE: Complex64 = Complex64::new(1.0, 0.0);
/// i.
pub const I: Complex64 = Complex64::new(0.0, 1.0);

/// The zero matrix.
pub const fn zero() -> M3 {
    [[ZERO; 3]; 3]
}

/// The unit matrix.
pub const fn one() -> M3 {
    [[ONE, ZERO, ZERO], [ZERO, ONE, ZERO], [ZERO, ZERO, ONE]]
}

/// a b.
pub fn mul(a: &M3, b: &M3) -> M3 {
    let mut c = zero();
    for i in 0..3 {
        for j in 0..3 {
            for k in 0..3 {
                c[i][j] += a[i][k] * b[k][j];
            }
        }
    }
    c
}

/// a + b.
pub fn add(a: &M3, b: &M3) -> M3 {
    std::array::from_fn(|i| std::array::from_fn(|j| a[i][j] + b[i][j]))
}

/// a - b.
pub fn sub(a: &M3, b: &M3) -> M3 {
    std::array::from_fn(|i| std::array::from_fn(|j| a[i][j] - b[i][j]))
}

/// s a.
pub fn scale(s: impl Into<Complex64>, a: &M3) -> M3 {
    let s = s.into();
    a.map(|row| row.map(|z| s * z))
}

/// a^dag.
pub fn adjoint(a: &M3) -> M3 {
    std::array::from_fn(|i| std::array::from_fn(|j| a[j][i].conj()))
}

/// tr a.
pub fn trace(a: &M3) -> Complex64 {
    a[0][0] + a[1][1] + a[2][2]
}

/// det a.
pub fn det(a: &M3) -> Complex64 {
    (0..3).map(|i| a[0][i] * cofactor(a, i)).sum()
}

fn cofactor(a: &M3, i: usize) -> Complex64 {
    let (j, k) = ((i + 1) % 3, (i + 2) % 3);
    a[1][j] * a[2][k] - a[1][k] * a[2][j]
}

/// Sum of |a_ij|^2.
pub fn norm2(a: &M3) -> f64 {
    a.iter().flatten().map(|z| z.norm_sqr()).sum()
}

/// a v.
pub fn mul_vector(a: &M3, v: &[Complex64; 3]) -> [Complex64; 3] {
    std::array::from_fn(|i| (0..3).map(|j| a[i][j] * v[j]).sum())
}

/// The traceless antihermitian part (a - a^dag)/2 - tr(a - a^dag)/6.
pub fn traceless_antihermitian(a: &M3) -> M3 {
    let b = scale(0.5, &sub(a, &adjoint(a)));
    sub(&b, &scale(trace(&b) / 3.0, &one()))
}

/// exp(a) = (sum_n (a/2^k)^n / n!)^(2^k), with |a|/2^k < 1/4 and terms up to n = 20.
pub fn exp(a: &M3) -> M3 {
    let mut k = 0;
    while norm2(a).sqrt() / 2_f64.powi(k) > 0.25 {
        k += 1;
    }
    let b = scale(0.5_f64.powi(k), a);
    let (mut sum, mut term) = (one(), one());
    for n in 1..=20 {
        term = scale(1.0 / f64::from(n), &mul(&term, &b));
        sum = add(&sum, &term);
    }
    for _ in 0..k {
        sum = mul(&sum, &sum);
    }
    sum
}

/// exp(i h) of a hermitian h.
pub fn exp_i(h: &M3) -> M3 {
    exp(&scale(I, h))
}

/// The eight T_a.
pub fn generators() -> [M3; 8] {
    let mut t = [zero(); 8];
    let half = ONE / 2.0;
    for (a, i, j) in [(0, 0, 1), (3, 0, 2), (5, 1, 2)] {
        t[a][i][j] = half;
        t[a][j][i] = half;
        t[a + 1][i][j] = -I * half;
        t[a + 1][j][i] = I * half;
    }
    // a = 0, 1: lambda_1, lambda_2; a = 3, 4: lambda_4, lambda_5; a = 5, 6: lambda_6, lambda_7.
    t[2][0][0] = half;
    t[2][1][1] = -half;
    for i in 0..3 {
        t[7][i][i] = half / 3_f64.sqrt() * if i == 2 { -2.0 } else { 1.0 };
    }
    t
}

/// sum_a p_a T_a.
pub fn from_components(p: &[f64; 8]) -> M3 {
    generators().iter().zip(p).fold(zero(), |sum, (t, &p)| add(&sum, &scale(p, t)))
}

/// p_a = 2 Re tr(T_a h).
pub fn components(h: &M3) -> [f64; 8] {
    generators().map(|t| 2.0 * trace(&mul(&t, h)).re)
}

/// Row 0 normalised, row 1 orthogonalised to row 0 and normalised, row 2 = conj(row 0 x row 1): MILC's way.
pub fn reunitarise(a: &M3) -> M3 {
    let mut u = *a;
    normalise(&mut u[0]);
    let overlap: Complex64 = (0..3).map(|j| u[0][j].conj() * u[1][j]).sum();
    for j in 0..3 {
        let along = overlap * u[0][j];
        u[1][j] -= along;
    }
    normalise(&mut u[1]);
    for j in 0..3 {
        let (k, l) = ((j + 1) % 3, (j + 2) % 3);
        u[2][j] = (u[0][k] * u[1][l] - u[0][l] * u[1][k]).conj();
    }
    u
}

fn normalise(row: &mut [Complex64; 3]) {
    let length = row.iter().map(Complex64::norm_sqr).sum::<f64>().sqrt();
    for z in row {
        *z /= length;
    }
}

/// splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
pub struct Rng(pub u64);

impl Rng {
    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in (0, 1).
    pub fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 0.5) * 2_f64.powi(-53)
    }

    /// A unit Gaussian (Box, Muller).
    pub fn gaussian(&mut self) -> f64 {
        let (u, v) = (self.uniform(), self.uniform());
        (-2.0 * u.ln()).sqrt() * (2.0 * std::f64::consts::PI * v).cos()
    }

    /// Real and imaginary part unit Gaussians.
    pub fn complex(&mut self) -> Complex64 {
        Complex64::new(self.gaussian(), self.gaussian())
    }

    /// SU(3) with the Haar measure: a Gaussian matrix, orthonormalised.
    pub fn su3(&mut self) -> M3 {
        let a: M3 = std::array::from_fn(|_| std::array::from_fn(|_| self.complex()));
        reunitarise(&a)
    }

    /// sum_a p_a T_a with unit Gaussians p_a.
    pub fn algebra(&mut self) -> M3 {
        let p: [f64; 8] = std::array::from_fn(|_| self.gaussian());
        from_components(&p)
    }
}
