//! How the rows of tables become faster on more ranks.

use super::BenchArgs;
use crate::app::AppError;
use crate::lattice::Extents;
use serde::Serialize;

/// The numbers of ranks on which tables are made, and the lattice on each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scaling {
    /// Numbers of ranks, the first of them for comparison; none: 1, 2, 4 and so on.
    pub ranks: Vec<usize>,
    /// Whether the lattices of the command line are those of one rank (weak scaling), or of all.
    pub weak: bool,
}

impl Scaling {
    /// The numbers of ranks out of `size`.
    ///
    /// # Errors
    /// More are asked for, or a grid is.
    pub(super) fn counts(&self, args: &BenchArgs, size: usize) -> Result<Vec<usize>, AppError> {
        if args.grid.is_some() {
            return Err(AppError::Refused("scaling: --grid is for one number of ranks".into()));
        }
        if let Some(more) = self.ranks.iter().find(|count| !(1..=size).contains(*count)) {
            return Err(AppError::Refused(format!("scaling on {more} ranks: {size} run")));
        }
        let powers =
            std::iter::successors(Some(1), |count| Some(2 * count)).take_while(|count| *count <= size);
        Ok(if self.ranks.is_empty() { powers.collect() } else { self.ranks.clone() })
    }

    /// The grid of so many ranks, if it follows from their number alone: factors go to t, z, y, x in turn.
    pub(super) fn grid(&self, count: usize) -> Option<Extents> {
        let (mut grid, mut rest, mut turn) = ([1; 4], count, 3);
        while self.weak && rest > 1 {
            let factor = (2..=rest).find(|factor| rest.is_multiple_of(*factor)).unwrap_or(rest);
            grid[turn] *= factor;
            rest /= factor;
            turn = (turn + 3) % 4;
        }
        self.weak.then_some(grid)
    }
}

/// One row of a table on some ranks.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Point {
    /// The lattice of the command line.
    pub lattice: String,
    /// The row's name.
    pub name: String,
    pub ranks: usize,
    /// Of an application, a solve or an exchange, on the slowest rank.
    pub seconds: f64,
    /// Seconds on the first number of ranks over these; for weak scaling, times ranks over those.
    pub speed: f64,
    /// Speed over ranks, relative to the first.
    pub efficiency: f64,
}

/// The measured times, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Points(Vec<Point>);

impl Points {
    /// Adds a time; a row that was not made on fewer ranks is compared with itself.
    pub(super) fn add(&mut self, lattice: String, name: String, ranks: usize, seconds: f64, weak: bool) {
        let same = |point: &&Point| (&point.lattice, &point.name) == (&lattice, &name);
        let (first, before) =
            self.0.iter().find(same).map_or((ranks, seconds), |first| (first.ranks, first.seconds));
        let more = ranks as f64 / first as f64;
        let speed = before / seconds * if weak { more } else { 1.0 };
        self.0.push(Point { lattice, name, ranks, seconds, speed, efficiency: speed / more });
    }

    /// The table: one line a row, its times on all numbers of ranks.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut told: Vec<(&str, &str)> = Vec::new();
        for Point { lattice, name, .. } in &self.0 {
            if told.contains(&(lattice, name)) {
                continue;
            }
            if told.iter().all(|(other, _)| other != lattice) {
                lines.push(format!("scaling, {lattice}: ranks, us, speed, efficiency"));
            }
            told.push((lattice, name));
            let all = self.0.iter().filter(|point| (&point.lattice, &point.name) == (lattice, name));
            let cells = all.map(|Point { ranks, seconds, speed, efficiency, .. }| {
                format!("  {ranks:4} {:11.2} {speed:6.2} {:4.0}%", 1e6 * seconds, 100.0 * efficiency)
            });
            lines.push(format!("  {name:40}{}", cells.collect::<String>()));
        }
        lines
    }

    /// For JSON.
    pub(super) fn into_inner(self) -> Vec<Point> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weak_grid_cuts_t_first() {
        let weak = Scaling { ranks: Vec::new(), weak: true };
        let grids = [1, 2, 4, 6, 16, 32].map(|count| weak.grid(count).unwrap());
        assert_eq!(grids, [[1; 4], [1, 1, 1, 2], [1, 1, 2, 2], [1, 1, 3, 2], [2; 4], [2, 2, 2, 4]]);
        assert_eq!(Scaling { ranks: Vec::new(), weak: false }.grid(2), None);
    }

    #[test]
    fn speeds_are_relative_to_the_first() {
        for (weak, speed) in [(false, 1.6), (true, 3.2)] {
            let mut points = Points::default();
            let mut add = |ranks, seconds| points.add("8x8x8x8".into(), "hop".into(), ranks, seconds, weak);
            add(2, 8e-6);
            add(4, 5e-6);
            assert_eq!(points.lines().len(), 2);
            let last = points.into_inner().pop().unwrap();
            assert!(
                (last.speed - speed).abs() < 1e-12 && (last.efficiency - speed / 2.0).abs() < 1e-12,
                "{last:?}"
            );
        }
    }
}
