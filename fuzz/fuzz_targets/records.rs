#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hmc_fuzz::run("records", data));
