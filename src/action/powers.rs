//! Powers of `W^dag W` by rational functions, and the check that the spectrum lies in their range.
//!
//! The ends of the spectrum are measured at the heat bath and at the value of every `check_every`-th trajectory, and of
//! the first one of a run, with the first pseudofermion. A trajectory fails if they are outside the range. What the solve saw of the spectrum is mostly
//! enough to tell that they are inside; else an iteration of its own follows.

use super::{ActionError, MARGIN, TOLERANCE, probe};
use crate::field::ODD;
use crate::math::{Factor, Rational, RationalError};
use crate::quark::{Quark, QuarkOperator};
use crate::solver::{Bounds, Tridiagonal};

/// An exponent, its numerator and denominator.
type Exponent = (i32, u32);

/// Parameters of the functions.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    /// The exponent of the heat bath's function.
    pub heat_bath: Exponent,
    /// The exponent of the action's and the force's functions.
    pub action: Exponent,
    /// The range of the spectrum of `W^dag W`.
    pub range: [f64; 2],
    /// Relative error on the range, for heat bath and action.
    pub action_error: f64,
    /// Relative error on the range, for the force.
    pub force_error: f64,
    /// Trajectories between measurements of the spectrum; at least 1.
    pub check_every: u64,
}

/// The functions of heat bath, action and force for one quark.
pub(super) struct Powers {
    pub heat_bath: Rational,
    pub action: Rational,
    pub force: Rational,
    check_every: u64,
    /// The trajectory, which keys the check's random vector.
    seed: u64,
    trajectory: u64,
    /// Whether this trajectory measures the spectrum.
    due: bool,
    measured: Option<Bounds>,
}

impl Powers {
    /// Makes the functions.
    ///
    /// # Errors
    /// The rational function does not exist.
    ///
    /// # Panics
    /// `check_every` is 0.
    pub(super) fn new(wanted: Wanted) -> Result<Self, RationalError> {
        let Wanted { heat_bath, action, range, action_error, force_error, check_every } = wanted;
        assert!(check_every > 0, "the spectrum is checked on some trajectories");
        let function = |power, error| Rational::to_error(&[Factor { shift: 0.0, power }], range, error);
        Ok(Self {
            heat_bath: function(heat_bath, action_error)?,
            action: function(action, action_error)?,
            force: function(action, force_error)?,
            check_every,
            seed: 0,
            trajectory: 0,
            due: true,
            measured: None,
        })
    }

    /// The ends of the spectrum from the last measurement.
    pub(super) fn measured(&self) -> Option<Bounds> {
        self.measured
    }

    /// Begins a trajectory, and decides whether it measures the spectrum.
    pub(super) fn begin(&mut self, seed: u64, trajectory: u64) {
        (self.seed, self.trajectory) = (seed, trajectory);
        self.due = self.measured.is_none() || trajectory.is_multiple_of(self.check_every);
    }

    /// Measures the spectrum of the quark, if this trajectory does, after a solve to `residual` that saw `lanczos`; only
    /// for the `first` pseudofermion, since all see the same links. `name` is the quark's name in messages.
    ///
    /// # Errors
    /// The spectrum is not well inside the range.
    pub(super) fn check<O: QuarkOperator>(
        &mut self,
        quark: &mut Quark<O>,
        name: &'static str,
        (lanczos, residual): (&Tridiagonal, f64),
        first: bool,
    ) -> Result<(), ActionError> {
        if !(self.due && first) {
            return Ok(());
        }
        let [lo, hi] = self.action.range;
        let inside =
            |least: f64, greatest: f64| lo <= (1.0 - MARGIN) * least && hi >= (1.0 + MARGIN) * greatest;
        let surely = |Bounds { least, greatest, errors: [below, above], .. }: &Bounds| {
            inside(least - below, greatest + above)
        };
        let bounds = match lanczos.bounds().filter(|bounds| residual <= TIGHT && surely(bounds)) {
            Some(bounds) => bounds,
            None => {
                let mut start = probe(quark.kind(), quark.domain(), ODD, self.seed, self.trajectory)?;
                quark.bounds(&mut start, TOLERANCE)?
            }
        };
        self.measured = Some(bounds);
        let Bounds { least, greatest, .. } = bounds;
        if !inside(least, greatest) {
            let wanted = [0.5 * least, 1.2 * greatest];
            return Err(ActionError::Range { quark: name, least, greatest, lo, hi, wanted });
        }
        Ok(())
    }
}

/// A loose solve ends before its Krylov space reaches the least eigenvalue. One to this residual reaches it, even if the
/// operator was in half for the last factor of 1000.
const TIGHT: f64 = 1e-9;

/// A measured end with as many digits as its error allows, two at least.
fn with_error((end, error): (f64, f64)) -> String {
    let digits = (end / error).log10().clamp(1.0, 4.0) as usize;
    format!("{end:.digits$e}")
}

impl std::fmt::Display for Powers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [lo, hi] = self.action.range;
        match self.measured {
            Some(Bounds { least, greatest, errors, .. }) => {
                let [least, greatest] = [(least, errors[0]), (greatest, errors[1])].map(with_error);
                write!(f, "spectrum [{least}, {greatest}] in the range [{lo:.1e}, {hi:.1e}]")?;
            }
            None => write!(f, "range [{lo:.1e}, {hi:.1e}], spectrum not yet measured")?,
        }
        for (name, r) in [("heat bath", &self.heat_bath), ("action", &self.action), ("force", &self.force)] {
            write!(f, "; {name} {} poles, error {:.1e}", r.poles.len(), r.error)?;
        }
        Ok(())
    }
}
