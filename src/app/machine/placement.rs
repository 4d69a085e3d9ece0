//! Where ranks run: the GPU of each, and what of the node is beside it: cores, memory, network cards.
//!
//! A launcher that binds ranks to cores is obeyed. Else a rank with a GPU keeps to the cores of the GPU's NUMA node, as do the
//! other ranks there; memory follows, since Linux gives pages where they are first touched. NCCL and MPI choose
//! the network card nearest to the GPU by themselves.

use super::job;
use crate::app::Ranks;
use crate::comm::Comm;
use crate::device::gpu_address;
use crate::input::{DeviceChoice, Parallel};
use std::fs;
use std::path::Path;

/// What is beside a GPU.
#[derive(Debug, PartialEq, Eq)]
struct Beside {
    node: usize,
    cores: Vec<usize>,
    cards: Vec<String>,
}

impl Beside {
    /// From the files of `/sys` for the device at this PCI address; `None` on a node without NUMA.
    fn read(system: &Path, address: &str) -> Option<Self> {
        let text = |path: &Path| fs::read_to_string(path).ok();
        let node_of = |device: &Path| text(&device.join("numa_node"))?.trim().parse::<usize>().ok();
        let device = system.join("bus/pci/devices").join(address.to_lowercase());
        let node = node_of(&device)?;
        let cores = cores_of(&text(&device.join("local_cpulist"))?)?;
        let cards = fs::read_dir(system.join("class/infiniband")).into_iter().flatten().flatten();
        let near = cards.filter(|card| node_of(&card.path().join("device")) == Some(node));
        let mut cards: Vec<String> =
            near.map(|card| card.file_name().to_string_lossy().into_owned()).collect();
        cards.sort();
        Some(Self { node, cores, cards })
    }
}

/// The numbers of a list such as `0-3,8`.
fn cores_of(list: &str) -> Option<Vec<usize>> {
    let mut cores = Vec::new();
    for part in list.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cores.extend(first.parse::<usize>().ok()?..=last.parse().ok()?);
    }
    Some(cores)
}

/// The reverse.
fn list_of(cores: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &core in cores {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == core => *last = core,
            _ => runs.push((core, core)),
        }
    }
    let text = |(first, last): (usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    runs.into_iter().map(text).collect::<Vec<_>>().join(",")
}

/// The cores on which this thread may run.
fn own_cores() -> Vec<usize> {
    // SAFETY: a plain output of this size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) != 0 {
            return Vec::new();
        }
        (0..libc::CPU_SETSIZE as usize).filter(|core| libc::CPU_ISSET(*core, &set)).collect()
    }
}

/// Keeps this thread, and those that it starts, to these cores; whether the system allows it.
fn keep_to(cores: &[usize]) -> bool {
    // SAFETY: a set of this size; numbers past its end are not set.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let known = cores.iter().filter(|core| **core < libc::CPU_SETSIZE as usize);
        known.for_each(|core| libc::CPU_SET(*core, &mut set));
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set) == 0
    }
}

/// The number of this rank's GPU among those of its node, and its PCI address; `None` on a CPU.
pub(super) fn own_gpu(parallel: &Parallel, place: usize) -> Option<(usize, String)> {
    let may = matches!(parallel.device, DeviceChoice::Auto | DeviceChoice::Cuda);
    may.then(|| gpu_address(place)).flatten()
}

/// Keeps this rank to the cores beside its GPU, unless its launcher has bound it. Collective; before threads are started.
pub(super) fn bind(parallel: &Parallel, comm: &dyn Comm) {
    let gpu = own_gpu(parallel, place_on_node(comm).0);
    let beside = gpu.and_then(|(_, address)| Beside::read(Path::new("/sys"), &address));
    // SAFETY: a plain query.
    let all = usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).unwrap_or(0);
    if let Some(Beside { cores, .. }) = beside.filter(|_| own_cores().len() == all) {
        keep_to(&cores);
    }
}

/// A line for each rank of the first one's node, where ranks have GPUs. Collective.
pub(in crate::app) fn map(parallel: &Parallel, comm: &Ranks) -> Vec<String> {
    let line = own_gpu(parallel, place_on_node(&**comm).0).map(|(number, address)| {
        let beside = Beside::read(Path::new("/sys"), &address);
        describe(comm.rank(), number, &address, beside.as_ref(), &own_cores())
    });
    let all = comm.gather(format!("{}\n{}", job::host(), line.unwrap_or_default()).as_bytes());
    let all = all.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect::<Vec<_>>();
    let first = all[0].split('\n').next().unwrap_or_default();
    let of_first = all.iter().filter_map(|text| text.strip_prefix(first)?.strip_prefix('\n'));
    of_first.filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// A rank's line. Cores away from the GPU are told.
fn describe(rank: usize, number: usize, address: &str, beside: Option<&Beside>, own: &[usize]) -> String {
    let mut line = format!("  rank {rank}: GPU {number} at {address}, cores {}", list_of(own));
    if let Some(Beside { node, cores, cards }) = beside {
        if !own.iter().all(|core| cores.contains(core)) {
            line += &format!(" (those beside the GPU are {})", list_of(cores));
        }
        line += &format!(", NUMA node {node}");
        if !cards.is_empty() {
            line += &format!(", network {}", cards.join(" "));
        }
    }
    line
}

/// This rank's number among the ranks of its node, and their number; collective.
pub(in crate::app) fn place_on_node(comm: &dyn Comm) -> (usize, usize) {
    let name = job::host();
    let names = comm.gather(name.as_bytes());
    let same = |end: usize| names[..end].iter().filter(|n| **n == name.as_bytes()).count();
    (same(comm.rank()), same(comm.size()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores() {
        assert_eq!(cores_of("0-2,8,10-11\n"), Some(vec![0, 1, 2, 8, 10, 11]));
        assert_eq!(list_of(&[0, 1, 2, 8, 10, 11]), "0-2,8,10-11");
        assert_eq!((cores_of(""), list_of(&[])), (Some(vec![]), String::new()));
        assert_eq!(cores_of("0-x"), None);
    }

    #[test]
    fn what_is_beside_a_gpu() {
        let system = std::env::temp_dir().join(format!("hmc-sys-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = system.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (address, node, cores) in [("0000:1b:00.0", "1", "8-15"), ("0000:0a:00.0", "-1", "0-15")] {
            write(&format!("bus/pci/devices/{address}/numa_node"), &format!("{node}\n"));
            write(&format!("bus/pci/devices/{address}/local_cpulist"), &format!("{cores}\n"));
        }
        for (card, node) in [("mlx5_1", 1), ("mlx5_0", 0), ("mlx5_2", 1)] {
            write(&format!("class/infiniband/{card}/device/numa_node"), &format!("{node}\n"));
        }
        let [far, none, absent] =
            ["0000:1B:00.0", "0000:0a:00.0", "0000:ff:00.0"].map(|address| Beside::read(&system, address));
        fs::remove_dir_all(&system).unwrap();
        let cards = vec!["mlx5_1".to_owned(), "mlx5_2".to_owned()];
        assert_eq!(far, Some(Beside { node: 1, cores: (8..16).collect(), cards }));
        assert_eq!((none, absent), (None, None));
        let line = |own: &[usize]| describe(3, 1, "0000:1b:00.0", far.as_ref(), own);
        let expected = "  rank 3: GPU 1 at 0000:1b:00.0, cores 8-11, NUMA node 1, network mlx5_1 mlx5_2";
        assert_eq!(line(&[8, 9, 10, 11]), expected);
        assert!(line(&[0, 1]).contains("cores 0-1 (those beside the GPU are 8-15), NUMA node 1"));
        assert_eq!(describe(0, 0, "0000:0a:00.0", None, &[0]), "  rank 0: GPU 0 at 0000:0a:00.0, cores 0");
    }

    #[test]
    fn a_thread_keeps_to_its_cores() {
        std::thread::spawn(|| {
            let own = own_cores();
            assert!(!own.is_empty());
            assert!(keep_to(&own[..1]));
            assert_eq!(own_cores(), own[..1]);
        })
        .join()
        .unwrap();
    }
}
