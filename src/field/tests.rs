//! Mistakes that the types do not exclude panic at run time.

use super::{
    AlgebraField, Domain, EVEN, FieldError, Halo, HostLinks, Kind, MatrixField, Purpose, RandomAddress,
    ShiftSteps, Spinor,
};
use crate::comm::Solo;
use crate::device::{Cpu, Device, DeviceError, Precision};
use crate::lattice::{Partition, PartitionError};
use num_complex::Complex64;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

fn domain() -> Arc<Domain> {
    let partition = Partition::new([4; 4], [1; 4], 1, 0).unwrap();
    Domain::new(partition, Device::new(Cpu::new(1).unwrap()), Arc::new(Solo), 0, Halo::Staged).unwrap()
}

fn refused<T>(what: &str, work: impl FnOnce() -> T) {
    assert!(catch_unwind(AssertUnwindSafe(work)).is_err(), "{what} is not refused");
}

#[test]
fn slices_of_another_length_are_refused() {
    let domain = domain();
    let mut spinor = Spinor::new(&domain, Precision::Double).unwrap();
    for reals in [256 * 24 - 1, 256 * 24 + 1] {
        refused("a spinor from a slice", || spinor.read_host(EVEN, &vec![0.0; reals]));
        refused("a spinor into a slice", || spinor.write_host(EVEN, &mut vec![0.0; reals]));
        refused("momenta", || AlgebraField::new(&domain).unwrap().set_host(&vec![0.0; reals]));
    }
    let mut links = MatrixField::new(&domain, 4).unwrap();
    refused("links of a smaller box", || links.set_host(&HostLinks::unit([4, 4, 4, 2])));
    let short = HostLinks { local: [4; 4], reals: vec![0.0; 18] };
    refused("too few links", || links.set_host(&short));
    refused("links as one matrix a site", || {
        MatrixField::new(&domain, 1).unwrap().set_host(&HostLinks::unit([4; 4]))
    });
}

#[test]
fn linear_algebra_of_dirac_spinors_refuses_colour_vectors() {
    let domain = domain();
    let colour = || Spinor::colour(&domain, Precision::Double).unwrap();
    let (mut x, mut y, z, one) = (colour(), colour(), colour(), Complex64::new(1.0, 0.0));
    refused("dot_norm2", || x.dot_norm2(&z));
    refused("dot_norm2_here", || x.dot_norm2_here(&z));
    refused("caxpy_norm2", || x.caxpy_norm2(one, &z));
    refused("caxpy_dot", || x.caxpy_dot(one, &z, &z));
    refused("add_twist", || x.add_twist(1.0, &z));
    let spinor = || Spinor::new(&domain, Precision::Double).unwrap();
    let mut numbers = spinor().bicgstab_half(one, &spinor(), &spinor()).unwrap();
    refused("bicgstab_half", || x.bicgstab_half(one, &z, &z));
    refused("bicgstab_step", || x.bicgstab_step(&mut numbers, &z, &mut y, &z, &z));
    refused("bicgstab_direction", || x.bicgstab_direction(&numbers, &z, &z));
    refused("mr_step", || x.mr_step(one, &mut y, &z));
    refused("least_mr_step_each", || x.least_mr_step_each(&mut y, &z));
}

#[test]
fn fields_of_two_boxes_or_kinds_are_not_taken_together() {
    let (one, other) = (domain(), domain());
    let spinor = |domain| Spinor::new(domain, Precision::Double).unwrap();
    refused("a sum over two boxes", || spinor(&one).axpy(1.0, &spinor(&other)));
    refused("a copy between boxes", || spinor(&one).copy_from(&spinor(&other)));
    let wall = Spinor::of(&one, Kind::Wall(4), Precision::Double, 1).unwrap();
    refused("a sum over two kinds", || spinor(&one).axpy(1.0, &wall));
    let links = MatrixField::new(&one, 4).unwrap();
    refused("a distance between boxes", || links.distance(&MatrixField::new(&other, 4).unwrap()));
    refused("a distance from one matrix a site", || links.distance(&MatrixField::new(&one, 1).unwrap()));
    let mut momenta = AlgebraField::new(&one).unwrap();
    refused("a kick from another box", || momenta.combine(1.0, 1.0, &AlgebraField::new(&other).unwrap()));
}

#[test]
fn there_are_two_parities() {
    let mut spinor = Spinor::new(&domain(), Precision::Double).unwrap();
    let address = RandomAddress { seed: 1, trajectory: 0, purpose: Purpose::Probe(0) };
    refused("random numbers on no sites", || spinor.set_random(2, 1.0, address));
    refused("sites to read", || spinor.write_host(2, &mut vec![0.0; 256 * 24]));
    refused("sites to write", || spinor.read_host(usize::MAX, &vec![0.0; 256 * 24]));
}

#[test]
fn no_field_is_beyond_the_last() {
    let domain = domain();
    let mut two = Spinor::several(&domain, Precision::Double, 2).unwrap();
    let mut one = Spinor::new(&domain, Precision::Double).unwrap();
    for n in [2, usize::MAX] {
        refused("a field to set", || two.set_field(n, &one));
        refused("a field to copy", || two.field(n, &mut one));
        refused("a field of several", || one.copy_field(0, &two, n));
    }
}

/// Kernels on single fields take one even then.
#[test]
fn a_field_of_none_has_room_for_one() {
    let domain = domain();
    let of = |fields| Spinor::of(&domain, Kind::Colour, Precision::Double, fields).unwrap();
    let (r, mut x, mut p) = (of(1), of(0), of(0));
    let steps = &[[1.0, 1.0]];
    Spinor::shift_steps(&[r], &mut [ShiftSteps { x: &mut x, p: &mut p, steps }]).unwrap();
    assert_eq!(x.buffer.bytes(), of(1).buffer.bytes());
}

#[test]
fn what_is_too_large_is_refused() {
    let domain = domain();
    let memory = |made: Result<MatrixField, FieldError>| matches!(made, Err(FieldError::Device(_)));
    assert!(memory(MatrixField::new(&domain, usize::MAX / 8)));
    let many = |made: Result<Spinor, FieldError>| {
        matches!(made, Err(FieldError::Device(DeviceError::TooMany { .. })))
    };
    assert!(many(Spinor::of(&domain, Kind::Wall(usize::MAX / 64), Precision::Double, 1)));
    assert!(many(Spinor::several(&domain, Precision::Double, usize::MAX / 64)));
    let of = |partition| {
        Domain::new(partition, Device::new(Cpu::new(1).unwrap()), Arc::new(Solo), 0, Halo::Staged)
    };
    let whole = |extents| Partition::whole(extents).unwrap();
    for extents in [[4096; 4], [1 << 32, 1 << 32, 2, 2]] {
        let refused = matches!(of(whole(extents)), Err(FieldError::Partition(PartitionError::Sites { .. })));
        assert!(refused, "{extents:?}");
    }
    for (t, fits) in [(30, true), (32, false)] {
        let made = of(whole([256, 256, 256, t]));
        let refused = matches!(made, Err(FieldError::Partition(PartitionError::Links { .. })));
        assert_eq!((made.is_ok(), refused), (fits, !fits), "{t}");
    }
    let odd = Partition { global: [4, 4, 4, 3], ..whole([4; 4]) };
    refused("an odd extent", || of(odd));
    refused("a rank that is not there", || of(Partition { place: [0, 0, 0, 1], ..whole([4; 4]) }));
}
