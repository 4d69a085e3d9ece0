//! Two-point functions of mesons: every channel against contractions of the plain operator's propagators, MILC's numbers, the
//! same bits on any ranks, lanes and device, and the program that measures them.
#![allow(clippy::needless_range_loop, reason = "indices as in the formulas")]

use super::{Measured, clover, keys, numbers};
use crate::devices;
use crate::devices::{on_lanes, on_one_lane};
use crate::ranks;
use crate::reference::data;
use crate::reference::gauge::Gauge;
use crate::reference::su3;
use crate::reference::wilson::{Dirac, M4, Parameters, Spinor, cg, gamma, gamma5, gamma5_field, mul4};
use crate::terms::whole;
use hmc::family::{
    DomainWallParams, DoubletParams, DoubletQuark, Schur, WallQuark, WilsonParams, WilsonQuark,
};
use hmc::field::{Domain, HostLinks, MatrixField, Purpose, RandomAddress};
use hmc::lattice::{Boundary, Extents, coordinates, site, volume};
use hmc::math::WallWeights;
use hmc::measure::{Channel, Keep, Momentum, Noise, Propagator, Source, mesons, pion};
use hmc::operator::CloverForm;
use hmc::quark::{Inverse, QuarkParams};
use num_complex::Complex64;
use rand::RngExt;
use std::f64::consts::TAU;
use std::sync::Arc;

const PHASES: [f64; 4] = [0.1, -0.3, 0.5, 1.0];

fn params(kappa: f64, c_sw: f64, boundary: [f64; 4]) -> WilsonParams {
    WilsonParams {
        kappa,
        mu: 0.0,
        twisted_mass: 0.0,
        c_sw,
        clover: CloverForm::Linear,
        boundary: Boundary::phases(boundary),
        schur: Schur::Symmetric,
    }
}

fn wilson(links: &MatrixField, params: WilsonParams, residual: f64) -> WilsonQuark {
    WilsonQuark::new(links, &QuarkParams::in_double(params, 5000), residual).unwrap()
}

fn propagator(quark: &mut dyn Inverse, source: Extents) -> Propagator {
    Propagator::new(quark, Source::Point(source), Keep::Columns, &|| false).unwrap()
}

/// `[channel][momentum][t]`
fn all(pair: [&Propagator; 2], momenta: &[Momentum]) -> Vec<Vec<Vec<Complex64>>> {
    Channel::ALL.map(|channel| mesons(pair, channel, momenta, &|| false).unwrap()).into()
}

fn adjoint(a: &M4) -> M4 {
    std::array::from_fn(|i| std::array::from_fn(|j| a[j][i].conj()))
}

/// `[Gamma_src, Gamma_snk]` of a channel's components, from the table of the documentation.
fn gammas(channel: Channel) -> Vec<[M4; 2]> {
    let (five, g) = (gamma5(), [0, 1, 2, 3].map(gamma));
    let one = mul4(&five, &five);
    let same = |all: &[M4]| all.iter().map(|a| [*a; 2]).collect();
    let along = |of: &dyn Fn(usize) -> M4| same(&[of(0), of(1), of(2)]);
    match channel {
        Channel::Pion => same(&[five]),
        Channel::A4 => same(&[mul4(&g[3], &five)]),
        Channel::A4P => vec![[five, mul4(&g[3], &five)]],
        Channel::Scalar => same(&[one]),
        Channel::SP => vec![[five, one]],
        Channel::PS => vec![[one, five]],
        Channel::Rho => along(&|k| g[k]),
        Channel::RhoAlong(k) => same(&[g[k]]),
        Channel::RhoTensor => along(&|k| mul4(&g[k], &g[3])),
        Channel::A1 => along(&|k| mul4(&g[k], &five)),
        Channel::B1 => same(&[mul4(&g[0], &g[1]), mul4(&g[0], &g[2]), mul4(&g[1], &g[2])]),
    }
}

/// The formula as it stands: `- e^{-ip(x - x0)} tr[Gamma_snk S (gamma_t Gamma_src^dag gamma_t) gamma_5 T^dag gamma_5]`, with
/// `columns[spin][colour]` of S and T.
fn plain(
    extents: Extents,
    [columns, others]: [&[[Vec<Spinor>; 3]; 4]; 2],
    source: Extents,
    [src, snk]: [M4; 2],
    momentum: Momentum,
) -> Vec<Complex64> {
    let bar = mul4(&mul4(&gamma(3), &adjoint(&src)), &gamma(3));
    let at_source = mul4(&bar, &gamma5());
    let at_sink = mul4(&gamma5(), &snk);
    let mut found = vec![su3::ZERO; extents[3]];
    for s in 0..volume(extents) {
        let x = coordinates(extents, s);
        let away: [f64; 4] = std::array::from_fn(|mu| x[mu] as f64 - source[mu] as f64);
        let angle: f64 = (0..3).map(|k| TAU * f64::from(momentum[k]) * away[k] / extents[k] as f64).sum();
        let mut trace = su3::ZERO;
        for (a, b) in (0..4).flat_map(|a| (0..4).map(move |b| (a, b))) {
            for (c, d) in (0..4).flat_map(|c| (0..4).map(move |d| (c, d))) {
                let spins = at_sink[a][c] * at_source[b][d];
                for (i, j) in (0..3).flat_map(|i| (0..3).map(move |j| (i, j))) {
                    trace += spins * columns[b][j][s][c][i] * others[d][j][s][a][i].conj();
                }
            }
        }
        let t = (x[3] + extents[3] - source[3]) % extents[3];
        found[t] -= Complex64::from_polar(1.0, -angle) * trace;
    }
    found
}

/// Residuals of 1e-13 of two solves, times a condition number below 10^2.
#[test]
fn all_channels_are_those_of_the_plain_operator() {
    let (extents, source) = ([4, 2, 2, 6], [3, 1, 0, 4]);
    let momenta = [[0, 0, 0], [1, 0, 0], [-1, 1, 0], [2, 0, -1]];
    let links = Gauge::warm(extents, 0.5, 3);
    let (kappas, c_sw) = ([0.12, 0.11], 1.3);
    let field = whole(&links.to_host());
    let [light, heavy] =
        kappas.map(|kappa| propagator(&mut wilson(&field, params(kappa, c_sw, PHASES), 1e-13), source));
    let found = [all([&light, &light], &momenta), all([&light, &heavy], &momenta)];

    let columns = kappas.map(|kappa| {
        let dirac = Dirac::new(&links, Parameters { mass: 0.5 / kappa - 4.0, c_sw, phases: PHASES });
        let column = |spin: usize, colour: usize| {
            let mut b = vec![[[su3::ZERO; 3]; 4]; volume(extents)];
            b[site(extents, source)][spin][colour] = su3::ONE;
            dirac.solve(&b, 1e-13)
        };
        [0, 1, 2, 3].map(|spin| [0, 1, 2].map(|colour| column(spin, colour)))
    });
    for (found, other) in found.iter().zip(&columns) {
        compare(extents, found, [&columns[0], other], source, &momenta);
    }
}

fn compare(
    extents: Extents,
    found: &[Vec<Vec<Complex64>>],
    columns: [&[[Vec<Spinor>; 3]; 4]; 2],
    source: Extents,
    momenta: &[Momentum],
) {
    for (channel, found) in Channel::ALL.into_iter().zip(found) {
        for (&momentum, found) in momenta.iter().zip(found) {
            let components = gammas(channel);
            let each: Vec<Vec<Complex64>> =
                components.iter().map(|pair| plain(extents, columns, source, *pair, momentum)).collect();
            let scale = found.iter().map(|z| z.norm()).fold(0.0, f64::max);
            for t in 0..extents[3] {
                let expected = each.iter().map(|c| c[t]).sum::<Complex64>() / components.len() as f64;
                let error = (found[t] - expected).norm() / scale;
                assert!(error < 1e-11, "{} {momentum:?} {t}: {} is not {expected}", channel.name(), found[t]);
            }
        }
    }
}

/// From each flavour of a doublet of two masses to each one, beside a quark of the light doublet.
#[test]
fn flavours_that_mix_are_those_of_the_plain_operator() {
    let (extents, at) = ([2, 2, 2, 4], [1, 0, 1, 3]);
    let momenta = [[0, 0, 0], [1, 0, 0]];
    let links = Gauge::warm(extents, 0.5, 3);
    let field = whole(&links.to_host());
    let (kappa, c_sw, mu, mubar, epsbar) = (0.12, 1.3, 0.1, 0.5, 0.4);
    let twisted = |twisted_mass: f64| {
        let params = params(kappa, c_sw, PHASES);
        WilsonParams { twisted_mass, schur: Schur::Asymmetric, ..params }
    };
    let doublet = DoubletParams { wilson: twisted(mubar), epsbar };
    let mut heavy = DoubletQuark::new(&field, &QuarkParams::in_double(doublet, 5000), 1e-13).unwrap();
    let light = propagator(&mut wilson(&field, twisted(mu), 1e-13), at);

    let dirac = Dirac::new(&links, Parameters { mass: 0.5 / kappa - 4.0, c_sw, phases: PHASES });
    // The first flavours, then the second ones, of one mass without a splitting.
    let apply = |[mu, eps]: [f64; 2], psi: &[Spinor]| -> Vec<Spinor> {
        let (up, down) = psi.split_at(volume(extents));
        let part = |own: &[Spinor], other: &[Spinor], mu: f64| -> Vec<Spinor> {
            let (image, turned) = (dirac.apply(own), gamma5_field(own));
            let value = |s: usize, a: usize, c: usize| {
                image[s][a][c] + Complex64::I * mu * turned[s][a][c] - eps * other[s][a][c]
            };
            let spinor = |s| std::array::from_fn(|a| std::array::from_fn(|c| value(s, a, c)));
            (0..own.len()).map(spinor).collect()
        };
        [part(up, down, mu), part(down, up, -mu)].concat()
    };
    // tau_1 gamma_5
    let turn = |psi: &[Spinor]| -> Vec<Spinor> {
        let (up, down) = psi.split_at(volume(extents));
        [gamma5_field(down), gamma5_field(up)].concat()
    };
    let solve = |masses: [f64; 2], b: &[Spinor]| -> Vec<Spinor> {
        let dagger = |psi: &[Spinor]| turn(&apply(masses, &turn(psi)));
        cg(|psi| dagger(&apply(masses, psi)), &dagger(b), 1e-13)
    };
    // `[sink][spin][colour]`
    let columns = |masses: [f64; 2], flavour: usize| {
        let all = [0, 1, 2, 3].map(|spin| {
            [0, 1, 2].map(|colour| {
                let mut b = vec![[[su3::ZERO; 3]; 4]; 2 * volume(extents)];
                b[flavour * volume(extents) + site(extents, at)][spin][colour] = su3::ONE;
                solve(masses, &b)
            })
        });
        [0, volume(extents)].map(|from| {
            all.each_ref().map(|all| all.each_ref().map(|x| x[from..from + volume(extents)].to_vec()))
        })
    };
    let [other, _] = columns([mu, 0.0], 0);
    for source in [0, 1] {
        let expected = columns([mubar, epsbar], source);
        let found = Propagator::from_flavour(&mut heavy, Source::Point(at), source, Keep::Columns, &|| false);
        for (found, expected) in found.unwrap().iter().zip(&expected) {
            compare(extents, &all([found, &light], &momenta), [expected, &other], at, &momenta);
        }
    }
}

/// Of any quark the channel `pion` is the sum of squares, to the bit.
#[test]
fn the_channel_pion_is_the_pion() {
    let (extents, source) = ([4, 4, 2, 4], [1, 2, 0, 3]);
    let field = whole(&Gauge::warm(extents, 0.4, 6).to_host());
    let weights = WallWeights::mobius(4, 1.5, 0.5);
    let wall = DomainWallParams { weights, m5: 1.8, mass: [0.1; 2], boundary: Boundary::phases(PHASES) };
    let wall = QuarkParams::in_double(wall, 5000);
    let quarks: [Box<dyn Inverse>; 2] = [
        Box::new(wilson(&field, params(0.12, 0.0, PHASES), 1e-10)),
        Box::new(WallQuark::new(&field, &wall, 1e-10).unwrap()),
    ];
    for mut quark in quarks {
        let squares = pion(&mut *quark, Source::Point(source)).unwrap();
        let own = propagator(&mut *quark, source);
        let found = mesons([&own; 2], Channel::Pion, &[[0; 3]], &|| false).unwrap();
        assert_eq!(found[0].iter().map(|z| z.re).collect::<Vec<_>>(), squares);
    }
}

/// A slice's propagator is the sum of those of its points with the slice's phases; the mean of its pions is the mean of theirs.
#[test]
fn slices_are_sums_over_points() {
    let (extents, t) = ([2, 2, 4, 4], 1);
    let field = whole(&Gauge::warm(extents, 0.4, 6).to_host());
    let quark = &mut wilson(&field, params(0.12, 1.0, PHASES), 1e-13);
    let (volume, noise) = (volume(extents), Noise { seed: 5, trajectory: 2 });
    let reals = |own: &Propagator| {
        let mut reals = vec![vec![0.0; 24 * volume]; 12];
        for (parity, columns) in own.columns.iter().enumerate() {
            columns
                .iter()
                .zip(&mut reals)
                .for_each(|(column, reals)| column.write_host(parity, reals).unwrap());
        }
        reals.concat()
    };
    let address = RandomAddress { seed: 5, trajectory: 2, purpose: Purpose::Source(0) };
    let (mut expected, mut mean) = (vec![0.0; 12 * 24 * volume], vec![0.0; extents[3]]);
    let points: Vec<usize> = (0..volume).filter(|&n| coordinates(extents, n)[3] == t).collect();
    for &n in &points {
        let own = propagator(quark, coordinates(extents, n));
        let sign = |bits: u32| if bits & 1 == 0 { 0.5_f64.sqrt() } else { -0.5_f64.sqrt() };
        let bits: u32 = address.rng_of(n as u64).random();
        let phase = Complex64::new(sign(bits >> 31), sign(bits >> 30));
        for (sum, z) in expected.chunks_exact_mut(2).zip(reals(&own).chunks_exact(2)) {
            let z = phase * Complex64::new(z[0], z[1]);
            sum[0] += z.re;
            sum[1] += z.im;
        }
        let of_point = pion(quark, Source::Point(coordinates(extents, n))).unwrap();
        mean.iter_mut().zip(of_point).for_each(|(mean, c)| *mean += c / points.len() as f64);
    }
    let slice = |number: usize| Source::Slice { t, noise, number };
    let found = reals(&Propagator::new(quark, slice(0), Keep::Columns, &|| false).unwrap());
    let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    println!("the propagator: worst real {worst:.1e}");
    assert!(worst < 1e-11, "{worst:e}");
    let count = 60;
    let pions: Vec<Vec<f64>> = (0..count).map(|number| pion(quark, slice(number)).unwrap()).collect();
    for (t, mean) in mean.iter().enumerate() {
        let own: Vec<f64> = pions.iter().map(|pion| pion[t] / points.len() as f64).collect();
        let average = own.iter().sum::<f64>() / count as f64;
        let square = own.iter().map(|c| (c - average).powi(2)).sum::<f64>() / (count * (count - 1)) as f64;
        println!("t {t}: {average:.6} +- {:.6}, points {mean:.6}", square.sqrt());
        assert!((average - mean).abs() < 4.0 * square.sqrt() && square.sqrt() < 0.1 * mean);
    }
}

/// Slices in the program: the mean over sources, the same on ranks; what has no slices says so.
#[test]
fn the_program_measures_slices() {
    let meson = |more: &str| {
        format!(
            "[measure.meson.slice]\nfermion = \"light\"\nsource_kind = \"slice\"\nsource = [0, 0, 0, 3]\n\
             channels = [\"pion\", \"a4p\"]\n{more}"
        )
    };
    let tables = "[measure.correlator.slice]\nfermion = \"light\"\nsource_kind = \"slice\"\nsource = [0, 0, 0, 3]\nsources = 2\n"
        .to_owned()
        + &meson("sources = 2\n");
    let measured = Measured::new(&clover(1, &tables), &clover(1, &tables));
    let found = &measured.found[0];
    let pion = numbers(&found["correlators"][0]["re"]);
    let other = numbers(&found["mesons"][0]["correlators"][0]["re"]);
    assert_eq!(pion, other);
    assert!(pion.iter().all(|c| *c > 0.0) && found["mesons"][0]["pcac_mean"].is_number());
    for (wrong, told) in [
        (meson("sources = 0\n"), "sources: "),
        (meson("").replace("0, 0, 0, 3", "1, 0, 0, 3"), "source: a wall or a slice has only a t"),
        (meson("momenta = [[1, 0, 0]]\n"), "momenta: from a slice only [[0, 0, 0]]"),
        (meson("sources = 2\n").replace("\"slice\"", "\"point\""), "sources: only a slice has several"),
    ] {
        measured.again(0, &clover(1, &wrong), &[]).failed(2, &[told]);
    }
}

/// On unit links the PCAC mass is m0 up to a discretisation error of m0^2.
#[test]
fn the_axial_ward_identity_gives_the_mass_of_free_quarks() {
    let (extents, m0) = ([4, 4, 4, 16], 0.03);
    let field = whole(&HostLinks::unit(extents));
    let quark = &mut wilson(&field, params(0.5 / (m0 + 4.0), 0.0, [0.0, 0.0, 0.0, 1.0]), 1e-13);
    let own = propagator(quark, [0; 4]);
    let [pion, a4p] = [Channel::Pion, Channel::A4P]
        .map(|channel| mesons([&own; 2], channel, &[[0; 3]], &|| false).unwrap().remove(0));
    for t in 6..=10 {
        let mass = 0.25 * (a4p[t + 1].re - a4p[t - 1].re) / pion[t].re;
        println!("t {t}: {mass:.6}");
        assert!((mass / m0 - 1.0).abs() < 0.02, "t {t}: {mass}");
    }
}

/// MILC's M is 2 kappa D; signs of its operators differ for A4P and SCALAR, and its phases are e^{+ipx}. Residuals of
/// 1e-13, times a condition number of 10^2.
#[test]
fn milc_clover_correlators() {
    let Some(path) = data::find("configs/lat.sample.l6666.hisq") else { return };
    let links = whole(&data::milc(&path).reunitarised().to_host());
    for (name, time) in [("periodic", 0.0), ("antiperiodic", 1.0)] {
        let Some(table) = data::find(&format!("milc_corr/clover_l6666hisq_{name}.corr")) else { continue };
        for (kappa, c_sw, number) in [(0.12, 0.0, 0), (0.12, 1.0, 1), (0.13, 1.5, 0)] {
            let quark = &mut wilson(&links, params(kappa, c_sw, [0.0, 0.0, 0.0, time]), 1e-13);
            let propagator = propagator(quark, [0; 4]);
            for (key, channel, momentum, sign) in MILC {
                let found = mesons([&propagator; 2], channel, &[momentum], &|| false).unwrap().remove(0);
                let p: String = momentum.map(|n| n.abs().to_string()).concat();
                let key = format!("{key}_d_d_d_d_k{kappa}_k{kappa}_p{p}");
                let peer = data::milc_complex_correlator(&table, &key, number);
                let scale = peer.iter().map(|z| z.norm()).fold(0.0, f64::max);
                assert_eq!(found.len(), peer.len());
                for (t, (found, peer)) in found.iter().zip(&peer).enumerate() {
                    let ours = sign * found / (4.0 * kappa * kappa);
                    let error = (ours - peer).norm();
                    println!("{name} {kappa} {key} {t}: {ours:.15e} {peer:.15e} error {:.1e}", error / scale);
                    assert!(error < 1e-11 * scale, "{name} {key} {t}: {ours} is not {peer}");
                }
            }
        }
    }
}

/// MILC's name, ours, momentum, sign.
const MILC: [(&str, Channel, Momentum, f64); 5] = [
    ("PION", Channel::Pion, [0; 3], 1.0),
    ("PION", Channel::Pion, [-1, 0, 0], 1.0),
    ("A4P", Channel::A4P, [0; 3], -1.0),
    ("RHOX", Channel::RhoAlong(0), [0; 3], 1.0),
    ("SCALAR", Channel::Scalar, [0; 3], -1.0),
];

fn results(domain: &Arc<Domain>, links: &HostLinks) -> Vec<Vec<Vec<Complex64>>> {
    let links = MatrixField::from_host(domain, links).unwrap();
    let quark = &mut wilson(&links, params(0.12, 1.0, PHASES), 1e-8);
    let own = propagator(quark, [3, 2, 1, 5]);
    all([&own; 2], &[[0; 3], [1, -2, 3]])
}

#[test]
fn ranks_lanes_and_devices_have_the_same_bits() {
    let extents = [4, 4, 8, 8];
    let links = Gauge::warm(extents, 0.5, 19).to_host();
    let expected = results(&on_one_lane(extents), &links);
    for domain in devices::domains(extents) {
        assert_eq!(results(&domain, &links), expected, "{}", domain.device().backend().name());
    }
    for grid in [[1, 1, 1, 2], [1, 1, 2, 1], [1, 2, 1, 2]] {
        let found = ranks::on_grid(extents, grid, |partition, comm| {
            let lanes = if grid[2] == 2 { 1 } else { 4 };
            results(&on_lanes(lanes, partition, comm, 2), &ranks::links(&links, &partition))
        });
        assert!(found.iter().all(|(_, found)| *found == expected), "grid {grid:?}");
    }
}

/// Valence quarks of a doublet: of the mass of its own flavours, charged and neutral mesons, and of another one.
#[test]
fn the_program_measures_valence_twisted_masses() {
    let correlator = |name: &str, more: &str| {
        format!("[measure.correlator.{name}]\nfermion = \"light\"\nsource = [0, 0, 0, 3]\n{more}\n")
    };
    let tables = [
        correlator("charged", ""),
        correlator("same", "other = { twisted_mass = 0.2 }"),
        correlator("down", "twisted_mass = -0.2"),
        correlator("neutral", "other = { twisted_mass = -0.2 }"),
        correlator("turned", "twisted_mass = -0.2\nother = { twisted_mass = 0.2 }"),
        correlator("kaon", "other = { twisted_mass = 0.6 }"),
    ]
    .concat();
    let clover = clover(1, &tables);
    let doublet = "c_sw = 1.0\ntwisted_mass = 0.2\npreconditioning = \"asymmetric\"\n";
    assert!(clover.contains("c_sw = 1.0\n"));
    let run = clover.replacen("c_sw = 1.0\n", doublet, 1);
    let measured = Measured::new(&run, &run);
    let found = &measured.found[0]["correlators"];
    let [charged, same, down, neutral, turned, kaon] = [0, 1, 2, 3, 4, 5].map(|n| numbers(&found[n]["re"]));
    assert_eq!(charged, same);
    for (t, c) in charged.iter().enumerate() {
        assert!((neutral[t] / turned[t] - 1.0).abs() < 1e-12, "{neutral:?} {turned:?}");
        assert!(
            neutral[t] < (c * down[t]).sqrt() && kaon[t] < *c && kaon[t] > 0.0,
            "{c} {} {kaon:?}",
            neutral[t]
        );
    }
    let ended = measured.again(0, &clover, &[]);
    ended.failed(
        2,
        &["twisted_mass: only a doublet of equal masses with 'twisted_mass' in its [fermion.NAME] has it"],
    );
}

/// Condensates of a twisted mass, and mesons of two flavours that mix.
#[test]
fn the_program_measures_doublets() {
    let clover = clover(1, "");
    let keys = |more: &str| {
        let keys = format!("c_sw = 1.0\ntwisted_mass = 0.2\npreconditioning = \"asymmetric\"\n{more}");
        clover.replacen("c_sw = 1.0\n", &keys, 1)
    };
    let condensate = "[measure.condensate.light]\nfermion = \"light\"\nsources = 3\n";
    let run = keys("") + condensate + "[measure.correlator.pion]\nfermion = \"light\"\n";
    let measured = Measured::new(&run, &run);
    let found = &measured.found[0]["condensates"][0];
    assert_eq!(found["twisted_mass"], 0.2);
    let [value, error] = ["pseudoscalar", "pseudoscalar_error"].map(|key| found[key].as_f64().unwrap());
    // mu tr (M^dag M)^-1 / V, and the same of one point: they differ by what points do.
    let of_point = 0.2 * numbers(&measured.found[0]["correlators"][0]["re"]).iter().sum::<f64>();
    println!("pseudoscalar condensate {value} +- {error}, by the pion {of_point}");
    assert!((value - of_point).abs() < 4.0 * error + 0.02 * of_point && error < 0.1 * value, "{found}");

    let split = keys("mass_splitting = 0.1\nrational = { range = [1e-2, 60.0] }\n");
    let meson = "[measure.meson.heavy]\nfermion = \"light\"\nchannels = [\"pion\", \"sp\"]\n";
    let run = split.clone() + meson;
    let measured = Measured::new(&run, &run);
    let found = &measured.found[0]["mesons"][0]["correlators"];
    let labels: Vec<&str> =
        found.as_array().unwrap().iter().map(|entry| entry["channel"].as_str().unwrap()).collect();
    let expected = ["pion_00", "sp_00", "pion_10", "sp_10", "pion_01", "sp_01", "pion_11", "sp_11"];
    assert_eq!(labels, expected);
    let ended = measured.again(0, &(split + condensate), &[]);
    ended.failed(2, &["two flavours of different masses are measured by [measure.meson.NAME] alone"]);
}

const TABLES: &str = r#"
[measure.meson.light]
fermion = "light"
source = [1, 2, 3, 4]
channels = ["pion", "rho", "a4p"]
momenta = [[0, 0, 0], [1, 0, 0]]
c_a = -0.05
[measure.meson.heavy]
fermion = "light"
other = { fermion = "light" }
source = [1, 2, 3, 4]
[measure.wilson_loops]
r_max = 2
t_max = 3
"#;

#[test]
fn the_program_measures_them() {
    let run = clover(1, TABLES);
    let measured = Measured::new(&run, &run);
    let ([found], [during]) = (&measured.found[..], &measured.during[..]) else {
        panic!("one configuration")
    };
    assert_eq!(found["mesons"], during["mesons"]);
    assert_eq!(found["wilson_loops"], during["wilson_loops"]);
    let plaquettes = [&found["wilson_loops"][0][0], &found["plaquette_time"]].map(|x| x.as_f64().unwrap());
    assert!((plaquettes[0] - plaquettes[1]).abs() < 1e-14);
    let entries = found["mesons"][0]["correlators"].as_array().unwrap();
    assert_eq!(entries.len(), 6);
    for (entry, channel) in entries.iter().zip(["pion", "pion", "rho", "rho", "a4p", "a4p"]) {
        assert_eq!(keys(entry), ["channel", "momentum", "re", "im"]);
        assert_eq!((entry["channel"].as_str(), numbers(&entry["re"]).len()), (Some(channel), 8));
    }
    // A second quark that is the first one again.
    let [light, heavy] = [0, 1].map(|n| numbers(&found["mesons"][n]["correlators"][0]["re"]));
    assert_eq!(light, heavy);
    assert_eq!(keys(&found["mesons"][1]), ["name", "correlators"]);
    // The PCAC mass is positive, and that of quarks which are heavy.
    let (a4p, pcac) = (numbers(&entries[4]["re"]), numbers(&found["mesons"][0]["pcac"]));
    let slope = 0.5 * (a4p[4] - a4p[2]) - 0.05 * (light[4] - 2.0 * light[3] + light[2]);
    assert!((pcac[3] - slope / (2.0 * light[3])).abs() < 1e-13);
    let mean = found["mesons"][0]["pcac_mean"].as_f64().unwrap();
    assert!(
        (0.05..5.0).contains(&mean) && (mean - pcac[2..=6].iter().sum::<f64>() / 5.0).abs() < 1e-13,
        "{pcac:?}"
    );
    let ended = measured.again(0, &run, &[]);
    ended.succeeded();
    let table = ended.out;
    assert!(table.contains("  PCAC mass        light  "), "{table}");
    assert!(table.contains("  mesons           light  rho  momentum 1 0 0\n"), "{table}");
    assert!(table.contains("  wilson_loops      R    T           W(R, T)              V(R)\n"), "{table}");
}
