//! `M x = b` on all sites, for measurements and for some terms.

use super::{Eliminated, Goal, Quark, QuarkError, QuarkOperator, QuarkParams, Start};
use crate::device::Precision;
use crate::field::{Dagger, Domain, FieldError, Kind, MatrixField, Spinor};
use crate::solver::{Forecast, Info};
use std::sync::Arc;

/// Fields on all sites: `[parity][number]`, equally many on even and odd sites.
pub type Fields = [Vec<Spinor>; 2];

/// Makes `count` fields of one kind, zero everywhere.
pub fn fields(domain: &Arc<Domain>, kind: Kind, count: usize) -> Result<Fields, FieldError> {
    let several = || (0..count).map(|_| Spinor::of(domain, kind, Precision::Double, 1)).collect();
    let [even, odd]: [Result<_, FieldError>; 2] = [several(), several()];
    Ok([even?, odd?])
}

/// A quark on the links of one configuration, for solving `M x = b` on all sites.
pub trait Inverse {
    /// This rank's box.
    fn domain(&self) -> &Arc<Domain>;
    /// The kind of its fields.
    fn kind(&self) -> Kind;
    /// The maximum number of systems solved at once.
    fn together(&self) -> usize;
    /// The flavours that M mixes. System n has the fields from number `n flavours` on, one of each flavour.
    fn flavours(&self) -> usize {
        1
    }
    /// Solves `M x_n = b_n` on even and odd sites; the content of `x` is overwritten. The residual is that of the systems
    /// that are solved for it.
    ///
    /// # Panics
    /// There are more right-hand sides than can be solved at once.
    fn solve(&mut self, x: &mut Fields, b: &Fields) -> Result<Info, QuarkError>;
    /// For a quark with a fifth dimension, after a solve for the right-hand sides `b`: x and y such that
    /// `Re y_n^dag x_n` is the density of J5q, the pseudoscalar at the midpoint, with the source.
    fn midpoint(&mut self, _b: &Fields) -> Result<Option<[Fields; 2]>, QuarkError> {
        Ok(None)
    }
}

/// Workspace of solves on all sites.
pub struct AllSites {
    rhs: Vec<Spinor>,
    /// The solutions of the even-odd system; a later solve may start from them.
    y: Vec<Spinor>,
    spare: Spinor,
    /// Other solutions, if solves start from them.
    forecast: Option<Forecast>,
}

impl AllSites {
    /// Workspace for `count` right-hand sides at once.
    pub fn new(domain: &Arc<Domain>, kind: Kind, count: usize) -> Result<Self, FieldError> {
        Self::with_forecast(domain, kind, count, 0)
    }

    /// As [`AllSites::new`]; solves start from the best combination of the last `keep` solutions of similar systems.
    pub fn with_forecast(
        domain: &Arc<Domain>,
        kind: Kind,
        count: usize,
        keep: usize,
    ) -> Result<Self, FieldError> {
        let [rhs, y] = fields(domain, kind, count)?;
        let spare = Spinor::of(domain, kind, Precision::Double, 1)?;
        let forecast = (keep > 0).then(|| Forecast::new(domain, kind, keep)).transpose()?;
        Ok(Self { rhs, y, spare, forecast })
    }

    /// The next solve is the first of its series.
    pub fn forget(&mut self) {
        self.forecast.iter_mut().for_each(Forecast::forget);
    }
}

impl<O: QuarkOperator> Quark<O> {
    /// Solves `M x_n = b_n` on even and odd sites: eliminates even sites, solves what is left to `goal.residual`, and computes x_n
    /// from y_n. A system `W y_n = rhs_n` is solved as it is by methods that can, otherwise as `W^dag W y_n = W^dag rhs_n`.
    ///
    /// # Panics
    /// There are more right-hand sides than the workspace holds.
    pub fn solve_full(
        &mut self,
        AllSites { rhs, y, spare, forecast }: &mut AllSites,
        [x_even, x_odd]: [&mut [Spinor]; 2],
        [b_even, b_odd]: [&[Spinor]; 2],
        goal: Goal,
    ) -> Result<Info, QuarkError> {
        let count = b_even.len();
        let (rhs, y) = (&mut rhs[..count], &mut y[..count]);
        let directly = self.solves_linear_systems() && goal.start == Start::Zero && forecast.is_none();
        let mut left = Eliminated::Normal;
        for (n, rhs) in rhs.iter_mut().enumerate() {
            left = self.operator().0.eliminate(rhs, [&b_even[n], &b_odd[n]], spare)?;
            if left == Eliminated::Linear && !directly {
                std::mem::swap(rhs, spare);
                self.apply(rhs, spare, Dagger::Yes)?;
            }
        }
        let info = if left == Eliminated::Linear && directly {
            self.solve_linear(y, rhs, goal.residual)?
        } else if let Some(forecast) = forecast {
            let operator = self.operator().0;
            y.iter_mut().zip(&*rhs).try_for_each(|(y, rhs)| forecast.start(operator, y, rhs))?;
            let info = self.solve_from(y, rhs, Goal { start: Start::Given, ..goal })?;
            y.iter().try_for_each(|y| forecast.remember(y))?;
            info
        } else {
            self.solve_from(y, rhs, goal)?
        };
        for (n, y) in y.iter().enumerate() {
            let x = [&mut x_even[n], &mut x_odd[n]];
            self.operator().0.reconstruct(x, y, &b_even[n], spare)?;
        }
        Ok(info)
    }
}

/// A quark on the links of one configuration, with everything for its inverse.
pub struct FullInverse<O: QuarkOperator> {
    quark: Quark<O>,
    all_sites: AllSites,
    residual: f64,
}

impl<O: QuarkOperator> FullInverse<O> {
    /// The quark on `links`, with the solver of `params`. `residual` is that of the [systems](Quark::solve_full) on odd sites.
    /// With conjugate gradients, up to `fields` right-hand sides are solved at once.
    ///
    /// # Errors
    /// The clover term cannot be inverted, or memory runs out.
    pub fn on(
        links: &MatrixField,
        params: &QuarkParams<O::Params>,
        fields: usize,
        residual: f64,
    ) -> Result<Self, QuarkError> {
        let domain = links.domain();
        let mut quark = Quark::with_fields(domain, params, fields)?;
        quark.update(links)?;
        let all_sites = AllSites::new(domain, quark.kind(), quark.together())?;
        Ok(Self { quark, all_sites, residual })
    }

    /// As [`Inverse::solve`], for the first `count` fields.
    ///
    /// # Panics
    /// There are more right-hand sides than can be solved at once.
    pub fn solve_some(&mut self, x: &mut Fields, b: &Fields, count: usize) -> Result<Info, QuarkError> {
        let goal = Goal { residual: self.residual, start: Start::Zero };
        let x = x.each_mut().map(|x| &mut x[..count]);
        self.quark.solve_full(&mut self.all_sites, x, b.each_ref().map(|b| &b[..count]), goal)
    }
}

impl<O: QuarkOperator> Inverse for FullInverse<O> {
    fn domain(&self) -> &Arc<Domain> {
        self.quark.domain()
    }

    fn kind(&self) -> Kind {
        self.quark.kind()
    }

    fn together(&self) -> usize {
        self.quark.together()
    }

    fn solve(&mut self, x: &mut Fields, b: &Fields) -> Result<Info, QuarkError> {
        self.solve_some(x, b, b[0].len())
    }
}
