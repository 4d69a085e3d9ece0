//! Which kernels a device was asked for.

use super::backend::{Size, Variant};
use super::kernels::{Constants, KernelNumber};
use super::table::{Precision, all_kernels};
use std::sync::Mutex;

/// A kernel as a GPU compiles it, and the size of its first launch.
#[derive(Clone, Copy, Debug)]
pub struct Instance {
    pub(super) kernel: KernelNumber,
    pub(super) precision: Precision,
    pub(super) constants: Constants,
    pub(super) variant: Variant,
    pub(super) size: Size,
}

impl Instance {
    /// Kernel, precision, and the constants that it is compiled for.
    pub fn name(&self) -> String {
        let kernel = all_kernels().get(self.kernel, self.precision);
        format!("{} {} {:?}", kernel.name, self.precision, self.constants.values())
    }

    /// Whether both are the same machine code but for their shapes.
    fn is(&self, other: &Self) -> bool {
        (self.kernel, self.precision, self.constants, self.variant)
            == (other.kernel, other.precision, other.constants, other.variant)
    }
}

/// The kernels that a device was asked for, each once, in the order of their first launches.
#[derive(Debug, Default)]
pub struct Record(Mutex<Vec<Instance>>);

impl Record {
    pub(super) fn add(&self, instance: Instance) {
        let mut all = self.0.lock().expect("no panic holds it");
        if !all.iter().any(|known| known.is(&instance)) {
            all.push(instance);
        }
    }

    /// All so far.
    pub fn instances(&self) -> Vec<Instance> {
        self.0.lock().expect("no panic holds it").clone()
    }
}
