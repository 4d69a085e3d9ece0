//! What types do not exclude is refused at run time.

use super::{CloverForm, CloverParams, CloverTerm, Insertion, WilsonLinks};
use crate::comm::Solo;
use crate::device::{Cpu, Device, Precision};
use crate::field::{Dagger, Domain, EVEN, Halo, MatrixField, ODD, Purpose, RandomAddress, Spinor};
use crate::lattice::{Boundary, Extents, Partition};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

fn domain(extents: Extents) -> Arc<Domain> {
    let (partition, device) = (Partition::whole(extents).unwrap(), Device::new(Cpu::new(1).unwrap()));
    Domain::new(partition, device, Arc::new(Solo), 0, Halo::Staged).unwrap()
}

fn refused<T>(what: &str, work: impl FnOnce() -> T) {
    assert!(catch_unwind(AssertUnwindSafe(work)).is_err(), "{what} is not refused");
}

#[test]
fn hops_are_of_dirac_spinors_of_the_box() {
    let (large, small) = (domain([4, 4, 4, 8]), domain([4; 4]));
    let mut links = WilsonLinks::new(&large, Precision::Double, 18, 1, Boundary::phases([0.0; 4])).unwrap();
    let mut hop = |what: &str, spinor: &dyn Fn() -> Spinor| {
        refused(what, || links.hop(&mut spinor(), &spinor(), EVEN, Dagger::No));
    };
    hop("colour vectors", &|| Spinor::colour(&large, Precision::Double).unwrap());
    hop("spinors of another box", &|| Spinor::new(&small, Precision::Double).unwrap());
}

/// Operators that share memory must adopt links before each use; those that do not share keep theirs.
#[test]
fn operators_share_links_clover_blocks_and_nothing_else() {
    let domain = domain([4; 4]);
    let [one, other] = [1, 2].map(|seed| MatrixField::hot(&domain, seed).unwrap());
    let x = {
        let mut x = Spinor::new(&domain, Precision::Double).unwrap();
        x.set_random(EVEN, 1.0, RandomAddress { seed: 3, trajectory: 0, purpose: Purpose::Probe(0) })
            .unwrap();
        x
    };
    let new = |reals| {
        WilsonLinks::new(&domain, Precision::Double, reals, 1, Boundary::phases([0.0, 0.0, 0.0, 0.5]))
            .unwrap()
    };
    let hop = |links: &mut WilsonLinks| {
        let mut y = Spinor::new(&domain, Precision::Double).unwrap();
        links.hop(&mut y, &x, ODD, Dagger::No).unwrap();
        y.real_dot(&y).unwrap().value()
    };
    let mut alone = [new(12), new(12)];
    alone[0].update(&one).unwrap();
    alone[1].update(&other).unwrap();
    let expected = alone.each_mut().map(hop);
    assert!(expected[0].to_bits() != expected[1].to_bits());
    let _sharing = domain.share();
    let (mut shared, mut more) = ([new(12), new(12)], new(18));
    shared[0].update(&one).unwrap();
    shared[1].update(&one).unwrap();
    more.update(&other).unwrap();
    assert_eq!(shared.each_mut().map(hop).map(f64::to_bits), [expected[0].to_bits(); 2]);
    shared[1].update(&other).unwrap();
    assert_eq!(hop(&mut shared[1]).to_bits(), expected[1].to_bits());
    refused("links that another operator replaced", || hop(&mut shared[0]));
    shared[0].update(&one).unwrap();
    assert_eq!(hop(&mut shared[0]).to_bits(), expected[0].to_bits());
    // A field that changed is not the one that was adopted, a copy is.
    let mut changed = MatrixField::new(&domain, 4).unwrap();
    changed.copy_from(&one).unwrap();
    assert_eq!(changed.stamp(), one.stamp());
    shared[0].update(&changed).unwrap();
    assert_eq!(hop(&mut shared[0]).to_bits(), expected[0].to_bits());
    changed.set_host(&other.to_host().unwrap()).unwrap();
    assert_ne!(changed.stamp(), one.stamp());
    shared[0].update(&changed).unwrap();
    assert_eq!(hop(&mut shared[0]).to_bits(), expected[1].to_bits());
    // Terms of one kappa have one clover term, and each its determinant.
    let params =
        |c_sw| CloverParams { diagonal: 4.0, c_sw, form: CloverForm::Linear, c_f: [1.0; 2], square: 0.0 };
    let clover = |c_sw| CloverTerm::new(&domain, params(c_sw), [true, false]).unwrap();
    let mut terms = [clover(0.3), clover(0.3), clover(0.1)];
    for term in &mut terms {
        term.update(&one).unwrap();
    }
    let [first, second, third] = terms.each_ref().map(|term| term.log_det().value().to_bits());
    assert!(first == second && first != third);
    terms[1].update(&other).unwrap();
    refused("a clover term that another operator replaced", || terms[0].log_det());
    terms[0].update(&one).unwrap();
    assert_eq!(terms[0].log_det().value().to_bits(), first);
}

#[test]
fn links_of_operators_that_share_are_in_memory_once() {
    let domain = domain([4; 4]);
    let _sharing = domain.share();
    let cost = |reals| {
        let before = domain.device().held().bytes;
        let made = WilsonLinks::new(&domain, Precision::Double, reals, 1, Boundary::ANTIPERIODIC).unwrap();
        (made, domain.device().held().bytes - before)
    };
    let (first, second, whole) = (cost(12), cost(12), cost(18));
    // A CPU has each link by the sites of both ends.
    let bytes = |reals: u64| 2 * 256 * 4 * reals * 8;
    assert_eq!(first.1, second.1 + bytes(12));
    assert_eq!(whole.1, second.1 + bytes(18));
}

#[test]
fn the_clover_term_is_that_of_the_spinors_box_on_one_of_two_parities() {
    let (large, small) = (domain([4, 4, 4, 8]), domain([4; 4]));
    let params =
        CloverParams { diagonal: 4.0, c_sw: 1.0, form: CloverForm::Linear, c_f: [1.0; 2], square: 0.0 };
    let clover = CloverTerm::new(&small, params, [false; 2]).unwrap();
    let spinor = |domain| Spinor::new(domain, Precision::Double).unwrap();
    refused("spinors of another box", || clover.apply(&mut spinor(&large), &spinor(&large), EVEN));
    refused("a third parity", || clover.apply(&mut spinor(&small), &spinor(&small), 2));
    let mut insertion = Insertion::new(&small).unwrap();
    let mut insert =
        |parity| clover.insert_pair(&mut insertion, &spinor(&small), &spinor(&small), parity, 1.0);
    refused("an insertion on no sites", || insert(2));
}
