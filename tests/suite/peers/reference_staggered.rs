//! The reference for improved staggered quarks: MILC's numbers, and laws.
//!
//! A tolerance is relative unless it says absolute. MILC's data, in double precision, follow a single-precision file
//! re-unitarised in its way; sums of n terms of one size round by about 1e-16 sqrt(n).
#![allow(clippy::pedantic, reason = "indices and names as in the formulas")]
#![allow(clippy::excessive_precision, clippy::needless_range_loop, reason = "digits as printed by the peers")]

use crate::compare::{close_links, relative};
use crate::reference::data;
use crate::reference::gauge::{self, Gauge};
use crate::reference::staggered::sincos;
use crate::reference::staggered::{self, ANTIPERIODIC, Paths, Staggered, Vector};
use crate::reference::su3::{self, M3, Rng};
use hmc::lattice::{Extents, coordinates, volume};
use num_complex::Complex64;

const EXTENTS: Extents = [4, 2, 6, 4];
const U0: f64 = 0.862;

fn close_vectors(name: &str, ours: &[Vector], peer: &[Vector], tolerance: f64) {
    assert_eq!(ours.len(), peer.len());
    let error = (norm2(&staggered::axpy(ours, -1.0, peer)) / norm2(peer)).sqrt();
    println!("{name}: relative error {error:.1e}");
    assert!(error <= tolerance, "{name}: {error:e}");
}

fn norm2(chi: &[Vector]) -> f64 {
    staggered::dot(chi, chi).re
}

/// Sum over the sites of |X_mu|^2.
fn sums(links: &Gauge) -> [f64; 4] {
    std::array::from_fn(|mu| links.links.iter().map(|link| su3::norm2(&link[mu])).sum())
}

fn origin(extents: Extents) -> Vec<Vector> {
    let mut delta = vec![[su3::ZERO; 3]; volume(extents)];
    delta[0][0] = su3::ONE;
    delta
}

fn asqtad_trajectory() -> Option<Staggered> {
    let links = data::milc_links("lat.sample.l6666b650m010m050")?;
    Some(Staggered::asqtad(&links, U0, ANTIPERIODIC))
}

#[test]
fn milc_asqtad_links() {
    let (Some(d), Some(path)) =
        (asqtad_trajectory(), data::find("milc_asqtad_trajectory/fatlinks_naik0.f64"))
    else {
        return;
    };
    let peer = data::link_field(&path);
    close_links("fat links", &d.fat.links, &peer, 1e-13);
    let fat = [
        4.565_311_084_983_939_5e3,
        4.544_782_589_634_753_1e3,
        4.598_248_061_657_938_2e3,
        4.566_124_810_208_143_6e3,
    ];
    let long = [
        1.222_572_744_333_895_0e1,
        1.222_572_744_333_895_2e1,
        1.222_572_744_333_902_3e1,
        1.222_572_744_333_899_5e1,
    ];
    for mu in 0..4 {
        relative(&format!("|X_{mu}|^2"), sums(&d.fat)[mu], fat[mu], 1e-13);
        relative(&format!("|N_{mu}|^2"), sums(&d.long)[mu], long[mu], 1e-13);
    }
}

/// The long links' own numbers are in the operator alone.
#[test]
fn milc_asqtad_operator() {
    let (Some(d), Some(path)) =
        (asqtad_trajectory(), data::find("milc_asqtad_trajectory/dslash_sincos_naik0.f64"))
    else {
        return;
    };
    let ours = d.apply(&sincos(d.fat.extents));
    close_vectors("D chi", &ours, &data::vector_field(&path), 1e-13);
    relative("|D chi|^2", norm2(&ours), 3.652_297_355_356_944_2e4, 1e-13);
    let point = d.apply(&origin(d.fat.extents));
    relative("|D delta|^2", norm2(&point), 8.215_661_145_856_646_6, 1e-13);
}

/// The constant and the [residue, pole] of the lines `res_NAME`, `pole_NAME`.
fn milc_rational(text: &str, name: &str) -> (f64, Vec<[f64; 2]>) {
    let column = |key: String| -> Vec<f64> {
        let lines = text.lines().filter(|line| line.split_whitespace().next() == Some(&key));
        lines.map(|line| line.split_whitespace().nth(1).unwrap().parse().unwrap()).collect()
    };
    let (residues, poles) = (column(format!("res_{name}")), column(format!("pole_{name}")));
    assert!(residues.len() == poles.len() && residues.len() > 1, "{name}");
    let terms = residues.iter().zip(&poles).skip(1).map(|(&residue, &pole)| [residue, pole]);
    (residues[0], terms.collect())
}

/// The force of S = <phi, r_MD phi> at unit step: Re <Q, dP/dt> = -dS(e^{sQ} U)/ds, Q = i p, along one random p.
#[test]
fn milc_asqtad_force_along_a_direction() {
    let (Some(u), Some(phi), Some(rational), Some(force)) = (
        data::milc_links("lat.sample.l6666b650m010m050"),
        data::find("milc_asqtad_trajectory/phi0.f64"),
        data::find("milc_rationals/rationals.sample.su3_omelyan_rhmc"),
        data::find("milc_asqtad_trajectory/fermion_force_dmom_dt.f64"),
    ) else {
        return;
    };
    let (phi, force) = (data::vector_field(&phi), data::link_field(&force));
    relative("|dP/dt|^2", force.iter().flatten().map(su3::norm2).sum(), 1.080_676_152_699_963_5e4, 1e-13);
    let (constant, terms) = milc_rational(&std::fs::read_to_string(rational).unwrap(), "MD");
    let p = gauge::random_momenta(u.extents, 21);
    let numeric = gauge::derivative(&u, &p, 5e-4, |u| {
        let d = Staggered::asqtad(u, U0, ANTIPERIODIC);
        staggered::dot(&phi, &d.rational(constant, &terms, &phi, 1e-12)).re
    });
    // conj(i p_ij) F_ij summed: tr (i p)^dag F = -i tr p F.
    let pairs = p.iter().flatten().zip(force.iter().flatten());
    let along: f64 = pairs.map(|(p, f)| (-su3::I * su3::trace(&su3::mul(p, f))).re).sum();
    // S rounds by 1e-15 S, over eps 2e-9; dS is near 40, and the truncation below 1e-10 of it.
    relative("dS", -numeric, along, 5e-9);
}

/// S_f = |r_FA phi|^2.
#[test]
fn milc_asqtad_pseudofermion_action() {
    let (Some(d), Some(phi), Some(rational)) = (
        asqtad_trajectory(),
        data::find("milc_asqtad_trajectory/phi0.f64"),
        data::find("milc_rationals/rationals.sample.su3_omelyan_rhmc"),
    ) else {
        return;
    };
    let phi = data::vector_field(&phi);
    relative("|phi|^2", norm2(&phi), 9.900_034_121_177_908_7e3, 1e-14);
    let (constant, terms) = milc_rational(&std::fs::read_to_string(rational).unwrap(), "FA");
    let r = d.rational(constant, &terms, &phi, 1e-12);
    // Residuals of 1e-12, theirs too: r phi is off by 1e-12 |phi| sum_j residue_j/pole_j < 1e-12 r(0) |phi|, r(0) near
    // 13, and |phi|^2 = 5.2 S_f; twice that for the square.
    relative("S_f", norm2(&r), 1.907_326_376_463_198_6e3, 2e-10);
}

#[test]
fn milc_asqtad_pion() {
    let (Some(u), Some(table)) =
        (data::milc_links("lat.sample.l6666.hisq"), data::find("milc_corr/asqtad_l6666hisq_ap.corr"))
    else {
        return;
    };
    let d = Staggered::asqtad(&u, 0.89, ANTIPERIODIC);
    milc_pion("asqtad", &d, 0.05, &data::milc_correlator(&table, "PION_5_d_d_d_d_m0.05_m0.05_p000", 0));
    milc_pion("asqtad", &d, 0.5, &data::milc_correlator(&table, "PION_5_d_d_d_d_m0.5_m0.5_p000", 0));
}

/// A charm quark has its own Naik correction.
#[test]
fn milc_hisq_pion() {
    let Some(u) = data::milc_links("lat.sample.l6666.hisq") else { return };
    for (boundary, phases) in [("ap", ANTIPERIODIC), ("p", [0.0; 4])] {
        let Some(table) = data::find(&format!("milc_corr/hisq_l6666hisq_{boundary}.corr")) else { return };
        for (mass, eps_naik) in [(0.05, 0.0), (0.5, -0.16875)] {
            let d = Staggered::hisq(&u, eps_naik, phases);
            let key = format!("PION_5_d_d_d_d_m{mass}_m{mass}_p000");
            milc_pion(boundary, &d, mass, &data::milc_correlator(&table, &key, 0));
        }
    }
}

/// Relative residuals of 1e-12 (MILC's: 1e-13) times a condition number below 10^2 of M.
fn milc_pion(name: &str, d: &Staggered, mass: f64, peer: &[f64]) {
    let pion = d.pion(mass, [0; 4], 1e-12);
    assert_eq!(pion.len(), peer.len());
    for t in 0..pion.len() {
        relative(&format!("{name} m {mass} t {t}"), pion[t], peer[t], 1e-10);
    }
}

#[test]
fn milc_hisq_links() {
    let Some(u) = data::milc_links("lat.sample.hisq.f211b670.l6666") else { return };
    let peer =
        [5_260.560_273_566_736_2, 5_273.913_371_398_839_4, 5_258.833_306_132_743_9, 5_276.412_938_303_331_4];
    let d = Staggered::hisq(&u, 0.0, ANTIPERIODIC);
    for mu in 0..4 {
        relative(&format!("|X_{mu}|^2"), sums(&d.fat)[mu], peer[mu], 1e-13);
    }
    let delta = origin(u.extents);
    relative("|D delta|^2", norm2(&d.apply(&delta)), 10.552_856_391_536_402, 1e-13);
    let charm = Staggered::hisq(&u, -0.16875, ANTIPERIODIC);
    relative("charm", norm2(&charm.apply(&delta)), 10.169_587_694_118_331, 1e-13);
}

/// Six digits, and links in single precision: within 1.5 of the last digit.
#[test]
fn chroma_asqtad_pion() {
    let Some(path) = data::find("configs/chroma_4444.nersc") else { return };
    let d = Staggered::asqtad(&data::nersc(&path), 0.463_032, ANTIPERIODIC);
    let peer = [
        (0.1, [0.405_543, 0.317_851, 0.292_172, 0.279_666]),
        (0.5, [0.085_909_6, 0.045_784_2, 0.033_050_5, 0.041_060_7]),
    ];
    for (mass, peer) in peer {
        let pion = d.pion(mass, [0; 4], 1e-11);
        for t in 0..4 {
            relative(&format!("m {mass} t {t}"), pion[t], peer[t], 5e-6);
        }
    }
}

/// On unit links D^2 e^{ipx} = -4 sum_mu (9/8 sin p_mu - 1/24 sin 3p_mu)^2 e^{ipx}. By hand for
/// p = (pi/3, pi/2, 0, pi/6): 4 [(9/8)^2 3/4 + (9/8 + 1/24)^2 + (9/16 - 1/24)^2] = 1487/144.
#[test]
fn free_field() {
    let u = Gauge::unit([6, 4, 2, 6]);
    let pi = std::f64::consts::PI;
    let p = [pi / 3.0, pi / 2.0, 0.0, pi / 6.0];
    let wave = |x: usize| {
        let y = coordinates(u.extents, x);
        let phase: f64 = (0..4).map(|mu| p[mu] * y[mu] as f64).sum();
        [1.0, 2.0, -3.0].map(|c| Complex64::from_polar(c, phase))
    };
    let chi: Vec<Vector> = (0..u.links.len()).map(wave).collect();
    for d in [Staggered::asqtad(&u, 1.0, ANTIPERIODIC), Staggered::hisq(&u, 0.0, ANTIPERIODIC)] {
        let mass = 0.3;
        let expected = staggered::scaled(4.0 * mass * mass + 1487.0 / 144.0, &chi);
        close_vectors("free", &d.normal(mass, &chi), &expected, 1e-14);
    }
}

#[test]
fn paths() {
    // The number of paths of each length, and the sum of the coefficients on unit links.
    for mu in 0..4 {
        let paths = Paths { lepage: 1.0, ..Paths::fat7() }.fat(mu);
        let count = |length| paths.iter().filter(|(_, path)| path.len() == length).count();
        assert_eq!([1, 3, 5, 7].map(count), [1, 6, 24 + 6, 48]);
        let sum = |paths: Paths| paths.fat(mu).iter().map(|(c, _)| c).sum::<f64>();
        for (sum, expected) in
            [(sum(Paths::fat7()), 1.0), (sum(Paths::asqtad(1.0)), 1.125), (sum(Paths::hisq(0.8)), 1.225)]
        {
            assert!((sum - expected).abs() < 1e-14, "{sum} is not {expected}");
        }
    }
    // As MILC prints them, 7 digits.
    let asqtad = Paths::asqtad(U0);
    for (ours, peer) in [
        (asqtad.naik, -5.607_564e-2),
        (asqtad.three, 8.411_346e-2),
        (asqtad.five, 2.830_030e-2),
        (asqtad.seven, 6.347_828e-3),
        (asqtad.lepage, -1.132_012e-1),
    ] {
        relative("coefficient", ours, peer, 1e-6);
    }
}

/// X_mu(x) -> g(x) X_mu(x) g(x+mu)^dag, N over three links, D chi -> g D chi. Rough links, so sums of 85 paths of
/// up to seven products; W moves by the error of V over its smallest singular value.
#[test]
fn gauge_covariance() {
    let u = Gauge::warm(EXTENTS, 0.4, 1);
    let g = gauge::random_transformation(EXTENTS, 2);
    let v = u.transformed(&g);
    let chi = staggered::random_field(EXTENTS, 3);
    let phases = [0.1, 0.2, 0.3, 1.0];
    for (name, of) in [
        (
            "asqtad",
            Box::new(|u: &Gauge| Staggered::asqtad(u, 0.8, phases)) as Box<dyn Fn(&Gauge) -> Staggered>,
        ),
        ("hisq", Box::new(|u: &Gauge| Staggered::hisq(u, -0.2, phases))),
    ] {
        let (d, moved) = (of(&u), of(&v));
        close_links(&format!("{name} fat"), &moved.fat.links, &d.fat.transformed(&g).links, 1e-12);
        let ours = moved.apply(&staggered::transformed(&chi, &g));
        close_vectors(name, &ours, &staggered::transformed(&d.apply(&chi), &g), 1e-13);
    }
}

/// <a, D b> = -<D a, b>; D takes one parity to the other; M^dag M = (2m - D)(2m + D) keeps it.
#[test]
fn antihermitian() {
    let u = Gauge::warm(EXTENTS, 0.4, 5);
    let (a, b) = (staggered::random_field(EXTENTS, 6), staggered::random_field(EXTENTS, 7));
    for phases in [ANTIPERIODIC, [0.3, 0.0, -0.2, 0.7]] {
        for d in [Staggered::asqtad(&u, 0.8, phases), Staggered::hisq(&u, 0.1, phases)] {
            let (left, right) = (staggered::dot(&a, &d.apply(&b)), staggered::dot(&d.apply(&a), &b));
            assert!((left + right).norm() < 1e-13 * left.norm(), "{left} {right}");
            for p in 0..2 {
                let even = staggered::restrict(EXTENTS, &b, p);
                assert_eq!(norm2(&staggered::restrict(EXTENTS, &d.apply(&even), p)), 0.0);
                let mass = 0.2;
                let m = staggered::axpy(&d.apply(&even), 2.0 * mass, &even);
                let m_dagger_m = staggered::axpy(&staggered::scaled(2.0 * mass, &m), -1.0, &d.apply(&m));
                close_vectors("M^dag M", &m_dagger_m, &d.normal(mass, &even), 1e-14);
                let solution = d.solve_normal(mass, &even, 1e-12);
                close_vectors("solved", &d.normal(mass, &solution), &even, 1e-11);
            }
        }
    }
}

/// V = W H with W unitary and H hermitian and positive, and no other: for HISQ's own V, and for
/// V = A diag(s) B with A, B unitary, where W = A B.
#[test]
fn unitary_factor() {
    let u = Gauge::warm(EXTENTS, 0.4, 11);
    let v = staggered::smear(&u, |mu| Paths::fat7().fat(mu));
    let w = staggered::reunitarised_fat7(&u);
    let mut farthest = 0.0_f64;
    for (v, w) in v.links.iter().flatten().zip(w.links.iter().flatten()) {
        let w_dagger = su3::adjoint(w);
        assert!(su3::norm2(&su3::sub(&su3::mul(&w_dagger, w), &su3::one())).sqrt() < 1e-14);
        let h = su3::mul(&w_dagger, v);
        assert!(su3::norm2(&su3::sub(&h, &su3::adjoint(&h))).sqrt() < 1e-14);
        // The leading minors.
        let minor = (h[0][0] * h[1][1] - h[0][1] * h[1][0]).re;
        assert!(h[0][0].re > 0.0 && minor > 0.0 && su3::det(&h).re > 0.0);
        farthest = farthest.max((su3::det(w) - 1.0).norm());
    }
    assert!(farthest > 1e-3, "U(3), not SU(3): {farthest:e}");
    let mut rng = Rng(12);
    for s in [[1.0, 1.0, 1.0], [1e-3, 0.1, 2.0], [1e-3, 1e-3, 1e3], [5e2, 7.0, 0.3]] {
        let (a, b) = (rng.su3(), su3::scale(Complex64::from_polar(1.0, 0.7), &rng.su3()));
        let diagonal: M3 =
            std::array::from_fn(|i| std::array::from_fn(|j| if i == j { s[i].into() } else { su3::ZERO }));
        let w = staggered::project_u3(&su3::mul(&su3::mul(&a, &diagonal), &b));
        let error = su3::norm2(&su3::sub(&w, &su3::mul(&a, &b))).sqrt();
        // The rounding of V over its smallest singular value.
        let bound = 1e-15 * s.iter().copied().fold(0.0, f64::max) / s.iter().copied().fold(1.0, f64::min);
        println!("s {s:?}: error {error:.1e} of {bound:.1e}");
        assert!(error < 10.0 * bound, "s {s:?}: {error:e}");
    }
}
