//! Real matrices on the slices of a fifth dimension, one for each chirality, that are applied in O(N_s).
//!
//! What domain-wall quarks need are quotients of two-term operators `p + q L`, p and q diagonal, where L shifts by one
//! slice, up for the upper chirality (`L_{s,s-1} = 1`), down for the lower, with `-m` in the corner. Such a quotient is
//!
//! ```text
//! T_ij = d_i delta_ij + [i > j] e_i a_{i-1} .. a_{j+1} f_j + u_i v_j,
//! ```
//!
//! in the order in which L goes; the mass is in u alone.

/// The coefficients of a matrix in the order in which it is applied.
#[derive(Clone, Debug, PartialEq)]
pub struct SliceMatrix {
    /// Whether that order is against the slices.
    pub reversed: bool,
    d: Vec<f64>,
    e: Vec<f64>,
    a: Vec<f64>,
    f: Vec<f64>,
    u: Vec<f64>,
    v: Vec<f64>,
}

/// `p + q L`: p and q of each slice.
#[derive(Clone, Copy)]
pub struct TwoTerms<'a> {
    /// The diagonal.
    pub p: &'a [f64],
    /// What multiplies L, of the row.
    pub q: &'a [f64],
}

impl SliceMatrix {
    /// `numerator denominator^-1`, both with L of the upper or the lower chirality and `-mass` in its corner.
    pub fn quotient(chirality: usize, numerator: TwoTerms, denominator: TwoTerms, mass: f64) -> Self {
        let reversed = chirality == 1;
        let ordered =
            |x: &[f64]| -> Vec<f64> { if reversed { x.iter().rev().copied().collect() } else { x.to_vec() } };
        let [p, q] = [ordered(numerator.p), ordered(numerator.q)];
        let [above, beside] = [ordered(denominator.p), ordered(denominator.q)];
        let n = p.len();
        // t = denominator_0^-1 y, t_i = (y_i - beside_i t_{i-1}) / above_i, where L_0 has no corner.
        let f: Vec<f64> = above.iter().map(|x| 1.0 / x).collect();
        let a: Vec<f64> = (0..n).map(|i| -beside[i] / above[i]).collect();
        let d: Vec<f64> = (0..n).map(|i| p[i] / above[i]).collect();
        let e: Vec<f64> = (0..n).map(|i| q[i] + p[i] * a[i]).collect();
        // The last row of denominator_0^-1, and the first column of numerator_0 denominator_0^-1.
        let mut v = f.clone();
        let mut product = 1.0;
        for i in (0..n).rev() {
            v[i] *= product;
            product *= a[i];
        }
        let mut u = vec![d[0]; n];
        let mut t = f[0];
        for i in 1..n {
            u[i] = e[i] * t;
            t *= a[i];
        }
        let weight = mass / (1.0 - mass * beside[0] * v[0]);
        u.iter_mut().for_each(|x| *x *= weight * beside[0]);
        u[0] -= weight * q[0];
        Self { reversed, d, e, a, f, u, v }
    }

    /// The number of slices.
    pub fn slices(&self) -> usize {
        self.d.len()
    }

    fn ordered(&self, x: &[f64]) -> Vec<f64> {
        if self.reversed { x.iter().rev().copied().collect() } else { x.to_vec() }
    }

    /// `diag(left) T diag(right)`, both by slice.
    #[must_use]
    pub fn between(mut self, left: &[f64], right: &[f64]) -> Self {
        let [left, right] = [self.ordered(left), self.ordered(right)];
        for i in 0..self.slices() {
            self.d[i] *= left[i] * right[i];
            self.e[i] *= left[i];
            self.u[i] *= left[i];
            self.f[i] *= right[i];
            self.v[i] *= right[i];
        }
        self
    }

    /// `scale T`
    #[must_use]
    pub fn scaled(self, scale: f64) -> Self {
        let n = self.slices();
        self.between(&vec![scale; n], &vec![1.0; n])
    }

    /// The transposed matrix.
    #[must_use]
    pub fn transposed(mut self) -> Self {
        std::mem::swap(&mut self.e, &mut self.f);
        std::mem::swap(&mut self.u, &mut self.v);
        for x in [&mut self.d, &mut self.e, &mut self.a, &mut self.f, &mut self.u, &mut self.v] {
            x.reverse();
        }
        self.reversed = !self.reversed;
        self
    }

    /// The factors of `u_i v_j`, the part that depends on the mass, by slice.
    pub fn corner(&self) -> [Vec<f64>; 2] {
        [self.ordered(&self.u), self.ordered(&self.v)]
    }

    /// The coefficients d, e, a, f, u, v one behind the other, as kernels take them.
    pub fn coefficients(&self) -> Vec<f64> {
        [&self.d, &self.e, &self.a, &self.f, &self.u, &self.v].into_iter().flatten().copied().collect()
    }

    /// `T y`
    pub fn apply(&self, y: &[f64]) -> Vec<f64> {
        let y = self.ordered(y);
        let corner: f64 = self.v.iter().zip(&y).map(|(v, y)| v * y).sum();
        let mut r = 0.0;
        let out: Vec<f64> = (0..self.slices())
            .map(|i| {
                let out = self.d[i] * y[i] + self.e[i] * r + self.u[i] * corner;
                r = self.a[i] * r + self.f[i] * y[i];
                out
            })
            .collect();
        self.ordered(&out)
    }

    /// `log |det T|`, where the diagonal has no zero.
    pub fn log_det(&self) -> f64 {
        // det(T_0 + u v^T) = det T_0 (1 + v^T T_0^-1 u), T_0 lower triangular.
        let (mut r, mut product) = (0.0, 0.0);
        for i in 0..self.slices() {
            let x = (self.u[i] - self.e[i] * r) / self.d[i];
            r = self.a[i] * r + self.f[i] * x;
            product += self.v[i] * x;
        }
        self.d.iter().map(|d| d.abs().ln()).sum::<f64>() + (1.0 + product).abs().ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Dense = Vec<Vec<f64>>;

    fn dense(t: &SliceMatrix) -> Dense {
        let n = t.slices();
        let columns: Dense = (0..n)
            .map(|j| t.apply(&(0..n).map(|i| f64::from(u8::from(i == j))).collect::<Vec<_>>()))
            .collect();
        (0..n).map(|i| (0..n).map(|j| columns[j][i]).collect()).collect()
    }

    /// `p + q L` written out.
    fn two_terms(chirality: usize, x: TwoTerms, mass: f64) -> Dense {
        let n = x.p.len();
        let mut all = vec![vec![0.0; n]; n];
        for (s, row) in all.iter_mut().enumerate() {
            row[s] = x.p[s];
            let (from, weight) = match (chirality, s) {
                (0, 0) => (n - 1, -mass),
                (0, _) => (s - 1, 1.0),
                (_, s) if s == n - 1 => (0, -mass),
                _ => (s + 1, 1.0),
            };
            row[from] += x.q[s] * weight;
        }
        all
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-13, "{a} {b}");
    }

    #[test]
    fn quotients_times_denominators_are_numerators() {
        let values = |seed: f64, n: usize| -> Vec<f64> {
            (0..n).map(|i| 1.5 + 0.8 * (seed + 1.7 * i as f64).sin()).collect()
        };
        for n in [2, 4, 7, 16] {
            let [p, q, a, b] = [0.3, 1.1, 2.6, 4.0].map(|seed| values(seed, n));
            let a: Vec<f64> = a.iter().map(|a| 2.0 + a).collect();
            for (chirality, mass) in [(0, 0.2), (1, 0.2), (0, 1.0), (1, 0.0)] {
                let (numerator, denominator) = (TwoTerms { p: &p, q: &q }, TwoTerms { p: &a, q: &b });
                let t = SliceMatrix::quotient(chirality, numerator, denominator, mass);
                let full = dense(&t);
                let [wanted, denominator] = [numerator, denominator].map(|x| two_terms(chirality, x, mass));
                let turned = dense(&t.clone().transposed());
                let scaled = dense(&t.clone().between(&p, &b));
                for i in 0..n {
                    for j in 0..n {
                        let product: f64 = (0..n).map(|k| full[i][k] * denominator[k][j]).sum();
                        close(product, wanted[i][j]);
                        close(turned[i][j], full[j][i]);
                        close(scaled[i][j], p[i] * full[i][j] * b[j]);
                    }
                }
            }
        }
    }

    /// Of a matrix two by two, by hand; and that of a transposed one is the same.
    #[test]
    fn determinants() {
        let (p, q) = (vec![1.3, 0.7], vec![0.4, -0.9]);
        let unit = (vec![1.0, 1.0], vec![0.0, 0.0]);
        let t = SliceMatrix::quotient(0, TwoTerms { p: &p, q: &q }, TwoTerms { p: &unit.0, q: &unit.1 }, 0.3);
        close(t.log_det(), (1.3f64 * 0.7 - (-0.3 * 0.4) * -0.9).abs().ln());
        close(t.clone().transposed().log_det(), t.log_det());
    }
}
