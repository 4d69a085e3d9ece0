//! Links of asqtad and HISQ quarks: the reference's and MILC's, covariant, the same bits on any ranks and lanes; and
//! the force through them is the derivative.
#![allow(clippy::needless_range_loop, reason = "indices as in the formulas")]
#![allow(clippy::excessive_precision, reason = "digits as printed by the peers")]

use crate::compare::close_links;
use crate::devices::{domain, on_lanes, on_most_lanes};
use crate::ranks;
use crate::reference::data;
use crate::reference::gauge::{Gauge, neighbour, random_momenta, random_transformation, shifted};
use crate::reference::staggered::{self, Paths};
use crate::reference::su3::{self, M3, Rng};
use crate::terms::{along, fields};
use hmc::comm::Solo;
use hmc::device::lane_counts;
use hmc::family::{
    Gradients, LEAST_SINGULAR_VALUE, Smearing, StaggeredLinks, unitary_factor, unitary_gradient,
};
use hmc::field::{AlgebraField, Domain, LINK_REALS, MatrixField};
use hmc::lattice::{Extents, Partition, volume};
use num_complex::Complex64;
use std::sync::Arc;

const ASQTAD: Smearing = Smearing::Asqtad { u0: 0.862 };
const HISQ: Smearing = Smearing::Hisq { special: false };
const SPECIAL: Smearing = Smearing::Hisq { special: true };
/// Of a charm quark.
const EPS: f64 = -0.16875;

fn host(field: &MatrixField) -> Gauge {
    Gauge::from_host(&field.to_host().unwrap())
}

/// Any matrices.
fn gaussian(extents: Extents, seed: u64) -> Gauge {
    let mut rng = Rng(seed);
    let mut matrix = || std::array::from_fn(|_| std::array::from_fn(|_| rng.complex()));
    let links = (0..volume(extents)).map(|_| std::array::from_fn(|_| matrix())).collect();
    Gauge { extents, links }
}

fn each(a: &Gauge, b: &Gauge, f: impl Fn(&M3, &M3) -> M3) -> Gauge {
    let pairs = a.links.iter().zip(&b.links);
    let links = pairs.map(|(a, b)| std::array::from_fn(|mu| f(&a[mu], &b[mu]))).collect();
    Gauge { extents: a.extents, links }
}

/// a + s b.
fn axpy(a: &Gauge, s: f64, b: &Gauge) -> Gauge {
    each(a, b, |a, b| su3::add(a, &su3::scale(s, b)))
}

/// sum Re tr(a^dag b).
fn dot(a: &Gauge, b: &Gauge) -> f64 {
    let pairs = a.links.iter().flatten().zip(b.links.iter().flatten());
    pairs.map(|(a, b)| su3::trace(&su3::mul(&su3::adjoint(a), b)).re).sum()
}

/// X and N, without the coefficient, as the program makes them.
fn found(links: &Gauge, domain: &Arc<Domain>, smearing: Smearing, eps: f64) -> (Gauge, Gauge) {
    let mut smeared = StaggeredLinks::new(domain, smearing).unwrap();
    smeared.update(&fields(links, domain)).unwrap();
    let mut fat = MatrixField::new(domain, 4).unwrap();
    smeared.fat(eps, &mut fat).unwrap();
    (host(&fat), host(smeared.long()))
}

fn paths_of(smearing: Smearing, eps: f64) -> Paths {
    match smearing {
        Smearing::Asqtad { u0 } => Paths::asqtad(u0),
        Smearing::Hisq { .. } => Paths::hisq(eps),
    }
}

/// The root nearest to 1 taken out of the determinant.
fn special(w: &M3) -> M3 {
    su3::scale(su3::det(w).powf(-1.0 / 3.0), w)
}

fn thin_links(links: &Gauge, smearing: Smearing) -> Gauge {
    match smearing {
        Smearing::Asqtad { .. } => links.clone(),
        Smearing::Hisq { special: false } => staggered::reunitarised_fat7(links),
        Smearing::Hisq { special: true } => {
            let w = staggered::reunitarised_fat7(links);
            each(&w, &w, |w, _| special(w))
        }
    }
}

/// Sums of 85 paths of up to seven products, twice. W moves by the error of V over its least singular value, which
/// is small somewhere on links without any order.
#[test]
fn links_are_those_of_the_reference() {
    for extents in [[4, 2, 6, 4], [4, 4, 4, 4], [2, 2, 2, 2]] {
        let domain = domain(extents);
        for (name, links, tolerance) in
            [("warm", Gauge::warm(extents, 0.4, 1), 1e-13), ("random", Gauge::random(extents, 2), 1e-11)]
        {
            for (smearing, eps) in [(ASQTAD, 0.0), (HISQ, 0.0), (HISQ, EPS), (SPECIAL, 0.3)] {
                let tolerance = if smearing == ASQTAD { 1e-13 } else { tolerance };
                let what = format!("{name} {extents:?} {smearing:?} eps {eps}");
                let (thin, paths) = (thin_links(&links, smearing), paths_of(smearing, eps));
                let (fat, long) = found(&links, &domain, smearing, eps);
                close_links(
                    &format!("{what}: X"),
                    &fat.links,
                    &staggered::smear(&thin, |mu| paths.fat(mu)).links,
                    tolerance,
                );
                let naik = StaggeredLinks::new(&domain, smearing).unwrap().naik(eps);
                let long = each(&long, &long, |n, _| su3::scale(naik, n));
                close_links(
                    &format!("{what}: N"),
                    &long.links,
                    &staggered::smear(&thin, |mu| paths.long(mu)).links,
                    tolerance,
                );
            }
        }
    }
}

/// V = A diag(s) B, and A, B with any determinant, at each link.
struct Factored {
    s: Vec<[[f64; 3]; 4]>,
    a: Gauge,
    b: Gauge,
    v: Gauge,
}

fn factored(extents: Extents, choices: &[[f64; 3]]) -> Factored {
    let mut rng = Rng(3);
    let mut unitary = || su3::scale(Complex64::from_polar(1.0, 6.3 * rng.uniform()), &rng.su3());
    let mut links = || {
        let links = (0..volume(extents)).map(|_| std::array::from_fn(|_| unitary())).collect();
        Gauge { extents, links }
    };
    let (a, b) = (links(), links());
    let s: Vec<[[f64; 3]; 4]> = (0..volume(extents))
        .map(|x| std::array::from_fn(|mu| choices[(4 * x + mu) % choices.len()]))
        .collect();
    let middle =
        Gauge { extents, links: s.iter().map(|s| s.map(|s| diagonal(s.map(Complex64::from)))).collect() };
    let v = each(&each(&a, &middle, su3::mul), &b, su3::mul);
    Factored { s, a, b, v }
}

fn diagonal(s: [Complex64; 3]) -> M3 {
    std::array::from_fn(|i| std::array::from_fn(|j| if i == j { s[i] } else { su3::ZERO }))
}

/// W = A B, small singular values are counted, and the gradient is that of hand: with C the antihermitian part of
/// W^dag G, 2 A E B of E_ij = (B C B^dag)_ij / max(s_i + s_j, twice the least).
#[test]
fn projection_of_given_matrices() {
    let extents = [4, 2, 2, 4];
    let domain = domain(extents);
    for (choices, bound) in [
        (vec![[1.0, 1.0, 1.0], [0.9, 1.0, 1.1], [5e2, 7.0, 0.3]], 1e-12),
        (vec![[0.02, 0.05, 1.0], [1.0, 0.01, 0.01], [1.0, 1.0, 1.0]], 1e-12),
        (vec![[1e-3, 0.1, 2.0], [1e-3, 1e-3, 1.0], [1.0, 0.9, 1.0], [1e-5, 1.0, 1.0]], 1e-9),
    ] {
        let Factored { s, a, b, v } = factored(extents, &choices);
        let expected = each(&a, &b, su3::mul);
        let small = s.iter().flatten().filter(|s| s.iter().any(|s| *s < LEAST_SINGULAR_VALUE)).count();
        let (g, v) = (gaussian(extents, 4), fields(&v, &domain));
        for is_special in [false, true] {
            let expected =
                if is_special { each(&expected, &expected, |w, _| special(w)) } else { expected.clone() };
            let mut w = MatrixField::new(&domain, 4).unwrap();
            assert_eq!(unitary_factor(&v, is_special, &mut w).unwrap(), small as u64);
            let what = format!("{choices:?} special {is_special}");
            close_links(&format!("{what}: W"), &host(&w).links, &expected.links, bound);
            let mut gradient = fields(&g, &domain);
            unitary_gradient(&v, is_special, &w, &mut gradient).unwrap();
            let at = |x: usize, mu: usize| {
                let (a, b, s) = (&a.links[x][mu], &b.links[x][mu], &s[x][mu]);
                let c = su3::mul(&su3::adjoint(&expected.links[x][mu]), &g.links[x][mu]);
                let mut c = su3::scale(0.5, &su3::sub(&c, &su3::adjoint(&c)));
                if is_special {
                    c = su3::traceless_antihermitian(&c);
                }
                let mut e = su3::mul(&su3::mul(b, &c), &su3::adjoint(b));
                for i in 0..3 {
                    for j in 0..3 {
                        e[i][j] *= 2.0 / (s[i] + s[j]).max(2.0 * LEAST_SINGULAR_VALUE);
                    }
                }
                su3::mul(&su3::mul(a, &e), b)
            };
            let links = (0..volume(extents)).map(|x| std::array::from_fn(|mu| at(x, mu))).collect();
            close_links(
                &format!("{what}: gradient"),
                &host(&gradient).links,
                &Gauge { extents, links }.links,
                bound,
            );
        }
    }
}

/// A V that is no matrix to be projected is counted, and makes nothing infinite.
#[test]
fn singular_matrices_are_counted() {
    let extents = [2, 2, 2, 4];
    let domain = domain(extents);
    let Factored { v, .. } = factored(extents, &[[0.0, 1.0, 1.0], [0.0, 0.0, 0.0]]);
    let (v, mut w) = (fields(&v, &domain), MatrixField::new(&domain, 4).unwrap());
    assert_eq!(unitary_factor(&v, true, &mut w).unwrap(), 4 * volume(extents) as u64);
    let mut gradient = fields(&gaussian(extents, 5), &domain);
    unitary_gradient(&v, true, &w, &mut gradient).unwrap();
    assert!(
        w.to_host().unwrap().reals.iter().chain(&gradient.to_host().unwrap().reals).all(|x| x.is_finite())
    );
}

/// X_mu(x) -> g(x) X_mu(x) g(x+mu)^dag, N over three links.
#[test]
fn links_are_covariant() {
    let extents = [4, 6, 2, 4];
    let domain = domain(extents);
    let (links, g) = (Gauge::warm(extents, 0.4, 31), random_transformation(extents, 32));
    for (smearing, eps) in [(ASQTAD, 0.0), (HISQ, EPS), (SPECIAL, 0.0)] {
        let (fat, long) = found(&links, &domain, smearing, eps);
        let (turned_fat, turned_long) = found(&links.transformed(&g), &domain, smearing, eps);
        close_links(&format!("{smearing:?}: X"), &turned_fat.links, &fat.transformed(&g).links, 1e-13);
        let turn = |x: usize, mu: usize| {
            let end = (0..3).fold(x, |y, _| neighbour(extents, y, (mu, 1)));
            su3::mul(&su3::mul(&g[x], &long.links[x][mu]), &su3::adjoint(&g[end]))
        };
        let expected = (0..volume(extents)).map(|x| std::array::from_fn(|mu| turn(x, mu))).collect();
        close_links(
            &format!("{smearing:?}: N"),
            &turned_long.links,
            &Gauge { extents, links: expected }.links,
            1e-13,
        );
    }
}

/// S = sum Re tr(A^dag X + B^dag N + C^dag W) of X with a Naik correction, W the links that X and N are made of.
struct Sum {
    smearing: Smearing,
    eps: f64,
    a: Gauge,
    b: Gauge,
    c: Gauge,
}

impl Sum {
    fn new(smearing: Smearing, eps: f64, extents: Extents) -> Self {
        let [a, b, c] = [11, 12, 13].map(|seed| gaussian(extents, seed));
        Self { smearing, eps, a, b, c }
    }

    fn value(&self, links: &Gauge, domain: &Arc<Domain>) -> f64 {
        let (fat, long) = found(links, domain, self.smearing, self.eps);
        let thin = match self.smearing {
            Smearing::Asqtad { .. } => links.clone(),
            Smearing::Hisq { .. } => axpy(&found(links, domain, self.smearing, self.eps + 8.0).0, -1.0, &fat),
        };
        dot(&self.a, &fat) + dot(&self.b, &long) + dot(&self.c, &thin)
    }

    /// The force, and how many links are regulated.
    fn force(&self, links: &MatrixField) -> (Vec<f64>, u64) {
        let domain = links.domain();
        let mut smeared = StaggeredLinks::new(domain, self.smearing).unwrap();
        let small = smeared.update(links).unwrap();
        let mut force = AlgebraField::new(domain).unwrap();
        // The second is the one that counts.
        for _ in 0..2 {
            force.set_zero().unwrap();
            smeared.begin(domain).unwrap();
            // W enters by itself, whatever eps is.
            let Gradients { fat, long, one } = smeared.gradients(1.0).unwrap();
            let own = |all: &Gauge| ranks::links(&all.to_host(), domain.partition());
            fat.set_host(&own(&self.a)).unwrap();
            long.set_host(&own(&self.b)).unwrap();
            let one = one.expect("it was asked for");
            one.set_host(&own(&axpy(&self.c, self.eps / 8.0, &self.a))).unwrap();
            assert_eq!(smeared.add_force(links, &mut force).unwrap(), small);
        }
        (force.to_host().unwrap(), small)
    }
}

/// Against the difference over six points, of error eps^6 S^(7) / 140.
#[test]
fn force_is_the_derivative() {
    for (extents, warmth) in [([4, 4, 4, 4], 0.3), ([2, 4, 2, 6], 0.4), ([4, 2, 4, 2], 0.2)] {
        let domain = domain(extents);
        let links = Gauge::warm(extents, warmth, 5);
        for (smearing, eps) in [(ASQTAD, 0.0), (HISQ, 0.0), (HISQ, EPS), (SPECIAL, EPS)] {
            let sum = Sum::new(smearing, eps, extents);
            let (force, small) = sum.force(&fields(&links, &domain));
            assert_eq!(small, 0, "nothing is regulated");
            let norm = force.iter().map(|f| f * f).sum::<f64>().sqrt();
            for seed in [101, 102] {
                let (p, step) = (random_momenta(extents, seed), 2e-3);
                let odd = |k: f64| {
                    let s = |k| sum.value(&shifted(&links, k * step, &p), &domain);
                    s(k) - s(-k)
                };
                let expected = (45.0 * odd(1.0) - 9.0 * odd(2.0) + odd(3.0)) / (60.0 * step);
                let found = along(&p, &force);
                let error = (found - expected).abs() / found.abs().max(norm);
                println!(
                    "{extents:?} {smearing:?} eps {eps}: {found:.12e}, {expected:.12e}, error {error:.1e}"
                );
                assert!(error < 1e-9, "{smearing:?} eps {eps}: {found:e} is not {expected:e}: {error:.1e}");
            }
        }
    }
}

/// X, N and the force have the same bits with any lanes and on any grid of ranks; the counts are those of the lattice.
#[test]
fn ranks_and_lanes_have_the_same_bits() {
    let extents = [8, 4, 4, 8];
    let links = Gauge::random(extents, 19).to_host();
    for smearing in [ASQTAD, SPECIAL] {
        let sum = Sum::new(smearing, 0.0, extents);
        let results = |domain: &Arc<Domain>| {
            let thin = MatrixField::from_host(domain, &ranks::links(&links, domain.partition())).unwrap();
            let mut smeared = StaggeredLinks::new(domain, smearing).unwrap();
            smeared.update(&thin).unwrap();
            let mut fat = MatrixField::new(domain, 4).unwrap();
            smeared.fat(0.0, &mut fat).unwrap();
            let (force, small) = sum.force(&thin);
            (fat.to_host().unwrap().reals, smeared.long().to_host().unwrap().reals, force, small)
        };
        let whole = results(&domain(extents));
        assert!(whole.2.iter().all(|f| f.is_finite()));
        println!("{smearing:?}: {} regulated", whole.3);
        for lanes in lane_counts() {
            let partition = Partition::whole(extents).unwrap();
            assert!(results(&on_lanes(lanes, partition, Arc::new(Solo), 2)) == whole, "{lanes} lanes");
        }
        for (grid, border) in [([1, 1, 1, 2], 2), ([2, 1, 1, 2], 2), ([2, 1, 1, 1], 3), ([1, 2, 2, 1], 2)] {
            let found = ranks::on_grid(extents, grid, |partition, comm| {
                results(&on_most_lanes(partition, comm, border))
            });
            for (partition, (fat, long, force, small)) in &found {
                let what = format!("{smearing:?} grid {grid:?}, box at {:?}", partition.offset());
                assert!(fat == &ranks::part(&whole.0, partition, 4 * LINK_REALS), "{what}: X");
                assert!(long == &ranks::part(&whole.1, partition, 4 * LINK_REALS), "{what}: N");
                assert!(force == &ranks::part(&whole.2, partition, 32), "{what}: force");
                assert_eq!(*small, whole.3, "{what}: regulated");
            }
        }
    }
}

/// Sum over the sites of |X_mu|^2.
fn close_sums(what: &str, links: &Gauge, peer: [f64; 4]) {
    for mu in 0..4 {
        let sum: f64 = links.links.iter().map(|links| su3::norm2(&links[mu])).sum();
        let error = (sum / peer[mu] - 1.0).abs();
        println!("{what}_{mu}: {sum:.16e}, MILC {:.16e}, error {error:.1e}", peer[mu]);
        assert!(error < 1e-13, "{what}_{mu}: {error:e}");
    }
}

#[test]
fn asqtad_links_are_those_of_milc() {
    let (Some(u), Some(path)) = (
        data::milc_links("lat.sample.l6666b650m010m050"),
        data::find("milc_asqtad_trajectory/fatlinks_naik0.f64"),
    ) else {
        return;
    };
    let (fat, _) = found(&u, &domain(u.extents), ASQTAD, 0.0);
    close_links("X", &fat.links, &Gauge { extents: u.extents, links: data::link_field(&path) }.links, 1e-13);
}

#[test]
fn hisq_links_are_those_of_milc() {
    let Some(u) = data::milc_links("lat.sample.hisq.f211b670.l6666") else { return };
    let peer =
        [5_260.560_273_566_736_2, 5_273.913_371_398_839_4, 5_258.833_306_132_743_9, 5_276.412_938_303_331_4];
    close_sums("|X|^2", &found(&u, &domain(u.extents), HISQ, 0.0).0, peer);
}
