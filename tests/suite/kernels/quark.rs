//! A Wilson-clover quark in all precisions on thermalised links, for the tests of solvers.

use crate::devices::domain;
use crate::terms::OMELYAN;
use hmc::action::{Action, GaugeAction};
use hmc::device::Precision;
use hmc::family::{Wilson, WilsonParams};
use hmc::field::{Dagger, Domain, HostLinks, Kind, MatrixField, ODD, Purpose, RandomAddress, Spinor};
use hmc::hmc::{Chain, Level};
use hmc::lattice::Extents;
use hmc::operator::Operator;
use hmc::solver::{Info, Matrix, Operators, Params, Settings, SolverError, System};
use std::sync::{Arc, OnceLock};

pub const EXTENTS: Extents = [8; 4];

/// Quenched links at beta = 6.0 after 20 trajectories from unit links.
pub fn thermalised() -> &'static HostLinks {
    static LINKS: OnceLock<HostLinks> = OnceLock::new();
    LINKS.get_or_init(|| {
        let domain = domain(EXTENTS);
        let links = MatrixField::from_host(&domain, &HostLinks::unit(EXTENTS)).unwrap();
        let gauge: Box<dyn Action> = Box::new(GaugeAction::new(&domain, 6.0, [1.0, 0.0, 0.0]).unwrap());
        let level = Level { scheme: OMELYAN, steps: 8 };
        let mut chain = Chain::new(links, &[level], vec![vec![gauge]], 1.0, 5).unwrap();
        for number in 0..20 {
            chain.trajectory(number, true).unwrap();
        }
        chain.links.to_host().unwrap()
    })
}

/// x and what was done, or why not.
pub type Solved = Result<(Spinor, Info), SolverError>;

/// The operator in all precisions.
pub struct Quark {
    pub domain: Arc<Domain>,
    pub all: [Wilson; 3],
}

impl Quark {
    /// On links of this domain, for each precision its own.
    pub fn new(domain: &Arc<Domain>, links: [&HostLinks; 3], params: WilsonParams) -> Self {
        let all = [0, 1, 2].map(|n| {
            let field = MatrixField::from_host(domain, links[n]).unwrap();
            let mut clover = Wilson::clover_term(domain, &params).unwrap();
            if let Some(clover) = &mut clover {
                clover.update(&field).unwrap();
            }
            let mut operator = Wilson::on_all_sites(domain, Precision::ALL[n], 12, params).unwrap();
            operator.update(&field, clover.as_ref()).unwrap();
            operator
        });
        Self { domain: Arc::clone(domain), all }
    }

    pub fn operators(&mut self) -> Operators<'_> {
        let [double, single, half] = &mut self.all;
        Operators { double, single: Some(single), half: Some(half) }
    }

    pub fn spinor(&self) -> Spinor {
        Spinor::new(&self.domain, Precision::Double).unwrap()
    }

    /// Gaussians, for each number others.
    pub fn random(&self, number: u8) -> Spinor {
        let mut b = self.spinor();
        let address = RandomAddress { seed: 3, trajectory: 0, purpose: Purpose::Probe(number) };
        b.set_random(ODD, 1.0, address).unwrap();
        b
    }

    /// Solves `M^dag M x = b` from zero.
    pub fn solve(&mut self, settings: Settings, b: &Spinor, residual: f64) -> Solved {
        let mut solver = settings.solver(&self.domain, Kind::Dirac, 1).unwrap();
        let mut x = self.spinor();
        let goal = Params { residual, max_iterations: settings.max_iterations };
        let info = solver.normal().solve(&mut self.operators(), &mut x, b, goal)?;
        Ok((x, info))
    }

    /// Solves `M x = b` or `M^dag x = b` from zero.
    pub fn solve_one(&mut self, settings: Settings, matrix: Matrix, b: &Spinor, residual: f64) -> Solved {
        let mut solver = settings.linear_solver(&self.domain, 1).unwrap().expect("a solver of M x = b");
        let mut x = self.spinor();
        let goal = Params { residual, max_iterations: settings.max_iterations };
        let mut operators = self.operators();
        let info = solver.solve(&mut System { operators: &mut operators, matrix }, &mut x, b, goal)?;
        Ok((x, info))
    }

    /// `|b - M^dag M x| / |b|`, by another way than the solvers'.
    pub fn residual(&mut self, x: &Spinor, b: &Spinor) -> f64 {
        let [mut y, mut z] = [self.spinor(), self.spinor()];
        self.all[0].apply(&mut y, x, Dagger::No).unwrap();
        self.all[0].apply(&mut z, &y, Dagger::Yes).unwrap();
        relative(&z, b)
    }
}

/// `|x - y| / |y|`
pub fn relative(x: &Spinor, y: &Spinor) -> f64 {
    let mut difference = Spinor::new(x.domain(), Precision::Double).unwrap();
    difference.copy_from(x).unwrap();
    difference.axpy(-1.0, y).unwrap();
    (difference.norm2().unwrap().value() / y.norm2().unwrap().value()).sqrt()
}
