//! `hmc bench`: the Wilson hopping term and CG on this device, beside what its memory allows.

use super::{AppError, Ranks, assemble, start};
use crate::config::{DeviceChoice, Parallel, Transport};
use crate::device::Precision;
use crate::field::{Domain, EVEN, MatrixField, ODD, Purpose, RandomAddress, Spinor};
use crate::lattice::{Extents, shape, volume};
use crate::operator::{Operator, Schur, Wilson, WilsonLinks, WilsonParams};
use crate::solver::{Cg, Params, SolverError};
use std::sync::Arc;
use std::time::Instant;

/// What to measure.
#[derive(Clone, Debug)]
pub struct BenchArgs {
    /// Lattices.
    pub extents: Vec<Extents>,
    /// CPU or GPU.
    pub device: DeviceChoice,
    /// Threads a rank; `None`: the node's cores over its ranks.
    pub threads: Option<usize>,
    /// SIMD lanes; `None`: the best.
    pub lanes: Option<usize>,
    /// Ranks in each direction; `None`: least surface.
    pub grid: Option<Extents>,
    /// How halos travel.
    pub transport: Transport,
}

/// Flops of the Wilson hopping term a site.
const HOP_FLOPS: f64 = 1320.0;
/// Best of so many samples, each at least this long.
const SAMPLES: usize = 7;
const SAMPLE_SECONDS: f64 = 0.05;

/// Prints the tables.
///
/// # Errors
/// The device is not there, or has no room.
pub fn bench(args: &BenchArgs, comm: &Ranks) -> Result<(), AppError> {
    let parallel = Parallel {
        grid: args.grid,
        device: args.device,
        threads: args.threads,
        lanes: args.lanes,
        transport: args.transport,
    };
    super::run::with_threads(start::threads(&parallel, &**comm), || {
        for (n, &extents) in args.extents.iter().enumerate() {
            let domain = assemble::domain(&parallel, extents, 1, comm)?;
            if n == 0 {
                say(
                    comm,
                    &format!(
                        "{}, {} ranks, halos {:?}",
                        domain.device().backend().name(),
                        comm.size(),
                        domain.halo()
                    ),
                );
            }
            let copy = copy_bandwidth(&domain)?;
            say(comm, &format!("{}: copy {copy:.0} GB/s a rank (read and written)", shape(extents)));
            hops(&domain, copy, comm)?;
            solves(&domain, comm)?;
        }
        Ok(())
    })
}

fn say(comm: &Ranks, line: &str) {
    if comm.rank() == 0 {
        println!("{line}");
    }
}

/// Seconds of one call, the best of several samples, the slowest rank's.
fn seconds(domain: &Domain, mut work: impl FnMut() -> Result<(), AppError>) -> Result<f64, AppError> {
    let mut sample = |repeats: usize| -> Result<f64, AppError> {
        domain.device().synchronize()?;
        domain.comm().barrier();
        let start = Instant::now();
        for _ in 0..repeats {
            work()?;
        }
        domain.device().synchronize()?;
        Ok(domain.comm().max(start.elapsed().as_secs_f64() / repeats as f64))
    };
    sample(1)?;
    let repeats = ((SAMPLE_SECONDS / sample(3)?) as usize).clamp(1, 10_000);
    (0..SAMPLES).try_fold(f64::MAX, |best, _| Ok(best.min(sample(repeats)?)))
}

/// Bytes a second, in GB, of copying a buffer far larger than caches: read and written both counted.
fn copy_bandwidth(domain: &Domain) -> Result<f64, AppError> {
    let bytes = 1usize << if domain.device().backend().is_host() { 29 } else { 31 };
    let buffers = [domain.device().buffer(bytes)?, domain.device().buffer(bytes)?];
    let time = seconds(domain, || Ok(buffers[0].copy_from(&buffers[1])?))?;
    Ok(2.0 * bytes as f64 / time / 1e9)
}

fn random_links(domain: &Arc<Domain>) -> Result<MatrixField, AppError> {
    let mut links = MatrixField::new(domain, 4)?;
    links.set_random(RandomAddress { seed: 1, trajectory: 0, purpose: Purpose::Start })?;
    Ok(links)
}

fn hops(domain: &Arc<Domain>, copy: f64, comm: &Ranks) -> Result<(), AppError> {
    let links = random_links(domain)?;
    let sites = volume(domain.partition().local()) as f64 / 2.0;
    for precision in [Precision::Double, Precision::Single] {
        for reals in [18, 12] {
            let mut hop = WilsonLinks::new(domain, precision, reals, 1, [0.0, 0.0, 0.0, 1.0])?;
            hop.update(&links)?;
            let (mut out, mut input) = (Spinor::new(domain, precision)?, Spinor::new(domain, precision)?);
            input.set_random(
                ODD,
                1.0,
                RandomAddress { seed: 1, trajectory: 0, purpose: Purpose::Probe(0) },
            )?;
            let time = seconds(domain, || Ok(hop.hop(&mut out, &input, EVEN, false)?))?;
            let bytes = (48 + 8 * reals) as f64 * precision.bytes() as f64;
            let (flops, rate) = (sites * HOP_FLOPS / time / 1e9, sites * bytes / time / 1e9);
            say(
                comm,
                &format!(
                    "  Wilson hop {:6} {reals} reals  {flops:8.1} GFLOP/s a rank  {rate:7.1} GB/s  {:4.0}% of copy  {:9.2} us",
                    precision.c_name(),
                    100.0 * rate / copy,
                    time * 1e6
                ),
            );
        }
    }
    Ok(())
}

/// CG on random links: the operator's spectrum is benign there, so iterations are counted, not the solve.
fn solves(domain: &Arc<Domain>, comm: &Ranks) -> Result<(), AppError> {
    const ITERATIONS: usize = 100;
    let links = random_links(domain)?;
    let params = WilsonParams {
        kappa: 0.13,
        mu: 0.0,
        c_sw: 0.0,
        boundary: [0.0, 0.0, 0.0, 1.0],
        schur: Schur::Asymmetric,
    };
    let mut double = Wilson::new(domain, Precision::Double, 12, params)?;
    let mut single = Wilson::new(domain, Precision::Single, 12, params)?;
    double.update(&links, None)?;
    single.update(&links, None)?;
    let (mut x, mut b) = (Spinor::new(domain, Precision::Double)?, Spinor::new(domain, Precision::Double)?);
    b.set_random(ODD, 1.0, RandomAddress { seed: 1, trajectory: 0, purpose: Purpose::Probe(1) })?;
    for precision in [Precision::Double, Precision::Single] {
        let mut solver = Cg::new(domain, precision, 1e-3)?;
        let mut solve = || -> Result<(usize, f64, f64), AppError> {
            x.set_zero()?;
            domain.device().synchronize()?;
            let start = Instant::now();
            let sloppy = (precision == Precision::Single).then_some(&mut single as &mut dyn Operator);
            let wanted = Params { residual: 1e-12, max_iterations: ITERATIONS };
            let (iterations, residual) = match solver.solve(&mut double, sloppy, &mut x, &b, wanted) {
                Ok(info) => (info.iterations, info.residual),
                Err(SolverError::NotConverged { iterations, residual, .. }) => (iterations, residual),
                Err(error) => return Err(AppError::Measure(error.into())),
            };
            Ok((iterations, residual, domain.comm().max(start.elapsed().as_secs_f64())))
        };
        solve()?; // kernels are compiled and loaded in the first
        let (iterations, residual, time) = solve()?;
        // Four hops on half of the sites an iteration, and 5 x 24 x 2 flops of linear algebra.
        let flops =
            iterations as f64 * volume(domain.partition().local()) as f64 / 2.0 * (4.0 * HOP_FLOPS + 480.0);
        say(
            comm,
            &format!(
                "  Wilson CG {}  {:8.1} GFLOP/s a rank  {:9.2} us an iteration  ({iterations} to {residual:.1e})",
                if precision == Precision::Double { "double       " } else { "double-single" },
                flops / time / 1e9,
                time * 1e6 / iterations as f64
            ),
        );
    }
    Ok(())
}
