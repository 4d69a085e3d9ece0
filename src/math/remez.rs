//! The exchange algorithm for rational functions of given degree, in many digits.
//!
//! In z = x + a, a the least shift, r = c prod_j (z + n_j) / prod_j (z + d_j), and the best r meets
//! r(z_i) = f(z_i) (1 + (-1)^i E) in 2n + 2 points between which |r/f - 1| stays below |E|. Each round
//!
//! - takes Newton steps of numerator, denominator and E for given z_i. With numerator and denominator
//!   multiplied by 1 + u_0 + sum u_j/(z + n_j) and 1 + sum v_j/(z + d_j) it is linear,
//!   (r/f)(u_0 + sum u_j/(z + n_j)) - (1 +- E) sum v_j/(z + d_j) -+ dE = (1 +- E) - r/f at each z_i,
//!   and only E v_j, which is small, is treated to first order. The new roots follow from u and v;
//! - moves each z_i to the top of its hump, z d/dz ln(r/f) = 0.
//!
//! Both are quadratic near the solution; four or five rounds do. They start from the electrostatic picture that
//! holds for large degree: extrema on the range, zeros and poles on the cut are evenly spaced in the elliptic
//! coordinate in which Zolotarev's functions have them evenly spaced, and the exponent collected on the cut says
//! how far a zero is from its pole. For x^(-1/2) this start is the solution.
//!
//! E. Remez (1934); D. Braess, Nonlinear Approximation Theory, chapter V; Clark, Kennedy, hep-lat/0309084.

use super::rational_error::RationalError;
use super::target::{Coordinate, Real, Target, double, real};

/// Bits of the unknowns: 57 digits. The matrix is singular to 1/E and more, E down to 1e-16.
const BITS: usize = 192;
/// Rounds before it is given up; four or five are usual.
const MAX_ROUNDS: usize = 40;
/// How equal the extrema are at the end, relative to their size.
const EQUAL: f64 = 1e-11;
/// Errors below this are beyond double.
pub(super) const NOTHING: f64 = 0.25 * f64::EPSILON;
/// Errors expected below this are not tried: the unknowns would need more bits.
const HOPELESS: f64 = 1e-19;
/// Newton steps between moves of the points.
const MAX_STEPS: usize = 20;
/// Halvings that find a zero of the error well enough to separate two humps.
const BISECTIONS: usize = 5;
/// Steps to the top of a hump.
const MAX_STEPS_TO_TOP: usize = 30;
/// Sweeps of the root finder; a handful is usual.
const MAX_SWEEPS: usize = 60;
/// Halvings of a step that loses the order of the roots.
const MAX_HALVINGS: i32 = 8;
/// The last relative change of a root, whose square is the error.
const SETTLED: f64 = 1e-30;

/// r = scale prod (z + zero) / prod (z + pole), z = x + least shift.
pub(super) struct Solution {
    scale: Real,
    zeros: Vec<Real>,
    poles: Vec<Real>,
    /// max |r/f - 1|.
    pub(super) error: f64,
    /// The x of the extrema.
    #[cfg(test)]
    pub(super) extrema: Vec<f64>,
}

impl Solution {
    /// Constant, residues and poles in double. The poles are rounded first and the residues belong to the rounded
    /// poles, so that the poles' rounding does not meet the cancellation between terms.
    pub(super) fn partial_fractions(&self, target: &Target) -> (f64, Vec<f64>, Vec<f64>) {
        let shift = real(target.least_shift(), BITS);
        let poles: Vec<f64> = self.poles.iter().map(|pole| double(&(pole + &shift))).collect();
        let rounded: Vec<Real> = poles.iter().map(|&pole| real(pole, BITS) - &shift).collect();
        let residue = |i: usize| {
            let mut residue = self.scale.clone();
            for (j, (zero, pole)) in self.zeros.iter().zip(&rounded).enumerate() {
                residue *= zero - &rounded[i];
                if j != i {
                    residue /= pole - &rounded[i];
                }
            }
            double(&residue)
        };
        (double(&self.scale), (0..poles.len()).map(residue).collect(), poles)
    }
}

/// The unknowns of the exchange, and its points.
struct Exchange<'a> {
    target: &'a Target,
    /// The least shift in many digits, and the others relative to it with their exponents.
    shift: Real,
    branches: Vec<(Real, f64)>,
    scale: Real,
    /// zero, pole, zero, pole, ...
    roots: Vec<Real>,
    /// The range of z.
    ends: [f64; 2],
    /// The z of the extrema; double is enough, e is flat there.
    points: Vec<f64>,
    /// E.
    level: f64,
}

/// The best function of this degree.
pub(super) fn solve(target: &Target, degree: usize) -> Result<Solution, RationalError> {
    let expected = 4.0 * (-target.rate() * degree as f64).exp();
    let [lo, hi] = target.range;
    if expected < HOPELESS {
        return Err(RationalError::DegreeTooLarge { degree, lo, hi, error: expected });
    }
    let failed = RationalError::NoConvergence { degree, lo, hi };
    Exchange::start(target, degree).converge().ok_or(failed)
}

impl<'a> Exchange<'a> {
    fn start(target: &'a Target, degree: usize) -> Self {
        let coordinate = Coordinate::new(target);
        let orders = (2 * degree + 1) as f64;
        let exponent = |z: f64| {
            let term = |&(a, p): &(f64, i32)| f64::from(p) * z / (z + a - target.least_shift());
            target.factors.iter().map(term).sum::<f64>() / f64::from(target.denominator)
        };
        // For x^s the zeros are at 2l - 1/2 - s, the poles at 2l - 1/2 + s, l = 1 .. n, of 2n + 1.
        let pair = |l: usize| {
            let middle = 2.0 * l as f64 - 0.5;
            // A zero on its pole would make the first matrix singular.
            let s = exponent(coordinate.on_cut(middle / orders));
            let s = s.abs().max(1e-3).copysign(f64::from(target.factors[0].1));
            [middle - s, middle + s].map(|u| real(coordinate.on_cut(u / orders), BITS))
        };
        let shift = real(target.least_shift(), BITS);
        let branch =
            |&(a, p): &(f64, i32)| (real(a, BITS) - &shift, f64::from(p) / f64::from(target.denominator));
        let points: Vec<f64> =
            (0..=2 * degree + 1).map(|i| coordinate.z_on_range(i as f64 / orders)).collect();
        let mut exchange = Self {
            target,
            branches: target.factors.iter().map(branch).collect(),
            shift,
            scale: real(1.0, BITS),
            roots: (1..=degree).flat_map(pair).collect(),
            ends: [points[0], points[2 * degree + 1]],
            points,
            level: 0.0,
        };
        exchange.scale = real((-exchange.rough_log(exchange.points[degree])).exp(), BITS);
        exchange
    }

    /// ln(r/f) at z except for the scale, to a few digits.
    fn rough_log(&self, z: f64) -> f64 {
        let log = |root: &Real| (z + double(root)).ln();
        let roots: f64 = self.roots.chunks_exact(2).map(|pair| log(&pair[0]) - log(&pair[1])).sum();
        roots - self.branches.iter().map(|(branch, p)| p * log(branch)).sum::<f64>()
    }

    /// Rounds until the extrema are equal; none if they do not become so.
    fn converge(mut self) -> Option<Solution> {
        for _ in 0..MAX_ROUNDS {
            if !self.settle() {
                return None;
            }
            self.move_points();
            let levels: Vec<f64> = self.points.iter().map(|&z| self.error(z)).collect();
            let alternate = levels.windows(2).all(|pair| pair[0] * pair[1] < 0.0);
            let sizes = || levels.iter().map(|level| level.abs());
            let (least, most) = (sizes().fold(f64::INFINITY, f64::min), sizes().fold(0.0, f64::max));
            // What double cannot show need not be equal either.
            if alternate && most - least <= EQUAL * most || most < NOTHING {
                return Some(self.finish(most));
            }
        }
        None
    }

    /// r/f - 1 at z.
    fn error(&self, z: f64) -> f64 {
        let z = real(z, BITS);
        let (mut above, mut below) = (self.scale.clone(), real(1.0, BITS));
        for pair in self.roots.chunks_exact(2) {
            above *= &z + &pair[0];
            below *= &z + &pair[1];
        }
        self.target.deviation(&(above / below), &(z - &self.shift))
    }

    /// z e'(z) and its derivative in ln z.
    fn slope(&self, z: f64) -> [f64; 2] {
        let z = real(z, BITS);
        let (mut first, mut second) = (real(0.0, BITS), real(0.0, BITS));
        let mut add = |root: &Real, weight: Real| {
            // d/d(ln z) of z / (z + root) is z root / (z + root)^2
            let part = &z / (&z + root);
            second += &weight * &part * (real(1.0, BITS) - &part);
            first += weight * part;
        };
        for pair in self.roots.chunks_exact(2) {
            add(&pair[0], real(1.0, BITS));
            add(&pair[1], real(-1.0, BITS));
        }
        let q = real(f64::from(self.target.denominator), BITS);
        for ((branch, _), (_, p)) in self.branches.iter().zip(&self.target.factors) {
            add(branch, real(f64::from(-*p), BITS) / &q);
        }
        [double(&first), double(&second)]
    }

    /// Steps until E is known to a tenth; false if none is possible.
    fn settle(&mut self) -> bool {
        for _ in 0..MAX_STEPS {
            let last = self.level;
            let Some(part) = self.step() else { return false };
            if part == 1.0 && (self.level - last).abs() <= 0.1 * self.level.abs() {
                break;
            }
        }
        true
    }

    /// One step towards r(z_i) = f(z_i) (1 + (-1)^i E), and how much of it was taken; none if nothing can be.
    fn step(&mut self) -> Option<f64> {
        let sign = |i: usize| if i.is_multiple_of(2) { 1.0 } else { -1.0 };
        let mut rows: Vec<Vec<Real>> = Vec::with_capacity(self.points.len());
        for (i, &point) in self.points.iter().enumerate() {
            let z = real(point, BITS);
            let excess = self.error(point);
            if !excess.is_finite() {
                return None;
            }
            let excess = real(excess, BITS);
            let ratio = real(1.0, BITS) + &excess;
            let level = real(1.0, BITS) + real(sign(i) * self.level, BITS);
            let mut row = vec![ratio.clone(), real(-sign(i), BITS)];
            for pair in self.roots.chunks_exact(2) {
                row.push(&ratio / (&z + &pair[0]));
                row.push(-&level / (&z + &pair[1]));
            }
            row.push(real(sign(i) * self.level, BITS) - excess);
            rows.push(row);
        }
        let step = solve_linear(rows)?;
        // The full step, or as much of it as keeps zeros and poles real, positive and interlaced.
        (0..MAX_HALVINGS).map(|halvings| 0.5f64.powi(halvings)).find(|&part| self.apply(&step, part))
    }

    /// Applies `part` of a step; false, and nothing done, if the roots lose their order.
    fn apply(&mut self, step: &[Real], part: f64) -> bool {
        let part = real(part, BITS);
        let gain = real(1.0, BITS) + &part * &step[0];
        if gain <= Real::ZERO {
            return false;
        }
        let moved = |odd: usize, by: &Real| {
            let pick = |list: &[Real]| list.iter().skip(odd).step_by(2).cloned().collect::<Vec<_>>();
            let weights: Vec<Real> = pick(&step[2..]).iter().map(|x| by * x).collect();
            moved_roots(&pick(&self.roots), &weights)
        };
        let Some(zeros) = moved(0, &(&part / &gain)) else { return false };
        let Some(poles) = moved(1, &part) else { return false };
        let roots: Vec<Real> = zeros.into_iter().zip(poles).flat_map(|(zero, pole)| [zero, pole]).collect();
        // Where f grows the cut begins with a zero, else with a pole.
        let order = |j: usize| if self.target.factors[0].1 > 0 { j } else { j ^ 1 };
        let interlaced = (1..roots.len()).all(|j| roots[order(j - 1)] < roots[order(j)]);
        if interlaced {
            self.level += double(&(part * &step[1]));
            self.scale *= gain;
            self.roots = roots;
        }
        interlaced
    }

    /// Moves each point to the top of its hump, which ends at the zeros of e between the points or at the range.
    fn move_points(&mut self) {
        let zeros: Vec<f64> =
            self.points.windows(2).map(|pair| self.zero_between([pair[0], pair[1]])).collect();
        let last = self.points.len() - 1;
        self.points = (0..=last)
            .map(|i| {
                let left = if i == 0 { self.ends[0] } else { zeros[i - 1] };
                let right = if i == last { self.ends[1] } else { zeros[i] };
                self.top_between([left, right], self.points[i])
            })
            .collect();
    }

    /// About where e changes sign; it does, between two points.
    fn zero_between(&self, [mut left, mut right]: [f64; 2]) -> f64 {
        let positive = self.error(left) > 0.0;
        for _ in 0..BISECTIONS {
            let middle = (left * right).sqrt();
            if (self.error(middle) > 0.0) == positive { left = middle } else { right = middle }
        }
        (left * right).sqrt()
    }

    /// Where |e| is largest between two zeros, or a zero and the end of the range: Newton's method on the slope,
    /// with bisection if it leaves what is bracketed.
    fn top_between(&self, [left, right]: [f64; 2], start: f64) -> f64 {
        let sign = self.error(start).signum();
        let slope = |z: f64| self.slope(z).map(|x| sign * x);
        if left == self.ends[0] && slope(left)[0] <= 0.0 {
            return left;
        }
        if right == self.ends[1] && slope(right)[0] >= 0.0 {
            return right;
        }
        let (mut a, mut b, mut t) = (left.ln(), right.ln(), start.ln());
        let width = b - a;
        for _ in 0..MAX_STEPS_TO_TOP {
            let [first, second] = slope(t.exp());
            if first > 0.0 {
                a = t;
            } else {
                b = t;
            }
            let newton = t - first / second;
            let next = if second < 0.0 && a < newton && newton < b { newton } else { 0.5 * (a + b) };
            let done = (next - t).abs() < 1e-7 * width;
            t = next;
            if done {
                break;
            }
        }
        t.exp().clamp(left, right)
    }

    fn finish(self, error: f64) -> Solution {
        let mut roots: [Vec<Real>; 2] = Default::default();
        for (j, root) in self.roots.into_iter().enumerate() {
            roots[j % 2].push(root);
        }
        let [zeros, poles] = roots;
        Solution {
            scale: self.scale,
            zeros,
            poles,
            error,
            #[cfg(test)]
            extrema: self.points.iter().map(|z| z - self.target.least_shift()).collect(),
        }
    }
}

/// The n'_j, ascending, with prod (z + n'_j) = prod (z + n_j) (1 + sum_j weight_j / (z + n_j)), by Weierstrass'
/// simultaneous iteration; none if one is not positive.
fn moved_roots(old: &[Real], weights: &[Real]) -> Option<Vec<Real>> {
    let mut roots = old.to_vec();
    // The first step, where the weights are small the only one.
    for (root, weight) in roots.iter_mut().zip(weights) {
        *root += weight;
    }
    for _ in 0..MAX_SWEEPS {
        let mut change = 0f64;
        for j in 0..roots.len() {
            let z = -&roots[j];
            // prod (z + n) and, with it, sum_k weight_k prod_{j != k} (z + n_j)
            let (mut product, mut sum) = (real(1.0, BITS), real(0.0, BITS));
            for (n, weight) in old.iter().zip(weights) {
                let gap = &z + n;
                sum = sum * &gap + weight * &product;
                product *= gap;
            }
            let mut step = product + sum;
            for (_, other) in roots.iter().enumerate().filter(|(k, _)| *k != j) {
                step /= &z + other;
            }
            roots[j] += &step;
            change = change.max((double(&step) / double(&roots[j])).abs());
        }
        if change < SETTLED {
            roots.sort();
            return (roots[0] > Real::ZERO).then_some(roots);
        }
    }
    None
}

/// Gaussian elimination with row pivots on rows (matrix | right side).
fn solve_linear(mut rows: Vec<Vec<Real>>) -> Option<Vec<Real>> {
    let n = rows.len();
    for k in 0..n {
        let size = |row: &Vec<Real>| double(&row[k]).abs();
        let pivot = (k..n).max_by(|&i, &j| size(&rows[i]).total_cmp(&size(&rows[j])))?;
        rows.swap(k, pivot);
        let (done, rest) = rows.split_at_mut(k + 1);
        let pivot = &done[k];
        if pivot[k] == Real::ZERO {
            return None;
        }
        for row in rest {
            let factor = &row[k] / &pivot[k];
            for (x, y) in row[k + 1..].iter_mut().zip(&pivot[k + 1..]) {
                *x -= &factor * y;
            }
        }
    }
    let mut solution = vec![Real::ZERO; n];
    for k in (0..n).rev() {
        let known = (k + 1..n).fold(rows[k][n].clone(), |sum, j| sum - &rows[k][j] * &solution[j]);
        solution[k] = known / &rows[k][k];
    }
    Some(solution)
}
