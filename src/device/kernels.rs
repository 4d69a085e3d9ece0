//! Kernels as types: each argument struct of `kernels/args.h` belongs to one kernel.
//!
//! A pointer among the arguments is an [`In`], from a shared borrow, or an [`Out`], from an exclusive one. Its type
//! states the kind of memory. Only this library's fields make pointers and launch kernels.
//!
//! ```
//! use hmc::device::kernels::{Algebra, Geometry, In, Kinetic};
//! fn kinetic<'a>(g: Geometry<'a>, momenta: In<'a, Algebra>) -> Kinetic<'a> {
//!     Kinetic { g, momenta }
//! }
//! ```
//! A kernel that does not exist is a compile error,
//! ```compile_fail,E0432
//! use hmc::device::kernels::Kinetik;
//! ```
//! and so are memory of another kind,
//! ```compile_fail,E0308
//! use hmc::device::kernels::{Geometry, In, Kinetic, Matrices};
//! fn kinetic<'a>(g: Geometry<'a>, links: In<'a, Matrices>) -> Kinetic<'a> {
//!     Kinetic { g, momenta: links }
//! }
//! ```
//! a shared borrow for memory that the kernel writes,
//! ```compile_fail,E0308
//! use hmc::device::kernels::{Algebra, Drift, Geometry, In, Matrices};
//! fn drift<'a>(g: Geometry<'a>, links: In<'a, Matrices>, momenta: In<'a, Algebra>) -> Drift<'a> {
//!     Drift { g, links, momenta, scale: 0.1 }
//! }
//! ```
//! a missing argument,
//! ```compile_fail,E0063
//! use hmc::device::kernels::{Geometry, Kinetic};
//! fn kinetic<'a>(g: Geometry<'a>) -> Kinetic<'a> {
//!     Kinetic { g }
//! }
//! ```
//! a launch from outside the library,
//! ```compile_fail,E0624
//! use hmc::{device::kernels::Kinetic, field::Domain};
//! fn launch(domain: &Domain, kernel: &Kinetic) {
//!     domain.sum(kernel, 16).unwrap();
//! }
//! ```
//! and a raw launch outside `unsafe`:
//! ```compile_fail,E0133
//! use hmc::device::{Call, Device, Size};
//! fn launch(device: &Device, call: Call, size: Size) {
//!     device.backend().launch(call, size).unwrap();
//! }
//! ```

use super::{Buffer, Precision};
use std::marker::PhantomData;
use std::num::NonZero;

/// Memory of kind `K` that a kernel reads.
#[repr(transparent)]
pub struct In<'a, K> {
    at: NonZero<u64>,
    lives: PhantomData<&'a (Buffer, K)>,
}

impl<K> Clone for In<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for In<'_, K> {}

/// Memory of kind `K` that a kernel writes, and may read.
#[repr(transparent)]
pub struct Out<'a, K> {
    at: NonZero<u64>,
    lives: PhantomData<&'a mut (Buffer, K)>,
}

impl<K> In<'_, K> {
    /// Memory at an address of the device.
    ///
    /// # Safety
    /// The memory lives as long as the borrow. Meanwhile only work launched on the device writes it.
    pub(super) unsafe fn at(address: NonZero<u64>) -> Self {
        Self { at: address, lives: PhantomData }
    }
}

impl<K> Out<'_, K> {
    /// Memory at an address of the device.
    ///
    /// # Safety
    /// The memory lives as long as the borrow, and nothing else uses it meanwhile.
    pub(super) unsafe fn at(address: NonZero<u64>) -> Self {
        Self { at: address, lives: PhantomData }
    }
}

/// A number of sites, places, fields or bytes per site as kernels and drivers take it, with 32 bits.
///
/// # Panics
/// It does not fit. What makes domains and fields has refused lattices that are so large.
#[track_caller]
pub(crate) fn int(n: usize) -> i32 {
    i32::try_from(n).unwrap_or_else(|_| panic!("{n} is more than kernels count with 32 bits"))
}

/// An enum of `kernels/args.h`.
pub(crate) trait Enumerated: Copy + 'static {
    /// All its values.
    const ALL: &'static [Self];
    /// The value that kernels use.
    fn value(self) -> i32;
    /// The variant of this value.
    fn of(value: usize) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| usize::try_from(one.value()) == Ok(value))
    }
}

/// The form of kernels that exist only in double precision.
#[derive(Clone, Copy)]
pub(crate) struct Double;
/// The form of kernels that exist only in half precision.
#[derive(Clone, Copy)]
pub(crate) struct Half;

impl From<Double> for Precision {
    fn from(_: Double) -> Self {
        Self::Double
    }
}

impl From<Half> for Precision {
    fn from(_: Half) -> Self {
        Self::Half
    }
}

/// A kernel's position in the list of all kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelNumber(pub(super) usize);

/// The maximum number of arguments that a GPU's compiler may know.
const MOST_CONSTANTS: usize = 6;

/// Values of the arguments for which a GPU's kernel is compiled; empty if it serves all values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Constants {
    values: [i32; MOST_CONSTANTS],
    count: usize,
}

impl Constants {
    /// The values in the kernel's order.
    ///
    /// # Panics
    /// More values than any kernel has.
    pub fn new(values: &[i32]) -> Self {
        let mut all = [0; MOST_CONSTANTS];
        all[..values.len()].copy_from_slice(values);
        Self { values: all, count: values.len() }
    }

    /// The values.
    pub fn values(&self) -> &[i32] {
        &self.values[..self.count]
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// The argument struct of a kernel.
///
/// # Safety
/// Layout and name are those of a struct in `kernels/args.h`, and the kernel takes it.
pub(crate) unsafe trait Kernel {
    /// What chooses an instance of the kernel: the precision, and for some kernels the number of reals.
    type Form: Copy;
    /// The instance.
    fn number(form: Self::Form) -> (KernelNumber, Precision);
    /// The values for which a GPU's kernel may be compiled.
    fn constants(&self) -> Constants;
    /// The chunks that it packs for the neighbours before its own sites.
    fn packing(&self) -> i32;
}

/// A kernel that works site by site.
pub(crate) trait OnSites: Kernel {}
/// A kernel that also sums over sites.
pub(crate) trait Summing: Kernel {}
/// A kernel that works in teams of threads.
pub(crate) trait OnTeams: Kernel {}

/// A kernel that the build found in the lists of `kernels/`.
pub(super) struct Listed {
    pub name: &'static str,
    pub args: &'static str,
    /// Double, single, half.
    pub precisions: [bool; 3],
    /// Names of the arguments that a GPU's compiler may know, as macros.
    pub constants: &'static [&'static str],
    /// Whether the compiler may know the lattice's extents.
    pub extents_are_constant: bool,
}

include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
