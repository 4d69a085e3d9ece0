//! Two degenerate flavours of Wilson(-clover) quarks:
//!
//! ```text
//! S = phi^dag (Mhat^dag Mhat)^-1 phi - 2 log det A_ee  (symmetric form: - 2 log det A_ee A_oo).
//! ```
//!
//! With X = (Mhat^dag Mhat)^-1 phi and Y = Mhat X on odd sites (times A_oo^-1 in the symmetric form), completed
//! to even sites by A_ee^-1 D_eo / 2 (its adjoint for Y), the change under dU is -2 Re Y^dag dM X with the full M
//! (openQCD, "Lattice QCD with twisted-mass Wilson-clover quarks"; Jansen, Liu, hep-lat/9603008).

use super::{Action, ActionError, pseudofermion};
use crate::device::{HopForceArgs, Precision};
use crate::field::{AlgebraField, Domain, EVEN, FaceSource, Faces, FieldError, MatrixField, ODD, Spinor};
use crate::math::ExactSum;
use crate::operator::{CloverTerm, Operator, Schur, Wilson, WilsonParams};
use crate::solver::{Cg, Guess, Info, Params};
use std::sync::Arc;

/// What a two-flavour term needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct TwoFlavourParams {
    /// Its name in the input.
    pub name: String,
    /// The operator.
    pub operator: WilsonParams,
    /// Precision of the iterations.
    pub precision: Precision,
    /// Reals of a link in the operator: 18 or 12.
    pub link_reals: usize,
    /// `|b - A x| / |b|` for the action.
    pub action_residual: f64,
    /// The same for the force.
    pub force_residual: f64,
    /// More iterations are an error.
    pub max_iterations: usize,
    /// Past solutions from which the next is guessed.
    pub guess: usize,
    /// Tells pseudofermions of one run apart.
    pub number: u8,
}

/// Two degenerate flavours.
pub struct TwoFlavour {
    params: TwoFlavourParams,
    domain: Arc<Domain>,
    clover: Option<CloverTerm>,
    double: Wilson,
    single: Option<Wilson>,
    solver: Cg,
    guess: Guess,
    phi: Spinor,
    x: [Spinor; 2],
    y: [Spinor; 2],
    faces_x: Faces,
    faces_y: Faces,
    insertion: Option<MatrixField>,
}

impl TwoFlavour {
    /// Room for the term.
    ///
    /// # Errors
    /// No room.
    pub fn new(domain: &Arc<Domain>, params: TwoFlavourParams) -> Result<Self, FieldError> {
        let spinor = || Spinor::new(domain, Precision::Double);
        let faces = || Faces::new(domain, Precision::Double, true);
        let clover = Wilson::clover_term(domain, &params.operator)?;
        let single = (params.precision == Precision::Single)
            .then(|| Wilson::new(domain, Precision::Single, params.link_reals, params.operator))
            .transpose()?;
        Ok(Self {
            domain: Arc::clone(domain),
            insertion: clover.as_ref().map(|_| MatrixField::new(domain, 6)).transpose()?,
            clover,
            double: Wilson::new(domain, Precision::Double, params.link_reals, params.operator)?,
            single,
            solver: Cg::new(domain, params.precision)?,
            guess: Guess::new(params.guess),
            phi: spinor()?,
            x: [spinor()?, spinor()?],
            y: [spinor()?, spinor()?],
            faces_x: faces()?,
            faces_y: faces()?,
            params,
        })
    }

    fn update(&mut self, links: &MatrixField) -> Result<(), ActionError> {
        if let Some(clover) = &mut self.clover {
            clover.update(links)?;
        }
        self.double.update(links, self.clover.as_ref())?;
        if let Some(single) = &mut self.single {
            single.update(links, self.clover.as_ref())?;
        }
        Ok(())
    }

    /// X on odd sites, to `residual`, from what `x` holds.
    fn solve(&mut self, residual: f64) -> Result<Info, ActionError> {
        let params = Params { residual, max_iterations: self.params.max_iterations };
        let sloppy = self.single.as_mut().map(|s| s as &mut dyn Operator);
        Ok(self.solver.solve(&mut self.double, sloppy, &mut self.x[ODD], &self.phi, params)?)
    }

    /// `-2 log det A` over the parities that belong to the action.
    fn log_det(&self) -> ExactSum {
        let one = self.clover.as_ref().map(CloverTerm::log_det).unwrap_or_default();
        ExactSum::default() - one - one
    }

    /// Sets the pseudofermion: for tests and replays. Host reals as `Spinor::read_host` takes them.
    ///
    /// # Errors
    /// The device is lost.
    pub fn set_phi(&mut self, reals: &[f64]) -> Result<(), FieldError> {
        self.phi.read_host(ODD, reals)
    }

    fn add_hop_force(&mut self, links: &MatrixField, force: &mut AlgebraField) -> Result<(), FieldError> {
        let (phases, phase_mask) = self.double.links().phases();
        for parity in [EVEN, ODD] {
            let source = |input: &Spinor, dagger| FaceSource {
                input: input.pointer(),
                parity: 1 - parity,
                links: Default::default(),
                reals: 18,
                dagger,
            };
            self.faces_x.exchange(source(&self.x[1 - parity], false), || Ok(()))?;
            self.faces_y.exchange(source(&self.y[1 - parity], true), || Ok(()))?;
            let forward = |ghosts: [crate::device::Pointer; 8]| std::array::from_fn(|mu| ghosts[2 * mu]);
            let args = HopForceArgs {
                g: self.domain.geometry(),
                links: links.pointer(),
                force: force.pointer(),
                x_here: self.x[parity].pointer(),
                y_here: self.y[parity].pointer(),
                x_there: self.x[1 - parity].pointer(),
                y_there: self.y[1 - parity].pointer(),
                ghost_x: forward(self.faces_x.ghosts()),
                ghost_y: forward(self.faces_y.ghosts()),
                phases,
                parity: parity as i32,
                ghost_mask: self.faces_x.mask(),
                phase_mask,
                pad: 0,
                scale: 1.0,
            };
            self.domain.launch("hop_force", Precision::Double, &args, self.domain.half())?;
        }
        Ok(())
    }
}

impl Action for TwoFlavour {
    fn name(&self) -> &str {
        &self.params.name
    }

    fn refresh(&mut self, links: &MatrixField, seed: u64, trajectory: u64) -> Result<ExactSum, ActionError> {
        self.guess.forget();
        self.update(links)?;
        // phi = Mhat^dag eta with weight exp(-|eta|^2)
        let address = pseudofermion(seed, trajectory, self.params.number);
        self.x[ODD].set_random(ODD, 0.5f64.sqrt(), address)?;
        self.double.apply(&mut self.phi, &self.x[ODD], true)?;
        Ok(self.x[ODD].norm2()? + self.log_det())
    }

    fn value(&mut self, links: &MatrixField) -> Result<ExactSum, ActionError> {
        self.update(links)?;
        self.x[ODD].set_zero()?;
        self.solve(self.params.action_residual)?;
        Ok(self.phi.real_dot(&self.x[ODD])? + self.log_det())
    }

    fn add_force(&mut self, links: &MatrixField, force: &mut AlgebraField) -> Result<usize, ActionError> {
        self.update(links)?;
        self.guess.start(&mut self.double, &mut self.x[ODD], &self.phi)?;
        let info = self.solve(self.params.force_residual)?;
        self.guess.remember(&self.domain, &self.x[ODD])?;
        let symmetric = self.params.operator.schur == Schur::Symmetric;
        let [y_even, y_odd] = &mut self.y;
        if symmetric {
            self.double.apply(y_even, &self.x[ODD], false)?;
            self.double.odd_inverse(y_odd, y_even)?;
        } else {
            self.double.apply(y_odd, &self.x[ODD], false)?;
        }
        if let (Some(clover), Some(insertion)) = (&self.clover, &mut self.insertion) {
            insertion.set_zero()?;
            let [x_even, x_odd] = &mut self.x;
            if symmetric {
                // On odd sites the term acts on X - Mhat X: d(A^-1 B) = A^-1 (dB - dA A^-1 B).
                x_even.copy_from(x_odd)?;
                x_even.axpy(-1.0, y_even)?;
                clover.insert_pair(insertion, x_even, y_odd, ODD)?;
            } else {
                clover.insert_pair(insertion, x_odd, y_odd, ODD)?;
            }
        }
        let [x_even, x_odd] = &mut self.x;
        self.double.complete(x_even, x_odd, false)?;
        self.double.complete(y_even, y_odd, true)?;
        if let (Some(clover), Some(insertion)) = (&self.clover, &mut self.insertion) {
            clover.insert_pair(insertion, x_even, y_even, EVEN)?;
            clover.insert_log_det(insertion)?;
            clover.add_force(links, insertion, force)?;
        }
        self.add_hop_force(links, force)?;
        Ok(info.iterations)
    }
}
