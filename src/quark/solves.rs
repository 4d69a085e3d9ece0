//! Statistics of a quark's solves, for logs.

use crate::solver::Info;

/// Statistics of a term's solves since the heat bath.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Solves {
    /// Number of solves.
    pub count: usize,
    /// Their sum; the residual is the greatest.
    pub total: Info,
}

impl Solves {
    /// Counts one more solve.
    pub fn add(&mut self, info: &Info) {
        self.count += 1;
        self.total.add(info);
    }

    /// The sum with the solves of another quark.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        self.count += other.count;
        self.total.add(&other.total);
        self
    }
}

impl std::fmt::Display for Solves {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Info { iterations, updates, fallbacks, applications, residual, .. } = self.total;
        let Info { setups, setup_seconds, coarse_iterations, coarsest_iterations, .. } = self.total;
        let share = |part: f64| 100.0 * part / self.total.seconds.max(1e-30);
        write!(
            f,
            "{} solves: {iterations} iterations, {updates} updates, {applications} applications, greatest residual \
             {residual:.1e}, {:.2} s",
            self.count, self.total.seconds,
        )?;
        // Zero on a GPU, which works asynchronously, unless it is profiled.
        if self.total.operator_seconds > 0.0 {
            write!(
                f,
                " (operator {:.0}%, preconditioner {:.0}%, messages {:.0}%)",
                share(self.total.operator_seconds),
                share(self.total.preconditioner_seconds),
                share(self.total.communication_seconds)
            )?;
        }
        if setups > 0 {
            write!(
                f,
                "; multigrid made or adapted {setups} times in {setup_seconds:.2} s, {coarse_iterations} coarse iterations"
            )?;
            if coarsest_iterations > 0 {
                write!(f, ", {coarsest_iterations} on the third level")?;
            }
        }
        if fallbacks > 0 {
            write!(f, "; {fallbacks} fallbacks to a higher precision or another method")?;
        }
        Ok(())
    }
}
