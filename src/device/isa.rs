//! Instruction sets of kernels for CPUs. The build script includes this file, to make those of its own processor.

/// Whether this processor has what an instruction set needs.
pub(crate) fn supported(isa: &str) -> bool {
    match isa {
        "base" => true,
        #[cfg(target_arch = "x86_64")]
        "v3" => {
            is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("bmi2")
        }
        #[cfg(target_arch = "x86_64")]
        "v4" => {
            supported("v3")
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512cd")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
        }
        _ => false,
    }
}
