//! Halos and sums in the memory of other ranks, on emulated GPUs: what comes is what comes through the hosts; and what does
//! not, is noticed.

use crate::compare::assert_same_bits;
use crate::ranks;
use hmc::app::check_wires;
use hmc::comm::{Comm, Message};
use hmc::device::{Cpu, Device, Precision, has_emulation};
use hmc::field::{Dagger, Domain, EVEN, Halo, MatrixField, ODD, Purpose, RandomAddress, Spinor, Transports};
use hmc::lattice::{Boundary, Extents, Partition, volume};
use hmc::operator::WilsonLinks;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Ranks whose bytes in messages are counted, and of which the last may get a wrong bit in each.
struct Watched {
    comm: Arc<dyn Comm>,
    garbles: bool,
    sent: AtomicUsize,
}

impl Watched {
    fn new(comm: Arc<dyn Comm>, garbles: bool) -> Arc<Self> {
        Arc::new(Self { comm, garbles, sent: AtomicUsize::new(0) })
    }
}

impl Comm for Watched {
    fn rank(&self) -> usize {
        self.comm.rank()
    }

    fn size(&self) -> usize {
        self.comm.size()
    }

    fn exchange_while(
        &self,
        sends: &[Message<&[u8]>],
        receives: &mut [Message<&mut [u8]>],
        meanwhile: &mut dyn FnMut(),
    ) {
        self.sent.fetch_add(sends.iter().map(|message| message.bytes.len()).sum(), Ordering::Relaxed);
        self.comm.exchange_while(sends, receives, meanwhile);
        if self.garbles && self.rank() + 1 == self.size() {
            for byte in receives.iter_mut().filter_map(|message| message.bytes.last_mut()) {
                *byte ^= 1;
            }
        }
    }

    fn sum(&self, values: &mut [i64]) {
        self.comm.sum(values);
    }

    fn max(&self, value: f64) -> f64 {
        self.comm.max(value)
    }

    fn gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.comm.gather(bytes)
    }

    fn first(&self, count: usize) -> Option<Arc<dyn Comm>> {
        Some(Self::new(self.comm.first(count)?, self.garbles))
    }

    fn barrier(&self) {
        self.comm.barrier();
    }

    fn abort(&self, code: i32) -> ! {
        self.comm.abort(code)
    }
}

/// What the check says on each rank.
fn checked(grid: Extents, border: usize, transports: &Transports, garbled: bool) -> Vec<Option<String>> {
    let extents = grid.map(|ranks| 4 * ranks);
    ranks::run(volume(grid), |comm| {
        let comm = Watched::new(comm, garbled);
        let partition = Partition::new(extents, grid, comm.size(), comm.rank()).unwrap();
        let device = Device::new(Cpu::emulating().unwrap());
        let domain = Domain::new(partition, device, comm, border, transports.clone()).unwrap();
        check_wires(&domain).err().map(|error| error.to_string())
    })
}

/// All peers; and groups, so that some halos come in memory and some in messages, from either side.
fn all_transports(ranks: usize) -> Vec<Transports> {
    let nodes: Vec<usize> = (0..ranks).map(|rank| rank / 2).collect();
    let within = |between| Transports::within(&nodes, between);
    vec![Halo::Peer.into(), within(Halo::Staged), within(Halo::Nccl), Halo::Nccl.into(), Halo::Staged.into()]
}

#[test]
fn memory_of_others_brings_what_hosts_bring() {
    if !has_emulation() {
        return println!("skipped: an emulated GPU: this build has none");
    }
    for grid in [[2, 1, 1, 1], [1, 3, 1, 1], [1, 1, 4, 1], [1, 1, 1, 2], [2, 1, 1, 2], [1, 2, 3, 1]] {
        for transports in all_transports(volume(grid)) {
            for border in 1..=2 {
                let said = checked(grid, border, &transports, false);
                assert!(said.iter().all(Option::is_none), "{grid:?}, {transports}, {border}: {said:?}");
            }
        }
    }
}

#[test]
fn a_wrong_bit_between_ranks_is_noticed_on_all() {
    if !has_emulation() {
        return println!("skipped: an emulated GPU: this build has none");
    }
    for grid in [[2, 1, 1, 1], [1, 1, 1, 3]] {
        let said = checked(grid, 1, &Halo::Peer.into(), true);
        let told = |text: &Option<String>| {
            text.as_ref().is_some_and(|text| text.contains("hosts; with transport = \"staged\" all pass"))
        };
        assert!(said.iter().all(told), "{grid:?}: {said:?}");
    }
}

/// Hops of some of the fields that an operator has memory for have the bits of single ones, and messages hold no others.
#[test]
fn hops_send_only_the_fields_that_there_are() {
    let cases = if has_emulation() { all_transports(4).len() } else { 0 };
    if cases == 0 {
        println!("skipped: an emulated GPU: this build has none; CPUs alone are tested");
    }
    for case in 0..=cases {
        let transports =
            case.checked_sub(1).map_or(Halo::Staged.into(), |n| all_transports(4).swap_remove(n));
        for precision in [Precision::Single, Precision::Half] {
            ranks::run(4, |comm| {
                let comm = Watched::new(comm, false);
                let partition = Partition::new([8, 4, 4, 8], [2, 1, 1, 2], 4, comm.rank()).unwrap();
                let device = Device::new(if case == 0 { Cpu::new(1) } else { Cpu::emulating() }.unwrap());
                let domain =
                    Domain::new(partition, device, Arc::<Watched>::clone(&comm), 1, transports.clone())
                        .unwrap();
                let address =
                    |n: usize| RandomAddress { seed: 3, trajectory: 0, purpose: Purpose::Probe(n as u8) };
                let mut links = MatrixField::new(&domain, 4).unwrap();
                links.set_random(address(0)).unwrap();
                let operator = |fields| {
                    let mut made =
                        WilsonLinks::new(&domain, precision, 12, fields, Boundary::ANTIPERIODIC).unwrap();
                    made.update(&links).unwrap();
                    made
                };
                let (mut of_four, mut of_one) = (operator(4), operator(1));
                let several = || Spinor::several(&domain, precision, 4).unwrap();
                let (mut x, mut y) = (several(), several());
                let mut double = Spinor::new(&domain, Precision::Double).unwrap();
                let single = || Spinor::new(&domain, precision).unwrap();
                let (mut one, mut image) = (single(), single());
                for n in 0..4 {
                    double.set_random(ODD, 1.0, address(n + 1)).unwrap();
                    x.copy_field(n, &double, 0).unwrap();
                }
                let mut host = |field: &Spinor, n| {
                    let mut reals = vec![0.0; volume(partition.local()) * 24];
                    double.copy_field(0, field, n).unwrap();
                    double.write_host(EVEN, &mut reals).unwrap();
                    reals
                };
                for fields in [4, 1, 3, 4] {
                    x.set_active(fields);
                    y.set_active(fields);
                    let sent = || comm.sent.load(Ordering::Relaxed);
                    let before = sent();
                    of_four.hop(&mut y, &x, EVEN, Dagger::No).unwrap();
                    let of_all = sent() - before;
                    for n in 0..fields {
                        one.copy_field(0, &x, n).unwrap();
                        let before = sent();
                        of_one.hop(&mut image, &one, EVEN, Dagger::No).unwrap();
                        assert_eq!(of_all, fields * (sent() - before), "{transports}: bytes of {fields}");
                        let what = format!("{transports}, {precision}: number {n} of {fields}");
                        assert_same_bits(&host(&y, n), &host(&image, 0), &what);
                    }
                }
            });
        }
    }
}
