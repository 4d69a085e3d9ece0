//! Boundary conditions: of the lattice in time, and of quarks.
//!
//! Between open walls (Luscher, Schaefer, arXiv:1105.4749) time ends on the first and on the last slice. Links that would lead
//! out of the last one are zero matrices, so that no loop passes. Those of the Schroedinger functional (Luscher, Narayanan,
//! Weisz, Wolff, hep-lat/9207009) are slice 0 and the one after the last, and their links in space are given; no field holds
//! those of the upper wall. Quark fields are zero on all walls, and no operator's links lead there. Kernels know of the walls
//! by their geometry (`kernels/site.cuh`).
//!
//! Else `psi(x + L_mu mu) = e^{i pi theta_mu} psi(x)`. The factors multiply hops, never links, so that one field of links
//! serves quarks of any boundary. The tables that kernels read are made here alone.

use super::{Extents, LaneGrid, Partition, coordinates};

/// How the lattice ends in time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum TimeBoundary {
    /// The last slice is followed by the first.
    #[default]
    Periodic,
    /// Open walls: the first and the last slice have no neighbours beyond.
    Open,
    /// The Schroedinger functional: the links in space of both walls are given.
    Schroedinger {
        /// Of slice 0.
        phi: Angles,
        /// Of the slice after the last.
        phi_prime: Angles,
    },
    /// Slice 0 is an open wall; on the slice after the last the links in space are given.
    OpenSchroedinger {
        /// There.
        phi_prime: Angles,
    },
}

/// The first two of the three angles that are zero together; links in a direction of extent L are
/// `diag(exp(i angle / L))`.
pub type Angles = [f64; 2];

impl TimeBoundary {
    /// Whether time ends.
    pub const fn has_walls(self) -> bool {
        !matches!(self, Self::Periodic)
    }

    /// The angles of the lower and of the upper wall, where they are given.
    pub const fn given(self) -> [Option<Angles>; 2] {
        match self {
            Self::Periodic | Self::Open => [None; 2],
            Self::Schroedinger { phi, phi_prime } => [Some(phi), Some(phi_prime)],
            Self::OpenSchroedinger { phi_prime } => [None, Some(phi_prime)],
        }
    }

    /// From wall to wall, where fields have `extent` slices.
    pub const fn length(self, extent: usize) -> usize {
        if matches!(self, Self::Open) { extent - 1 } else { extent }
    }

    /// Whether slice `t` of `extent` is a wall.
    pub const fn is_wall(self, t: usize, extent: usize) -> bool {
        self.has_walls() && (t == 0 || t == self.length(extent))
    }

    /// For the lower and the upper wall, and the directions x, y, z: the diagonal (re, im) of the links that are given, else of
    /// unit ones.
    #[must_use]
    pub fn given_links(self, extents: Extents) -> Vec<f64> {
        let mut diagonals = Vec::with_capacity(36);
        for angles in self.given() {
            let [first, second] = angles.unwrap_or_default();
            for extent in &extents[..3] {
                for angle in [first, second, -first - second] {
                    let (im, re) = (angle / *extent as f64).sin_cos();
                    diagonals.extend([re, im]);
                }
            }
        }
        diagonals
    }
}

/// The word of inputs, and the angles of fixed walls.
impl std::fmt::Display for TimeBoundary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Periodic => "periodic",
            Self::Open => "open",
            Self::Schroedinger { .. } => "schroedinger",
            Self::OpenSchroedinger { .. } => "open-schroedinger",
        })?;
        self.given().into_iter().flatten().flatten().try_for_each(|angle| write!(f, " {angle:?}"))
    }
}

/// What `Display` writes.
impl std::str::FromStr for TimeBoundary {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let word = words.next();
        let angles: Option<Vec<f64>> =
            words.map(|angle| angle.parse().ok().filter(|angle: &f64| angle.is_finite())).collect();
        match (word, angles.as_deref()) {
            (Some("periodic"), Some([])) => Ok(Self::Periodic),
            (Some("open"), Some([])) => Ok(Self::Open),
            (Some("schroedinger"), Some(&[a, b, c, d])) => {
                Ok(Self::Schroedinger { phi: [a, b], phi_prime: [c, d] })
            }
            (Some("open-schroedinger"), Some(&[a, b])) => Ok(Self::OpenSchroedinger { phi_prime: [a, b] }),
            _ => Err(format!(
                "{text:?} is none of: periodic, open, schroedinger and four angles, open-schroedinger and two"
            )),
        }
    }
}

/// A lattice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lattice {
    /// Extents x, y, z, t.
    pub extents: Extents,
    /// How it ends in time.
    pub time: TimeBoundary,
}

/// Periodic.
impl From<Extents> for Lattice {
    fn from(extents: Extents) -> Self {
        Self { extents, time: TimeBoundary::Periodic }
    }
}

/// The phases theta of a quark in x, y, z, t, in units of pi; and what its improvement is beside walls in time.
#[derive(Clone, Copy, PartialEq)]
pub struct Boundary {
    theta: [f64; 4],
    c_f: [f64; 2],
}

impl Boundary {
    /// Periodic in space, antiperiodic in time.
    pub const ANTIPERIODIC: Self = Self::phases([0.0, 0.0, 0.0, 1.0]);

    /// Phases in units of pi: 0 is periodic, 1 antiperiodic.
    pub const fn phases(theta: [f64; 4]) -> Self {
        Self { theta, c_f: [1.0; 2] }
    }

    /// With these coefficients of the improvement beside the lower and the upper wall: `c_F - 1` is added to the mass there.
    #[must_use]
    pub const fn with_c_f(self, c_f: [f64; 2]) -> Self {
        Self { c_f, ..self }
    }

    /// c_F beside the lower and the upper wall.
    pub const fn c_f(&self) -> [f64; 2] {
        self.c_f
    }

    /// The phases in units of pi.
    pub const fn theta(&self) -> [f64; 4] {
        self.theta
    }

    /// The factor, as re and im, of a hop in direction `mu` that passes the edge so many times, backward if negative.
    fn factor(&self, mu: usize, passes: i32) -> [f64; 2] {
        let angle = f64::from(passes) * self.theta[mu];
        match angle.rem_euclid(2.0) {
            // Whole multiples of pi are exact signs.
            0.0 => [1.0, 0.0],
            1.0 => [-1.0, 0.0],
            _ => [(std::f64::consts::PI * angle).cos(), (std::f64::consts::PI * angle).sin()],
        }
    }

    /// For each hop to a nearest neighbour, forward and backward in x, y, z, t, the factor in every lane (re of all
    /// lanes, then im); and the mask of the hops with a factor that is not 1 on this rank.
    #[must_use]
    pub fn of_hops(&self, partition: &Partition, lanes: LaneGrid) -> (Vec<f64>, i32) {
        let (mut table, mut mask) = (Vec::new(), 0);
        for mu in 0..4 {
            for (step, passes) in [1, -1].into_iter().enumerate() {
                let [re, im] = self.factor(mu, passes);
                let last = |extents: [usize; 4]| if passes > 0 { extents[mu] - 1 } else { 0 };
                let rank_at_edge = partition.place[mu] == last(partition.grid);
                let crosses: Vec<bool> = (0..lanes.count())
                    .map(|lane| rank_at_edge && coordinates(lanes.0, lane)[mu] == last(lanes.0))
                    .collect();
                table.extend(crosses.iter().map(|&c| if c { re } else { 1.0 }));
                table.extend(crosses.iter().map(|&c| if c { im } else { 0.0 }));
                if rank_at_edge && [re, im] != [1.0, 0.0] {
                    mask |= 1 << (2 * mu + step);
                }
            }
        }
        (table, mask)
    }

    /// For x, y, z, t, the factor (re, im) of a forward hop that passes the edge 0 to 3 times.
    #[must_use]
    pub fn of_passes(&self) -> Vec<f64> {
        (0..4).flat_map(|mu| (0..4).flat_map(move |passes| self.factor(mu, passes))).collect()
    }
}

/// The phases, as an input gives them.
impl std::fmt::Debug for Boundary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.theta.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_exact_and_hops_back_are_conjugate() {
        let boundary = Boundary::phases([0.0, 1.0, -1.0, 0.3]);
        for (mu, re) in [1.0, -1.0, -1.0].into_iter().enumerate() {
            assert_eq!([boundary.factor(mu, 1), boundary.factor(mu, -1)], [[re, 0.0]; 2]);
            assert_eq!(boundary.factor(mu, 2), [1.0, 0.0]);
        }
        let [[re, im], [re_back, im_back]] = [boundary.factor(3, 1), boundary.factor(3, -1)];
        assert_eq!([re, im], [re_back, -im_back]);
        assert!((re * re + im * im - 1.0).abs() < 1e-15);
    }

    #[test]
    fn a_time_boundary_reads_what_it_writes() {
        let phi_prime = [-std::f64::consts::PI, 0.1];
        let all = [
            TimeBoundary::Periodic,
            TimeBoundary::Open,
            TimeBoundary::Schroedinger { phi: [0.3, -1e-17], phi_prime },
            TimeBoundary::OpenSchroedinger { phi_prime },
        ];
        for time in all {
            assert_eq!(time.to_string().parse(), Ok(time));
        }
        for wrong in ["", "closed", "open 1", "schroedinger 0 0 0", "open-schroedinger nan 0"] {
            assert!(wrong.parse::<TimeBoundary>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_lanes_and_ranks_at_the_edge_have_a_factor() {
        let lanes = LaneGrid([1, 1, 1, 2]);
        for (rank, forward) in [(0, false), (1, true)] {
            let partition = Partition::new([4, 4, 4, 16], [1, 1, 1, 2], 2, rank).expect("it can be cut");
            let (table, mask) = Boundary::ANTIPERIODIC.of_hops(&partition, lanes);
            assert_eq!(mask, 1 << if forward { 6 } else { 7 });
            let signs: Vec<usize> = (0..table.len()).filter(|&at| table[at] == -1.0).collect();
            assert_eq!(signs, [if forward { 6 * 4 + 1 } else { 7 * 4 }]);
        }
    }
}
