//! Ranks, threads and devices.

use super::crash;
use super::launch::{Launch, Tasks, launch};
use super::placement::{self, place_on_node};
use crate::app::AppError;
use crate::app::output::{complain, warn};
use crate::app::version::PROGRAM;
use crate::comm::{Comm, Solo, agree};
use crate::config::InputError;
use crate::device::{
    Cpu, Device, DeviceError, GpuOptions, Lanes, Remote, Use, fastest_lanes, fits_processor, gpu_count,
};
use crate::field::{Domain, Halo, Transports};
use crate::input::{DeviceChoice, Parallel};
use crate::lattice::{LaneGrid, Lattice, Partition, shape};
use std::env;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A node with so many running threads a core is busy.
const BUSY: f64 = 1.5;

/// The ranks of this job.
pub type Ranks = Arc<dyn Comm>;

/// The ranks that a launcher started, or this process alone.
///
/// # Errors
/// The exit code, after one task has reported the reason: MPI does not start, or does not connect the tasks.
pub fn start_ranks() -> Result<Ranks, u8> {
    let told = |error: AppError| {
        complain(format_args!("error: {error}"));
        error.exit_code()
    };
    // Of unconnected tasks, only one reports.
    let refused = |tasks: &Tasks, reason: String| {
        let error = AppError::Refused(reason);
        Err(if tasks.speaks() { told(error) } else { error.exit_code() })
    };
    ignore_file_size_signal();
    check_limits().map_err(told)?;
    let tasks = match launch(|name| env::var(name).ok()) {
        Launch::Alone => return Ok(Arc::new(Solo)),
        Launch::Unconnected(tasks) => return refused(&tasks, tasks.unconnected()),
        Launch::Mpi(tasks) => tasks,
    };
    let world = connect().map_err(told)?;
    if let Err(error) = require_alike(&*world) {
        return Err(if world.rank() == 0 { told(error) } else { error.exit_code() });
    }
    match tasks.filter(|tasks| tasks.count > 1 && world.size() == 1) {
        Some(tasks) => refused(&tasks, tasks.foreign()),
        None => Ok(world),
    }
}

/// Refuses ranks of other versions of the program or with other arguments, which would wait for each other for ever. Collective.
fn require_alike(comm: &dyn Comm) -> Result<(), AppError> {
    let arguments: Vec<String> =
        env::args_os().skip(1).map(|text| text.to_string_lossy().into_owned()).collect();
    let own = format!("{PROGRAM} {}", arguments.join(" "));
    let all = comm.gather(own.as_bytes());
    let Some(rank) = all.iter().position(|other| *other != all[0]) else { return Ok(()) };
    let text = |rank: usize| String::from_utf8_lossy(&all[rank]);
    Err(AppError::Refused(format!(
        "all ranks have to be started alike, but rank 0 is '{}' and rank {rank} is '{}'",
        text(0),
        text(rank)
    )))
}

/// The ranks that MPI connects; without MPI, this process alone.
fn connect() -> Result<Ranks, AppError> {
    #[cfg(feature = "mpi")]
    return Ok(Arc::new(crate::comm::World::start()?));
    #[cfg(not(feature = "mpi"))]
    Ok(Arc::new(Solo))
}

/// Runs `work` and converts its result to an exit code; prints a single message, whichever rank failed.
pub fn guard(comm: &dyn Comm, work: impl FnOnce() -> Result<(), AppError>) -> u8 {
    let Err(error) = work() else { return 0 };
    let code = error.exit_code();
    if let AppError::Input(input) = &error {
        // Every rank has read the same input and fails in the same way. Mistakes begin with their place, as editors want it.
        if comm.rank() == 0 {
            let head = if matches!(input, InputError::Mistakes { .. }) { "" } else { "error: " };
            complain(format_args!("{head}{error}"));
        }
        return code;
    }
    if comm.rank() != 0 {
        // An error that all ranks share is reported by rank 0, which then ends them all, within ten seconds even on a
        // busy node.
        // SAFETY: a plain call. The handler that it removes would only request a stop, which nobody would see.
        unsafe { libc::signal(libc::SIGTERM, libc::SIG_DFL) };
        std::thread::sleep(Duration::from_secs(10));
    }
    complain(format_args!("error: {error}"));
    if comm.size() > 1 {
        comm.abort(i32::from(code));
    }
    code
}

/// Turns a file that exceeds the limit (`ulimit -f`) into an error of the write with a message, instead of a silent
/// end.
fn ignore_file_size_signal() {
    // SAFETY: a plain call, before there are threads.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Refuses to run under a limit on the address space (`ulimit -v`) that is too small for threads: a failure there could
/// not be reported.
fn check_limits() -> Result<(), AppError> {
    const LEAST: u64 = 256 << 20;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a plain output.
    if unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) } == 0 && limit.rlim_cur < LEAST {
        let (megabytes, least) = (limit.rlim_cur >> 20, LEAST >> 20);
        let message = format!(
            "the limit on the address space (ulimit -v) is {megabytes} MB; at least {least} MB are needed"
        );
        return Err(AppError::Limit(message));
    }
    Ok(())
}

/// Runs `work` in a pool of threads, on the cores beside the GPU if this rank has one. Collective.
///
/// # Errors
/// Errors of `work`; the system does not start the threads.
pub(in crate::app) fn in_pool<T: Send>(
    parallel: &Parallel,
    comm: &dyn Comm,
    work: impl FnOnce() -> Result<T, AppError> + Send,
) -> Result<T, AppError> {
    placement::bind(parallel, comm);
    pool(parallel, comm)?.install(work)
}

/// A pool of threads. Collective.
///
/// # Errors
/// The system does not start the threads.
pub(in crate::app) fn pool(parallel: &Parallel, comm: &dyn Comm) -> Result<rayon::ThreadPool, AppError> {
    let threads = threads(parallel, comm);
    let pool =
        rayon::ThreadPoolBuilder::new().num_threads(threads).start_handler(|_| crash::own_stack()).build();
    pool.map_err(|e| AppError::Threads { count: threads, message: e.to_string() })
}

/// The first line of a run: lattice, ranks, device.
pub(in crate::app) fn describe(name: &str, domain: &Domain) -> String {
    let (partition, ranks) = (domain.partition(), domain.comm().size());
    let ranks = if ranks == 1 {
        "1 rank".to_owned()
    } else {
        format!("{ranks} ranks as {}, halos {}", shape(partition.grid), domain.transports())
    };
    format!("{name}: {} on {ranks}; {}", shape(partition.global), domain.device().backend().name())
}

/// Threads per rank: the input's value, or the node's cores divided by its ranks.
fn threads(parallel: &Parallel, comm: &dyn Comm) -> usize {
    let own = std::thread::available_parallelism().map_or(1, usize::from);
    // SAFETY: a plain query.
    let node = usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).unwrap_or(own);
    let ranks = place_on_node(comm).1;
    // A launcher that binds ranks to cores has already divided them.
    parallel.threads.unwrap_or_else(|| if own < node { own } else { (own / ranks).max(1) })
}

/// Why the threads of this node are in each other's way, if they are: more of them than cores, or cores that others use.
/// Collective.
pub(in crate::app) fn crowded(parallel: &Parallel, comm: &dyn Comm) -> Option<String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (threads, ranks) = (threads(parallel, comm), place_on_node(comm).1);
    // Ranks that a launcher binds see their own cores alone.
    // SAFETY: a plain query.
    let node = usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).unwrap_or(cores);
    let own = if cores < node { threads } else { threads * ranks };
    if threads > 1 && own > cores {
        return Some(format!(
            "{threads} threads on each of {ranks} ranks, but only {cores} cores: threads that wait for each other take far longer; \
             give fewer 'threads' in [parallel]"
        ));
    }
    let mut load = [0.0];
    // SAFETY: there is room for one number.
    let known = unsafe { libc::getloadavg(load.as_mut_ptr(), 1) } == 1;
    let busy = known && threads > 1 && load[0] + own as f64 > BUSY * node as f64;
    busy.then(|| {
        format!(
            "other jobs use this node: its load is {:.0} on {node} cores; 'threads = 1' in [parallel] may be faster than {threads}",
            load[0]
        )
    })
}

/// This rank's share of the lattice.
///
/// # Errors
/// No grid of ranks fits.
pub(in crate::app) fn partition(
    parallel: &Parallel,
    lattice: impl Into<Lattice>,
    comm: &dyn Comm,
) -> Result<Partition, AppError> {
    let Lattice { extents, time } = lattice.into();
    let grid = parallel.grid_of(extents, comm.size())?;
    Ok(Partition::new(extents, grid, comm.size(), comm.rank())?.with_time(time))
}

/// The division of a box among `lanes` lanes, if a lane's box has at least `reach` layers in every cut direction.
pub(in crate::app) fn lane_grid(partition: &Partition, lanes: usize, reach: usize) -> Option<LaneGrid> {
    let cut = std::array::from_fn(|mu| partition.is_cut(mu));
    let local = partition.local();
    LaneGrid::choose(local, cut, lanes).filter(|grid| grid.is_thick(local, cut, reach))
}

/// The lanes for a box: the input's number, or the best that fit.
pub(in crate::app) fn lanes(parallel: &Parallel, partition: &Partition, reach: usize) -> Lanes {
    let fits = |lanes: usize| lane_grid(partition, lanes, reach).is_some();
    parallel.lanes.map_or_else(|| fastest_lanes(fits), Lanes::from)
}

/// Refuses a box that is too small for the device's lanes.
///
/// # Errors
/// The box is too small.
pub(in crate::app) fn require_lanes(
    partition: &Partition,
    device: &Device,
    reach: usize,
) -> Result<(), AppError> {
    let Lanes { double, lower } = device.nature().lanes;
    let lanes = double.max(lower);
    if lane_grid(partition, lanes, reach).is_some() {
        return Ok(());
    }
    let cut = (0..4).any(|mu| partition.is_cut(mu));
    let cut = if cut { format!(" that reach {reach} layers over a cut") } else { String::new() };
    let (local, plural) = (shape(partition.local()), if lanes == 1 { "" } else { "s" });
    Err(AppError::Refused(format!("a box of {local} is too small for {lanes} lane{plural}{cut}")))
}

/// Folders from the environment: `HMC_KERNELS` for headers, `HMC_NVRTC` for the compiler, and `HMC_CACHE` for compiled
/// kernels, by default in the user's cache.
pub(in crate::app) fn gpu_options() -> GpuOptions {
    let folder = |name: &str| env::var_os(name).map(PathBuf::from);
    let users = || folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
    GpuOptions {
        headers: folder("HMC_KERNELS"),
        compiler: folder("HMC_NVRTC"),
        cache: folder("HMC_CACHE").or_else(|| Some(users()?.join("hmc"))).filter(|folder| is_trusted(folder)),
    }
}

/// Whether nobody else may put machine code into a folder of kernels: it is this user's or root's, and not for all to write.
fn is_trusted(folder: &Path) -> bool {
    let Ok(found) = folder.metadata() else { return true };
    // SAFETY: a plain query.
    let is_own = [0, unsafe { libc::geteuid() }].contains(&found.uid());
    let trusted = is_own && found.mode() & 0o002 == 0;
    if !trusted {
        let folder = folder.display();
        warn(format_args!(
            "{folder}: others may write there, so no kernels are kept or taken; name another folder by HMC_CACHE"
        ));
    }
    trusted
}

/// This rank's device; the ranks of a node take its GPUs in turn.
///
/// # Errors
/// On some rank, the device that the input requires does not exist.
pub(in crate::app) fn device(
    parallel: &Parallel,
    partition: &Partition,
    reach: usize,
    comm: &dyn Comm,
) -> Result<Device, AppError> {
    let (place, _) = place_on_node(comm);
    let gpu = |count: usize| Ok(Device::gpu(place % count, gpu_options())?);
    let on_threads = |cpu: Cpu| {
        cpu.on_each_thread(crash::own_stack);
        Device::new(cpu)
    };
    let cpu = || {
        if place == 0 && !fits_processor() {
            warn(
                "this program was built for another processor and has no vectors for this one: build it here, or with \
                  HMC_KERNEL_TARGETS=all",
            );
        }
        Ok(on_threads(Cpu::new(lanes(parallel, partition, reach))?))
    };
    let open = || match parallel.device {
        DeviceChoice::Cpu => cpu(),
        DeviceChoice::Cuda => gpu(gpu_count()?),
        DeviceChoice::Auto => gpu_count().map_or_else(|_| cpu(), gpu),
        DeviceChoice::Emulated => Ok(on_threads(Cpu::emulating()?)),
        DeviceChoice::Own(open) => Ok(open(comm.rank())?),
    };
    agree(comm, open())
}

/// The transports of halos: peer to peer among the ranks of each node where all can and have a GPU each, if the input allows
/// it; between the others by NCCL where it is there, else staged.
///
/// # Errors
/// The input requires peer to peer between all ranks, or NCCL, and some rank cannot.
pub(in crate::app) fn transports(
    parallel: &Parallel,
    device: &Device,
    comm: &dyn Comm,
) -> Result<Transports, AppError> {
    if comm.size() == 1 || parallel.transport == Some(Halo::Staged) {
        return Ok(Halo::Staged.into());
    }
    let node_of = nodes(comm)?;
    let here = place_on_node(comm).1;
    // Ranks that share a GPU would wait for each other on it, each in turn for a slice of its time.
    let share = parallel.device != DeviceChoice::Emulated && gpu_count().is_ok_and(|count| here > count);
    let reason = match probe(device, &node_of, comm) {
        Ok(()) if share && parallel.transport != Some(Halo::Peer) => Err("ranks share its GPU".into()),
        probed => probed,
    };
    let failures = comm.gather(reason.err().unwrap_or_default().as_bytes());
    if parallel.transport == Some(Halo::Peer) {
        let elsewhere = node_of.iter().position(|&node| node != node_of[0]);
        let other = elsewhere.map(|rank| (rank, "it is on another node than rank 0".into()));
        let cannot = failures.iter().enumerate().find(|(_, message)| !message.is_empty());
        let cannot = cannot.map(|(rank, message)| (rank, String::from_utf8_lossy(message)));
        return match cannot.or(other) {
            None => Ok(Halo::Peer.into()),
            Some((rank, message)) => {
                Err(AppError::Refused(format!("transport = \"peer\": rank {rank} cannot: {message}")))
            }
        };
    }
    let can = |node: usize| (0..comm.size()).all(|rank| node_of[rank] != node || failures[rank].is_empty());
    // A rank that opens no memory is a group by itself.
    let group = |rank: usize| if can(node_of[rank]) { node_of[rank] } else { rank };
    let groups: Vec<usize> = (0..comm.size()).map(group).collect();
    let within = |between| Transports::within(&groups, between);
    // NCCL takes one GPU for one rank.
    let may = parallel.device != DeviceChoice::Emulated && comm.max(f64::from(u8::from(share))) == 0.0;
    let asked = parallel.transport == Some(Halo::Nccl);
    if within(Halo::Nccl).messages() != Halo::Nccl || !asked && (!may || device.backend().network().is_none())
    {
        return Ok(within(Halo::Staged));
    }
    match join(device, comm) {
        Ok(()) => Ok(within(Halo::Nccl)),
        Err(error) if asked => Err(AppError::Refused(format!("transport = \"nccl\": {error}"))),
        Err(error) => {
            if comm.rank() == 0 {
                complain(format_args!("halos between nodes pass through the hosts: {error}"));
            }
            Ok(within(Halo::Staged))
        }
    }
}

/// Makes all ranks' devices a network. Collective.
///
/// # Errors
/// Some rank cannot; the same error on all.
fn join(device: &Device, comm: &dyn Comm) -> Result<(), AppError> {
    let none = || DeviceError::Network("for GPUs alone".into());
    let network = || device.backend().network().ok_or_else(none);
    let name = agree(comm, network().and_then(|network| network.new_name()).map_err(AppError::from))?;
    let first = comm.gather(&name).swap_remove(0);
    let joined = network().and_then(|network| network.join(&first, comm.rank(), comm.size()));
    agree(comm, joined.map_err(AppError::from))
}

/// For each rank, the first rank of its node. With `HMC_NODE_RANKS=n` in the environment, every n ranks are taken for a node
/// of their own, to try what several nodes do on one.
pub(in crate::app) fn nodes(comm: &dyn Comm) -> Result<Vec<usize>, AppError> {
    const EMULATED: &str = "HMC_NODE_RANKS";
    let wrong = || AppError::Refused(format!("{EMULATED}: expected a number of ranks from 1 on"));
    let part = match env::var(EMULATED) {
        Ok(text) => {
            let count: Option<usize> = text.trim().parse().ok().filter(|count| *count > 0);
            count.map(|count| comm.rank() / count).ok_or_else(wrong)
        }
        Err(_) => Ok(0),
    };
    let part = agree(comm, part)?;
    let names = comm.gather(format!("{part} {}", super::job::host()).as_bytes());
    let first = |name: &Vec<u8>| names.iter().position(|other| other == name).expect("its own");
    Ok(names.iter().map(first).collect())
}

/// Whether this rank can open the memory of all others of its node. Collective.
fn probe(device: &Device, node_of: &[usize], comm: &dyn Comm) -> Result<(), String> {
    let buffer = device.buffer_for(Use::Exported, 1 << 21);
    let own = buffer.as_ref().ok().and_then(|b| b.export().ok().flatten()).unwrap_or_default();
    let handles = comm.gather(&own);
    let (own, node) = (comm.rank(), node_of[comm.rank()]);
    let others = handles.iter().enumerate().filter(|(rank, _)| *rank != own && node_of[*rank] == node);
    let opened = others.map(|(rank, handle)| {
        if handle.is_empty() {
            return Err(format!("rank {rank} has no memory to open"));
        }
        device.open(handle).map_err(|e| e.to_string())
    });
    // All are closed before any buffer is freed, and buffers live until all ranks have tried.
    let opened: Result<Vec<Remote>, String> = opened.collect();
    let tried = opened.map(drop);
    comm.barrier();
    if device.backend().sharing().is_none() { Err("this device is a CPU".into()) } else { tried }
}
