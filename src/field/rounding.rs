//! What messages of half precision bring when they are rounded. A rank gets its own messages here.

use super::{
    Dagger, Domain, FaceHop, FaceReals, FaceSource, Faces, Halo, HaloPrecision, Kind, ODD, Purpose,
    RandomAddress, Spinor, Transports,
};
use crate::comm::{Comm, Message};
use crate::device::kernels::{LinkReals, LongReals};
use crate::device::{Cpu, Device, Precision, lane_counts};
use crate::lattice::{Extents, LaneGrid, Partition, volume};
use std::sync::Arc;

/// The first of so many ranks; what it sends comes back.
struct Mirror(usize);

impl Comm for Mirror {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        self.0
    }

    fn exchange_while(
        &self,
        sends: &[Message<&[u8]>],
        receives: &mut [Message<&mut [u8]>],
        meanwhile: &mut dyn FnMut(),
    ) {
        meanwhile();
        for message in receives {
            let sent = sends.iter().find(|sent| sent.tag == message.tag).expect("a message of that tag");
            message.bytes.copy_from_slice(sent.bytes);
        }
    }

    fn sum(&self, _: &mut [i64]) {}

    fn max(&self, value: f64) -> f64 {
        value
    }

    fn gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        vec![bytes.to_vec(); self.0]
    }

    fn first(&self, _: usize) -> Option<Arc<dyn Comm>> {
        None
    }

    fn barrier(&self) {}

    fn abort(&self, code: i32) -> ! {
        std::process::exit(code)
    }
}

fn domain(partition: Partition, lanes: usize, precision: HaloPrecision) -> Arc<Domain> {
    let comm = Arc::new(Mirror(volume(partition.grid)));
    let transports = Transports::from(Halo::Staged).with(precision);
    Domain::new(partition, Device::new(Cpu::new(lanes).unwrap()), comm, 0, transports).unwrap()
}

/// Two random fields; the first site of the second has a NaN if `spoilt`.
fn fields(domain: &Arc<Domain>, kind: Kind, precision: Precision, spoilt: bool) -> Spinor {
    let sites = volume(domain.partition().local());
    let mut all = Spinor::of(domain, kind, precision, 2).unwrap();
    for n in 0..2 {
        let [mut double, mut one] =
            [Precision::Double, precision].map(|p| Spinor::of(domain, kind, p, 1).unwrap());
        let address = RandomAddress { seed: 5, trajectory: 0, purpose: Purpose::Probe(n) };
        double.set_random(ODD, 1.0, address).unwrap();
        if spoilt && n == 1 {
            let mut reals = vec![0.0; sites * kind.reals()];
            double.write_host(ODD, &mut reals).unwrap();
            // Of the sites (0, 0, 0, 0) and (1, 0, 0, 0) one is odd.
            reals[..2 * kind.reals()].fill(f64::NAN);
            double.read_host(ODD, &reals).unwrap();
        }
        one.copy_from(&double).unwrap();
        all.set_field(n.into(), &one).unwrap();
    }
    all
}

/// The ghost zones from forward neighbours.
fn ghosts(domain: &Arc<Domain>, kind: Kind, precision: Precision, spoilt: bool) -> Vec<Vec<u8>> {
    let forward = if kind == Kind::Dirac { 12 } else { 18 };
    let reals = FaceReals { forward, backward: 0 };
    let mut faces = Faces::new(domain, precision, 2, reals, 0).unwrap();
    let input = fields(domain, kind, precision, spoilt);
    let hop = match kind {
        Kind::Dirac => {
            FaceHop::Wilson { reals: LinkReals::Link18, links: None, dagger: Dagger::No, slices: 1 }
        }
        _ => FaceHop::Staggered { reals: LongReals::Long18, links: [None; 3] },
    };
    faces.exchange(FaceSource { input: input.fermions(), parity: ODD, hop }, 2).unwrap();
    faces.received().unwrap()
}

/// Blocks of a ghost zone lane by lane, as a CPU has them: `[site][block][real][lane]`; each with its lane.
fn blocks(zone: &[u8], reals: usize, lanes: usize) -> Vec<(usize, Vec<f64>)> {
    let all: Vec<f64> =
        zone.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()).into()).collect();
    let of = |block: &[f64], lane| (lane, block.iter().skip(lane).step_by(lanes).copied().collect());
    all.chunks_exact(reals * lanes).flat_map(|block| (0..lanes).map(move |lane| of(block, lane))).collect()
}

/// What a real may be off by, relative to the greatest of its block. A projection: half a step of 16-bit integers, and a few
/// roundings of floats. A colour vector is on such a grid already, and is off by roundings alone.
fn most(kind: Kind) -> f64 {
    if kind == Kind::Dirac { 1.01 / 65534.0 } else { 4.0 * 2f64.powi(-24) }
}

/// Compares all blocks of the zones with those of a domain without rounding; the number of those that were rounded.
fn compare(whole: &Arc<Domain>, rounded: &Arc<Domain>, kind: Kind) -> usize {
    let half = Precision::Half;
    let LaneGrid(grid) = whole.layout(half).lanes();
    let (lanes, reals) = (volume(grid), if kind == Kind::Dirac { 12 } else { 6 });
    let [expected, found] = [whole, rounded].map(|domain| ghosts(domain, kind, half, false));
    let mut changed = 0;
    for ((mu, expected), found) in whole.cut_directions().zip(&expected).zip(&found) {
        let before: usize = grid[..mu].iter().product();
        let pairs = blocks(expected, reals, lanes).into_iter().zip(blocks(found, reals, lanes));
        for ((lane, expected), (_, found)) in pairs {
            // Other lanes have their neighbour on this rank.
            let at_edge = lane / before % grid[mu] == grid[mu] - 1;
            let norm = expected.iter().fold(0.0, |norm: f64, x| norm.max(x.abs()));
            let bound = if at_edge { norm * most(kind) } else { 0.0 };
            let right = expected.iter().zip(&found).all(|(x, y)| (x - y).abs() <= bound);
            assert!(right, "{kind:?}, lane {lane}: {found:?} instead of {expected:?}");
            changed += usize::from(at_edge && expected != found);
        }
    }
    changed
}

/// Boxes and cuts; in the last ones, cut directions are split over lanes.
const BOXES: [(Extents, Extents); 5] = [
    ([4, 4, 8, 16], [1, 1, 1, 2]),
    ([16, 4, 8, 8], [2, 1, 1, 2]),
    ([4, 16, 16, 4], [1, 2, 2, 1]),
    ([2, 2, 2, 64], [1, 1, 1, 2]),
    ([2, 16, 16, 2], [1, 2, 2, 1]),
];

/// A domain as it is and one with rounded messages, on each number of lanes.
fn pairs() -> impl Iterator<Item = [Arc<Domain>; 2]> {
    BOXES.into_iter().flat_map(|(extents, grid)| {
        let partition = Partition::new(extents, grid, volume(grid), 0).unwrap();
        let cut = grid.map(|ranks| ranks > 1);
        let fits = move |lanes: &usize| {
            LaneGrid::choose(partition.local(), cut, *lanes)
                .is_some_and(|lanes| lanes.is_thick(partition.local(), cut, 3))
        };
        let of = move |lanes| [HaloPrecision::Full, HaloPrecision::Half].map(|p| domain(partition, lanes, p));
        lane_counts().into_iter().filter(fits).map(of)
    })
}

#[test]
fn a_block_is_off_by_half_a_step_of_its_greatest_real() {
    let mut split = 0;
    for [whole, rounded] in pairs() {
        assert!(compare(&whole, &rounded, Kind::Dirac) > 0, "nothing was rounded");
        compare(&whole, &rounded, Kind::Colour);
        let lanes = whole.layout(Precision::Half).lanes().0;
        split += usize::from(whole.cut_directions().any(|mu| lanes[mu] > 1));
    }
    assert!(split > 0, "no cut direction is split over lanes");
}

#[test]
fn what_is_no_number_stays_none() {
    for [whole, rounded] in pairs() {
        for kind in [Kind::Dirac, Kind::Colour] {
            let none = |domain| -> Vec<bool> {
                let zones = ghosts(domain, kind, Precision::Half, true).concat();
                zones.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()).is_nan()).collect()
            };
            let [expected, found] = [&whole, &rounded].map(none);
            assert!(expected.contains(&true) && expected == found, "{kind:?}");
        }
    }
}

#[test]
fn other_precisions_travel_as_they_are() {
    for [whole, rounded] in pairs() {
        for kind in [Kind::Dirac, Kind::Colour] {
            for precision in [Precision::Double, Precision::Single] {
                let [expected, found] =
                    [&whole, &rounded].map(|domain| ghosts(domain, kind, precision, false));
                assert!(expected == found, "{kind:?}, {precision}");
            }
        }
    }
}
