//! The table of kernels: name, family, arguments, and the functions on the host.

use super::isa;
use super::kernels::{KERNELS, KernelNumber, Listed};
use crate::lattice::MAX_LANES;
use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;

/// The precision of a stored field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Precision {
    /// 64 bits.
    Double,
    /// 32 bits.
    Single,
    /// 16-bit integers and one float per site; arithmetic is in single precision (Clark et al., arXiv:0911.3191).
    Half,
}

impl Precision {
    /// All, from the highest.
    pub const ALL: [Self; 3] = [Self::Double, Self::Single, Self::Half];

    /// Bytes of a real in arithmetic and in messages.
    pub fn bytes(self) -> usize {
        match self {
            Self::Double => 8,
            Self::Single | Self::Half => 4,
        }
    }

    /// Bytes per site of `reals` reals and `norms` norms; only half precision has norms.
    pub fn stored(self, reals: usize, norms: usize) -> usize {
        match self {
            Self::Double => 8 * reals,
            Self::Single => 4 * reals,
            Self::Half => 2 * reals + 4 * norms,
        }
    }

    /// The precision of the solution in an iteration of this precision. A solution is the sum of many small steps, each
    /// of which half precision would round at the size of the whole.
    #[must_use]
    pub fn of_solution(self) -> Self {
        if self == Self::Half { Self::Single } else { self }
    }

    /// The C type used in arithmetic.
    pub fn c_name(self) -> &'static str {
        match self {
            Self::Double => "double",
            Self::Single | Self::Half => "float",
        }
    }
}

impl std::fmt::Display for Precision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Double => "double",
            Self::Single => "single",
            Self::Half => "half",
        })
    }
}

/// One line of a table of `kernels/host.cpp`.
#[repr(C)]
pub(super) struct Entry {
    family: *const c_char,
    name: *const c_char,
    args: *const c_char,
    expression: *const c_char,
    args_size: u64,
    sums: i64,
    run: Option<HostKernel>,
}

/// Runs a kernel on outer sites or teams `begin..end`. The words receive the sums; for teams they are the shared
/// memory.
pub(super) type HostKernel = unsafe extern "C" fn(*const c_void, i32, i32, *mut i64);

/// The kernels of one instruction set in one precision, for so many lanes.
pub(super) struct Table {
    isa: &'static str,
    lanes: usize,
    precision: Precision,
    entries: *const [Entry],
}

include!(concat!(env!("OUT_DIR"), "/tables.rs"));

/// The work of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Site by site.
    Sites,
    /// Site by site, with this number of sums over sites.
    Sums(usize),
    /// Teams of threads that share memory (`kernels/team.cuh`).
    Teams,
}

/// A kernel's description.
#[derive(Clone, Debug)]
pub struct KernelInfo {
    /// The header that holds it, without extension.
    pub family: String,
    /// Its name.
    pub name: String,
    /// The name of its argument struct.
    pub args: String,
    /// Size of that struct.
    pub args_size: usize,
    /// The C++ expression that is called with (arguments, site\[, sums\]), or that makes the work of a team.
    pub expression: String,
    /// Sites, sums or teams.
    pub work: Work,
    /// Names of the arguments that a GPU's compiler may know, as macros.
    pub constants: &'static [&'static str],
    /// Whether the compiler may know the lattice's extents.
    pub extents_are_constant: bool,
    pub(super) run: HostKernel,
}

/// The kernels of one instruction set, by number and precision.
pub(super) struct Kernels(Vec<[Option<KernelInfo>; 3]>);

impl Kernels {
    /// The kernel of a launch.
    ///
    /// # Panics
    /// The kernel does not exist in this precision.
    pub(super) fn get(&self, number: KernelNumber, precision: Precision) -> &KernelInfo {
        let Some(kernel) = &self.0[number.0][precision as usize] else {
            panic!("there is no kernel {} in {precision}", KERNELS[number.0].name)
        };
        kernel
    }

    fn add(&mut self, info: KernelInfo, precision: Precision) {
        let number = KERNELS.iter().position(|listed| listed.name == info.name);
        let number = number.unwrap_or_else(|| panic!("the build does not know the kernel {}", info.name));
        self.0[number][precision as usize] = Some(info);
    }

    /// Whether these are exactly the kernels that the build found.
    fn are_all(&self) -> bool {
        self.0.iter().zip(&KERNELS).all(|(kernel, Listed { args, precisions, .. })| {
            let own = kernel.each_ref().map(Option::is_some);
            own == *precisions && kernel.iter().flatten().all(|kernel| kernel.args == *args)
        })
    }
}

fn read(table: &Table, kernels: &mut Kernels) {
    // SAFETY: a static array that nothing writes, whose entries the build counted in the lists that C++ makes it of.
    let entries = unsafe { &*table.entries };
    for entry in entries {
        let Some(run) = entry.run else { break };
        // SAFETY: the texts of an entry that has a function are valid C strings.
        let text = |p: *const c_char| unsafe { CStr::from_ptr(p) }.to_string_lossy().into_owned();
        let name = text(entry.name);
        let listed = KERNELS.iter().find(|listed| listed.name == name);
        let info = KernelInfo {
            family: text(entry.family),
            constants: listed.map_or(&[], |listed| listed.constants),
            extents_are_constant: listed.is_some_and(|listed| listed.extents_are_constant),
            name,
            args: text(entry.args),
            args_size: usize::try_from(entry.args_size).expect("a size in memory"),
            expression: text(entry.expression),
            work: match entry.sums {
                -2 => Work::Teams,
                sums => usize::try_from(sums).map_or(Work::Sites, Work::Sums),
            },
            run,
        };
        kernels.add(info, table.precision);
    }
}

/// The name of the GPU's kernels among the instruction sets.
const EMULATION: &str = "gpu";

/// Whether this build can run the GPU's kernels on this processor.
pub fn has_emulation() -> bool {
    emulation().is_some()
}

fn emulation() -> Option<[Table; 3]> {
    let of = |precision| tables().into_iter().find(|t| t.isa == EMULATION && t.precision == precision);
    let [double, single, half] = Precision::ALL.map(of);
    (cfg!(not(target_arch = "x86_64")) || isa::supported("v3")).then_some([double?, single?, half?])
}

/// The best of this processor's tables.
fn best(lanes: usize, precision: Precision) -> Option<Table> {
    let of = |t: &Table| (t.lanes, t.precision) == (lanes, precision) && isa::supported(t.isa);
    tables().into_iter().rfind(of)
}

/// Lane counts of this build that this processor supports, ascending: those of single precision.
pub fn lane_counts() -> Vec<usize> {
    (1..=MAX_LANES).filter(|&lanes| best(lanes, Precision::Single).is_some()).collect()
}

/// The sites that kernels work on at once: the lanes of their vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// In double precision.
    pub double: usize,
    /// In lower precisions: as many, or twice as many.
    pub lower: usize,
}

impl Lanes {
    /// The same number in all precisions.
    pub const fn equal(count: usize) -> Self {
        Self { double: count, lower: count }
    }

    /// The number in `precision`.
    pub const fn of(self, precision: Precision) -> usize {
        match precision {
            Precision::Double => self.double,
            Precision::Single | Precision::Half => self.lower,
        }
    }
}

/// So many lanes; where a register does not hold so many doubles, half of them in double.
impl From<usize> for Lanes {
    fn from(count: usize) -> Self {
        let double = if best(count, Precision::Double).is_some() { count } else { count / 2 };
        Self { double, lower: count }
    }
}

impl std::fmt::Display for Lanes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self { double: 1, lower: 1 } => f.write_str("1 lane"),
            Self { double, lower } if double == lower => write!(f, "{double} lanes"),
            Self { double, lower } => write!(f, "{double} and {lower} lanes"),
        }
    }
}

/// The most lanes of those that the box `fits`: a register of numbers in each precision is fastest.
pub fn fastest_lanes(fits: impl Fn(usize) -> bool) -> Lanes {
    lane_counts().into_iter().rfind(|&count| fits(count)).unwrap_or(1).into()
}

/// Whether this build has vectors for this processor, if it has any; a build for another processor may not.
pub fn fits_processor() -> bool {
    fastest_lanes(|_| true).double > 1 || !isa::supported("v3")
}

/// The host's kernels with these lanes for the best instruction set; `None` if there are none.
pub(super) fn host_kernels(lanes: Lanes) -> Option<(&'static str, Kernels)> {
    let [double, single, half] = Precision::ALL.map(|precision| best(lanes.of(precision), precision));
    let tables = [double?, single?, half?];
    Some((tables[0].isa, kernels(tables)))
}

/// A GPU's kernels for the CPU; `None` if this build has none.
pub(super) fn emulated_kernels() -> Option<(&'static str, Kernels)> {
    Some((EMULATION, kernels(emulation()?)))
}

fn kernels(tables: [Table; 3]) -> Kernels {
    let mut kernels = Kernels(KERNELS.iter().map(|_| [None, None, None]).collect());
    tables.iter().for_each(|table| read(table, &mut kernels));
    assert!(kernels.are_all(), "the compiled kernels are not those that the build found");
    kernels
}

/// The descriptions of all kernels, for compiling them.
pub(super) fn all_kernels() -> &'static Kernels {
    static ALL: OnceLock<Kernels> = OnceLock::new();
    let tables = || Precision::ALL.map(|precision| tables().into_iter().find(|t| t.precision == precision));
    ALL.get_or_init(|| {
        kernels(tables().map(|table| table.expect("every build has kernels in all precisions")))
    })
}

/// Every kernel with its precision, sorted by name.
pub fn kernel_list() -> Vec<(&'static KernelInfo, Precision)> {
    let of = |kernel: &'static [Option<KernelInfo>; 3]| kernel.iter().zip(Precision::ALL);
    let all = all_kernels().0.iter().flat_map(of);
    let mut list: Vec<_> =
        all.filter_map(|(kernel, precision)| Some((kernel.as_ref()?, precision))).collect();
    list.sort_by_key(|(info, precision)| (&info.family, &info.name, *precision));
    list
}
