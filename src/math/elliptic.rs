//! Jacobi's elliptic functions.

use std::f64::consts::PI;

/// Jacobi's elliptic functions of one modulus k, entered through k' = sqrt(1 - k^2) if that is small.
#[derive(Clone, Debug)]
pub struct Elliptic {
    /// k_n and k'_n of the descending Landen sequence, k_{n+1} = (1 - k'_n) / (1 + k'_n), until k_n vanishes.
    moduli: Vec<[f64; 2]>,
    quarter: f64,
}

impl Elliptic {
    /// Of modulus k, 0 <= k < 1.
    #[must_use]
    pub fn new(k: f64) -> Self {
        Self::make(k, ((1.0 - k) * (1.0 + k)).sqrt())
    }

    /// Of complementary modulus k', 0 < k' <= 1, to full precision however small k' is.
    #[must_use]
    pub fn from_complement(complement: f64) -> Self {
        Self::make(((1.0 - complement) * (1.0 + complement)).sqrt(), complement)
    }

    fn make(k: f64, complement: f64) -> Self {
        assert!((0.0..1.0 + f64::EPSILON).contains(&k) && complement > 0.0, "elliptic modulus {k}");
        let (mut modulus, mut quarter) = ([k, complement], 0.5 * PI);
        let mut moduli = vec![modulus];
        while modulus[0] > 0.1 * f64::EPSILON {
            let [k, complement] = modulus;
            let next = 1.0 + complement;
            modulus = [(k / next).powi(2), 2.0 * complement.sqrt() / next];
            quarter *= 1.0 + modulus[0];
            moduli.push(modulus);
        }
        Self { moduli, quarter }
    }

    /// The complete integral K(k), (pi/2) prod (1 + k_n) over n >= 1.
    #[must_use]
    pub fn quarter(&self) -> f64 {
        self.quarter
    }

    /// k'.
    #[must_use]
    pub fn complement(&self) -> f64 {
        self.moduli[0][1]
    }

    /// sn, cn and dn at 0 <= u <= K, relatively accurate near K too.
    #[must_use]
    pub fn jacobi(&self, u: f64) -> [f64; 3] {
        if u <= 0.5 * self.quarter {
            return self.landen(u);
        }
        let ([sn, cn, dn], complement) = (self.landen(self.quarter - u), self.complement());
        [cn / dn, complement * sn / dn, complement / dn]
    }

    /// From circular functions up: sn = (1 + k_1) s / (1 + k_1 s^2), cn = c d / (1 + k_1 s^2) of s, c, d at
    /// u / (1 + k_1), k_1; dn^2 = cn^2 + k'^2 sn^2. Nothing is subtracted. sn^2 + cn^2 = 1 gives the denominator.
    fn landen(&self, u: f64) -> [f64; 3] {
        let (mut sn, mut cn) = (u * 0.5 * PI / self.quarter).sin_cos();
        let mut dn = 1.0;
        for pair in self.moduli.windows(2).rev() {
            let ([_, complement], [k, _]) = (pair[0], pair[1]);
            (sn, cn) = ((1.0 + k) * sn, cn * dn);
            let radius = sn.hypot(cn);
            (sn, cn) = (sn / radius, cn / radius);
            dn = cn.hypot(complement * sn);
        }
        [sn, cn, dn]
    }
}
