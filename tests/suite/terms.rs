//! What the laws of all terms share: force against derivative, order and reversibility; and
//! dense matrices of the plain reference.

use crate::devices::domain;
use crate::reference::gauge::{Gauge, LinkField, parity, random_momenta, shifted};
use crate::reference::su3;
use crate::reference::wilson::{self as plain, Dirac, Parameters};
use hmc::action::{Action, Determinant, DeterminantParams, GaugeAction, Power, TermHeader};
use hmc::device::Precision;
use hmc::family::{DoubletParams, Schur, Wilson, WilsonParams};
use hmc::field::{AlgebraField, Domain, HostLinks, MatrixField};
use hmc::hmc::{Chain, Level, Scheme};
use hmc::lattice::{Extents, volume};
use hmc::math::WallWeights;
use hmc::quark::QuarkParams;
use hmc::solver::{Past, Settings};
use num_complex::Complex64;
use std::sync::Arc;

/// Links on one rank.
pub fn whole(links: &HostLinks) -> MatrixField {
    MatrixField::from_host(&domain(links.local), links).unwrap()
}

/// Links on one rank, as they are between its walls in time.
pub fn fields(links: &Gauge, domain: &Arc<Domain>) -> MatrixField {
    let mut field = MatrixField::from_host(domain, &links.to_host()).unwrap();
    field.end_at_walls().unwrap();
    field
}

/// A quark of so many iterations and no guess.
pub fn quark<P>(operator: P, precision: Precision) -> QuarkParams<P> {
    QuarkParams { operator, solver: Settings::cg(precision, 5000), link_reals: 18, guess: Past::NONE }
}

/// Two flavours of clover quarks, solved to these residuals in the action and in the force.
pub fn two_flavours(
    domain: &Arc<Domain>,
    light: QuarkParams<WilsonParams>,
    [action_residual, force_residual]: [f64; 2],
) -> Determinant<Wilson> {
    let header = TermHeader { name: "light".into(), number: 0, action_residual, force_residual };
    let params = DeterminantParams { header, light, heavy: None, power: Power::Inverse };
    Determinant::new(domain, params).unwrap()
}

/// Random reals for `set_phi`.
pub fn random_phi(extents: Extents, seed: u64) -> Vec<f64> {
    plain::reals(&plain::random_field(extents, seed))
}

/// Random pseudofermions, whichever a term has.
pub fn set_random_pseudofermions(term: &mut dyn Action, seed: u64) {
    for (number, pseudofermion) in term.pseudofermions().into_iter().enumerate() {
        let field = pseudofermion.field;
        let (extents, slices) = (field.domain().partition().local(), field.kind().slices());
        let seed = |slice: usize| 10_000 * seed + (100 * number + slice) as u64;
        let reals: Vec<f64> = (0..slices).flat_map(|slice| random_phi(extents, seed(slice))).collect();
        field.read_host(pseudofermion.parity, &reals).unwrap();
    }
}

/// `sum_a p_a F_a`, F as the program gives it.
pub fn along(momenta: &LinkField, force: &[f64]) -> f64 {
    let links = momenta.iter().flatten().zip(force.chunks_exact(8));
    links.map(|(p, f)| su3::components(p).iter().zip(f).map(|(p, f)| p * f).sum::<f64>()).sum()
}

/// The direction of the force, its components of root mean square 1 as those of random ones; and |F|.
fn direction(force: &[f64]) -> (LinkField, f64) {
    let norm = force.iter().map(|f| f * f).sum::<f64>().sqrt();
    let root = (force.len() as f64).sqrt() / norm;
    let link = |f: &[f64]| su3::scale(root, &su3::from_components(f.try_into().unwrap()));
    (force.chunks_exact(32).map(|f| std::array::from_fn(|mu| link(&f[8 * mu..8 * mu + 8]))).collect(), norm)
}

/// Compares force and action along two random directions and along the force itself: the derivative is the
/// symmetric difference over six points, of error eps^6 S^(7) / 140.
pub fn check_force(
    what: &str,
    links: &Gauge,
    action: &mut dyn Action,
    domain: &Arc<Domain>,
    eps: f64,
    tolerance: f64,
) {
    check_force_by(what, links, action, domain, [eps; 2], tolerance);
}

/// As [`check_force`], with a step of its own along the force, where S and its higher derivatives change most, and rounding
/// matters least.
pub fn check_force_by(
    what: &str,
    links: &Gauge,
    action: &mut dyn Action,
    domain: &Arc<Domain>,
    [eps, eps_along]: [f64; 2],
    tolerance: f64,
) {
    let mut force = AlgebraField::new(domain).unwrap();
    action.add_force(&fields(links, domain), &mut force).unwrap();
    let force = force.to_host().unwrap();
    let (steepest, norm) = direction(&force);
    let extents = links.extents;
    assert!(norm > 1e-3, "{what}: a force");
    for (name, p, eps) in
        [("any direction", random_momenta(extents, 101), eps), ("along the force", steepest, eps_along)]
    {
        let mut s = |k: f64| action.value(&fields(&shifted(links, k * eps, &p), domain)).unwrap();
        // Differences of exact sums: no rounding of the large sum.
        let mut odd = |k: f64| (s(k) - s(-k)).value();
        let expected = (45.0 * odd(1.0) - 9.0 * odd(2.0) + odd(3.0)) / (60.0 * eps);
        let found = along(&p, &force);
        let error = (found - expected).abs() / found.abs().max(norm);
        println!("{what}, {name}: {found:.12e} against {expected:.12e}, error {error:.1e}");
        assert!(error < tolerance, "{what}, {name}: {found:e} is not {expected:e}: {error:.1e}");
    }
}

/// That S of a refresh is S of the same links, `|S - S_refresh| < tolerance S`.
pub fn check_refresh(what: &str, links: &MatrixField, action: &mut dyn Action, tolerance: f64) {
    let drawn = action.refresh(links, 11, 3).unwrap();
    let valued = action.value(links).unwrap();
    let error = ((valued - drawn).value() / drawn.value()).abs();
    println!("{what}: S {:.12e}, error {error:.1e}", drawn.value());
    assert!(error < tolerance, "{what}: S = {} at the refresh, {}", drawn.value(), valued.value());
}

/// Omelyan, Mryglod and Folk's scheme of second order.
pub const OMELYAN: Scheme = Scheme::Omelyan2 { lambda: 0.193_183_327_503_783_6 };

/// A chain of `terms`, each on its own level, above the gauge action at beta 5.6; each level has 2 steps in one of
/// the level above, the outermost has `steps`.
pub fn chain(links: &HostLinks, terms: Vec<Vec<Box<dyn Action>>>, domain: &Arc<Domain>, steps: u32) -> Chain {
    let gauge = GaugeAction::new(domain, 5.6, [1.0, 0.0, 0.0]).unwrap();
    chain_above(gauge, links, terms, domain, OMELYAN, steps)
}

/// As [`chain`], above another gauge action and with another scheme.
pub fn chain_above(
    gauge: GaugeAction,
    links: &HostLinks,
    mut terms: Vec<Vec<Box<dyn Action>>>,
    domain: &Arc<Domain>,
    scheme: Scheme,
    steps: u32,
) -> Chain {
    terms.push(vec![Box::new(gauge)]);
    let levels: Vec<Level> =
        (0..terms.len()).map(|n| Level { scheme, steps: if n == 0 { steps } else { 2 } }).collect();
    Chain::new(MatrixField::from_host(domain, links).unwrap(), &levels, terms, 0.5, 2024).unwrap()
}

/// That the parts of a force are its sum, and that none of them is nothing or far more than it (those of a ratio cancel); with `tolerance` relative to it.
pub fn check_parts(what: &str, links: &MatrixField, action: &mut dyn Action, names: &[&str], tolerance: f64) {
    assert_eq!(action.parts(), names);
    action.refresh(links, 11, 3).unwrap();
    let domain = links.domain();
    let mut of = |part: Option<usize>| {
        let mut force = AlgebraField::new(domain).unwrap();
        action.add_part(part, links, &mut force).unwrap();
        force.to_host().unwrap()
    };
    let norm = |force: &[f64]| force.iter().map(|f| f * f).sum::<f64>().sqrt();
    let (whole, parts) = (of(None), (0..names.len()).map(|part| of(Some(part))).collect::<Vec<_>>());
    let left: Vec<f64> =
        whole.iter().enumerate().map(|(n, f)| f - parts.iter().map(|part| part[n]).sum::<f64>()).collect();
    let (left, norms) = (norm(&left) / norm(&whole), parts.iter().map(|part| norm(part) / norm(&whole)));
    let norms: Vec<f64> = norms.collect();
    println!("{what}: parts {norms:.3?} of the force, {left:.1e} left");
    assert!(left < tolerance, "{what}: {left:e} of the force is in no part");
    assert!(norms.iter().all(|norm| (1e-3..2.0).contains(norm)), "{what}: parts {norms:?}");
}

/// Second order of |dH|, from three draws with 6 steps and with 12, and reversibility, on what two trajectories make of
/// smooth links.
pub fn check_dynamics(what: &str, make: impl Fn(&HostLinks, u32) -> Chain) {
    let mut start = make(&Gauge::warm([4; 4], 0.3, 1).to_host(), 6);
    for number in 0..2 {
        start.trajectory(number, true).unwrap();
    }
    let links = start.links.to_host().unwrap();
    let mean = |steps| {
        let mut chain = make(&links, steps);
        let mut sum = 0.0;
        for number in 100..103 {
            sum += chain.trajectory(number, true).unwrap().delta_h.abs();
            chain.links.set_host(&links).unwrap();
        }
        sum / 3.0
    };
    let (coarse, fine) = (mean(6), mean(12));
    let order = (coarse / fine).log2();
    println!("{what}: |dH| {coarse:.3e} and {fine:.3e} with twice the steps: order {order:.3}");
    // Far above rounding and solves, far below where higher orders mix in.
    assert!(fine > 1e-9 && coarse < 0.5, "{what}: |dH| of {coarse:e} and {fine:e} show no order");
    assert!((order - 2.0).abs() < 0.1, "{what}: order {order} is not 2");
    let mut chain = make(&links, 6);
    let report = chain.reversibility(7).unwrap();
    println!("{what}: {report:?}");
    assert_eq!(chain.links.to_host().unwrap(), links, "the links stay as they are");
    // Rounding of 1e-16 in 10^2 moves, amplified by less than 10^3.
    assert!(report.distance < 1e-12, "{what}: {:e}", report.distance);
}

/// A square matrix.
pub type Dense = Vec<Vec<Complex64>>;

/// log |det| by Gauss with partial pivoting.
pub fn log_abs_det(mut a: Dense) -> f64 {
    let n = a.len();
    let mut sum = 0.0;
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| a[i][k].norm().total_cmp(&a[j][k].norm())).unwrap();
        a.swap(k, pivot);
        sum += a[k][k].norm().ln();
        for i in k + 1..n {
            let factor = a[i][k] / a[k][k];
            let (above, below) = a.split_at_mut(i);
            below[0][k..].iter_mut().zip(&above[k][k..]).for_each(|(x, y)| *x -= factor * y);
        }
    }
    sum
}

/// `conj(a)^T`
pub fn adjoint(a: &Dense) -> Dense {
    (0..a.len()).map(|i| a.iter().map(|row| row[i].conj()).collect()).collect()
}

/// `a x`
pub fn apply(a: &Dense, x: &[Complex64]) -> Vec<Complex64> {
    a.iter().map(|row| row.iter().zip(x).map(|(a, x)| a * x).sum()).collect()
}

/// `a b`
pub fn product(a: &Dense, b: &Dense) -> Dense {
    let columns: Dense =
        adjoint(b).iter().map(|c| c.iter().map(num_complex::Complex::conj).collect()).collect();
    a.iter()
        .map(|row| columns.iter().map(|c| row.iter().zip(c).map(|(a, b)| a * b).sum()).collect())
        .collect()
}

/// x of `a x = b`, by Gauss with partial pivoting.
pub fn solve(mut a: Dense, b: &[Complex64]) -> Vec<Complex64> {
    let n = a.len();
    a.iter_mut().zip(b).for_each(|(row, &b)| row.push(b));
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| a[i][k].norm().total_cmp(&a[j][k].norm())).unwrap();
        a.swap(k, pivot);
        for i in (0..n).filter(|&i| i != k) {
            let (factor, above) = (a[i][k] / a[k][k], a[k].clone());
            a[i].iter_mut().zip(above).skip(k).for_each(|(x, y)| *x -= factor * y);
        }
    }
    (0..n).map(|i| a[i][n] / a[i][i]).collect()
}

/// Eigenvalues and unit eigenvectors of a hermitian matrix, by Jacobi's rotations.
pub fn eigen(mut a: Dense) -> Vec<(f64, Vec<Complex64>)> {
    let n = a.len();
    // Row k of v is the conjugate of eigenvector k.
    let mut v: Dense = (0..n).map(|i| (0..n).map(|j| f64::from(u8::from(i == j)).into()).collect()).collect();
    let size: f64 = (0..n).map(|i| a[i][i].norm_sqr()).sum();
    for _ in 0..50 {
        let off: f64 =
            (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| a[i][j].norm_sqr()).sum();
        if off < 1e-30 * size {
            return (0..n)
                .map(|k| (a[k][k].re, v[k].iter().map(num_complex::Complex::conj).collect()))
                .collect();
        }
        for p in 0..n {
            for q in p + 1..n {
                let r = a[p][q].norm();
                if r < 1e-300 {
                    continue;
                }
                let phase = a[p][q] / r;
                let angle = 0.5 * (2.0 * r).atan2(a[q][q].re - a[p][p].re);
                let (s, c) = angle.sin_cos();
                let turn = |m: &mut Dense| {
                    let (above, below) = m.split_at_mut(q);
                    for (x, y) in above[p].iter_mut().zip(&mut below[0]) {
                        (*x, *y) = (c * *x - s * phase * *y, s * phase.conj() * *x + c * *y);
                    }
                };
                turn(&mut a);
                turn(&mut v);
                for row in &mut a {
                    let (x, y) = (row[p], row[q]);
                    row[p] = c * x - s * phase.conj() * y;
                    row[q] = s * phase * x + c * y;
                }
            }
        }
    }
    panic!("Jacobi's rotations do not converge")
}

/// The plain reference of an operator.
fn dirac<'a>(links: &'a Gauge, operator: &WilsonParams) -> Dirac<'a> {
    let mass = operator.diagonal() - 4.0;
    Dirac::new(links, Parameters { mass, c_sw: operator.c_sw, phases: operator.boundary.theta() })
}

/// The matrix of a linear map of fields on the components at `places`.
fn matrix(extents: Extents, places: &[usize], map: impl Fn(&[plain::Spinor]) -> Vec<plain::Spinor>) -> Dense {
    let column = |&k: &usize| {
        let mut e = plain::zero_field(extents);
        e[k / 12][k % 12 / 3][k % 3] = Complex64::ONE;
        let image = map(&e);
        places.iter().map(|&k| image[k / 12][k % 12 / 3][k % 3].conj()).collect()
    };
    adjoint(&places.iter().map(column).collect())
}

/// Places of odd sites' components in a field.
fn odd_places(extents: Extents) -> Vec<usize> {
    (0..volume(extents)).filter(|&x| parity(extents, x) == 1).flat_map(|x| 12 * x..12 * x + 12).collect()
}

/// W of the plain reference on odd sites, twisted mass included.
pub fn reference_operator(links: &Gauge, operator: &WilsonParams) -> Dense {
    let dirac = dirac(links, operator);
    let places = odd_places(links.extents);
    let mhat = |psi: &[plain::Spinor]| match operator.schur {
        Schur::Asymmetric => dirac.schur_asymmetric(psi),
        Schur::Symmetric => dirac.schur_symmetric(psi),
    };
    let twist = |psi: &[plain::Spinor]| match operator.schur {
        Schur::Asymmetric => plain::gamma5_field(psi),
        Schur::Symmetric => dirac.diagonal_inverse(&plain::gamma5_field(psi)),
    };
    let (mut w, g) = (matrix(links.extents, &places, mhat), matrix(links.extents, &places, twist));
    for (w, g) in w.iter_mut().flatten().zip(g.iter().flatten()) {
        *w += Complex64::I * operator.mu * g;
    }
    w
}

/// `log det A` of the sites that belong to an action of this operator.
pub fn reference_log_det(links: &Gauge, operator: &WilsonParams) -> f64 {
    let dirac = dirac(links, operator);
    dirac.log_det(0) + if operator.schur == Schur::Symmetric { dirac.log_det(1) } else { 0.0 }
}

/// log |det M| of the whole operator of the plain reference.
pub fn reference_log_abs_det(links: &Gauge, operator: &WilsonParams) -> f64 {
    let dirac = dirac(links, operator);
    let places: Vec<usize> = (0..12 * volume(links.extents)).collect();
    log_abs_det(matrix(links.extents, &places, |psi| dirac.apply(psi)))
}

/// M of a doublet of two masses of the plain reference, the first flavour first.
pub fn reference_doublet(links: &Gauge, operator: &DoubletParams) -> Dense {
    let dirac = dirac(links, &operator.wilson);
    let places: Vec<usize> = (0..12 * volume(links.extents)).collect();
    let (m, g5) = (
        matrix(links.extents, &places, |psi| dirac.apply(psi)),
        matrix(links.extents, &places, plain::gamma5_field),
    );
    let n = places.len();
    let element = |i: usize, j: usize| {
        let (row, column, sign) = (i % n, j % n, if i < n { 1.0 } else { -1.0 });
        if i / n == j / n {
            m[row][column] + Complex64::I * sign * operator.wilson.twisted_mass * g5[row][column]
        } else {
            Complex64::from(if row == column { -operator.epsbar } else { 0.0 })
        }
    };
    (0..2 * n).map(|i| (0..2 * n).map(|j| element(i, j)).collect()).collect()
}

/// The matrix of a map on odd sites of fields of so many slices, whose reals are as in `set_phi`.
pub fn odd_matrix(extents: Extents, slices: usize, mut map: impl FnMut(&[f64]) -> Vec<f64>) -> Dense {
    let one = 12 * volume(extents);
    let places: Vec<usize> =
        (0..slices).flat_map(|slice| odd_places(extents).into_iter().map(move |k| slice * one + k)).collect();
    let column = |&k: &usize| {
        let mut e = vec![0.0; 2 * slices * one];
        e[2 * k] = 1.0;
        let image = map(&e);
        places.iter().map(|&k| Complex64::new(image[2 * k], -image[2 * k + 1])).collect()
    };
    adjoint(&places.iter().map(column).collect())
}

/// What of `set_phi`'s reals lies on odd sites, as complex numbers.
pub fn odd_part(extents: Extents, phi: &[f64]) -> Vec<Complex64> {
    odd_places(extents).iter().map(|&k| Complex64::new(phi[2 * k], phi[2 * k + 1])).collect()
}

/// `|x|^2`
pub fn norm2(x: &[Complex64]) -> f64 {
    x.iter().map(Complex64::norm_sqr).sum()
}

/// Weights without any pattern but for the kernel's: omega_s - sigma_s = k.
pub fn listed_weights(slices: usize, k: f64) -> WallWeights {
    let sigma: Vec<f64> = (0..slices).map(|s| 0.8 + 0.5 * (2.0 * s as f64).sin()).collect();
    WallWeights { omega: sigma.iter().map(|sigma| sigma + k).collect(), sigma }
}
