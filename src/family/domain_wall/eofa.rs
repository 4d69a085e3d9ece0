//! One flavour of domain-wall quarks over a heavier one, by the exact one-flavour action (Chen, Chiu, Phys. Lett. B738
//! (2014) 55, arXiv:1403.1683; Jung, Kelly, Mawhinney, Murphy, Phys. Rev. D97 (2018) 054503, arXiv:1706.05843).
//!
//! Let `K(m_+, m_-) = D_w + M_+(m_+) P_+ + M_-(m_-) P_-` be the operator with one mass per chirality, on all sites,
//! without factors that do not depend on links. A mass enters through one product of vectors on the fifth dimension,
//! `M(m) - M(m') = w v^T`. So from the light mass m to the heavy mass m', one chirality after the other,
//!
//! ```text
//! det K(m, m) / det K(m', m') = 1 / (det E_- det E_+),   E = 1 - v^T K^-1 w  on spinors of the chirality,
//! E_-: K(m, m), w and v of M_-;   E_+: K(m, m'), w and v of M_+;   S = phi_-^dag E_- phi_- + phi_+^dag E_+ phi_+.
//! ```
//!
//! If `gamma_5 R K` is hermitian (R reflects the fifth dimension), as it is for symmetric weights, w is proportional to
//! R v, and E is hermitian and positive. Heat bath: `phi = r(E) eta`, `r(x) ~ x^(-1/2)`, where
//!
//! ```text
//! (E + p)^-1 = 1 / (1 + p) + v^T K'^-1 w / (1 + p)^2,
//! ```
//!
//! K' has the mass between m and m' at which M is `M(m) - w v^T / (1 + p)`. The systems of all poles are similar: each
//! solve starts from the best combination of the solutions before it. It goes as far as its part of the sum asks: an
//! error of r shifts S by as much for every mode, that of a solve by a random sum, so solves may err ten times as much. With
//! `x = K^-1 w phi` the change under dU is `(K^-dag v phi)^dag dD_w x`. `K^-dag v phi` is proportional to gamma_5 R x, so
//! there is one solve per chirality.

use super::{DomainWall, DomainWallParams, reflect};
use crate::action::{Action, ActionError, PairForce, Pseudofermion, TermHeader, TermReport, pseudofermion};
use crate::device::Precision;
use crate::field::{AlgebraField, Domain, EVEN, FieldError, Kind, MatrixField, ODD, Spinor};
use crate::math::{ExactSum, Factor, Rational};
use crate::operator::SliceVector;
use crate::quark::{AllSites, Goal, Quark, QuarkParams, Start};
use std::collections::VecDeque;
use std::slice::{from_mut, from_ref};
use std::sync::Arc;

/// Parameters of an exact one-flavour term.
#[derive(Clone, Debug, PartialEq)]
pub struct ExactOneFlavourParams {
    /// Name and residuals: `|b - C C^dag x| / |b|`.
    pub header: TermHeader,
    /// The quark; its masses are both m.
    pub quark: QuarkParams<DomainWallParams>,
    /// m' of the heavier quark in the denominator; 1 for Pauli-Villars.
    pub heavy_mass: f64,
    /// The range of the spectra of E.
    pub range: [f64; 2],
    /// Relative error of the heat bath's function on the range.
    pub error: f64,
    /// The number of other poles' solutions from which a solve of the heat bath starts; 0: from that of the pole before.
    pub forecast: usize,
    /// The number of trajectories between checks of the heat bath, which is also checked in the first one of a run; at
    /// least 1.
    pub check_every: u64,
}

impl ExactOneFlavourParams {
    /// That of the greatest part of the heat bath's function; smaller parts are solved to more.
    fn heat_bath_residual(&self) -> f64 {
        self.header.action_residual.max(10.0 * self.error)
    }
}

/// One flavour by the exact action.
pub struct ExactOneFlavour {
    params: ExactOneFlavourParams,
    chiralities: [Chirality; 2],
    pairs: PairForce,
    heat_bath: Rational,
    phi: Dirac,
    /// Workspace: the field of the heat bath, then `E phi`.
    image: Dirac,
    domain: Arc<Domain>,
    /// `|phi^dag E phi - |eta|^2|` from the last check.
    checked: Option<f64>,
}

/// A Dirac spinor on even and odd sites.
type Dirac = [Spinor; 2];

/// One chirality's part of the action.
struct Chirality {
    number: usize,
    quark: Quark<DomainWall>,
    /// The two masses of K, and the current ones of the quark.
    mass: [f64; 2],
    set: [f64; 2],
    v: SliceVector,
    w: SliceVector,
    /// `gamma_5 R w phi = reflection v phi`
    reflection: f64,
}

/// Workspace, which exists while it is used: fields with a fifth dimension on even and odd sites, and a spinor.
struct Room {
    b: [Spinor; 2],
    x: [Spinor; 2],
    all_sites: AllSites,
    part: Spinor,
}

impl Chirality {
    fn new(domain: &Arc<Domain>, params: &ExactOneFlavourParams, number: usize) -> Result<Self, FieldError> {
        let operator = &params.quark.operator;
        let light = operator.mass[0];
        let mass = if number == 0 { [light, params.heavy_mass] } else { [light; 2] };
        let corner = |mass: f64| operator.with_mass([mass; 2]).coupling()[number].corner();
        let ([mut w, v], [heavy, _]) = (corner(light), corner(params.heavy_mass));
        w.iter_mut().zip(heavy).for_each(|(w, heavy)| *w -= heavy);
        // Take the reflection of w at the greatest component of v.
        let last = v.len() - 1;
        let greatest = (0..=last).max_by(|&i, &j| v[i].abs().total_cmp(&v[j].abs())).unwrap_or_default();
        let reflection = w[last - greatest] / v[greatest] * if number == 0 { 1.0 } else { -1.0 };
        let nothing = vec![0.0; last + 1];
        let vector = |own: &[f64]| {
            SliceVector::new(domain, if number == 0 { [own, &nothing] } else { [&nothing, own] })
        };
        let quark = QuarkParams { operator: operator.with_mass(mass), ..params.quark.clone() };
        Ok(Self {
            number,
            quark: Quark::new(domain, &quark)?,
            mass,
            set: mass,
            v: vector(&v)?,
            w: vector(&w)?,
            reflection,
        })
    }

    /// `room.x = K^-1 w phi` for K with the masses `mass`; returns the number of iterations.
    fn solve(
        &mut self,
        room: &mut Room,
        phi: &Dirac,
        mass: [f64; 2],
        goal: Goal,
    ) -> Result<usize, ActionError> {
        if mass != self.set {
            self.quark.operators().try_for_each(|operator| operator.set_mass(mass))?;
            self.set = mass;
        }
        let Room { b, x, all_sites, .. } = room;
        for (b, phi) in b.iter_mut().zip(phi) {
            self.w.spread(b, phi)?;
        }
        let (x, b) = (x.each_mut().map(from_mut), b.each_ref().map(from_ref));
        Ok(self.quark.solve_full(all_sites, x, b, goal)?.iterations)
    }

    /// `out += a v^T room.x`
    fn add(&self, out: &mut Dirac, a: f64, Room { x, part, .. }: &mut Room) -> Result<(), FieldError> {
        for (out, x) in out.iter_mut().zip(x) {
            self.v.sum(part, x)?;
            out.axpy(a, part)?;
        }
        Ok(())
    }
}

impl Room {
    /// Solves may start from combinations of `forecast` solutions.
    fn new(domain: &Arc<Domain>, kind: Kind, forecast: usize) -> Result<Self, FieldError> {
        let wall = || Spinor::of(domain, kind, Precision::Double, 1);
        Ok(Self {
            b: [wall()?, wall()?],
            x: [wall()?, wall()?],
            all_sites: AllSites::with_forecast(domain, kind, 1, forecast)?,
            part: Spinor::new(domain, Precision::Double)?,
        })
    }
}

fn dirac(domain: &Arc<Domain>) -> Result<Dirac, FieldError> {
    Ok([Spinor::new(domain, Precision::Double)?, Spinor::new(domain, Precision::Double)?])
}

impl ExactOneFlavour {
    /// Makes the function of the heat bath, and allocates the term.
    ///
    /// # Errors
    /// The rational function does not exist; memory runs out.
    ///
    /// # Panics
    /// The weights are not symmetric; `check_every` is 0.
    pub fn new(domain: &Arc<Domain>, params: ExactOneFlavourParams) -> Result<Self, ActionError> {
        let operator = &params.quark.operator;
        assert!(params.check_every > 0, "the heat bath is checked on some trajectories");
        assert!(operator.weights.is_symmetric(), "gamma_5 R K is hermitian only for symmetric weights");
        let kind = operator.kind();
        let heat_bath =
            Rational::to_error(&[Factor { shift: 0.0, power: (-1, 2) }], params.range, params.error)?;
        Ok(Self {
            chiralities: [Chirality::new(domain, &params, 0)?, Chirality::new(domain, &params, 1)?],
            pairs: PairForce::new(domain, kind, false)?,
            heat_bath,
            phi: dirac(domain)?,
            image: dirac(domain)?,
            domain: Arc::clone(domain),
            checked: None,
            params,
        })
    }

    /// Sets the pseudofermion on even and odd sites, for tests and replays, from reals as in `Spinor::read_host`.
    pub fn set_phi(&mut self, reals: [&[f64]; 2]) -> Result<(), FieldError> {
        [EVEN, ODD].into_iter().try_for_each(|parity| self.phi[parity].read_host(parity, reals[parity]))
    }

    fn update(&mut self, links: &MatrixField) -> Result<(), ActionError> {
        Ok(self.chiralities.iter_mut().try_for_each(|chirality| chirality.quark.update(links))?)
    }

    fn room(&self, forecast: usize) -> Result<Room, FieldError> {
        Room::new(&self.domain, self.params.quark.operator.kind(), forecast)
    }

    /// `phi = r(E) eta`, with eta in `image`.
    fn make_phi(&mut self) -> Result<(), ActionError> {
        let mut room = self.room(self.params.forecast)?;
        let residual = self.params.heat_bath_residual();
        let Rational { constant, poles, residues, .. } = &self.heat_bath;
        let (operator, heavy) = (&self.params.quark.operator, self.params.heavy_mass);
        let (phi, eta) = (&mut self.phi, &self.image);
        let parts = parts(&self.heat_bath, self.params.range);
        let greatest = parts.iter().copied().fold(0.0, f64::max);
        let direct =
            poles.iter().zip(residues).fold(*constant, |sum, (pole, residue)| sum + residue / (1.0 + pole));
        for (phi, eta) in phi.iter_mut().zip(eta) {
            phi.copy_from(eta)?;
            phi.scale(direct)?;
        }
        for chirality in &mut self.chiralities {
            let forecast = self.params.forecast > 0;
            let mut goal = Goal { residual, start: Start::Zero };
            room.all_sites.forget();
            let order = if forecast { halving(poles.len()) } else { (0..poles.len()).collect() };
            for n in order {
                let (pole, residue) = (poles[n], residues[n]);
                let mut mass = chirality.mass;
                let own = &mut mass[chirality.number];
                *own = operator.mass_between(*own, heavy, 1.0 / (1.0 + pole));
                goal.residual = residual * greatest / parts[n];
                chirality.solve(&mut room, eta, mass, goal)?;
                chirality.add(phi, residue / ((1.0 + pole) * (1.0 + pole)), &mut room)?;
                if !forecast {
                    // The solution of the previous solve, with another mass.
                    goal.start = Start::Given;
                }
            }
        }
        Ok(())
    }

    /// `image = E phi`; returns the action.
    fn make_image(&mut self) -> Result<ExactSum, ActionError> {
        let room = &mut self.room(0)?;
        let Self { chiralities, phi, image, params, .. } = self;
        for (image, phi) in image.iter_mut().zip(&*phi) {
            image.copy_from(phi)?;
        }
        let goal = Goal { residual: params.header.action_residual, start: Start::Zero };
        for chirality in chiralities {
            chirality.solve(room, phi, chirality.mass, goal)?;
            chirality.add(image, -1.0, room)?;
        }
        Ok(phi[EVEN].real_dot(&image[EVEN])? + phi[ODD].real_dot(&image[ODD])?)
    }

    /// Checks that the `action` of the heat bath's field is `|eta|^2`, which it is if `r(E)^2 E` is 1 for every mode. No
    /// other check shows that the spectrum is inside the range.
    fn check(&mut self, action: &ExactSum, eta: &ExactSum) -> Result<(), ActionError> {
        // The square of every mode in the range may be off by twice the function's error, and by that of the solves.
        let rounding = 2.0 * self.heat_bath.error + self.params.heat_bath_residual();
        let (error, bound) = ((action.value() - eta.value()).abs(), WIDTH + rounding * eta.value());
        self.checked = Some(error);
        if error <= bound {
            return Ok(());
        }
        let [lo, hi] = self.params.range;
        Err(ActionError::HeatBath { error, bound, lo, hi })
    }
}

/// The greatest part of r(x) on a range that each pole's solve contributes: `|r_k (1 - x)| / ((1 + p_k) (x + p_k))` of
/// `x^(-1/2)`. A pole with a small part is solved to a larger residual, for the same error of the sum.
fn parts(Rational { poles, residues, .. }: &Rational, range: [f64; 2]) -> Vec<f64> {
    let part = |pole: f64, residue: f64| {
        let at = |x: f64| (residue * (1.0 - x) / ((1.0 + pole) * (x + pole))).abs() * x.sqrt();
        range.map(at).into_iter().fold(0.0, f64::max)
    };
    poles.iter().zip(residues).map(|(pole, residue)| part(*pole, *residue)).collect()
}

/// 0 to n - 1, both ends first, then the middles of what lies between: later systems lie between earlier ones.
fn halving(n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = [0, n.saturating_sub(1)].into_iter().take(n).collect();
    let mut spans = VecDeque::from([[0, n.saturating_sub(1)]]);
    while let Some([lo, hi]) = spans.pop_front() {
        let middle = lo.midpoint(hi);
        if middle > lo {
            order.push(middle);
            spans.extend([[lo, middle], [middle, hi]]);
        }
    }
    order
}

/// Tolerated error of `phi^dag E phi`: in the worst case it is that of a single mode, which is 1 on average.
const WIDTH: f64 = 1e-2;

impl Action for ExactOneFlavour {
    fn name(&self) -> &str {
        &self.params.header.name
    }

    fn refresh(&mut self, links: &MatrixField, seed: u64, trajectory: u64) -> Result<ExactSum, ActionError> {
        self.chiralities.iter_mut().for_each(|chirality| chirality.quark.forget());
        self.update(links)?;
        let address = pseudofermion(seed, trajectory, self.params.header.number);
        // phi^dag E phi of phi = r(E) eta
        let mut length = ExactSum::default();
        for (parity, eta) in self.image.iter_mut().enumerate() {
            eta.set_random(parity, 0.5f64.sqrt(), address)?;
            length += eta.norm2()?;
        }
        self.make_phi()?;
        if self.checked.is_none() || trajectory.is_multiple_of(self.params.check_every) {
            let action = self.make_image()?;
            self.check(&action, &length)?;
        }
        Ok(length)
    }

    fn value(&mut self, links: &MatrixField) -> Result<ExactSum, ActionError> {
        self.update(links)?;
        self.make_image()
    }

    fn add_force(&mut self, links: &MatrixField, force: &mut AlgebraField) -> Result<usize, ActionError> {
        self.update(links)?;
        let mut room = self.room(0)?;
        let mut sum = self.pairs.begin(links, force)?;
        let mut iterations = 0;
        for chirality in &mut self.chiralities {
            let goal = Goal { residual: self.params.header.force_residual, start: Start::Past };
            iterations += chirality.solve(&mut room, &self.phi, chirality.mass, goal)?;
            let Room { b, x, .. } = &mut room;
            for (b, x) in b.iter_mut().zip(&*x) {
                reflect(b, x, 1.0 / chirality.reflection)?;
            }
            // A pair is -2 Re y^dag dD_w x.
            sum.add_spinors(&mut chirality.quark, [&x[EVEN], &x[ODD]], [&b[EVEN], &b[ODD]], -0.5)?;
        }
        sum.finish()?;
        Ok(iterations)
    }

    fn pseudofermions(&mut self) -> Vec<Pseudofermion<'_>> {
        self.chiralities.iter_mut().for_each(|chirality| chirality.quark.forget());
        self.phi.iter_mut().enumerate().map(|(parity, field)| Pseudofermion { parity, field }).collect()
    }

    fn report(&self) -> Option<TermReport> {
        let [lower, upper] = [&self.chiralities[0], &self.chiralities[1]].map(|c| c.quark.solves());
        let ([lo, hi], function) = (self.params.range, &self.heat_bath);
        let checked = self.checked.map(|error| format!(", {error:.1e} when checked")).unwrap_or_default();
        let more = format!(
            "; heat bath {} poles on [{lo:.1e}, {hi:.1e}], error {:.1e}{checked}",
            function.poles.len(),
            function.error
        );
        Some(TermReport::of(lower.with(upper), &more))
    }
}
