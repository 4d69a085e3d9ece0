//! Argument structs of the kernels, made by the build from `kernels/args.h`.

/// An argument struct that kernels know under `NAME`.
///
/// # Safety
/// Layout and name must be those of the struct in `kernels/args.h`.
pub unsafe trait KernelArgs: Copy + 'static {
    /// Its name in `kernels/args.h`.
    const NAME: &'static str;
}

/// Device memory as kernels see it.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pointer(pub u64);

include!(concat!(env!("OUT_DIR"), "/args.rs"));
