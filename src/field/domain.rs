//! This rank's box: how it is cut, the device that works on it, the ranks around it.

use super::FieldError;
use super::borders::Wires;
use crate::comm::{Comm, agree};
use crate::device::{Buffer, Device, Geometry, KernelArgs, Precision, Sums, Teams, Variant};
use crate::lattice::{LaneGrid, Partition, volume};
use crate::math::ExactSum;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// How halos travel between ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halo {
    /// Through host memory and MPI.
    Staged,
    /// From GPU to GPU, through memory that the ranks opened for each other (CUDA IPC).
    Peer,
}

/// This rank's box with all that its fields share.
pub struct Domain {
    partition: Partition,
    lanes: LaneGrid,
    device: Device,
    comm: Arc<dyn Comm>,
    geometry: Geometry,
    halo: Halo,
    wires: Mutex<Wires>,
    profiled: AtomicBool,
    waited: AtomicU64,
    _permutation: Buffer,
}

impl Domain {
    /// The box of `partition` on `device`, whose links keep `border` layers of their neighbours'.
    ///
    /// # Errors
    /// The device is lost.
    ///
    /// # Panics
    /// The device's lanes do not fit the box (the caller asks [`LaneGrid::choose`] first), or the box
    /// is thinner than the border.
    pub fn new(
        partition: Partition,
        device: Device,
        comm: Arc<dyn Comm>,
        border: usize,
        halo: Halo,
    ) -> Result<Arc<Self>, FieldError> {
        let local = partition.local();
        let cut = std::array::from_fn(|mu| partition.is_cut(mu));
        let Some(lanes) = LaneGrid::choose(local, cut, device.lanes()) else {
            panic!("{} lanes do not fit a box of {local:?}", device.lanes())
        };
        let outer = lanes.outer(local);
        assert!(
            (0..4).all(|mu| !cut[mu] || outer[mu] >= border),
            "a box of {outer:?} is thinner than {border} layers"
        );
        let device = device.specialised(Variant { outer, cut: cut.contains(&true) });
        let permutation = device.buffer_of(&permutation_table(lanes))?;
        let ints = |x: [usize; 4]| x.map(|v| v as i32);
        let borders: [usize; 4] = std::array::from_fn(|mu| if cut[mu] { border } else { 0 });
        let bordered: [usize; 4] = std::array::from_fn(|mu| outer[mu] + 2 * borders[mu]);
        let geometry = Geometry {
            outer: ints(outer),
            border: ints(borders),
            lanes: ints(lanes.0),
            offset: ints(partition.offset()),
            global: ints(partition.global),
            half: (volume(outer) / 2) as i32,
            half_bordered: (volume(bordered) / 2) as i32,
            permutation: permutation.pointer(),
        };
        let (profiled, waited) = (AtomicBool::new(false), AtomicU64::new(0));
        Ok(Arc::new(Self {
            partition,
            lanes,
            device,
            comm,
            geometry,
            halo,
            wires: Mutex::default(),
            profiled,
            waited,
            _permutation: permutation,
        }))
    }

    /// How the lattice is cut.
    pub fn partition(&self) -> &Partition {
        &self.partition
    }

    /// How the box is split over lanes.
    pub fn lanes(&self) -> LaneGrid {
        self.lanes
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The ranks.
    pub fn comm(&self) -> &dyn Comm {
        &*self.comm
    }

    /// How halos travel.
    pub fn halo(&self) -> Halo {
        self.halo
    }

    /// By which borders of fields travel.
    pub(super) fn wires(&self) -> &Mutex<Wires> {
        &self.wires
    }

    /// The box as kernels see it.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Outer sites of one parity.
    pub fn half(&self) -> usize {
        self.geometry.half as usize
    }

    /// Sites of the whole lattice.
    pub fn global_volume(&self) -> f64 {
        volume(self.partition.global) as f64
    }

    /// Directions that are cut.
    pub fn cut_directions(&self) -> impl Iterator<Item = usize> + use<> {
        let partition = self.partition;
        (0..4).filter(move |&mu| partition.is_cut(mu))
    }

    /// Whether solvers wait for the device around the operator, so that they know its time.
    pub fn is_profiled(&self) -> bool {
        self.profiled.load(Ordering::Relaxed)
    }

    /// Sets [`Domain::is_profiled`]: costs a GPU some of its speed.
    pub fn profile(&self, profiled: bool) {
        self.profiled.store(profiled, Ordering::Relaxed);
    }

    /// Seconds that this rank has waited so far for messages and for other ranks' sums.
    pub fn communication_seconds(&self) -> f64 {
        self.waited.load(Ordering::Relaxed) as f64 * 1e-9
    }

    /// Counts the time of `work` as waiting for other ranks.
    pub(super) fn waiting<T>(&self, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let done = work();
        self.waited_since(start);
        done
    }

    /// Counts the time since `start` as waiting for other ranks.
    pub(super) fn waited_since(&self, start: Instant) {
        self.waited.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }

    /// Runs a plain kernel on sites `0..n` of this rank.
    ///
    /// # Errors
    /// The device is lost.
    pub fn launch<A: KernelArgs>(
        &self,
        kernel: &str,
        precision: Precision,
        args: &A,
        n: usize,
    ) -> Result<(), FieldError> {
        Ok(self.device.launch(kernel, precision, args, n)?)
    }

    /// Runs a kernel of teams on this rank.
    ///
    /// # Errors
    /// The device is lost.
    pub fn launch_teams<A: KernelArgs>(
        &self,
        kernel: &str,
        precision: Precision,
        args: &A,
        teams: Teams,
    ) -> Result<(), FieldError> {
        Ok(self.device.launch_teams(kernel, precision, args, teams)?)
    }

    /// Runs a kernel with sums on sites `0..n` of every rank: the sums are those of the lattice.
    ///
    /// # Errors
    /// The device of any rank is lost.
    pub fn sum<A: KernelArgs>(
        &self,
        kernel: &str,
        precision: Precision,
        args: &A,
        n: usize,
    ) -> Result<Sums, FieldError> {
        let own = self.device.sum(kernel, precision, args, n).map_err(FieldError::from);
        if self.comm.size() == 1 {
            return own;
        }
        self.waiting(|| {
            let own = agree(self.comm(), own)?;
            let mut words: Vec<i64> = own.sums.iter().flat_map(|s| s.words()).collect();
            self.comm.sum(&mut words);
            let sums = words
                .chunks_exact(6)
                .map(|w| ExactSum::from_words(w.try_into().expect("six words")))
                .collect();
            Ok(Sums { sums, max: self.comm.max(own.max) })
        })
    }
}

/// For each direction, forward and backward, the neighbouring lane of every lane.
fn permutation_table(lanes: LaneGrid) -> Vec<i32> {
    let mut table = Vec::new();
    for mu in 0..4 {
        for step in [1, lanes.0[mu] - 1] {
            for lane in 0..lanes.count() {
                let mut at = crate::lattice::coordinates(lanes.0, lane);
                at[mu] = (at[mu] + step) % lanes.0[mu];
                table.push(crate::lattice::site(lanes.0, at) as i32);
            }
        }
    }
    table
}
