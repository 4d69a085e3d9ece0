//! Rooted improved staggered quarks (RHMC): any number of pseudofermions on links that are smeared once for all of
//! them:
//!
//! ```text
//! S = sum_k |a_k(-D_k^2) phi_k|^2,   a_k(x) ~ prod_i (x + 4 m_i^2)^(-p_i / 2 q_i),
//! ```
//!
//! on even sites. The weight is `prod det(M^dag M at m_i)^(p_i / q_i)` (Clark, Kennedy, hep-lat/0608015; MILC,
//! arXiv:1004.0342). Heat bath: `phi = h(-D^2) eta`, `h ~ 1 / a`. The force is that of `phi^dag f(-D^2) phi` with
//! `f ~ a^2`, `f(x) = c + sum_n r_n / (x + p_n)`. `X_n = (-D^2 + p_n)^-1 phi` give gradients with respect to fat and
//! long links (`kernels/staggered.cuh`), which are summed over all poles and pseudofermions before they pass through
//! the smearing.
//!
//! -D^2 is not negative and masses are shifts, so only the upper end of the spectrum is measured. What a solve for all
//! shifts saw of it is mostly enough; else an iteration of its own follows.

use super::{Smearing, Staggered, StaggeredLinks};
use crate::action::{
    Action, ActionError, InnerPoles, MARGIN, Pseudofermion, TOLERANCE, TermHeader, TermReport, probe,
    pseudofermion,
};
use crate::device::kernels::{StaggeredForce, int};
use crate::device::{Buffer, Precision};
use crate::field::{
    AlgebraField, Crossing, Domain, EVEN, FaceData, FaceSource, Faces, FieldError, Kind, MatrixField, ODD,
    Spinor,
};
use crate::lattice::Boundary;
use crate::math::{ExactSum, Rational};
use crate::quark::{Solves, TOGETHER, combine};
use crate::solver::{Cg, Mixed, MultiInfo, MultiShift, Params, SolverError, Tridiagonal, greatest};
use std::ops::Range;
use std::sync::Arc;

/// Parameters of the term.
#[derive(Clone, Debug, PartialEq)]
pub struct RootedParams {
    /// Name and residuals: `|b - A x| / |b|` of every pole.
    pub header: TermHeader,
    /// The smearing of links.
    pub smearing: Smearing,
    /// Factors of hops over the edge of the lattice.
    pub boundary: Boundary,
    /// The solver's settings.
    pub solver: RootedSolver,
    /// At least one.
    pub pseudofermions: Vec<RootedPseudofermion>,
}

/// The solver of the poles' systems.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RootedSolver {
    /// The precisions of the iteration for all poles, and of those for single poles; half only for single ones.
    pub precisions: [Precision; 2],
    /// The factor by which the residual falls between updates.
    pub delta: f64,
    /// Whether to solve all poles in one iteration. Otherwise one pole at a time, from the greatest, each from the
    /// solution before.
    pub multi_shift: bool,
    /// Reals per long link in the operator: 18, 14 or 9.
    pub long_reals: usize,
    /// `|b - A x| / |b|` of every pole in the heat bath.
    pub heat_bath_residual: f64,
    /// The maximum number of iterations; more are an error.
    pub max_iterations: usize,
}

/// One pseudofermion.
#[derive(Clone, Debug, PartialEq)]
pub struct RootedPseudofermion {
    /// Correction to the Naik term.
    pub naik_epsilon: f64,
    /// h, a function of -D^2.
    pub heat_bath: Rational,
    /// a.
    pub action: Rational,
    /// f.
    pub force: Rational,
    /// The greatest poles of f, or all, if their force is a part with a name of its own. Pseudofermions may share it.
    pub inner: Option<InnerPoles>,
    /// Trajectories between measurements of the spectrum's upper end; at least 1.
    pub check_every: u64,
}

/// The operator with one correction to the Naik term.
struct Quark {
    naik_epsilon: f64,
    w: Mixed<Staggered>,
    /// The upper end of -D^2 from the last measurement.
    greatest: Option<f64>,
    /// Whether this trajectory measures it.
    due: bool,
}

/// The operators, and the settings of their systems' solver, whose memory exists only during a solve.
struct Systems {
    domain: Arc<Domain>,
    settings: RootedSolver,
    quarks: Vec<Quark>,
    solves: Solves,
}

/// A pseudofermion, and the index of its quark.
struct Root {
    functions: RootedPseudofermion,
    quark: usize,
    phi: Spinor,
    /// The function of the force in each part; `None` where it has no pole.
    parts: Vec<Option<Rational>>,
}

/// Workspace for the gradients of several poles at once.
struct Outer {
    even: Spinor,
    odd: Spinor,
    faces: Faces,
    /// The weights of the group's poles.
    weights: Buffer,
}

/// The term.
pub struct Rooted {
    params: RootedParams,
    domain: Arc<Domain>,
    links: StaggeredLinks,
    systems: Systems,
    roots: Vec<Root>,
    /// Those that have one quark and the same functions, whose systems are solved together.
    alike: Vec<Range<usize>>,
    outer: Outer,
    /// The names of the parts of the force; the first is the term's.
    parts: Vec<String>,
    /// Projections close to singular matrices since the heat bath.
    singular: u64,
    seed: u64,
    trajectory: u64,
}

/// Poles whose gradients are added at once.
const GROUP: usize = TOGETHER;

impl Rooted {
    /// Allocates the term.
    ///
    /// # Panics
    /// There is no pseudofermion, one has fewer poles than inner ones, or the domain's borders are thinner than two
    /// layers.
    pub fn new(domain: &Arc<Domain>, params: RootedParams) -> Result<Self, FieldError> {
        let settings = params.solver;
        let mut epsilons: Vec<f64> = Vec::new();
        let mut roots = Vec::new();
        let mut parts = vec![params.header.name.clone()];
        for inner in params.pseudofermions.iter().filter_map(|functions| functions.inner.as_ref()) {
            if !parts.contains(&inner.name) {
                parts.push(inner.name.clone());
            }
        }
        for functions in params.pseudofermions.iter().cloned() {
            let known = epsilons.iter().position(|e| *e == functions.naik_epsilon);
            let quark = known.unwrap_or(epsilons.len());
            if known.is_none() {
                epsilons.push(functions.naik_epsilon);
            }
            let parts = parts.iter().map(|name| functions.part(name, &params.header.name)).collect();
            roots.push(Root { functions, quark, phi: Spinor::colour(domain, Precision::Double)?, parts });
        }
        let alike = alike(&roots);
        let together = alike.iter().map(Range::len).max().unwrap_or(1);
        // The force takes several solutions at once.
        let operator = |precision| {
            let fields = if precision == Precision::Double { GROUP } else { together };
            Staggered::new(domain, precision, settings.long_reals, fields, params.boundary)
        };
        let quark = |naik_epsilon| -> Result<Quark, FieldError> {
            let [iteration, refinement] = settings.precisions;
            Ok(Quark {
                naik_epsilon,
                w: Mixed::new(|lower| (iteration..=refinement).contains(&lower), operator)?,
                greatest: None,
                due: true,
            })
        };
        let group = || Spinor::of(domain, Kind::Colour, Precision::Double, GROUP);
        Ok(Self {
            domain: Arc::clone(domain),
            links: StaggeredLinks::new(domain, params.smearing)?,
            systems: Systems {
                domain: Arc::clone(domain),
                settings,
                quarks: epsilons.into_iter().map(quark).collect::<Result<_, _>>()?,
                solves: Solves::default(),
            },
            roots,
            alike,
            outer: Outer {
                even: group()?,
                odd: group()?,
                faces: Faces::new(domain, Precision::Double, GROUP, (Crossing::ColourVectors, &[true]), 0)?,
                weights: domain.device().buffer(GROUP * size_of::<f64>())?,
            },
            parts,
            singular: 0,
            seed: 0,
            trajectory: 0,
            params,
        })
    }

    /// Smears `links`, and updates the operators with the smeared links.
    fn update(&mut self, links: &MatrixField) -> Result<(), FieldError> {
        self.singular += self.links.update(links)?;
        let mut fat = MatrixField::new(&self.domain, 4)?;
        for quark in &mut self.systems.quarks {
            self.links.fat(quark.naik_epsilon, &mut fat)?;
            let naik = self.links.naik(quark.naik_epsilon);
            for operator in quark.w.all() {
                operator.update(&fat, self.links.long(), naik)?;
            }
        }
        self.links.release();
        Ok(())
    }

    /// Measures the upper end of the spectrum of the quark of pseudofermion `number`, if it is due and this is the quark's
    /// first, after a solve that saw `lanczos`.
    fn check(&mut self, number: usize, lanczos: &Tridiagonal) -> Result<(), ActionError> {
        let k = self.roots[number].quark;
        let quark = &mut self.systems.quarks[k];
        if !quark.due || self.roots[..number].iter().any(|root| root.quark == k) {
            return Ok(());
        }
        let own = self.roots.iter().filter(|root| root.quark == k);
        let ends = own.flat_map(|root| root.functions.all()).map(|function| function.range[1]);
        let ceiling = ends.fold(f64::MAX, f64::min);
        let inside = |greatest: f64| ceiling >= (1.0 + MARGIN) * greatest;
        let found = match lanczos.bounds().filter(|seen| inside(seen.greatest + seen.errors[1])) {
            Some(seen) => seen.greatest,
            None => {
                let mut start = probe(Kind::Colour, &self.domain, EVEN, self.seed, self.trajectory)?;
                let iterations = self.params.solver.max_iterations;
                greatest(&mut quark.w.double, &mut start, TOLERANCE, iterations)?
            }
        };
        quark.greatest = Some(found);
        if !inside(found) {
            return Err(ActionError::Ceiling { greatest: found, ceiling, wanted: 1.2 * found });
        }
        Ok(())
    }

    /// Solves the systems of pseudofermions that are alike.
    fn solve(
        &mut self,
        alike: &Range<usize>,
        poles: &[f64],
        residual: f64,
    ) -> Result<Vec<(MultiInfo, Vec<Spinor>)>, ActionError> {
        let roots = &self.roots[alike.clone()];
        let phi: Vec<&Spinor> = roots.iter().map(|root| &root.phi).collect();
        self.systems.solve(roots[0].quark, poles, &phi, residual)
    }

    /// Adds the gradients of a pseudofermion whose force has this `function`, from the solutions for its poles.
    fn add_gradients(&mut self, quark: usize, function: &Rational, x: &[Spinor]) -> Result<(), FieldError> {
        let Quark { naik_epsilon: epsilon, w: Mixed { double, .. }, .. } = &mut self.systems.quarks[quark];
        let Outer { even, odd, faces, weights } = &mut self.outer;
        let poles = x.chunks(GROUP).zip(function.residues.chunks(GROUP));
        for (solutions, residues) in poles {
            even.set_active(solutions.len());
            odd.set_active(solutions.len());
            for (n, x) in solutions.iter().enumerate() {
                even.set_field(n, x)?;
            }
            double.hop(odd, even, ODD, 1.0, None)?;
            weights.write(residues)?;
            for parity in [EVEN, ODD] {
                let (here, there) = if parity == EVEN { (&*even, &*odd) } else { (&*odd, &*even) };
                let data = FaceData::ColourVectors(there.fermions());
                faces.exchange(FaceSource { parity: 1 - parity, data }, solutions.len())?;
                let long_weight = self.links.naik(*epsilon);
                let gradients = self.links.gradients(*epsilon)?;
                let kernel = StaggeredForce {
                    g: self.domain.geometry(),
                    fat: gradients.fat.links_mut(),
                    lng: gradients.long.links_mut(),
                    one: gradients.one.map(MatrixField::links_mut),
                    here: here.fermions(),
                    there: there.fermions(),
                    ghost: faces.ghosts_of(true),
                    weights: weights.input(),
                    phases: double.phases(),
                    parity: int(parity),
                    ghost_mask: faces.mask(),
                    fields: int(solutions.len()),
                    fat_weight: 1.0,
                    long_weight,
                    one_weight: *epsilon / 8.0,
                };
                self.domain.launch(&kernel, self.domain.half())?;
            }
        }
        Ok(())
    }
}

/// Neighbours that have one quark and the same functions, up to as many as are solved together.
fn alike(roots: &[Root]) -> Vec<Range<usize>> {
    let mut first = 0;
    let same = |a: &Root, b: &Root| (a.quark, &a.functions) == (b.quark, &b.functions);
    let some = roots.chunk_by(same).flat_map(|all| all.chunks(TOGETHER)).map(|some| {
        first += some.len();
        first - some.len()..first
    });
    some.collect()
}

impl RootedPseudofermion {
    fn all(&self) -> [&Rational; 3] {
        [&self.heat_bath, &self.action, &self.force]
    }

    /// The function of the force in the part `name`; `term` is that of all poles which no inner part has.
    fn part(&self, name: &str, term: &str) -> Option<Rational> {
        let poles = self.inner.as_ref().map_or(0, |inner| inner.poles);
        let [outside, inside] = self.force.split(self.force.degree() - poles);
        let function = match &self.inner {
            Some(inner) if inner.name == name => inside,
            _ if name == term => outside,
            _ => return None,
        };
        (function.degree() > 0).then_some(function)
    }
}

impl Systems {
    /// `x_n = (-D^2 + p_n)^-1 phi` for all poles; returns what each phi took and saw of the spectrum, and its x.
    fn solve(
        &mut self,
        quark: usize,
        poles: &[f64],
        phi: &[&Spinor],
        residual: f64,
    ) -> Result<Vec<(MultiInfo, Vec<Spinor>)>, ActionError> {
        let RootedSolver { precisions, delta, multi_shift, max_iterations, .. } = self.settings;
        let (domain, kind, params) = (&self.domain, Kind::Colour, Params { residual, max_iterations });
        let mut operators = self.quarks[quark].w.operators();
        let zeros = |_: &&Spinor| poles.iter().map(|_| Spinor::colour(domain, Precision::Double)).collect();
        let mut x: Vec<Vec<Spinor>> = phi.iter().map(zeros).collect::<Result<_, _>>()?;
        let infos = if multi_shift {
            let mut x: Vec<_> = x.iter_mut().map(Vec::as_mut_slice).collect();
            let shifts = MultiShift::new(domain, kind, precisions, delta, GROUP);
            shifts.solve_several(&mut operators, &mut x, phi, poles, params)?
        } else {
            let mut cg = Cg::new(domain, kind, precisions[1], delta)?;
            let mut one_by_one = |(x, b): (&mut Vec<Spinor>, &&Spinor)| -> Result<_, SolverError> {
                let mut info = MultiInfo::default();
                for n in (0..poles.len()).rev() {
                    let (below, above) = x.split_at_mut(n + 1);
                    if let Some(above) = above.first() {
                        below[n].copy_from(above)?;
                    }
                    info.total.add(&cg.solve_shifted(&mut operators, poles[n], &mut below[n], b, params)?);
                }
                Ok(info)
            };
            x.iter_mut().zip(phi).map(&mut one_by_one).collect::<Result<_, _>>()?
        };
        infos.iter().for_each(|info| self.solves.add(&info.total));
        Ok(infos.into_iter().zip(x).collect())
    }
}

impl Action for Rooted {
    fn name(&self) -> &str {
        &self.params.header.name
    }

    fn refresh(&mut self, links: &MatrixField, seed: u64, trajectory: u64) -> Result<ExactSum, ActionError> {
        self.systems.solves = Solves::default();
        self.singular = 0;
        (self.seed, self.trajectory) = (seed, trajectory);
        for (k, quark) in self.systems.quarks.iter_mut().enumerate() {
            let mut own = self.roots.iter().filter(|root| root.quark == k);
            let due = own.any(|root| trajectory.is_multiple_of(root.functions.check_every));
            quark.due = due || quark.greatest.is_none();
        }
        self.update(links)?;
        let mut weight = ExactSum::default();
        for (root, number) in self.roots.iter_mut().zip(self.params.header.number..) {
            root.phi.set_random(EVEN, 0.5f64.sqrt(), pseudofermion(seed, trajectory, number))?;
            weight += root.phi.norm2()?;
        }
        for alike in self.alike.clone() {
            let r = self.roots[alike.start].functions.heat_bath.clone();
            let solved = self.solve(&alike, &r.poles, self.params.solver.heat_bath_residual)?;
            let mut roots = self.roots[alike.clone()].iter_mut().zip(&solved);
            roots.try_for_each(|(root, (_, x))| combine(&mut root.phi, x, &r))?;
            self.check(alike.start, &solved[0].0.lanczos)?;
        }
        Ok(weight)
    }

    fn value(&mut self, links: &MatrixField) -> Result<ExactSum, ActionError> {
        self.update(links)?;
        let (mut sum, mut image) = (ExactSum::default(), Spinor::colour(&self.domain, Precision::Double)?);
        for alike in self.alike.clone() {
            let r = self.roots[alike.start].functions.action.clone();
            let solved = self.solve(&alike, &r.poles, self.params.header.action_residual)?;
            for (root, (_, x)) in self.roots[alike.clone()].iter().zip(&solved) {
                image.copy_from(&root.phi)?;
                combine(&mut image, x, &r)?;
                sum += image.norm2()?;
            }
            self.check(alike.start, &solved[0].0.lanczos)?;
        }
        Ok(sum)
    }

    fn add_force(&mut self, links: &MatrixField, force: &mut AlgebraField) -> Result<usize, ActionError> {
        self.add_part(None, links, force)
    }

    fn parts(&self) -> Vec<&str> {
        let divided = self.parts.len() > 1;
        self.parts.iter().filter(|_| divided).map(String::as_str).collect()
    }

    fn add_part(
        &mut self,
        part: Option<usize>,
        links: &MatrixField,
        force: &mut AlgebraField,
    ) -> Result<usize, ActionError> {
        self.update(links)?;
        self.links.begin(&self.domain)?;
        let residual = self.params.header.force_residual;
        let mut iterations = 0;
        for alike in self.alike.clone() {
            let Root { functions, parts, .. } = &self.roots[alike.start];
            let function = part.map_or(Some(&functions.force), |part| parts[part].as_ref());
            if let Some(function) = function.cloned() {
                for (info, x) in self.solve(&alike, &function.poles, residual)? {
                    iterations += info.total.iterations;
                    self.add_gradients(self.roots[alike.start].quark, &function, &x)?;
                }
            }
        }
        // The force needs much memory, and the operators new links before they are used again.
        self.systems.quarks.iter_mut().flat_map(|quark| quark.w.all()).for_each(Staggered::release);
        self.links.add_force(links, force)?;
        Ok(iterations)
    }

    fn pseudofermions(&mut self) -> Vec<Pseudofermion<'_>> {
        self.roots.iter_mut().map(|root| Pseudofermion { parity: EVEN, field: &mut root.phi }).collect()
    }

    fn report(&self) -> Option<TermReport> {
        let spectra = self.systems.quarks.iter().map(|quark| match quark.greatest {
            Some(found) => format!("-D^2 up to {found:.2} (eps_N {})", quark.naik_epsilon),
            None => "spectrum not yet measured".to_string(),
        });
        let functions = self.roots.iter().map(|Root { functions, .. }| {
            let [heat_bath, action, force] =
                functions.all().map(|r| format!("{} poles {:.1e}", r.degree(), r.error));
            format!("heat bath {heat_bath}, action {action}, force {force}")
        });
        let [spectra, functions] =
            [spectra.collect::<Vec<_>>().join(", "), functions.collect::<Vec<_>>().join("; ")];
        let singular = if self.singular == 0 {
            String::new()
        } else {
            format!("; {} projections of links near singular ones, regulated", self.singular)
        };
        let mut report = TermReport::of(self.systems.solves, &format!("; {spectra}; {functions}{singular}"));
        report.notable |= self.singular > 0;
        Some(report)
    }
}
