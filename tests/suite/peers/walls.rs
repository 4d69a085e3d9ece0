//! Walls in time, against openQCD's numbers.

use super::program::{force_of, full_operator, matrices, moved, rotated};
use crate::compare::{close, close_links, relative};
use crate::devices::most_lanes;
use crate::reference::data;
use crate::reference::su3::I;
use crate::reference::wilson::{self as plain, reals, sincos};
use crate::terms::{quark, two_flavours};
use hmc::action::{Action, GaugeAction};
use hmc::comm::Solo;
use hmc::device::{Cpu, Device, Precision};
use hmc::family::{Schur, WilsonParams, WilsonQuark};
use hmc::field::{Domain, Halo, HostLinks, MatrixField};
use hmc::hmc::{Chain, Level, Scheme};
use hmc::io;
use hmc::lattice::{Angles, Boundary, Partition, TimeBoundary, coordinates, volume};
use hmc::measure::{FlowKernel, Source, flow, flow_by_slice, pion};
use hmc::operator::{CloverForm, GaugeLoops};
use hmc::quark::QuarkParams;
use std::collections::HashMap;
use std::f64::consts::{FRAC_PI_3, PI};
use std::path::Path;
use std::sync::Arc;

const EXTENTS: [usize; 4] = [4, 4, 4, 8];
const PARAMS: WilsonParams = WilsonParams {
    kappa: 0.13,
    mu: 0.0,
    twisted_mass: 0.0,
    c_sw: 1.90952,
    boundary: Boundary::ANTIPERIODIC.with_c_f([0.95; 2]),
    schur: Schur::Asymmetric,
    clover: CloverForm::Linear,
};

/// One kind of walls: the name of its files, c_G and c_F.
struct Walls {
    name: &'static str,
    time: TimeBoundary,
    c_g: [f64; 2],
    c_f: [f64; 2],
}

const PHI: Angles = [-FRAC_PI_3, 0.0];
const PHI_PRIME: Angles = [-PI, FRAC_PI_3];
const SF: TimeBoundary = TimeBoundary::Schroedinger { phi: PHI, phi_prime: PHI_PRIME };
const WALLS: [Walls; 3] = [
    Walls { name: "open", time: TimeBoundary::Open, c_g: [1.1; 2], c_f: [0.95; 2] },
    Walls { name: "sf", time: SF, c_g: [1.1; 2], c_f: [0.95; 2] },
    Walls {
        name: "opensf",
        time: TimeBoundary::OpenSchroedinger { phi_prime: PHI_PRIME },
        c_g: [1.1, 1.05],
        c_f: [0.95, 0.9],
    },
];

fn domain(time: TimeBoundary) -> Arc<Domain> {
    let partition = Partition::whole(EXTENTS).unwrap().with_time(time);
    let device = Device::new(Cpu::new(most_lanes(&partition, 2)).unwrap());
    Domain::new(partition, device, Arc::new(Solo), 2, Halo::Staged).unwrap()
}

/// openQCD's starting field between these walls.
fn links(time: TimeBoundary) -> Option<MatrixField> {
    let path = data::find("configs/q844n1.openqcd")?;
    let (links, _) = io::read_links(&path, &Partition::whole(EXTENTS).unwrap(), &Solo).unwrap();
    let mut links = MatrixField::from_host(&domain(time), &links).unwrap();
    links.end_at_walls().unwrap();
    Some(links)
}

/// The numbers after the words of each line.
fn expected(path: &Path) -> HashMap<String, Vec<f64>> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut found = HashMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let key = line.split_whitespace().next().unwrap();
        let slice = line.split_whitespace().nth(1).unwrap();
        let key = if key.ends_with("_slice") { format!("{key} {slice}") } else { key.to_owned() };
        let numbers = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        // Of the flow's lines, the first are those of the unflowed field.
        found.entry(key).or_insert(numbers);
    }
    found
}

#[test]
fn openqcd_gauge_actions() {
    for Walls { name, time, c_g, .. } in WALLS {
        let Some(links) = links(time) else { return };
        let c1 = |c0: f64| (1.0 - c0) / 8.0;
        for (action, beta, c0) in [("", 5.3, 1.0), ("_lw", 4.5, 5.0 / 3.0), ("_iwasaki", 2.6, 3.648)] {
            let name = format!("{name}{action}");
            let Some(path) = data::find(&format!("openqcd_boundaries/{name}_expected.txt")) else { return };
            let peer = expected(&path);
            let mut action = GaugeAction::new(links.domain(), beta, [c0, c1(c0), 0.0]).unwrap().with_c_g(c_g);
            relative(&name, action.value(&links).unwrap().value(), peer["gauge_action"][0], 1e-14);
            let force = force_of(&mut action, &links);
            // |F|^2 = 2 tr F^2 here, sum |F_ij|^2 = tr F^2 there.
            relative("its force", 0.5 * force.norms().unwrap().0, peer["gauge_force_total"][0], 1e-13);
            if let Some(path) = data::find(&format!("openqcd_boundaries/{name}_gauge_force.f64")) {
                close_links("its links", &matrices(&force, I), &data::link_field(&path), 1e-13);
            }
            // Loops within walls count for half.
            let length = time.length(EXTENTS[3]) as f64;
            let mean = peer["plaq_wsum"][0] / (3.0 * 6.0 * 64.0 * length);
            relative("plaquette", GaugeLoops::traces(&links).unwrap().plaquette(), mean, 1e-14);
        }
    }
}

#[test]
fn openqcd_quarks() {
    let linear = WALLS.iter().map(|walls| ("openqcd_boundaries", walls, CloverForm::Linear));
    for (folder, walls, clover) in linear.chain([("openqcd_expclover", &WALLS[0], CloverForm::Exponential)]) {
        let &Walls { name, time, c_f, .. } = walls;
        let Some(links) = links(time) else { return };
        let rotation = plain::from_openqcd();
        let on_wall = |site: usize| time.is_wall(coordinates(EXTENTS, site)[3], EXTENTS[3]);
        let mut psi = rotated(&rotation, &sincos(EXTENTS));
        for (_, psi) in psi.iter_mut().enumerate().filter(|(site, _)| on_wall(*site)) {
            *psi = plain::Spinor::default();
        }
        let params = WilsonParams { clover, boundary: PARAMS.boundary.with_c_f(c_f), ..PARAMS };
        let Some(path) = data::find(&format!("{folder}/{name}_expected.txt")) else { return };
        let peer = expected(&path);
        let Some(path) = data::find(&format!("{folder}/{name}_Dw_sincos.f64")) else { return };
        let ours = full_operator(&links, &params, &reals(&psi));
        let theirs = reals(&rotated(&rotation, &data::spinor_field(&path)));
        let worst = ours.iter().zip(&theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        println!("{folder}, {name}: D psi, worst real {worst:.1e}");
        assert!(worst < 1e-13, "{worst:e}");

        // Its even-odd operator lives on even sites: move links and psi.
        let origin = moved(EXTENTS);
        let host = links.to_host().unwrap();
        let reals_of = |&y: &usize| host.reals[72 * y..72 * y + 72].to_vec();
        let shifted = HostLinks { local: EXTENTS, reals: origin.iter().flat_map(reals_of).collect() };
        let shifted = MatrixField::from_host(links.domain(), &shifted).unwrap();
        let phi: Vec<plain::Spinor> = origin.iter().map(|&y| psi[y]).collect();
        let mut term = two_flavours(links.domain(), quark(params, Precision::Double), [1e-14; 2]);
        term.set_phi(&vec![0.0; 24 * volume(EXTENTS)]).unwrap();
        let log_det = term.value(&shifted).unwrap().value();
        if clover == CloverForm::Linear {
            // Its odd sites are our even ones.
            let theirs = peer["logdet_A_total"][1];
            relative("ln det A", -0.5 * log_det, theirs, 1e-13);
        } else {
            close("ln det A, a constant", log_det, 0.0, 0.0, 1.0);
        }
        term.set_phi(&reals(&phi)).unwrap();
        let value = term.value(&shifted).unwrap().value();
        relative("S_pf", value - log_det, peer["pf_action_eo(mu0)"][0], 1e-11);
        let force = force_of(&mut term, &shifted);
        let key = if clover == CloverForm::Linear { "eo_pf_sdet_force_total" } else { "eo_pf_force_total" };
        relative("its force", 0.5 * force.norms().unwrap().0, peer[key][0], 1e-10);
        for source in [1, 4] {
            let mut inverse = WilsonQuark::new(&links, &QuarkParams::in_double(params, 1000), 1e-13).unwrap();
            let ours = pion(&mut inverse, Source::Point([0, 0, 0, source])).unwrap();
            let text = std::fs::read_to_string(path.with_file_name(format!("{name}_expected.txt"))).unwrap();
            for line in text.lines().filter(|line| line.starts_with(&format!("pion source_t {source} "))) {
                let words: Vec<&str> = line.split_whitespace().collect();
                let (t, theirs): (usize, f64) = (words[4].parse().unwrap(), words[5].parse().unwrap());
                // Ours counts t from the source.
                close(line, ours[(8 + t - source) % 8], theirs, 1e-10, 1e-12);
            }
        }
    }
}

#[test]
fn openqcd_flow() {
    for Walls { name, time, .. } in WALLS {
        let Some(links) = links(time) else { return };
        let Some(path) = data::find(&format!("openqcd_boundaries/{name}_flow_expected.txt")) else { return };
        let text = std::fs::read_to_string(path).unwrap();
        let rows: Vec<Vec<f64>> = text
            .lines()
            .filter_map(|line| line.split_whitespace().map(|word| word.parse().ok()).collect())
            .filter(|row: &Vec<f64>| row.len() == 5)
            .collect();
        let times: Vec<f64> = rows.iter().filter(|row| row[1] == 1.0).map(|row| row[0]).collect();
        let last = times.iter().copied().fold(0.0, f64::max);
        let points = flow(&links, FlowKernel::Wilson, 0.02, last, 1, &|| false).unwrap();
        for slices in flow_by_slice(&links, FlowKernel::Wilson, 0.02, 0.6, 5, &|| false).unwrap() {
            for row in rows.iter().filter(|row| (row[0] - slices.t).abs() < 1e-9) {
                let t = row[1] as usize;
                let what = format!("{name} at {} on slice {t}", slices.t);
                close(&format!("W {what}"), 64.0 * slices.e_plaquette[t], row[2], 1e-14, 36.0 * 64.0);
                close(&format!("Y {what}"), 64.0 * slices.e_clover[t], row[3], 1e-12, 1e-3);
                close(&format!("Q {what}"), -slices.q[t], row[4], 1e-11, 1e-3);
            }
        }
        let partition = links.domain().partition();
        for t in times {
            let point = points.iter().find(|point| (point.t - t).abs() < 1e-9).unwrap();
            let sum = |k: usize| rows.iter().filter(|row| row[0] == t).map(|row| row[k]).sum::<f64>();
            // W: 2 sum (3 - Re tr P) over 6 planes and 64 sites times the extent in time, a difference from 36 a site; the
            // rows lack a share of the plaquettes that touch a fixed upper wall. Y: over inner slices.
            if time.given()[1].is_none() {
                let sites = 64.0 * partition.time_extent() as f64;
                close(&format!("W at {t}"), point.e_plaquette * sites, sum(2), 1e-14, 36.0 * sites);
            }
            let inner = 64.0 * partition.quark_slices() as f64;
            relative(&format!("Y at {t}"), point.e_clover * inner, sum(3), 1e-12);
            relative(&format!("Q at {t}"), -point.q, sum(4), 1e-11);
        }
    }
}

/// A trajectory of openQCD's between open walls: H of each term before and after, and the links at its end. Its even-odd
/// operator lives on even sites: all fields are moved by one site in x.
#[test]
fn openqcd_open_trajectory() {
    let Some(start) = data::find("configs/q844open.openqcd") else { return };
    let Some(momenta) = data::find("openqcd_trajectories/open_momenta.f64") else { return };
    let Some(end) = data::find("openqcd_trajectories/open_final_links.f64") else { return };
    let origin = moved(EXTENTS);
    let shift = |all: &[f64], reals: usize| -> Vec<f64> {
        origin.iter().flat_map(|&y| all[reals * y..reals * (y + 1)].to_vec()).collect()
    };
    let (links, _) = io::read_links(&start, &Partition::whole(EXTENTS).unwrap(), &Solo).unwrap();
    let links = HostLinks { local: EXTENTS, reals: shift(&links.reals, 72) };
    let domain = domain(TimeBoundary::Open);
    let p = momenta_of(&momenta);
    let mut psi = rotated(&plain::from_openqcd(), &sincos(EXTENTS));
    for (site, psi) in psi.iter_mut().enumerate() {
        if TimeBoundary::Open.is_wall(coordinates(EXTENTS, site)[3], EXTENTS[3]) {
            *psi = plain::Spinor::default();
        }
    }
    let mut light = two_flavours(&domain, quark(PARAMS, Precision::Double), [1e-14; 2]);
    light.set_phi(&shift(&reals(&psi), 24)).unwrap();
    let gauge = GaugeAction::new(&domain, 5.3, [1.0, 0.0, 0.0]).unwrap();
    let terms: Vec<Box<dyn Action>> = vec![Box::new(gauge), Box::new(light)];
    let level = Level { scheme: Scheme::Omelyan2 { lambda: 0.193_183_327_503_783_6 }, steps: 10 };
    let links = MatrixField::from_host(&domain, &links).unwrap();
    let mut chain = Chain::new(links, &[level], vec![terms], 0.5, 1).unwrap();
    chain.momenta.set_matrices(&HostLinks { local: EXTENTS, reals: shift(&p, 72) }).unwrap();
    let energies = chain.replay().unwrap();
    // Without ln det (2 kappa) on our even sites between the walls.
    let scale = 2.0 * 192.0 * 12.0 * (2.0 * PARAMS.kappa).ln();
    for (energies, peer) in energies.iter().zip([
        [7_833.138_547_090_24, 7_664.985_910_266_68, 362.354_140_495_439],
        [7_763.510_676_924_13, 7_753.901_838_772_15, 343.066_374_454_275],
    ]) {
        let [gauge, light] = [0, 1].map(|n| energies.terms[n].1.value());
        relative("kinetic", energies.momenta.value(), peer[0], 1e-13);
        relative("gauge", gauge, peer[1], 1e-13);
        relative("pseudofermion", light - scale, peer[2], 1e-12);
    }
    let dh = (energies[1].total() - energies[0].total()).value();
    close("dH", dh, 0.000_292_298_200_463, 1e-11, 1.0);
    same_links(&chain.links, &shift(&data::doubles(&end), 72));
}

/// openQCD's momenta pi = i P as ours.
fn momenta_of(path: &Path) -> Vec<f64> {
    data::doubles(path).chunks_exact(2).flat_map(|z| [z[1], -z[0]]).collect()
}

fn same_links(found: &MatrixField, expected: &[f64]) {
    let found = found.to_host().unwrap().reals;
    let worst = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    println!("links at the end: worst real {worst:.1e}");
    assert!(worst < 1e-12, "{worst:e}");
}

/// The same of pure gauge theory between fixed walls, with rectangles.
#[test]
fn openqcd_schroedinger_trajectory() {
    let Some(links) = links(SF) else { return };
    let Some(momenta) = data::find("openqcd_trajectories/sf_lw_momenta.f64") else { return };
    let Some(end) = data::find("openqcd_trajectories/sf_lw_final_links.f64") else { return };
    let gauge = GaugeAction::new(links.domain(), 4.5, [5.0 / 3.0, -1.0 / 12.0, 0.0]).unwrap();
    let terms: Vec<Box<dyn Action>> = vec![Box::new(gauge.with_c_g([1.1; 2]))];
    let level = Level { scheme: Scheme::Omelyan2 { lambda: 0.193_183_327_503_783_6 }, steps: 10 };
    let mut chain = Chain::new(links, &[level], vec![terms], 0.5, 1).unwrap();
    chain.momenta.set_matrices(&HostLinks { local: EXTENTS, reals: momenta_of(&momenta) }).unwrap();
    let energies = chain.replay().unwrap();
    for (energies, peer) in energies
        .iter()
        .zip([[7_339.338_464_777_3, 10_085.023_923_252_4], [8_627.360_421_943_52, 8_796.677_964_060_01]])
    {
        relative("kinetic", energies.momenta.value(), peer[0], 1e-13);
        relative("gauge", energies.terms[0].1.value(), peer[1], 1e-13);
    }
    let dh = (energies[1].total() - energies[0].total()).value();
    close("dH", dh, -0.324_002_026_156, 1e-10, 1.0);
    same_links(&chain.links, &data::doubles(&end));
}

/// openQCD's files between walls: read as they are, and written to the byte.
#[test]
fn openqcd_files() {
    let files = WALLS.iter().map(|walls| (format!("openqcd_boundaries/q844n1_{}", walls.name), walls.time));
    for (name, time) in files.chain([("configs/q844open".into(), TimeBoundary::Open)]) {
        let Some(path) = data::find(&format!("{name}.openqcd")) else { return };
        let partition = Partition::whole(EXTENTS).unwrap().with_time(time);
        let (links, header) = io::read_links(&path, &partition, &Solo).unwrap();
        assert_eq!(header.time, time, "{name}");
        let mut field = MatrixField::from_host(&domain(time), &links).unwrap();
        assert!(field.end_at_walls().unwrap() < 1e-15, "{name}");
        let out = std::env::temp_dir().join(format!("hmc-walls-{}.openqcd", std::process::id()));
        io::write_links(&out, io::Format::OpenQcd, &links, &partition, &Solo, &io::Meta::default()).unwrap();
        let written = std::fs::read(&out).unwrap();
        std::fs::remove_file(&out).unwrap();
        let peer = std::fs::read(&path).unwrap();
        // The plaquette in the header is a sum in another order.
        assert!(written[..16] == peer[..16] && written[24..] == peer[24..], "{name}");
        if time.given()[0].is_some() {
            let other = TimeBoundary::Schroedinger { phi: [0.1, 0.2], phi_prime: PHI_PRIME };
            let error = io::read_links(&path, &partition.with_time(other), &Solo).unwrap_err().to_string();
            assert!(error.contains("links in space on the first slice are not those of"), "{error}");
        }
        if time.given()[1].is_some() {
            // Nobody can tell from the links alone.
            let error = io::read_links(&path, &partition.with_time(TimeBoundary::Periodic), &Solo);
            assert!(matches!(error, Err(io::IoError::Damaged { .. })), "{name}");
        }
    }
}

/// Links that leave the lattice stay zero, and those of fixed walls as they are given.
#[test]
fn fields_end_at_walls() {
    for Walls { time, .. } in WALLS {
        let domain = domain(time);
        let mut links = MatrixField::hot(&domain, 3).unwrap();
        assert!(links.unitarity(true).unwrap() < 1e-14);
        let host = links.to_host().unwrap();
        assert_eq!((links.end_at_walls().unwrap(), links.to_host().unwrap()), (0.0, host));
    }
}
