//! The energy that a GPU has taken, by the management library of its driver (NVML), which is loaded when it is first asked.

use crate::device::Energy;
use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;
use std::ffi::OsStr;
use std::sync::OnceLock;

/// The library under the name that every driver installs.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// The counter of one GPU.
pub(super) struct Meter {
    /// Domain, bus, device and function.
    address: String,
    opened: OnceLock<Result<Opened, String>>,
}

/// The library, and the GPU's UUID.
struct Opened {
    nvml: Nvml,
    uuid: String,
}

impl Meter {
    /// The counter of the GPU at a PCI address, such as `0000:1b:00.0`. Numbers of GPUs are not the same in CUDA and NVML:
    /// `CUDA_VISIBLE_DEVICES` is for CUDA alone.
    pub(super) fn at(address: String) -> Self {
        Self { address, opened: OnceLock::new() }
    }

    /// The count now.
    pub(super) fn read(&self) -> Energy {
        let opened = self.opened.get_or_init(|| Opened::new(LIBRARY, &self.address).map_err(reason));
        let counted = opened.as_ref().map_err(Clone::clone).and_then(|Opened { nvml, uuid }| {
            let millijoules = count(nvml, &self.address).map_err(reason)?;
            Ok(Energy::Counted { meter: uuid.clone(), millijoules })
        });
        counted.unwrap_or_else(Energy::Unread)
    }
}

impl Opened {
    fn new(library: &str, address: &str) -> Result<Self, NvmlError> {
        let nvml = Nvml::builder().lib_path(OsStr::new(library)).init()?;
        let uuid = nvml.device_by_pci_bus_id(address)?.uuid()?;
        Ok(Self { nvml, uuid })
    }
}

/// Millijoules.
fn count(nvml: &Nvml, address: &str) -> Result<u64, NvmlError> {
    nvml.device_by_pci_bus_id(address)?.total_energy_consumption()
}

/// Why nothing was read: no library, no such GPU, or one that does not count.
fn reason(error: NvmlError) -> String {
    match error {
        NvmlError::LibloadingError(error) => format!("NVML cannot be loaded: {error}"),
        error => format!("NVML: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_library_there_is_a_reason() {
        let opened = Opened::new("libnvidia-ml-of-nobody.so.1", "0000:00:00.0");
        let told = opened.err().map(reason).expect("no such library");
        assert!(told.contains("cannot be loaded") && told.contains("of-nobody"), "{told}");
    }

    #[test]
    fn no_gpu_is_at_an_address_that_is_none() {
        let Energy::Unread(told) = Meter::at("nowhere".into()).read() else { panic!("a GPU at 'nowhere'") };
        if told.contains("cannot be loaded") {
            println!("skipped: {told}");
        } else {
            assert!(told.starts_with("NVML: "), "{told}");
        }
    }
}
