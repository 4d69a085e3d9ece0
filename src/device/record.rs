//! Which kernels a device was asked for.

use super::kernels::{Constants, KernelNumber};
use super::size::{Size, Variant};
use super::table::{Precision, all_kernels};
use std::collections::HashSet;
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

    /// What makes its machine code, but for its shape.
    fn code(&self) -> Code {
        (self.kernel, self.precision, self.constants, self.variant)
    }
}

type Code = (KernelNumber, Precision, Constants, Variant);

/// The kernels that a device was asked for, each once, in the order of their first launches.
#[derive(Debug, Default)]
pub struct Record(Mutex<Recorded>);

#[derive(Debug, Default)]
struct Recorded {
    instances: Vec<Instance>,
    known: HashSet<Code>,
}

impl Record {
    pub(super) fn add(&self, instance: Instance) {
        let mut all = self.0.lock().expect("no panic holds it");
        if all.known.insert(instance.code()) {
            all.instances.push(instance);
        }
    }

    /// All so far.
    pub fn instances(&self) -> Vec<Instance> {
        self.0.lock().expect("no panic holds it").instances.clone()
    }
}
