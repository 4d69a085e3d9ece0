//! This rank's box: its place in the lattice, its device, and the ranks around it.

use super::FieldError;
use super::borders::Wires;
use super::layout::{Layout, walls};
use super::shared::Known;
use super::{Halo, Transports};
use crate::comm::{Comm, Message, agree};
use crate::device::kernels::{Double, Geometry, Kernel, OnSites, OnTeams, Summing, WORDS};
use crate::device::{
    Buffer, Deferred, Device, DeviceError, Meeting, Network, Parcel, Precision, Sums, Team, Variant,
};
use crate::lattice::{Extents, LaneGrid, Partition, volume};
use crate::math::ExactSum;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

/// This rank's box with everything that its fields share.
pub struct Domain {
    partition: Partition,
    double: Layout,
    /// Where fields in lower precisions have other lanes.
    lower: Option<Layout>,
    device: Device,
    comm: Arc<dyn Comm>,
    border: Extents,
    transports: Transports,
    /// Where GPUs that open each other's memory add their sums.
    meeting: Option<Meeting>,
    wires: Mutex<Wires>,
    known: Mutex<Known>,
    profiled: AtomicBool,
    waited: AtomicU64,
}

impl Domain {
    /// The box of `partition` on `device`, whose links keep `border` layers of their neighbours'.
    ///
    /// # Errors
    /// The box has more sites or links than kernels count, or the device is lost.
    ///
    /// # Panics
    /// The partition is none that [`Partition::new`] makes; the device's lanes do not fit the box (the caller asks
    /// [`LaneGrid::choose`] first), or the box is thinner than the border.
    pub fn new(
        partition: Partition,
        device: Device,
        comm: Arc<dyn Comm>,
        border: usize,
        transports: impl Into<Transports>,
    ) -> Result<Arc<Self>, FieldError> {
        assert!(partition.is_sound(), "{partition:?} is no partition");
        partition.check_sites(border)?;
        let local = partition.local();
        let cut: [bool; 4] = std::array::from_fn(|mu| partition.is_cut(mu));
        let lanes = |precision| {
            let count = device.lanes(precision);
            let Some(lanes) = LaneGrid::choose(local, cut, count) else {
                panic!("{count} lanes do not fit a box of {local:?}")
            };
            lanes
        };
        let (lanes, lower) = (lanes(Precision::Double), lanes(Precision::Single));
        partition.check_links(lanes)?;
        let outer = lanes.outer(local);
        assert!(
            (0..4).all(|mu| !cut[mu] || outer[mu] >= border),
            "a box of {outer:?} is thinner than {border} layers"
        );
        let device =
            device.specialised(Variant { outer, cut: cut.contains(&true), walls: walls(partition.time) });
        let border = cut.map(|cut| if cut { border } else { 0 });
        let double = Layout::new(&device, partition, lanes, border)?;
        let lower = (lower != lanes)
            .then(|| Layout::new(&device, partition, lower, border)?.beside(&device, &double))
            .transpose()?;
        let transports = transports.into();
        let all_meet = transports.are_peer() && comm.size() > 1;
        let for_sums = |device: &Device| Meeting::memory_for_sums(device, comm.size());
        let meeting = all_meet.then(|| meeting(&device, &*comm, for_sums)).transpose()?;
        let (profiled, waited) = (AtomicBool::new(false), AtomicU64::new(0));
        Ok(Arc::new(Self {
            partition,
            double,
            lower,
            device,
            comm,
            border,
            transports,
            meeting,
            wires: Mutex::default(),
            known: Mutex::default(),
            profiled,
            waited,
        }))
    }

    /// The same box, whose halos and sums all pass through the hosts.
    pub fn through_hosts(&self) -> Result<Arc<Self>, FieldError> {
        let border = self.border.into_iter().max().unwrap_or(0);
        Self::new(self.partition, self.device.clone(), Arc::clone(&self.comm), border, Halo::Staged)
    }

    /// The division of the lattice among ranks.
    pub fn partition(&self) -> &Partition {
        &self.partition
    }

    /// How fields in `precision` lie in memory.
    pub fn layout(&self, precision: Precision) -> &Layout {
        match (&self.lower, precision) {
            (Some(lower), Precision::Single | Precision::Half) => lower,
            _ => &self.double,
        }
    }

    /// The division of the box among lanes, for fields in double as the four that follow.
    pub fn lanes(&self) -> LaneGrid {
        self.double.lanes()
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The ranks.
    pub fn comm(&self) -> &dyn Comm {
        &*self.comm
    }

    /// The transports of halos.
    pub fn transports(&self) -> &Transports {
        &self.transports
    }

    /// The transport of halos to and from the next rank in direction `mu`, or the one before.
    pub(super) fn halo(&self, mu: usize, forward: bool) -> Halo {
        self.transports.between(self.comm.rank(), self.partition.neighbour(mu, forward))
    }

    /// Exchanges memory with the devices of other ranks, as [`Network::exchange`].
    ///
    /// # Safety
    /// That of `Network::exchange`, and halos travel by NCCL.
    pub(super) unsafe fn exchange_parcels(
        &self,
        sends: &[Parcel<'_>],
        receives: &[Parcel<'_>],
    ) -> Result<(), FieldError> {
        let post = |sends: &[(usize, &[u8])], receives: &mut [(usize, &mut [u8])]| {
            let message = |(peer, bytes): &(usize, _)| Message { peer: *peer, tag: 0, bytes: *bytes };
            let sends: Vec<_> = sends.iter().map(message).collect();
            let received = receives.iter_mut();
            let mut receives: Vec<_> =
                received.map(|(peer, bytes)| Message { peer: *peer, tag: 0, bytes: &mut **bytes }).collect();
            self.waiting(|| self.comm.exchange(&sends, &mut receives));
        };
        // SAFETY: the caller's promise.
        unsafe { self.network().exchange(sends, receives, &post)? };
        Ok(())
    }

    /// Lets later work wait for what is exchanged.
    pub(super) fn await_parcels(&self) -> Result<(), FieldError> {
        Ok(self.network().await_received()?)
    }

    fn network(&self) -> &dyn Network {
        self.device.backend().network().expect("devices that joined one")
    }

    /// The wires that fill borders.
    pub(super) fn wires(&self) -> &Mutex<Wires> {
        &self.wires
    }

    /// What operators on the box may share.
    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("no panic holds it")
    }

    /// Extents of a lane's box.
    pub fn outer(&self) -> Extents {
        self.double.outer()
    }

    /// Layers of neighbouring sites that matrices keep; 0 in directions that are not cut.
    pub fn border(&self) -> Extents {
        self.border
    }

    /// The box in the form that kernels take.
    pub(crate) fn geometry(&self) -> Geometry<'_> {
        self.double.geometry()
    }

    /// Outer sites of one parity.
    pub fn half(&self) -> usize {
        self.double.half()
    }

    /// Outer sites of one parity, including the borders of matrices.
    pub fn half_bordered(&self) -> usize {
        self.double.half_bordered()
    }

    /// # Panics
    /// A kernel would reach beyond the borders: fewer than `layers` layers in a cut direction.
    pub(crate) fn check_border(&self, layers: usize) {
        let deep = self.cut_directions().all(|mu| self.border[mu] >= layers);
        assert!(deep, "{layers} layers of borders of {:?}", self.border);
    }

    /// # Panics
    /// The fields of a kernel belong to different domains.
    pub(crate) fn check<'a>(&self, others: impl IntoIterator<Item = &'a Arc<Self>>) {
        let own = |other: &Arc<Self>| std::ptr::eq(Arc::as_ptr(other), self);
        assert!(others.into_iter().all(own), "fields of one domain");
    }

    /// Sites of the whole lattice.
    pub fn global_volume(&self) -> f64 {
        volume(self.partition.global) as f64
    }

    /// Sites of the whole lattice that have quarks: all but those on walls in time.
    pub fn quark_volume(&self) -> f64 {
        self.global_volume() / self.partition.global[3] as f64 * self.partition.quark_slices() as f64
    }

    /// Refuses walls in time.
    ///
    /// # Errors
    /// There are some.
    pub(crate) fn require_periodic(&self, what: &'static str) -> Result<(), FieldError> {
        if self.partition.time.has_walls() { Err(FieldError::Walls(what)) } else { Ok(()) }
    }

    /// Directions that are cut.
    pub fn cut_directions(&self) -> impl Iterator<Item = usize> + use<> {
        let partition = self.partition;
        (0..4).filter(move |&mu| partition.is_cut(mu))
    }

    /// Whether solvers synchronise with the device around the operator to measure its time.
    pub fn is_profiled(&self) -> bool {
        self.profiled.load(Ordering::Relaxed)
    }

    /// Sets [`Domain::is_profiled`], which slows a GPU down.
    pub fn profile(&self, profiled: bool) {
        self.profiled.store(profiled, Ordering::Relaxed);
    }

    /// Seconds that this rank has waited so far for messages and for the sums of other ranks.
    pub fn communication_seconds(&self) -> f64 {
        self.waited.load(Ordering::Relaxed) as f64 * 1e-9
    }

    /// Counts the time of `work` as waiting for other ranks.
    pub(crate) fn waiting<T>(&self, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let done = work();
        self.waited_since(start);
        done
    }

    /// Memory in which all ranks exchange words, `turns` rounds of so many half words, if they are peers. All call it
    /// together.
    pub(crate) fn meet(&self, turns: usize, halves: usize) -> Result<Option<Meeting>, FieldError> {
        let memory = |device: &Device| Meeting::memory(device, turns, halves);
        self.meeting.as_ref().map(|_| meeting(&self.device, self.comm(), memory)).transpose()
    }

    /// Counts the time since `start` as waiting for other ranks.
    pub(super) fn waited_since(&self, start: Instant) {
        self.waited
            .fetch_add(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Runs a kernel in double precision on sites `0..n` of this rank.
    pub(crate) fn launch<K>(&self, kernel: &K, n: usize) -> Result<(), FieldError>
    where
        K: OnSites + Kernel<Form = Double>,
    {
        self.launch_as(Double, kernel, n)
    }

    /// Runs a kernel on sites `0..n` of this rank; `form` selects the instance.
    pub(crate) fn launch_as<K: OnSites>(
        &self,
        form: K::Form,
        kernel: &K,
        n: usize,
    ) -> Result<(), FieldError> {
        Ok(self.device.launch(form, kernel, n)?)
    }

    /// Runs a kernel that works in `n` teams on this rank.
    pub(crate) fn launch_teams<K: OnTeams>(
        &self,
        form: K::Form,
        kernel: &K,
        n: usize,
        team: Team,
    ) -> Result<(), FieldError> {
        Ok(self.device.launch_teams(form, kernel, n, team)?)
    }

    /// Runs a summing kernel in double precision on sites `0..n` of every rank; the sums are over the whole lattice.
    pub(crate) fn sum<K>(&self, kernel: &K, n: usize) -> Result<Sums, FieldError>
    where
        K: Summing + Kernel<Form = Double>,
    {
        self.sum_as(Double, kernel, n)
    }

    /// As [`Domain::sum`]; `form` selects the instance.
    pub(crate) fn sum_as<K: Summing>(&self, form: K::Form, kernel: &K, n: usize) -> Result<Sums, FieldError> {
        Ok(self.sum_later_as(form, kernel, n)?.wait()?)
    }

    /// As [`Domain::sum_as`]. A GPU may still be making the sums, unless they pass through its host to other ranks.
    pub(crate) fn sum_later_as<K: Summing>(
        &self,
        form: K::Form,
        kernel: &K,
        n: usize,
    ) -> Result<Deferred, FieldError> {
        if self.comm.size() == 1 {
            return Ok(self.device.sum_later(form, kernel, n)?);
        }
        if let Some(meeting) = &self.meeting {
            return Ok(self.device.sum_of_ranks_later(form, kernel, n, meeting)?);
        }
        let own = self.device.sum(form, kernel, n).map_err(FieldError::from);
        let all = self.waiting(|| {
            let own = agree(self.comm(), own)?;
            let mut words: Vec<i64> = own.sums.iter().flat_map(|s| s.words()).collect();
            self.comm.sum(&mut words);
            let sums = words
                .chunks_exact(WORDS)
                .map(|w| ExactSum::from_words(w.try_into().expect("a sum's words")))
                .collect();
            Ok::<_, FieldError>(Sums { sums, max: self.comm.max(own.max) })
        })?;
        Ok(self.device.known(all))
    }
}

/// New memory that other ranks write, and the handles of all ranks' memory, by rank. All call it together.
pub(super) fn exported(
    device: &Device,
    comm: &dyn Comm,
    memory: Result<Buffer, DeviceError>,
) -> Result<(Buffer, Vec<Vec<u8>>), FieldError> {
    let with_handle = || {
        let own = memory?;
        let handle = own.export()?.unwrap_or_default();
        // It must be zero before another rank writes.
        device.synchronize()?;
        Ok::<_, FieldError>((own, handle))
    };
    let (own, handle) = agree(comm, with_handle())?;
    let handles = comm.gather(&handle);
    Ok((own, handles))
}

/// Opens such memory of all ranks. All call it together.
fn meeting(
    device: &Device,
    comm: &dyn Comm,
    memory: impl Fn(&Device) -> Result<Buffer, DeviceError>,
) -> Result<Meeting, FieldError> {
    let (own, handles) = exported(device, comm, memory(device))?;
    let open = |(rank, handle): (usize, Vec<u8>)| {
        let other = rank != comm.rank();
        Ok(other.then(|| device.open(&handle)).transpose()?)
    };
    let others: Result<_, FieldError> = handles.into_iter().enumerate().map(open).collect();
    let made = others.and_then(|others| Ok(Meeting::new(device, own, others)?));
    agree(comm, made)
}
