//! Walls in time: forces, heat baths, and the same bits on lanes, emulated GPUs and ranks.

use crate::devices::{choices, on_lanes, on_most_lanes};
use crate::ranks;
use crate::reference::gauge::Gauge;
use crate::terms::{check_force, check_force_by, check_refresh, fields, quark, random_phi, two_flavours};
use hmc::action::{Action, GaugeAction, Smeared};
use hmc::comm::{Comm, Solo};
use hmc::device::Precision;
use hmc::family::{Schur, Smearing, StaggeredLinks, WilsonParams};
use hmc::field::{AlgebraField, Domain, FieldError, HostLinks, MatrixField};
use hmc::lattice::{Angles, Boundary, Extents, LaneGrid, Partition, TimeBoundary, coordinates, volume};
use hmc::measure::{FlowKernel, flow, flow_by_slice};
use hmc::operator::{CloverForm, WilsonLinks};
use std::sync::Arc;

const PHI_PRIME: Angles = [-1.1, 0.4];
const WALLS: [TimeBoundary; 3] = [
    TimeBoundary::Open,
    TimeBoundary::Schroedinger { phi: [-0.7, 0.2], phi_prime: PHI_PRIME },
    TimeBoundary::OpenSchroedinger { phi_prime: PHI_PRIME },
];

/// A walled box on one rank.
fn walled(extents: Extents, time: TimeBoundary) -> Arc<Domain> {
    on_most_lanes(Partition::whole(extents).unwrap().with_time(time), Arc::new(Solo), 2)
}

/// A pseudofermion that is zero on walls.
fn phi(extents: Extents, time: TimeBoundary, seed: u64) -> Vec<f64> {
    let mut phi = random_phi(extents, seed);
    for (site, reals) in phi.chunks_exact_mut(24).enumerate() {
        if time.is_wall(coordinates(extents, site)[3], extents[3]) {
            reals.fill(0.0);
        }
    }
    phi
}

fn params(c_sw: f64, clover: CloverForm, schur: Schur) -> WilsonParams {
    let boundary = Boundary::phases([0.0, 0.3, 0.0, 1.0]).with_c_f([0.9, 0.8]);
    // A doublet has the asymmetric form, and no exponential.
    let is_doublet = schur == Schur::Asymmetric && clover == CloverForm::Linear;
    let twisted_mass = if is_doublet { 0.2 } else { 0.0 };
    WilsonParams { kappa: 0.115, mu: 0.1, twisted_mass, c_sw, clover, boundary, schur }
}

const TERMS: [(f64, CloverForm); 3] =
    [(0.0, CloverForm::Linear), (1.0, CloverForm::Linear), (2.5, CloverForm::Exponential)];

/// Errors are below 1e-10, of the differences.
#[test]
fn forces_are_derivatives() {
    for (extents, time) in [[4, 4, 4, 4], [4, 2, 6, 8]].into_iter().flat_map(|e| WALLS.map(|time| (e, time)))
    {
        let domain = walled(extents, time);
        let links = Gauge::random(extents, 17);
        let at = format!("{extents:?} {time}");
        for (name, c1) in [("wilson", 0.0), ("symanzik", -1.0 / 12.0), ("iwasaki", -0.331)] {
            let action = GaugeAction::new(&domain, 5.7, [1.0 - 8.0 * c1, c1, 0.0]).unwrap();
            let mut action = action.with_c_g([1.3, 0.8]);
            check_force(&format!("{name} {at}"), &links, &mut action, &domain, 4e-3, 1e-10);
        }
        let inner = GaugeAction::new(&domain, 5.7, [1.0, 0.0, 0.0]).unwrap();
        let mut smeared = Smeared::new(&domain, Box::new(inner), 2, 0.1).unwrap();
        check_force(&format!("stout {at}"), &links, &mut smeared, &domain, 2e-3, 1e-9);
        let links = Gauge::warm(extents, 0.8, 5);
        for (c_sw, clover) in TERMS {
            for schur in [Schur::Asymmetric, Schur::Symmetric] {
                let operator = params(c_sw, clover, schur);
                let mut term = two_flavours(&domain, quark(operator, Precision::Single), [1e-14; 2]);
                term.set_phi(&phi(extents, time, 23)).unwrap();
                let what = format!("two flavours {at} c_sw {c_sw} {clover:?} {schur:?}");
                check_force_by(&what, &links, &mut term, &domain, [5e-3, 4e-3], 1e-9);
            }
        }
    }
}

/// S of a refresh is that of its pseudofermion, with a Gaussian of 24 reals on each odd site between the walls.
#[test]
fn heat_baths_leave_the_walls_alone() {
    let extents = [4, 4, 4, 8];
    for time in WALLS {
        let domain = walled(extents, time);
        let links = fields(&Gauge::warm(extents, 0.8, 5), &domain);
        for (c_sw, clover) in TERMS {
            let operator = params(c_sw, clover, Schur::Symmetric);
            let mut term = two_flavours(&domain, quark(operator, Precision::Double), [1e-12; 2]);
            check_refresh(&format!("{time} c_sw {c_sw} {clover:?}"), &links, &mut term, 1e-10);
            term.set_phi(&vec![0.0; 24 * volume(extents)]).unwrap();
            let log_det = term.value(&links).unwrap();
            let drawn = (term.refresh(&links, 11, 3).unwrap() - log_det).value();
            let odd = domain.quark_volume() / 2.0;
            // eta^dag eta is a sum of 24 squares of variance 1/2 a site.
            let off = (drawn - 12.0 * odd) / (12.0 * odd).sqrt();
            assert!(off.abs() < 4.0, "{drawn} instead of {}", 12.0 * odd);
        }
    }
}

/// All that walls touch, on any lanes, on an emulated GPU and on ranks that cut time.
#[test]
fn the_same_bits_everywhere() {
    let extents = [4, 4, 8, 16];
    let links = Gauge::warm(extents, 0.5, 5).to_host();
    let results = |domain: &Arc<Domain>, links: &HostLinks| {
        let mut links = MatrixField::from_host(domain, links).unwrap();
        links.end_at_walls().unwrap();
        let mut sums = Vec::new();
        let mut force = AlgebraField::new(domain).unwrap();
        let mut gauge =
            GaugeAction::new(domain, 5.7, [5.0 / 3.0, -1.0 / 12.0, 0.0]).unwrap().with_c_g([1.1, 0.9]);
        sums.push(gauge.value(&links).unwrap().value());
        gauge.add_force(&links, &mut force).unwrap();
        for (c_sw, clover) in TERMS {
            let operator = params(c_sw, clover, Schur::Symmetric);
            let mut term = two_flavours(domain, quark(operator, Precision::Half), [1e-10, 1e-8]);
            sums.push(term.refresh(&links, 3, 0).unwrap().value());
            sums.push(term.value(&links).unwrap().value());
            term.add_force(&links, &mut force).unwrap();
        }
        let inner = GaugeAction::new(domain, 5.7, [1.0, 0.0, 0.0]).unwrap();
        let mut smeared = Smeared::new(domain, Box::new(inner), 2, 0.1).unwrap();
        sums.push(smeared.value(&links).unwrap().value());
        smeared.add_force(&links, &mut force).unwrap();
        let points = flow(&links, FlowKernel::Symanzik, 0.02, 0.06, 1, &|| false).unwrap();
        sums.extend(points.iter().flat_map(|point| [point.e_plaquette, point.e_clover, point.q]));
        for slices in flow_by_slice(&links, FlowKernel::Wilson, 0.02, 0.02, 1, &|| false).unwrap() {
            sums.extend([slices.e_plaquette, slices.e_clover, slices.q].concat());
        }
        (sums, force.to_host().unwrap())
    };
    for time in WALLS {
        let whole = Partition::whole(extents).unwrap().with_time(time);
        let one: Arc<dyn Comm> = Arc::new(Solo);
        let expected = results(&on_lanes(1, whole, Arc::clone(&one), 2), &links);
        let fits = |lanes: usize| LaneGrid::choose(extents, [false; 4], lanes).is_some();
        for choice in choices(fits) {
            let found = results(&choice.domain(whole, Arc::clone(&one)), &links);
            assert!(found == expected, "{time} {choice:?}");
        }
        for grid in [[1, 1, 1, 2], [1, 1, 2, 4]] {
            let found = ranks::on_grid(extents, grid, |partition, comm| {
                let domain = on_most_lanes(partition.with_time(time), comm, 2);
                results(&domain, &ranks::links(&links, &partition))
            });
            for (partition, own) in found {
                assert_eq!(own.0, expected.0, "{time} grid {grid:?}");
                assert!(own.1 == ranks::part(&expected.1, &partition, 32), "{time} grid {grid:?}");
            }
        }
    }
}

/// What does not know of walls says so.
#[test]
fn other_operators_are_refused() {
    let domain = walled([4; 4], TimeBoundary::Open);
    let refused = |found: Option<FieldError>| matches!(found, Some(FieldError::Walls(_)));
    assert!(refused(StaggeredLinks::new(&domain, Smearing::Hisq { special: false }).err()));
    let eight = WilsonLinks::new(&domain, Precision::Single, 8, 1, Boundary::ANTIPERIODIC);
    assert!(refused(eight.err()));
}
