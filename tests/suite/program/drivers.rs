//! Which driver and which NVRTC go together, told to the user: small libraries stand in for both.

use super::{Scratch, command};
use std::fs;

const DRIVER: &str = r#"
#include <stdlib.h>
#include <string.h>
int cuInit(unsigned flags) { return 0; }
int cuDeviceGetCount(int *n) { *n = 1; return 0; }
int cuDeviceGet(int *device, int i) { *device = 0; return 0; }
int cuDriverGetVersion(int *version) { *version = atoi(getenv("STANDS_FOR")); return 0; }
int cuDeviceGetPCIBusId(char *to, int n, int device) { strcpy(to, "0000:00:00.0"); return 0; }
int cuEventElapsedTime(float *to, void *a, void *b) { return 0; }
/* The first call behind the choice of a compiler. */
int cuDevicePrimaryCtxRetain(void **context, int device) { return 100; }
"#;

const COMPILER: &str = r"
int nvrtcVersion(int *major, int *minor) { *major = MAJOR; *minor = 9; return 0; }
const char *nvrtcGetErrorString(int code) { return 0; }
int nvrtcCreateProgram(void) { return 1; }
int nvrtcCompileProgram(void) { return 1; }
int nvrtcGetProgramLogSize(void) { return 1; }
int nvrtcGetProgramLog(void) { return 1; }
int nvrtcGetCUBINSize(void) { return 1; }
int nvrtcGetCUBIN(void) { return 1; }
int nvrtcDestroyProgram(void) { return 1; }
";

#[test]
fn what_does_not_fit_the_driver_is_told_by_version() {
    let scratch = Scratch::new();
    scratch.write("driver.c", DRIVER);
    scratch.write("compiler.c", COMPILER);
    let built = |out: &str, arguments: &[&str]| {
        let mut cc = command("cc");
        cc.args(["-shared", "-fPIC", "-w", "-o", out]).args(arguments).current_dir(scratch.at(""));
        cc.status().is_ok_and(|status| status.success())
    };
    for folder in ["driver", "nvrtc11", "nvrtc12", "nvrtc13"] {
        fs::create_dir(scratch.at(folder)).unwrap();
    }
    if !built("driver/libcuda.so", &["driver.c"]) {
        println!("skipped: no C compiler to stand in for a driver");
        return;
    }
    fs::copy(scratch.at("driver/libcuda.so"), scratch.at("driver/libcuda.so.1")).unwrap();
    // By every name, and in front of those that this machine may have.
    for major in ["11", "12", "13"] {
        for name in ["libnvrtc.so", "libnvrtc.so.12", "libnvrtc.so.13"] {
            assert!(built(&format!("nvrtc{major}/{name}"), &[&format!("-DMAJOR={major}"), "compiler.c"]));
        }
    }
    let input = include_str!("../../../inputs/quickstart.toml");
    let input = scratch.write("run.toml", format!("{input}\n[parallel]\ndevice = \"cuda\"\n"));
    let told = |driver: &str, nvrtc: &str| {
        let output = command(env!("CARGO_BIN_EXE_hmc"))
            .arg(&input)
            .env("LD_LIBRARY_PATH", std::env::join_paths([scratch.at("driver"), scratch.at(nvrtc)]).unwrap())
            .env("STANDS_FOR", driver)
            .env("HMC_NVRTC", scratch.at(nvrtc))
            .current_dir(scratch.at(""))
            .output()
            .unwrap();
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let old = told("11080", "nvrtc12");
    assert!(old.contains("the driver is of CUDA 11.8; 12.0 or later is needed"), "{old}");
    let newer = told("12040", "nvrtc13");
    assert!(newer.contains("libnvrtc is of CUDA 13.9, but the driver is of CUDA 12.4"), "{newer}");
    let older = told("13000", "nvrtc11");
    assert!(older.contains("libnvrtc is of CUDA 11.9") && older.contains("CUDA 12 to 13"), "{older}");
    for (driver, nvrtc) in [("12040", "nvrtc12"), ("13000", "nvrtc12"), ("13010", "nvrtc13")] {
        let fits = told(driver, nvrtc);
        assert!(fits.contains("cuDevicePrimaryCtxRetain"), "{driver} {nvrtc}: {fits}");
    }
}
