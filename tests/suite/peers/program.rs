//! The program against the numbers of openQCD and MILC.
//!
//! A tolerance is relative unless it says absolute. Sums of n terms of one size round by about 1e-16 sqrt(n):
//! 1e-14 to 1e-13 for sums over 10^4 to 10^6 terms, and the peers round too.
//!
//! The phi of openQCD's pseudofermion numbers is its test spinor sin + i cos on the even sites of its lattice
//! (found by trial: it gives SPF_EO). Our pseudofermions live on odd sites, so the lattice is moved by one site in
//! x, where fermions are periodic; the log det of openQCD's odd sites is then that of our even ones.
#![allow(clippy::pedantic, reason = "indices and names as in the formulas")]
#![allow(clippy::excessive_precision, reason = "digits as printed by the peers")]

use crate::compare::{close, close_links, relative};
use crate::devices::domain;
use crate::reference::data;
use crate::reference::gauge::LinkField;
use crate::reference::su3::{self, I};
use crate::reference::wilson::{self as plain, M4};
use crate::reference::wilson::{reals, sincos};
use crate::terms::{quark, two_flavours};
use hmc::action::{Action, Determinant, GaugeAction};
use hmc::comm::Solo;
use hmc::device::Precision;
use hmc::family::{Schur, Wilson, WilsonParams, WilsonQuark};
use hmc::field::{AlgebraField, Dagger, Domain, EVEN, HostLinks, MatrixField, ODD, Spinor};
use hmc::io;
use hmc::lattice::{Boundary, Extents, coordinates, site, volume};
use hmc::measure::{FlowKernel, FlowPoint, Source, flow, pion};
use hmc::operator::{CloverForm, CloverTerm, GaugeLoops, WilsonLinks};
use hmc::quark::QuarkParams;
use num_complex::Complex64;
use std::path::Path;
use std::sync::Arc;

const BETA: f64 = 5.3;
const OPENQCD: WilsonParams = WilsonParams {
    kappa: 0.13,
    mu: 0.0,
    twisted_mass: 0.0,
    c_sw: 1.90952,
    boundary: Boundary::ANTIPERIODIC,
    schur: Schur::Asymmetric,
    clover: CloverForm::Linear,
};

/// A configuration as the program reads it, raw.
fn read(path: &Path) -> MatrixField {
    let extents = io::header(path).unwrap().extents;
    let domain = domain(extents);
    let (links, _) = io::read_links(path, domain.partition(), &Solo).unwrap();
    MatrixField::from_host(&domain, &links).unwrap()
}

/// q844n1; both files of it hold the same links.
fn openqcd_links() -> Option<MatrixField> {
    let (nersc, own) = (data::find("configs/q844n1.nersc")?, data::find("configs/q844n1.openqcd")?);
    let links = read(&nersc);
    assert_eq!(links.to_host().unwrap(), read(&own).to_host().unwrap());
    Some(links)
}

/// `factor` F as matrices.
pub(super) fn matrices(force: &AlgebraField, factor: Complex64) -> LinkField {
    let reals = force.to_host().unwrap();
    let link = |f: &[f64]| su3::scale(factor, &su3::from_components(f.try_into().unwrap()));
    reals.chunks_exact(32).map(|f| std::array::from_fn(|mu| link(&f[8 * mu..8 * mu + 8]))).collect()
}

pub(super) fn force_of(action: &mut dyn Action, links: &MatrixField) -> AlgebraField {
    let mut force = AlgebraField::new(links.domain()).unwrap();
    action.add_force(links, &mut force).unwrap();
    force
}

pub(super) fn rotated(rotation: &M4, field: &[plain::Spinor]) -> Vec<plain::Spinor> {
    field.iter().map(|psi| plain::spin_mul(rotation, psi)).collect()
}

/// For each site of the lattice moved by one site in x, the site it was.
pub(super) fn moved(extents: Extents) -> Vec<usize> {
    let origin = |x: usize| {
        let mut y = coordinates(extents, x);
        y[0] = (y[0] + 1) % extents[0];
        site(extents, y)
    };
    (0..volume(extents)).map(origin).collect()
}

/// M psi by the program's even-odd pieces: A psi - D psi / 2.
pub(super) fn full_operator(links: &MatrixField, params: &WilsonParams, psi: &[f64]) -> Vec<f64> {
    let domain = links.domain();
    let mut clover = CloverTerm::new(domain, params.clover_params().unwrap(), [false; 2]).unwrap();
    clover.update(links).unwrap();
    let mut hop = WilsonLinks::new(domain, Precision::Double, 18, 1, params.boundary).unwrap();
    hop.update(links).unwrap();
    let spinor = || Spinor::new(domain, Precision::Double).unwrap();
    let mut x = [spinor(), spinor()];
    let (mut y, mut hopped) = (spinor(), spinor());
    let mut out = vec![0.0; psi.len()];
    for parity in [EVEN, ODD] {
        x[parity].read_host(parity, psi).unwrap();
    }
    for parity in [EVEN, ODD] {
        clover.apply(&mut y, &x[parity], parity).unwrap();
        hop.hop(&mut hopped, &x[1 - parity], parity, Dagger::No).unwrap();
        y.axpy(-0.5, &hopped).unwrap();
        y.add_twist(params.twisted_mass, &x[parity]).unwrap();
        y.write_host(parity, &mut out).unwrap();
    }
    out
}

/// openQCD's two flavours, on odd sites.
fn two_flavour(domain: &Arc<Domain>) -> Determinant<Wilson> {
    two_flavours(domain, quark(OPENQCD, Precision::Double), [1e-14; 2])
}

#[test]
fn openqcd_loops_action_and_force() {
    let Some(links) = openqcd_links() else { return };
    let traces = GaugeLoops::traces(&links).unwrap();
    relative("plaquette x 3", 3.0 * traces.plaquette(), 1.626_350_317_273_676_8, 1e-14);
    // The table prints the mean rectangle with 14 digits after the point.
    close("rectangle", traces.rectangle, 0.330_565_469_217_07, 1e-14, 1.0);
    let mut action = GaugeAction::new(links.domain(), BETA, [1.0, 0.0, 0.0]).unwrap();
    relative("gauge action", action.value(&links).unwrap().value(), 7.455_071_558_092_301_5e3, 1e-14);
    let Some(path) = data::find("openqcd_q844/gauge_force.f64") else { return };
    // Its force is antihermitian with 2 Re <Q, F> = dS: F(openQCD) = i F. Six staples a link.
    let force = matrices(&force_of(&mut action, &links), I);
    close_links("gauge force", &force, &data::link_field(&path), 1e-14);
}

/// Tree-level Symanzik with u0 = 0.87 at beta = 7.6, which openQCD has as beta = 3.58, c0 = 2.12.
#[test]
fn openqcd_tadpole_improved_action_and_force() {
    let Some(links) = openqcd_links() else { return };
    let coefficients = [1.0, -1.0 / (20.0 * 0.87 * 0.87), 0.0];
    let mut action = GaugeAction::new(links.domain(), 7.6, coefficients).unwrap();
    relative("gauge action", action.value(&links).unwrap().value(), 8_625.365_689_436_321, 1e-14);
    let Some(path) = data::find("symanzik_tadpole/q844n1_gauge_force.f64") else { return };
    let force = matrices(&force_of(&mut action, &links), I);
    close_links("gauge force", &force, &data::link_field(&path), 1e-14);
}

#[test]
fn openqcd_dirac_operator() {
    let (Some(links), Some(path)) = (openqcd_links(), data::find("openqcd_q844/Dw_sincos.f64")) else {
        return;
    };
    let rotation = plain::from_openqcd();
    let psi = rotated(&rotation, &sincos(links.domain().partition().global));
    let ours = full_operator(&links, &OPENQCD, &reals(&psi));
    let peer = reals(&rotated(&rotation, &data::spinor_field(&path)));
    let worst = ours.iter().zip(&peer).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    println!("Dw: worst real {worst:.1e}");
    // Reals of size 3, made of about 100 products each.
    assert!(worst < 1e-14 * 10.0, "{worst:e}");
    relative("|Dw psi|^2", ours.iter().map(|x| x * x).sum(), 1.185_924_387_458_377_9e5, 1e-13);
}

#[test]
fn openqcd_two_flavours() {
    let Some(links) = openqcd_links() else { return };
    let extents = links.domain().partition().global;
    let origin = moved(extents);
    let shift = |f: &LinkField| -> LinkField { origin.iter().map(|&y| f[y]).collect() };
    let host = links.to_host().unwrap();
    let shifted = HostLinks {
        local: extents,
        reals: origin.iter().flat_map(|&y| host.reals[72 * y..72 * y + 72].to_vec()).collect(),
    };
    let links = MatrixField::from_host(links.domain(), &shifted).unwrap();
    let psi = rotated(&plain::from_openqcd(), &sincos(extents));
    let phi: Vec<plain::Spinor> = origin.iter().map(|&y| psi[y]).collect();

    let mut term = two_flavour(links.domain());
    term.set_phi(&vec![0.0; 24 * volume(extents)]).unwrap();
    // S_det = -2 sum_odd ln det(2 kappa D_oo): 256 sites of 12 components. The peer's number is the difference
    // of two of size 417.
    let scale = 2.0 * 256.0 * 12.0 * (2.0 * OPENQCD.kappa).ln();
    let log_det = term.value(&links).unwrap().value();
    relative("S_det", log_det - scale, 1.392_521_900_847_751_2e2, 1e-12);
    let log_det_force = matrices(&force_of(&mut term, &links), I);

    // openQCD solves to 1e-12 at best.
    term.set_phi(&reals(&phi)).unwrap();
    let both = term.value(&links).unwrap().value();
    relative("S_pf", both - log_det, 2.777_062_454_430_413_8e2, 1e-11);
    relative("S_pf + S_det", both - scale, 4.169_584_355_278_165_0e2, 1e-11);
    let (Some(alone), Some(with)) =
        (data::find("openqcd_q844/eo_pf_force.f64"), data::find("openqcd_q844/eo_pf_sdet_force.f64"))
    else {
        return;
    };
    let (alone, with) = (shift(&data::link_field(&alone)), shift(&data::link_field(&with)));
    let minus = |a: &LinkField, b: &LinkField| -> LinkField {
        let sites = a.iter().zip(b);
        sites.map(|(a, b)| std::array::from_fn(|mu| su3::sub(&a[mu], &b[mu]))).collect()
    };
    let force = matrices(&force_of(&mut term, &links), I);
    close_links("force of log det", &log_det_force, &minus(&with, &alone), 1e-13);
    // openQCD's residual of 1e-12, amplified on single links.
    close_links("force of the pseudofermion", &minus(&force, &log_det_force), &alone, 1e-10);
    close_links("force of both", &force, &with, 1e-10);
}

/// openQCD's exponential clover term (isw = 1): D, log det, even-odd action and force, pions.
#[test]
fn openqcd_exponential_clover() {
    const EXPONENTIAL: WilsonParams = WilsonParams { clover: CloverForm::Exponential, ..OPENQCD };
    let (Some(links), Some(path)) = (openqcd_links(), data::find("openqcd_expclover/periodic_Dw_sincos.f64"))
    else {
        return;
    };
    let rotation = plain::from_openqcd();
    let extents = links.domain().partition().global;
    let psi = rotated(&rotation, &sincos(extents));
    let ours = full_operator(&links, &EXPONENTIAL, &reals(&psi));
    let peer = reals(&rotated(&rotation, &data::spinor_field(&path)));
    let worst = ours.iter().zip(&peer).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    println!("Dw: worst real {worst:.1e}");
    assert!(worst < 1e-13, "{worst:e}");
    relative("|Dw psi|^2", ours.iter().map(|x| x * x).sum(), 1.226_724_477_900_106e5, 1e-13);
    // ln det A = 12 ln (4 + m0) a site, which the program leaves out: 256 sites of a parity.
    let constant = 256.0 * 12.0 * EXPONENTIAL.diagonal().ln();
    relative("ln det A", constant, 4.138_210_246_553_425e3, 1e-13);

    // Its even-odd operator lives on even sites: move links and psi.
    let origin = moved(extents);
    let host = links.to_host().unwrap();
    let shifted = HostLinks {
        local: extents,
        reals: origin.iter().flat_map(|&y| host.reals[72 * y..72 * y + 72].to_vec()).collect(),
    };
    let links_of_odd = MatrixField::from_host(links.domain(), &shifted).unwrap();
    let phi: Vec<plain::Spinor> = origin.iter().map(|&y| psi[y]).collect();
    let mut term = two_flavours(links.domain(), quark(EXPONENTIAL, Precision::Double), [1e-14; 2]);
    term.set_phi(&reals(&phi)).unwrap();
    relative("S_pf", term.value(&links_of_odd).unwrap().value(), 254.889_559_375_899_72, 1e-11);
    let Some(path) = data::find("openqcd_expclover/periodic_eo_pf_force.f64") else { return };
    let peer = data::link_field(&path);
    let peer: LinkField = origin.iter().map(|&y| peer[y]).collect();
    let force = matrices(&force_of(&mut term, &links_of_odd), I);
    close_links("force of the pseudofermion", &force, &peer, 1e-10);

    for (t, peer) in [
        (1, [9.351_564_448_994_871_5e-2, 1.164_602_311_798_396_6, 8.606_246_250_217_323e-2]),
        (4, [6.281_000_021_562_123e-4, 1.833_608_869_559_861e-3, 1.137_495_247_192_592_6e-2]),
    ] {
        let mut inverse =
            WilsonQuark::new(&links, &QuarkParams::in_double(EXPONENTIAL, 1000), 1e-13).unwrap();
        let ours = pion(&mut inverse, Source::Point([0, 0, 0, t])).unwrap();
        for (sink, peer) in peer.into_iter().enumerate() {
            // Ours counts t from the source.
            relative(&format!("pion from {t} at {sink}"), ours[(8 + sink - t) % 8], peer, 1e-10);
        }
    }
}

#[test]
fn openqcd_pion() {
    let Some(links) = openqcd_links() else { return };
    let ours = pion(
        &mut WilsonQuark::new(&links, &QuarkParams::in_double(OPENQCD, 1000), 1e-13).unwrap(),
        Source::Point([0; 4]),
    )
    .unwrap();
    let peer = [
        1.271_691_573_298_148_0,
        1.198_834_955_638_797_0e-1,
        2.063_378_054_836_925_0e-2,
        4.169_301_484_386_347_3e-3,
        1.328_936_474_904_961_9e-3,
        3.369_559_434_538_007_4e-3,
        1.883_267_798_868_475_8e-2,
        1.163_808_015_688_988_1e-1,
    ];
    assert_eq!(ours.len(), peer.len());
    // Its residual of 1e-12 times a condition number of 10^2.
    for (t, peer) in peer.into_iter().enumerate() {
        relative(&format!("pion {t}"), ours[t], peer, 1e-10);
    }
}

#[test]
fn milc_plaquettes_and_rectangles() {
    /// Re tr of the spatial and the temporal plaquette, raw and re-unitarised, and the rectangle.
    const TABLE: [(&str, [f64; 4], f64); 4] = [
        (
            "lat.sample.l6666.hisq",
            [1.8403954419120214, 1.8597505785271828, 1.840395478512694, 1.859750612299865],
            0.39000707894464,
        ),
        (
            "lat.sample.hisq.f211b670.l6666",
            [1.6833615233062336, 1.6726780328005630, 1.683361523715723, 1.672678033904369],
            0.31550243349536,
        ),
        (
            "lat.sample.l8888",
            [1.7790021544584596, 1.7823592881385857, 1.779002100573846, 1.782359230441904],
            0.38347061567902,
        ),
        (
            "lat.sample.l4448",
            [1.7237482807974538, 1.6905860654166096, 1.723748273963274, 1.690586048164113],
            0.35019483961501,
        ),
    ];
    for (name, [raw_space, raw_time, space, time], rectangle) in TABLE {
        let Some(path) = data::find(&format!("configs/{name}")) else { continue };
        let mut links = read(&path);
        let traces = GaugeLoops::traces(&links).unwrap();
        relative(&format!("{name} raw ss"), 3.0 * traces.plaquette_space, raw_space, 1e-13);
        relative(&format!("{name} raw st"), 3.0 * traces.plaquette_time, raw_time, 1e-13);
        // Single precision is off the group by about 1e-7, and never exactly on it.
        let drift = links.unitarity(true).unwrap();
        assert!((1e-9..1e-5).contains(&drift), "{name}: {drift:e}");
        let traces = GaugeLoops::traces(&links).unwrap();
        // Printed with 16 digits.
        relative(&format!("{name} ss"), 3.0 * traces.plaquette_space, space, 1e-13);
        relative(&format!("{name} st"), 3.0 * traces.plaquette_time, time, 1e-13);
        // Printed with 14 digits after the point.
        close(&format!("{name} rectangle"), traces.rectangle, rectangle, 1e-13, 1.0);
    }
}

#[test]
fn milc_asqtad_gauge_action_and_force() {
    let Some(path) = data::find("configs/lat.sample.l6666b650m010m050") else { return };
    let mut links = read(&path);
    links.unitarity(true).unwrap();
    let (u0, beta) = (0.862_f64, 6.5);
    let coefficients = [1.0, -(1.0 - 0.6264 * u0.ln()) / (20.0 * u0 * u0), 0.04335 * u0.ln() / (u0 * u0)];
    let mut action = GaugeAction::new(links.domain(), beta, coefficients).unwrap();
    relative("gauge action", action.value(&links).unwrap().value(), 1.677_708_426_322_23e4, 1e-13);
    let Some(path) = data::find("milc_asqtad_trajectory/gauge_force_dmom_dt.f64") else { return };
    // Re <Q, dP/dt> = -dS with dP/dt antihermitian: dP/dt = -2i F. 48 staples a link, on both sides.
    let force = matrices(&force_of(&mut action, &links), -2.0 * I);
    close_links("gauge force", &force, &data::link_field(&path), 1e-13);
}

#[test]
fn milc_clover_pions() {
    let Some(path) = data::find("configs/lat.sample.l6666.hisq") else { return };
    let mut links = read(&path);
    links.unitarity(true).unwrap();
    for (name, phase) in [("periodic", 0.0), ("antiperiodic", 1.0)] {
        let Some(table) = data::find(&format!("milc_corr/clover_l6666hisq_{name}.corr")) else { continue };
        // The n-th correlator of its key.
        for (kappa, c_sw, n) in [(0.12, 0.0, 0), (0.12, 1.0, 1), (0.13, 1.5, 0)] {
            let operator = WilsonParams {
                kappa,
                mu: 0.0,
                twisted_mass: 0.0,
                c_sw,
                boundary: Boundary::phases([0.0, 0.0, 0.0, phase]),
                schur: Schur::Symmetric,
                clover: CloverForm::Linear,
            };
            let mut quark = WilsonQuark::new(&links, &QuarkParams::in_double(operator, 1000), 1e-13).unwrap();
            let ours = pion(&mut quark, Source::Point([0; 4])).unwrap();
            let key = format!("PION_d_d_d_d_k{kappa}_k{kappa}_p000");
            let peer = data::milc_correlator(&table, &key, n);
            assert_eq!(ours.len(), peer.len());
            // Both solve to 1e-13, times a condition number of 10^2; its M is 2 kappa times ours.
            for (t, &peer) in peer.iter().enumerate() {
                let ours = ours[t] / (4.0 * kappa * kappa);
                relative(&format!("{name} kappa {kappa} c_sw {c_sw} C({t})"), ours, peer, 1e-9);
            }
        }
    }
}

#[test]
fn milc_flow() {
    let Some(path) = data::find("configs/lat.sample.l4448") else { return };
    let mut links = read(&path);
    links.unitarity(true).unwrap();
    for (name, kernel) in [("wilson", FlowKernel::Wilson), ("symanzik", FlowKernel::Symanzik)] {
        let Some(path) = data::find(&format!("wilson_flow/milc_flow_l4448_{name}.txt")) else { continue };
        let table = data::table(&path);
        let points = flow(&links, kernel, 0.02, 2.0, 1, &|| false).unwrap();
        assert_eq!(points.len(), table.len());
        for (point, row) in points.iter().zip(&table) {
            // Same scheme and steps, so rounding alone; our Q has MILC's sign.
            close(&format!("{name} t"), point.t, row[0], 1e-13, 1.0);
            relative(&format!("{name} t {} E", row[0]), point.e_clover, row[1] + row[2], 1e-12);
            close(&format!("{name} t {} Q", row[0]), point.q, row[3], 1e-12, 1e-2);
        }
    }
}

#[test]
fn openqcd_flow() {
    let (Some(links), Some(path)) = (openqcd_links(), data::find("wilson_flow/openqcd_flow_q844n1.txt"))
    else {
        return;
    };
    let points: Vec<FlowPoint> = flow(&links, FlowKernel::Wilson, 0.005, 1.0, 20, &|| false).unwrap();
    assert_eq!(points.len(), 11);
    let table = data::table(&path);
    relative("YM action", 512.0 * points[0].e_clover, 1.059_412_235_019_579_2e3, 1e-13);
    // Rounding alone at t = 0. The peer's steps are unknown, its errors 2e-6 of E at most; ours are
    // far smaller.
    for (point, row) in points.iter().zip(&table) {
        let tolerance = if row[0] == 0.0 { 1e-13 } else { 3e-6 };
        close("t", point.t, row[0], 1e-13, 1.0);
        relative(&format!("t {} E_plaq", row[0]), point.e_plaquette, row[1], tolerance);
        relative(&format!("t {} E_clover", row[0]), point.e_clover, row[2], tolerance);
        // openQCD's sign of Q is the other one.
        close(&format!("t {} Q", row[0]), -point.q, row[3], tolerance, 1e-2);
    }
}
