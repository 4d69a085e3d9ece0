//! Gauge loops as data: `S = sum_x sum_classes weight sum_loops (1 - Re tr U_loop / 3)`.
//!
//! Classes: plaquettes (6 per site), 2x1 rectangles (12), and the bent loops mu nu rho -mu -nu -rho through three
//! directions (16, "parallelograms"). Each unoriented loop counts once (Luscher, Weisz, Phys. Lett. B 158 (1985) 250).
//! A staple is a loop without one of its links.

use crate::device::Buffer;
use crate::device::kernels::{GaugeAction, GaugeForce, LoopTraces as Traces, int};
use crate::field::{AlgebraField, Domain, FieldError, MatrixField};
use crate::lattice::TimeBoundary;
use crate::math::ExactSum;
use std::sync::Arc;

/// A step of a path: +-(mu + 1).
type Step = i32;

/// Traces averaged over the lattice; of loops within walls in time half.
#[derive(Clone, Copy, Debug)]
pub struct LoopTraces {
    /// Mean of Re tr P / 3 over the planes of space.
    pub plaquette_space: f64,
    /// Mean of Re tr P / 3 over the planes with t.
    pub plaquette_time: f64,
    /// Mean of Re tr R / 3 over all rectangles.
    pub rectangle: f64,
}

impl LoopTraces {
    /// Mean over all six planes.
    pub fn plaquette(&self) -> f64 {
        0.5 * (self.plaquette_space + self.plaquette_time)
    }
}

/// The loops of one gauge action on a device.
///
/// ```
/// use hmc::prelude::*;
/// let domain = Domain::local([4; 4])?;
/// let cold = GaugeLoops::traces(&MatrixField::cold(&domain)?)?;
/// assert_eq!((cold.plaquette(), cold.rectangle), (1.0, 1.0));
/// let hot = GaugeLoops::traces(&MatrixField::hot(&domain, 1)?)?;
/// assert!(hot.plaquette().abs() < 0.05);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct GaugeLoops {
    domain: Arc<Domain>,
    loops: Buffer,
    staples: Buffer,
    loop_counts: [i32; 4],
    staple_counts: [i32; 4],
    loop_weights: [f64; 4],
    staple_weights: [f64; 4],
    walls: WallWeights,
}

/// What counts otherwise at the lower and at the upper wall in time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WallWeights {
    /// The weight of loops within an open wall, and of plaquettes that touch a fixed one.
    loops: [[f64; 2]; 2],
    /// A factor of the force on links within an open wall.
    links: f64,
    /// Whether plaquettes that touch a fixed wall count as rectangles, too, twice around.
    twice: bool,
}

impl WallWeights {
    /// Of an action with the coefficients c_G of improvement: loops within an open wall count c_G / 2 (Luscher, Schaefer,
    /// arXiv:1206.2809), plaquettes that touch a fixed one c_G; rectangles with a side in time that would lead through it are
    /// closed by `(P^2) / 2` (Aoki, Frezzotti, Weisz, hep-lat/9808007).
    pub const fn of_action(c_g: [f64; 2]) -> Self {
        Self { loops: [[0.5 * c_g[0], 0.5 * c_g[1]], c_g], links: 1.0, twice: true }
    }

    /// Of the gradient flow: links in an open wall follow twice the gradient, since they count for half (arXiv:1206.2809).
    pub const OF_FLOW: Self = Self { links: 2.0, ..Self::of_action([1.0; 2]) };
    /// All staples alike.
    pub const NONE: Self = Self { loops: [[1.0; 2]; 2], links: 1.0, twice: false };

    /// For the lower and the upper wall: the weights of loops within it, of plaquettes that touch it, and of those twice around.
    fn of(self, time: TimeBoundary) -> [[f64; 2]; 3] {
        let fixed = time.given().map(|given| given.is_some());
        let [within, beside] = self.loops;
        let only_fixed = |weights: [f64; 2], else_: f64| {
            [0, 1].map(|wall| if fixed[wall] { weights[wall] } else { else_ })
        };
        let twice = if self.twice { 1.0 } else { 0.0 };
        [
            [0, 1].map(|wall| if fixed[wall] { 0.0 } else { within[wall] }),
            only_fixed(beside, 1.0),
            only_fixed([twice; 2], 0.0),
        ]
    }
}

fn plaquettes(with_time: bool) -> Vec<Vec<Step>> {
    let planes = (1..=4).flat_map(|mu| (mu + 1..=4).map(move |nu| (mu, nu)));
    planes.filter(|&(_, nu)| (nu == 4) == with_time).map(|(mu, nu)| vec![mu, nu, -mu, -nu]).collect()
}

fn rectangles() -> Vec<Vec<Step>> {
    let pairs = (1..=4).flat_map(|mu| (1..=4).map(move |nu| (mu, nu))).filter(|(mu, nu)| mu != nu);
    pairs.map(|(mu, nu)| vec![mu, mu, nu, -mu, -mu, -nu]).collect()
}

/// Plaquettes, twice around.
fn twice_around() -> Vec<Vec<Step>> {
    [plaquettes(false), plaquettes(true)].concat().into_iter().map(|path| path.repeat(2)).collect()
}

fn parallelograms() -> Vec<Vec<Step>> {
    let mut loops = Vec::new();
    for (a, b, c) in [(1, 2, 3), (1, 2, 4), (1, 3, 4), (2, 3, 4)] {
        for (sb, sc) in [(1, 1), (1, -1), (-1, 1), (-1, -1)] {
            loops.push(vec![a, sb * b, sc * c, -a, -sb * b, -sc * c]);
        }
    }
    loops
}

/// The staples: paths that close the loops through a forward link mu, from its end to its start.
fn staples(loops: &[Vec<Step>], mu: Step) -> Vec<Vec<Step>> {
    let mut found = Vec::new();
    for path in loops {
        for (at, &step) in path.iter().enumerate() {
            let mut turned = path.clone();
            turned.rotate_left(at);
            if step == mu {
                found.push(turned[1..].to_vec());
            } else if step == -mu {
                found.push(turned[1..].iter().rev().map(|s| -s).collect());
            }
        }
    }
    found
}

/// Four bits per step, the first lowest: 1 + mu forward, 5 + mu backward.
fn pack(path: &[Step]) -> i32 {
    path.iter().rev().fold(0, |code, &step| code << 4 | if step > 0 { step } else { 4 - step })
}

impl GaugeLoops {
    /// Loops with the given weights; a class of weight 0 is left out.
    ///
    /// # Panics
    /// The domain's borders are thinner than the force [reaches](Self::reach); parallelograms on a lattice with walls in time.
    pub fn new(
        domain: &Arc<Domain>,
        plaquette: f64,
        rectangle: f64,
        parallelogram: f64,
    ) -> Result<Self, FieldError> {
        domain.check_border(Self::reach(rectangle));
        let time = domain.partition().time;
        assert!(parallelogram == 0.0 || !time.has_walls(), "walls and loops through three directions");
        let is_fixed = time.given() != [None; 2];
        let (last, last_weight): (fn() -> Vec<Vec<Step>>, f64) =
            if is_fixed { (twice_around, 0.5 * rectangle) } else { (parallelograms, parallelogram) };
        let wanted = |loops: Vec<Vec<Step>>, weight: f64| if weight == 0.0 { Vec::new() } else { loops };
        let all_plaquettes = [plaquettes(false), plaquettes(true)].concat();
        let loops = [
            wanted(plaquettes(false), plaquette),
            wanted(plaquettes(true), plaquette),
            wanted(rectangles(), rectangle),
            wanted(last(), last_weight),
        ];
        let classes =
            [wanted(all_plaquettes, plaquette), wanted(rectangles(), rectangle), wanted(last(), last_weight)];
        let packed: Vec<i32> = loops.iter().flatten().map(|path| pack(path)).collect();
        let mut closing = Vec::new();
        let mut staple_counts = [0; 4];
        for mu in 1..=4 {
            for (class, count) in classes.iter().zip(&mut staple_counts) {
                let of_class = staples(class, mu);
                *count = int(of_class.len());
                closing.extend(of_class.iter().map(|path| pack(path)));
            }
        }
        Ok(Self {
            domain: Arc::clone(domain),
            loops: domain.device().buffer_of(&packed)?,
            staples: domain.device().buffer_of(&closing)?,
            loop_counts: std::array::from_fn(|n| int(loops[n].len())),
            staple_counts,
            loop_weights: [plaquette, plaquette, rectangle, last_weight],
            staple_weights: [plaquette, rectangle, last_weight, 0.0],
            walls: WallWeights::of_action([1.0; 2]),
        })
    }

    /// With these weights at walls.
    #[must_use]
    pub fn with_walls(self, walls: WallWeights) -> Self {
        Self { walls, ..self }
    }

    /// Layers of neighbouring sites that the force of these loops needs.
    pub fn reach(rectangle: f64) -> usize {
        if rectangle == 0.0 { 1 } else { 2 }
    }

    /// The action, summed exactly over sites.
    pub fn action(&self, links: &MatrixField) -> Result<ExactSum, FieldError> {
        self.domain.check([links.domain()]);
        let [within, beside, twice] = self.walls.of(self.domain.partition().time);
        let kernel = GaugeAction {
            g: self.domain.geometry(),
            links: links.links(),
            paths: self.loops.input(),
            counts: self.loop_counts,
            weights: self.loop_weights,
            within,
            beside,
            twice,
        };
        Ok(self.domain.sum(&kernel, 2 * self.domain.half())?.sums[0])
    }

    /// `force_a(x, mu) += scale dS(e^{i eps T_a} U_mu(x)) / d eps`
    pub fn add_force(
        &self,
        links: &MatrixField,
        force: &mut AlgebraField,
        scale: f64,
    ) -> Result<(), FieldError> {
        self.domain.check([links.domain(), force.domain()]);
        let [within, beside, twice] = self.walls.of(self.domain.partition().time);
        let kernel = GaugeForce {
            g: self.domain.geometry(),
            links: links.links(),
            force: force.algebra_mut(),
            paths: self.staples.input(),
            counts: self.staple_counts,
            weights: self.staple_weights,
            within,
            beside,
            twice,
            wall_links: self.walls.links,
            scale,
        };
        self.domain.launch(&kernel, 4 * 2 * self.domain.half())
    }

    /// Mean traces of plaquettes and rectangles, for any action. The rectangle is NaN unless the links' borders have
    /// two layers.
    pub fn traces(links: &MatrixField) -> Result<LoopTraces, FieldError> {
        let domain = links.domain();
        let deep = domain.border().iter().all(|&layers| layers != 1);
        let loops = Self::new(domain, 1.0, if deep { 1.0 } else { 0.0 }, 0.0)?;
        let (g, links, paths) = (domain.geometry(), links.links(), loops.loops.input());
        let [space, time, rectangles, _] = loops.loop_counts;
        let kernel = Traces { g, links, paths, counts: [space, time, rectangles, 0], slice: -1 };
        let sums = domain.sum(&kernel, 2 * domain.half())?.sums;
        let partition = domain.partition();
        let slice = domain.global_volume() / partition.global[3] as f64;
        let volume = slice * partition.time_extent() as f64;
        // Rectangles of two steps in time start a slice before the last time link.
        let long = if partition.time.has_walls() { 3.0 * slice } else { 0.0 };
        // Loops within a fixed upper wall are 1, and no field holds them.
        let upper = if partition.time.given()[1].is_some() { 0.5 * slice } else { 0.0 };
        Ok(LoopTraces {
            plaquette_space: (sums[0].value() + 3.0 * upper) / (3.0 * volume),
            plaquette_time: sums[1].value() / (3.0 * volume),
            rectangle: if deep { (sums[2].value() + 6.0 * upper) / (12.0 * volume - long) } else { f64::NAN },
        })
    }
}

/// `2 sum_{mu<nu} Re tr (1 - P)` per site of each slice: plaquettes of space, those within walls half, and half of those with
/// time that reach to the slices before and after.
pub fn slice_energy(links: &MatrixField) -> Result<Vec<f64>, FieldError> {
    let domain = links.domain();
    let partition = domain.partition();
    let (extent, sites) = (partition.global[3], domain.global_volume() / partition.global[3] as f64);
    let loops = GaugeLoops::new(domain, 1.0, 0.0, 0.0)?;
    let mut of_planes = Vec::with_capacity(extent);
    for t in 0..extent {
        let (g, links, paths) = (domain.geometry(), links.links(), loops.loops.input());
        let kernel = Traces { g, links, paths, counts: loops.loop_counts, slice: int(t) };
        let sums = domain.sum(&kernel, 2 * domain.half())?.sums;
        let [space, time] = [0, 1].map(|n| 6.0 * sums[n].value() / sites);
        let share = if partition.time.is_wall(t, extent) { 0.5 } else { 1.0 };
        let steps = if partition.has_link(3, t) { 1.0 } else { 0.0 };
        of_planes.push([18.0 * share - space, 18.0 * steps - time]);
    }
    let before = |t: usize| match t {
        0 if partition.time.has_walls() => 0.0,
        t => of_planes[(t + extent - 1) % extent][1],
    };
    Ok((0..extent).map(|t| of_planes[t][0] + 0.5 * (of_planes[t][1] + before(t))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_lies_on_its_share_of_loops() {
        let all = [plaquettes(false), plaquettes(true)].concat();
        for mu in 1..=4 {
            assert_eq!(staples(&all, mu).len(), 6);
            assert_eq!(staples(&rectangles(), mu).len(), 18);
            assert_eq!(staples(&parallelograms(), mu).len(), 24);
            assert_eq!(staples(&twice_around(), mu).len(), 12);
        }
    }

    #[test]
    fn loops_close() {
        for path in [plaquettes(false), plaquettes(true), rectangles(), parallelograms()].concat() {
            for mu in 1..=4 {
                assert_eq!(path.iter().filter(|s| s.abs() == mu).map(|s| s.signum()).sum::<i32>(), 0);
            }
        }
        assert_eq!(pack(&[1, -2]), 0x61);
    }
}
