//! What types do not exclude is refused at run time.

use super::{CloverTerm, WilsonLinks};
use crate::comm::Solo;
use crate::device::{Cpu, Device, Precision};
use crate::field::{Dagger, Domain, EVEN, Halo, MatrixField, Spinor};
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

#[test]
fn the_clover_term_is_that_of_the_spinors_box_on_one_of_two_parities() {
    let (large, small) = (domain([4, 4, 4, 8]), domain([4; 4]));
    let clover = CloverTerm::new(&small, 4.0, 1.0, [false; 2]).unwrap();
    let spinor = |domain| Spinor::new(domain, Precision::Double).unwrap();
    refused("spinors of another box", || clover.apply(&mut spinor(&large), &spinor(&large), EVEN));
    refused("a third parity", || clover.apply(&mut spinor(&small), &spinor(&small), 2));
    let mut insertion = MatrixField::new(&small, 6).unwrap();
    let mut insert =
        |parity| clover.insert_pair(&mut insertion, &spinor(&small), &spinor(&small), parity, 1.0);
    refused("an insertion on no sites", || insert(2));
}
