//! A test of each rank's device: work whose bits are known to be the same on every device, done by each rank alone.
//!
//! Every device walks through random links, gauge forces, steps of the links and hops of a spinor, several times. All must find
//! the same bits, and beside a GPU its node's CPU, too. What differs from the others is named with its rank, node and card.

use super::placement::own_gpu;
use super::placement::place_on_node;
use super::{job, start};
use crate::app::AppError;
use crate::comm::{Comm, Solo};
use crate::device::{Cpu, Device, Precision};
use crate::field::{
    AlgebraField, Dagger, Domain, FieldError, Halo, MatrixField, ODD, Purpose, RandomAddress, Spinor,
};
use crate::input::Parallel;
use crate::lattice::{Boundary, Extents, Partition};
use crate::math::ExactSum;
use crate::operator::{GaugeLoops, WilsonLinks};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A lattice with work for all parts of a GPU.
const OF_GPUS: Extents = [16; 4];
/// Reals per link in hops: those of most runs.
const LINKS: usize = 12;
/// Rounds of a device: at least so many, and until this time is over.
const ROUNDS: usize = 3;
const LEAST: Duration = Duration::from_millis(500);

/// The words of the sums that a round finds.
type Found = Vec<i64>;

/// What a device, or the CPU beside it, has found in its rounds.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Tested {
    /// Its node, and what it is.
    place: String,
    rounds: Vec<Found>,
}

/// Tests all devices. Returns a line on it, where there are others than CPUs. Collective.
///
/// # Errors
/// The same on all ranks: [`AppError::Faulty`] names what found other bits. The device is lost, or has no memory.
pub(in crate::app) fn test_devices(
    domain: &Domain,
    parallel: &Parallel,
    comm: &dyn Comm,
) -> Result<Option<String>, AppError> {
    let (device, start) = (domain.device(), Instant::now());
    let is_gpu = device.nature().is_gpu;
    let extents = if is_gpu { OF_GPUS } else { [8; 4] };
    let gpu = own_gpu(parallel, place_on_node(comm).0);
    let gpu = gpu.map(|(number, address)| format!("GPU {number} at {address}"));
    let mut tested = vec![Tested::new(gpu.unwrap_or_else(|| "its CPU".to_owned()))];
    let own = alone(extents, device.clone())?;
    let begun = Instant::now();
    while tested[0].rounds.len() < ROUNDS || is_gpu && begun.elapsed() < LEAST {
        tested[0].rounds.push(work(&own)?);
    }
    if is_gpu {
        let free = Parallel { lanes: None, ..parallel.clone() };
        let cpu = Cpu::new(start::lanes(&free, own.partition(), 1))?;
        let rounds = vec![work(&alone(extents, Device::new(cpu))?)?];
        tested.push(Tested { rounds, ..Tested::new("the CPU beside it".to_owned()) });
    }
    let bytes = serde_json::to_vec(&tested).expect("texts and integers are JSON");
    let read = |bytes: &Vec<u8>| serde_json::from_slice(bytes).expect("a rank made it of the same type");
    let all: Vec<Vec<Tested>> = comm.gather(&bytes).iter().map(read).collect();
    let faults = faults(&all);
    if !faults.is_empty() {
        return Err(AppError::Faulty(faults.join("\n  ")));
    }
    let rounds: usize = all.iter().flatten().map(|tested| tested.rounds.len()).sum();
    let seconds = start.elapsed().as_secs_f64();
    Ok(is_gpu.then(|| format!("self-test of the devices: {rounds} rounds in {seconds:.1} s, the same bits")))
}

impl Tested {
    fn new(what: String) -> Self {
        Self { place: format!("{}, {what}", job::host()), rounds: Vec::new() }
    }
}

/// Asks a GPU that is pretended for the kernels of the test.
///
/// # Errors
/// None of a device that only counts.
pub(in crate::app) fn rehearse_self_test(device: &Device) -> Result<(), AppError> {
    work(&alone(OF_GPUS, device.clone())?)?;
    Ok(())
}

/// A lattice for this rank alone.
fn alone(extents: Extents, device: Device) -> Result<Arc<Domain>, AppError> {
    Ok(Domain::new(Partition::whole(extents)?, device, Arc::new(Solo), 1, Halo::Staged)?)
}

/// One round.
fn work(domain: &Arc<Domain>) -> Result<Found, FieldError> {
    let random = |purpose| RandomAddress { seed: 2, trajectory: 0, purpose };
    let mut links = MatrixField::new(domain, 4)?;
    links.set_random(random(Purpose::Start))?;
    let loops = GaugeLoops::new(domain, 1.0, 0.0, 0.0)?;
    let mut momenta = AlgebraField::new(domain)?;
    momenta.set_random(random(Purpose::Momenta))?;
    let mut sums: Vec<ExactSum> = Vec::new();
    for _ in 0..2 {
        loops.add_force(&links, &mut momenta, 0.1)?;
        momenta.drift(&mut links, 0.1)?;
        sums.push(momenta.kinetic()?);
    }
    let mut source = Spinor::new(domain, Precision::Double)?;
    source.set_random(ODD, 1.0, random(Purpose::Probe(0)))?;
    for precision in [Precision::Double, Precision::Single] {
        let mut hop = WilsonLinks::new(domain, precision, LINKS, 1, Boundary::ANTIPERIODIC)?;
        hop.update(&links)?;
        let [mut x, mut y] = [Spinor::new(domain, precision)?, Spinor::new(domain, precision)?];
        x.copy_from(&source)?;
        for parity in [0, 1, 0, 1] {
            hop.hop(&mut y, &x, parity, Dagger::No)?;
            std::mem::swap(&mut x, &mut y);
            x.scale(0.25)?;
        }
        sums.push(x.norm2()?);
    }
    Ok(sums.iter().flat_map(|sum| sum.words()).collect())
}

/// A line for each device, and each CPU beside one, that found other bits than most, or than itself.
fn faults(all: &[Vec<Tested>]) -> Vec<String> {
    let every =
        || all.iter().enumerate().flat_map(|(rank, tested)| tested.iter().map(move |one| (rank, one)));
    let is_steady = |one: &Tested| one.rounds.iter().all(|found| *found == one.rounds[0]);
    let votes = |found: &Found| every().filter(|(_, one)| is_steady(one) && one.rounds[0] == *found).count();
    let steady = || every().filter(|(_, one)| is_steady(one)).map(|(_, one)| &one.rounds[0]);
    let common = steady().max_by_key(|found| votes(found));
    let is_clear =
        common.is_none_or(|common| steady().all(|found| found == common || votes(found) < votes(common)));
    let line = |(rank, one): (usize, &Tested)| {
        let wrong = one.rounds.iter().filter(|found| Some(*found) != common).count();
        let told = match is_clear {
            _ if !is_steady(one) => format!("{wrong} of {} equal rounds differ", one.rounds.len()),
            true if wrong > 0 => "other bits than the others".to_owned(),
            false => "its bits and those of another differ, and it is open which are right".to_owned(),
            true => return None,
        };
        Some(format!("rank {rank} on {}: {told}", one.place))
    };
    every().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Devices with the bits of each round, as digits; behind a stroke those of the CPU beside it.
    fn told(ranks: &[&str]) -> Vec<String> {
        let one = |(digits, place): (&str, &str)| Tested {
            place: place.to_owned(),
            rounds: digits.bytes().map(|digit| vec![i64::from(digit)]).collect(),
        };
        let rank = |text: &&str| text.split('|').zip(["n, GPU", "n, CPU"]).map(one).collect();
        faults(&ranks.iter().map(rank).collect::<Vec<_>>())
    }

    #[test]
    fn what_differs_is_named() {
        assert!(told(&["111", "111"]).is_empty() && told(&["111|1"]).is_empty());
        assert_eq!(told(&["111|1", "222|1"]), ["rank 1 on n, GPU: other bits than the others"]);
        assert_eq!(told(&["111|2", "111|1"]), ["rank 0 on n, CPU: other bits than the others"]);
        assert_eq!(told(&["111|1", "112|1"]), ["rank 1 on n, GPU: 1 of 3 equal rounds differ"]);
        assert_eq!(told(&["111", "212", "111"]), ["rank 1 on n, GPU: 2 of 3 equal rounds differ"]);
        let open = "its bits and those of another differ, and it is open which are right";
        assert_eq!(
            told(&["111|2"]),
            [format!("rank 0 on n, GPU: {open}"), format!("rank 0 on n, CPU: {open}")]
        );
    }
}
