//! Kernels, operators and solvers against the plain reference, on every device, storage and number of lanes.

mod borders;
mod conformance;
mod domain_wall;
mod peers;
pub mod quark;
mod rank_domains;
mod solvers;
mod staggered;
mod storage;

use num_complex::Complex64;

/// Numbers of a field.
fn complex(x: &[f64]) -> Vec<Complex64> {
    x.chunks_exact(2).map(|z| Complex64::new(z[0], z[1])).collect()
}

/// a x + b y
fn combination((a, x): (Complex64, &[f64]), (b, y): (Complex64, &[f64])) -> Vec<f64> {
    complex(x).into_iter().zip(complex(y)).map(|(x, y)| a * x + b * y).flat_map(|z| [z.re, z.im]).collect()
}

/// x^dag y
fn product(x: &[f64], y: &[f64]) -> Complex64 {
    complex(x).into_iter().zip(complex(y)).map(|(x, y)| x.conj() * y).sum()
}
