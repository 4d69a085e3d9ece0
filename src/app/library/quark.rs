//! M and its inverse on a configuration, for vectors in host memory.

use super::{Links, Session, require_reals};
use crate::app::AppError;
use crate::app::chain::assemble::Layers;
use crate::family::Fermion;
use crate::field::{Dagger, EVEN, Kind, MatrixField, ODD, Spinor};
use crate::input;
use crate::lattice::{Extents, coordinates, volume};
use crate::measure::{QuarkChoice, Source};
use crate::quark::{Fields, FullOperator, Inverse, fields};
use crate::solver::Info;
use std::sync::Arc;

/// A quark on links. What it needs is made when it is first used.
pub struct LentQuark {
    session: Arc<Session>,
    links: MatrixField,
    fermion: Fermion,
    choice: QuarkChoice,
    kind: Kind,
    operator: Box<dyn FullOperator>,
    /// M^-1, and the propagator: for domain-wall quarks these differ.
    inverses: [Option<Box<dyn Inverse>>; 2],
}

/// Which inverse.
#[derive(Clone, Copy)]
enum Of {
    Operator,
    Quark,
}

impl LentQuark {
    /// The quark of a text with `[fermion.NAME]` and `[quark]`.
    ///
    /// # Errors
    /// Mistakes in the text; memory runs out.
    pub fn new(links: &Links, text: &str) -> Result<Self, AppError> {
        let session = Arc::clone(links.session());
        let input = session.checked(input::parse_quark(text, "quark")?);
        let choice = input.quark;
        let named = input.fermions.into_iter().find(|fermion| fermion.name() == choice.fermion);
        let fermion = named.expect("the input was checked");
        let layers = Layers::of_links(1).with(std::slice::from_ref(&fermion));
        let links = links.field(&links.domain(layers)?)?;
        let operator = fermion.full_operator(&links, choice.wanted)?;
        let (kind, inverses) = (operator.kind(), [None, None]);
        Ok(Self { session, links, fermion, choice, kind, operator, inverses })
    }

    /// The session.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Complex numbers of a site in one slice: 12, or 3.
    pub fn components(&self) -> usize {
        self.kind.reals() / 2
    }

    /// Slices of the fields on which M acts: 1 but for domain-wall quarks.
    pub fn slices(&self) -> usize {
        self.kind.slices()
    }

    /// Sites of this rank's box.
    fn sites(&self) -> usize {
        volume(self.links.domain().partition().local())
    }

    /// `M x`, or `M^dag x`.
    ///
    /// # Errors
    /// Another number of reals than M's fields have; the device failed.
    pub fn apply(&mut self, x: &[f64], dagger: Dagger) -> Result<Vec<f64>, AppError> {
        require_reals("x", x.len(), self.sites() * self.kind.reals() * self.slices())?;
        let domain = self.links.domain();
        let [mut out, mut input] = [fields(domain, self.kind, 1)?, fields(domain, self.kind, 1)?];
        set(&mut input, 0, x)?;
        self.operator.apply(&mut out, &input, dagger)?;
        let mut found = vec![0.0; x.len()];
        get(&out, 0, &mut found)?;
        Ok(found)
    }

    /// `M^-1 b` for one or several vectors, one behind the other.
    ///
    /// # Errors
    /// Another number of reals; the solver did not converge; the device failed.
    pub fn solve(&mut self, b: &[f64]) -> Result<(Vec<f64>, Info), AppError> {
        self.invert(Of::Operator, b)
    }

    /// As [`LentQuark::solve`], for fields in four dimensions: for domain-wall quarks the quark from wall to wall.
    ///
    /// # Errors
    /// As [`LentQuark::solve`].
    pub fn propagate(&mut self, b: &[f64]) -> Result<(Vec<f64>, Info), AppError> {
        self.invert(if self.slices() == 1 { Of::Operator } else { Of::Quark }, b)
    }

    /// The propagator from a point: for each component of the source a field in four dimensions, one behind the other.
    ///
    /// # Errors
    /// The point is outside the lattice; as [`LentQuark::solve`].
    pub fn propagator(&mut self, source: Extents) -> Result<(Vec<f64>, Info), AppError> {
        let partition = *self.links.domain().partition();
        Source::Point(source).require_inside(partition.lattice(), "source")?;
        let (local, offset, components) = (partition.local(), partition.offset(), self.components());
        let mut b = vec![0.0; self.propagator_reals()];
        let of_one = b.len() / components;
        let here = (0..volume(local)).find(|&s| {
            let x = coordinates(local, s);
            (0..4).all(|mu| x[mu] + offset[mu] == source[mu])
        });
        for component in 0..components {
            if let Some(site) = here {
                b[component * of_one + 2 * (site * components + component)] = 1.0;
            }
        }
        self.propagate(&b)
    }

    /// The reals of [`LentQuark::propagator`].
    pub fn propagator_reals(&self) -> usize {
        2 * self.components() * self.components() * self.sites()
    }

    fn invert(&mut self, of: Of, b: &[f64]) -> Result<(Vec<f64>, Info), AppError> {
        let made = &mut self.inverses[of as usize];
        let inverse = match made {
            Some(inverse) => inverse,
            None => made.insert(match of {
                Of::Operator => self.fermion.full_inverse(&self.links, self.choice.wanted)?,
                Of::Quark => self.fermion.inverse(&self.links, self.choice.wanted)?,
            }),
        };
        let kind = inverse.kind();
        let domain = Arc::clone(self.links.domain());
        let of_one = volume(domain.partition().local()) * kind.reals() * kind.slices();
        let count = (b.len() / of_one).max(1);
        require_reals("b", b.len(), count * of_one)?;
        let (mut found, mut total) = (vec![0.0; b.len()], Info::default());
        let together = of_one * inverse.together();
        for (some, found) in b.chunks(together).zip(found.chunks_mut(together)) {
            let count = some.len() / of_one;
            let [mut x, mut rhs] = [fields(&domain, kind, count)?, fields(&domain, kind, count)?];
            for (n, b) in some.chunks(of_one).enumerate() {
                set(&mut rhs, n, b)?;
            }
            total.add(&inverse.solve(&mut x, &rhs)?);
            for (n, found) in found.chunks_mut(of_one).enumerate() {
                get(&x, n, found)?;
            }
        }
        Ok((found, total))
    }
}

/// Sets field number `n` from host memory.
fn set(fields: &mut Fields, n: usize, reals: &[f64]) -> Result<(), AppError> {
    let [even, odd] = fields;
    Ok(Spinor::read_all([&mut even[n], &mut odd[n]], reals)?)
}

/// Field number `n` into host memory.
fn get(fields: &Fields, n: usize, reals: &mut [f64]) -> Result<(), AppError> {
    Ok(Spinor::write_all([&fields[EVEN][n], &fields[ODD][n]], reals)?)
}
