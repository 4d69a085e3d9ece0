//! The Wilson(-clover) operator, even-odd preconditioned, on odd sites:
//!
//! ```text
//! M = A - D/2,  asymmetric: Mhat = A_oo - D_oe A_ee^-1 D_eo / 4,
//!               symmetric:  Mhat = 1 - A_oo^-1 D_oe A_ee^-1 D_eo / 4.
//! ```
//!
//! D as in `kernels/wilson.cuh`, A = 4 + m0 + clover. An operator keeps its own copy of the links, in its
//! precision, with 18 or 12 reals a link; boundary phases multiply hops, never links.

use super::{CloverTerm, Operator};
use crate::device::{BlasArgs, Buffer, HopArgs, ImportArgs, Pointer, Precision};
use crate::field::{Domain, EVEN, FaceSource, Faces, FieldError, MatrixField, ODD, Spinor};
use crate::lattice::{coordinates, volume};
use std::sync::Arc;

/// Which Schur complement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schur {
    /// `A_oo - D_oe A_ee^-1 D_eo / 4`
    Asymmetric,
    /// `1 - A_oo^-1 D_oe A_ee^-1 D_eo / 4`
    Symmetric,
}

/// The operator's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WilsonParams {
    /// kappa = 1 / (2 (4 + m0))
    pub kappa: f64,
    /// Twisted mass: `Mhat + i mu gamma_5`, or `Mhat + i mu A_oo^-1 gamma_5` in the symmetric form.
    pub mu: f64,
    /// Clover coefficient; 0: no clover term.
    pub c_sw: f64,
    /// Phase of a hop that crosses the boundary, a direction, in units of pi.
    pub boundary: [f64; 4],
    /// Which Schur complement.
    pub schur: Schur,
}

impl WilsonParams {
    /// `4 + m0`
    pub fn diagonal(&self) -> f64 {
        0.5 / self.kappa
    }
}

/// The hopping term's own links and ghost zones, in one precision.
pub struct WilsonLinks {
    domain: Arc<Domain>,
    precision: Precision,
    reals: usize,
    links: [Buffer; 2],
    phases: Buffer,
    phase_mask: i32,
    faces: Faces,
    interior: [Buffer; 2],
    boundary: [Buffer; 2],
    interior_sites: usize,
}

/// What is done with the hopping term (`kernels/wilson.cuh`).
struct Epilogue<'a> {
    suffix: &'static str,
    clover: Pointer,
    x: Option<&'a Spinor>,
    scale: f64,
    shift: f64,
}

impl Epilogue<'_> {
    fn plain(scale: f64) -> Self {
        Epilogue { suffix: "", clover: Pointer::default(), x: None, scale, shift: 0.0 }
    }
}

impl WilsonLinks {
    /// Room for links of `reals` (18 or 12) in `precision`.
    ///
    /// # Errors
    /// No room.
    pub fn new(
        domain: &Arc<Domain>,
        precision: Precision,
        reals: usize,
        boundary: [f64; 4],
    ) -> Result<Self, FieldError> {
        let device = domain.device();
        let bytes = domain.half() * domain.lanes().count() * 4 * reals * precision.bytes();
        let (table, phase_mask) = phase_table(domain, boundary);
        let phases = match precision {
            Precision::Double => device.buffer_of(&table)?,
            Precision::Single => device.buffer_of(&table.iter().map(|&x| x as f32).collect::<Vec<_>>())?,
        };
        let (even, odd) = (regions(domain, EVEN), regions(domain, ODD));
        Ok(Self {
            domain: Arc::clone(domain),
            precision,
            reals,
            links: [device.buffer(bytes)?, device.buffer(bytes)?],
            phases,
            phase_mask,
            faces: Faces::new(domain, precision, false)?,
            interior_sites: even.0.len(),
            interior: [device.buffer_of(&even.0)?, device.buffer_of(&odd.0)?],
            boundary: [device.buffer_of(&even.1)?, device.buffer_of(&odd.1)?],
        })
    }

    /// Takes over new links.
    ///
    /// # Errors
    /// The device is lost.
    pub fn update(&mut self, links: &MatrixField) -> Result<(), FieldError> {
        for parity in [EVEN, ODD] {
            let args = ImportArgs {
                g: self.domain.geometry(),
                links: links.pointer(),
                out: self.links[parity].pointer(),
                parity: parity as i32,
                pad: 0,
            };
            self.domain.launch(
                &format!("import_{}", self.reals),
                self.precision,
                &args,
                self.domain.half(),
            )?;
        }
        Ok(())
    }

    /// Phases as kernels take them, and the mask of hops that meet one on this rank.
    pub fn phases(&self) -> (Pointer, i32) {
        (self.phases.pointer(), self.phase_mask)
    }

    /// `out = D input` on sites of `parity`, `input` on the others.
    ///
    /// # Errors
    /// The device is lost.
    pub fn hop(
        &mut self,
        out: &mut Spinor,
        input: &Spinor,
        parity: usize,
        dagger: bool,
    ) -> Result<(), FieldError> {
        self.run(out, input, parity, dagger, &Epilogue::plain(1.0))
    }

    fn run(
        &mut self,
        out: &mut Spinor,
        input: &Spinor,
        parity: usize,
        dagger: bool,
        epilogue: &Epilogue,
    ) -> Result<(), FieldError> {
        assert!(
            out.precision() == self.precision && input.precision() == self.precision,
            "spinors in the operator's precision"
        );
        let domain = Arc::clone(&self.domain);
        let name = format!("hop_{}{}{}", self.reals, epilogue.suffix, if dagger { "_dagger" } else { "" });
        let args = HopArgs {
            g: domain.geometry(),
            out: out.pointer(),
            input: input.pointer(),
            x: epilogue.x.map(Spinor::pointer).unwrap_or_default(),
            clover: epilogue.clover,
            links_out: self.links[parity].pointer(),
            links_in: self.links[1 - parity].pointer(),
            ghost: [Pointer::default(); 8],
            phases: self.phases.pointer(),
            sites: Pointer::default(),
            parity: parity as i32,
            ghost_mask: self.faces.mask(),
            phase_mask: self.phase_mask,
            first: 0,
            scale: epilogue.scale,
            shift: epilogue.shift,
        };
        if self.faces.mask() == 0 {
            return domain.launch(&name, self.precision, &args, domain.half());
        }
        let source = FaceSource {
            input: input.pointer(),
            parity: 1 - parity,
            links: self.links[1 - parity].pointer(),
            reals: self.reals,
            dagger,
        };
        let (precision, interior) = (self.precision, self.interior_sites);
        let inner = HopArgs { sites: self.interior[parity].pointer(), ..args };
        self.faces.exchange(source, || domain.launch(&name, precision, &inner, interior))?;
        let outer = HopArgs { sites: self.boundary[parity].pointer(), ghost: self.faces.ghosts(), ..args };
        domain.launch(&name, self.precision, &outer, domain.half() - interior)
    }
}

/// Outer sites of one parity that need no ghost, and those that do.
fn regions(domain: &Domain, parity: usize) -> (Vec<i32>, Vec<i32>) {
    let outer = domain.geometry().outer.map(|x| x as usize);
    let half_row = [outer[0] / 2, outer[1], outer[2], outer[3]];
    (0..volume(half_row) as i32).partition(|&s| {
        let [xh, y, z, t] = coordinates(half_row, s as usize);
        let x = [2 * xh + ((y + z + t + parity) & 1), y, z, t];
        domain.cut_directions().all(|mu| x[mu] != 0 && x[mu] != outer[mu] - 1)
    })
}

/// For each hop, forward and backward in x, y, z, t, the phase in every lane (re of all lanes, then im);
/// and the mask of hops with a phase that is not 1 on this rank.
fn phase_table(domain: &Domain, boundary: [f64; 4]) -> (Vec<f64>, i32) {
    let (lanes, partition) = (domain.lanes(), domain.partition());
    let (mut table, mut mask) = (Vec::new(), 0);
    for (mu, phase) in boundary.into_iter().enumerate() {
        for forward in [true, false] {
            let angle = std::f64::consts::PI * phase * if forward { 1.0 } else { -1.0 };
            // Whole multiples of pi are exact signs.
            let (re, im) = match phase.rem_euclid(2.0) {
                0.0 => (1.0, 0.0),
                1.0 => (-1.0, 0.0),
                _ => (angle.cos(), angle.sin()),
            };
            let rank_at_edge = partition.place[mu] == if forward { partition.grid[mu] - 1 } else { 0 };
            let crosses: Vec<bool> = (0..lanes.count())
                .map(|lane| {
                    rank_at_edge
                        && coordinates(lanes.0, lane)[mu] == if forward { lanes.0[mu] - 1 } else { 0 }
                })
                .collect();
            table.extend(crosses.iter().map(|&c| if c { re } else { 1.0 }));
            table.extend(crosses.iter().map(|&c| if c { im } else { 0.0 }));
            if rank_at_edge && (re, im) != (1.0, 0.0) {
                mask |= 1 << (2 * mu + usize::from(!forward));
            }
        }
    }
    (table, mask)
}

/// The preconditioned operator in one precision.
pub struct Wilson {
    params: WilsonParams,
    links: WilsonLinks,
    /// In single: the term on odd sites or (symmetric) its inverse there, and the inverse on even sites.
    own: Option<[Buffer; 2]>,
    odd: Pointer,
    odd_inverse: Pointer,
    even_inverse: Pointer,
    even: Spinor,
    spare: Option<Spinor>,
}

impl Wilson {
    /// Room for the operator with links of `reals` (18 or 12).
    ///
    /// # Errors
    /// No room.
    pub fn new(
        domain: &Arc<Domain>,
        precision: Precision,
        reals: usize,
        params: WilsonParams,
    ) -> Result<Self, FieldError> {
        assert!(params.mu == 0.0, "a twisted mass is not there yet");
        let bytes = domain.half() * domain.lanes().count() * 72 * 4;
        let own = (precision == Precision::Single && params.c_sw != 0.0)
            .then(|| Ok::<_, FieldError>([domain.device().buffer(bytes)?, domain.device().buffer(bytes)?]))
            .transpose()?;
        let symmetric = params.schur == Schur::Symmetric;
        Ok(Self {
            params,
            links: WilsonLinks::new(domain, precision, reals, params.boundary)?,
            own,
            odd: Pointer::default(),
            odd_inverse: Pointer::default(),
            even_inverse: Pointer::default(),
            even: Spinor::new(domain, precision)?,
            spare: if symmetric { Some(Spinor::new(domain, precision)?) } else { None },
        })
    }

    /// The clover term that this operator needs; `None` without one.
    ///
    /// # Errors
    /// No room.
    pub fn clover_term(
        domain: &Arc<Domain>,
        params: &WilsonParams,
    ) -> Result<Option<CloverTerm>, FieldError> {
        if params.c_sw == 0.0 {
            return Ok(None);
        }
        let inverted = [true, params.schur == Schur::Symmetric];
        CloverTerm::new(domain, params.diagonal(), params.c_sw, inverted).map(Some)
    }

    /// The hopping term.
    pub fn links(&mut self) -> &mut WilsonLinks {
        &mut self.links
    }

    /// Takes over new links and the clover term that was updated on them.
    ///
    /// # Errors
    /// The device is lost.
    pub fn update(&mut self, links: &MatrixField, clover: Option<&CloverTerm>) -> Result<(), FieldError> {
        self.links.update(links)?;
        let Some(clover) = clover else { return Ok(()) };
        let even_inverse = clover.inverse(EVEN).unwrap_or_default();
        let odd = match self.params.schur {
            Schur::Asymmetric => clover.term(ODD),
            Schur::Symmetric => clover.inverse(ODD).unwrap_or_default(),
        };
        let [even_inverse, odd] = match &self.own {
            None => [even_inverse, odd],
            Some(own) => {
                for (from, to) in [even_inverse, odd].into_iter().zip(own) {
                    let domain = &self.links.domain;
                    let args = BlasArgs {
                        x: from,
                        y: to.pointer(),
                        half: domain.half() as i32,
                        ..Default::default()
                    };
                    domain.launch("clover_from_double", Precision::Single, &args, domain.half())?;
                }
                [own[0].pointer(), own[1].pointer()]
            }
        };
        self.even_inverse = even_inverse;
        (self.odd, self.odd_inverse) = match self.params.schur {
            Schur::Asymmetric => (odd, Pointer::default()),
            Schur::Symmetric => (Pointer::default(), odd),
        };
        Ok(())
    }

    fn has_clover(&self) -> bool {
        self.params.c_sw != 0.0
    }

    /// The epilogue that makes `A_ee^-1 D_eo / 2`.
    fn first(&self) -> Epilogue<'static> {
        if self.has_clover() {
            Epilogue { suffix: "_clover", clover: self.even_inverse, ..Epilogue::plain(0.5) }
        } else {
            Epilogue::plain(0.5 / self.params.diagonal())
        }
    }

    /// `out_e = A_ee^-1 D_eo x_o / 2`: what completes a solution on odd sites to all sites.
    ///
    /// # Errors
    /// The device is lost.
    pub fn complete(&mut self, out: &mut Spinor, x: &Spinor, dagger: bool) -> Result<(), FieldError> {
        let epilogue = self.first();
        self.links.run(out, x, EVEN, dagger, &epilogue)
    }

    /// `out_o = A_oo^-1 x_o`, with the symmetric form alone.
    ///
    /// # Errors
    /// The device is lost.
    pub fn odd_inverse(&self, out: &mut Spinor, x: &Spinor) -> Result<(), FieldError> {
        if !self.has_clover() {
            out.copy_from(x)?;
            return out.scale(1.0 / self.params.diagonal());
        }
        self.clover_apply(out, x, self.odd_inverse)
    }

    /// `out = C x` on one parity, C a packed clover field in this operator's precision.
    fn clover_apply(&self, out: &mut Spinor, x: &Spinor, clover: Pointer) -> Result<(), FieldError> {
        let domain = &self.links.domain;
        let args = HopArgs {
            g: domain.geometry(),
            out: out.pointer(),
            x: x.pointer(),
            clover,
            ..Default::default()
        };
        domain.launch("clover_apply", self.links.precision, &args, domain.half())
    }

    /// `out_e = A_ee^-1 x_e`
    ///
    /// # Errors
    /// The device is lost.
    pub fn even_inverse(&self, out: &mut Spinor, x: &Spinor) -> Result<(), FieldError> {
        if !self.has_clover() {
            out.copy_from(x)?;
            return out.scale(1.0 / self.params.diagonal());
        }
        self.clover_apply(out, x, self.even_inverse)
    }

    /// The right-hand side on odd sites of `M x = b` after elimination of the even ones:
    /// `b_o + D_oe A_ee^-1 b_e / 2`, times `A_oo^-1` in the symmetric form.
    ///
    /// # Errors
    /// The device is lost.
    pub fn prepare(&mut self, out: &mut Spinor, b_even: &Spinor, b_odd: &Spinor) -> Result<(), FieldError> {
        let mut even = Spinor::new(&self.links.domain.clone(), self.links.precision)?;
        self.even_inverse(&mut even, b_even)?;
        // shift x - scale D in, with scale -1/2
        let epilogue = Epilogue { suffix: "_shift", x: Some(b_odd), shift: 1.0, ..Epilogue::plain(-0.5) };
        if self.params.schur == Schur::Asymmetric {
            return self.links.run(out, &even, ODD, false, &epilogue);
        }
        let mut odd = Spinor::new(&self.links.domain.clone(), self.links.precision)?;
        self.links.run(&mut odd, &even, ODD, false, &epilogue)?;
        self.odd_inverse(out, &odd)
    }
}

impl Operator for Wilson {
    fn domain(&self) -> &Arc<Domain> {
        &self.links.domain
    }

    fn precision(&self) -> Precision {
        self.links.precision
    }

    fn apply(&mut self, out: &mut Spinor, x: &Spinor, dagger: bool) -> Result<(), FieldError> {
        let (clover, diagonal) = (self.has_clover(), self.params.diagonal());
        let first = self.first();
        let shifted = |shift: f64, scale: f64| Epilogue {
            suffix: "_shift",
            x: Some(x),
            shift,
            ..Epilogue::plain(scale)
        };
        match (self.params.schur, clover) {
            (Schur::Symmetric, true) if dagger => {
                let mut spare = self.spare.take().expect("the symmetric form has a spare spinor");
                let done = self
                    .odd_inverse(&mut spare, x)
                    .and_then(|()| self.links.run(&mut self.even, &spare, EVEN, true, &first))
                    .and_then(|()| self.links.run(out, &self.even, ODD, true, &shifted(1.0, 0.5)));
                self.spare = Some(spare);
                done
            }
            (schur, _) => {
                self.links.run(&mut self.even, x, EVEN, dagger, &first)?;
                let last = match (schur, clover) {
                    (Schur::Asymmetric, true) => Epilogue {
                        suffix: "_clover_minus",
                        clover: self.odd,
                        x: Some(x),
                        ..Epilogue::plain(0.5)
                    },
                    (Schur::Symmetric, true) => Epilogue {
                        suffix: "_minus_clover",
                        clover: self.odd_inverse,
                        x: Some(x),
                        ..Epilogue::plain(0.5)
                    },
                    (Schur::Asymmetric, false) => shifted(diagonal, 0.5),
                    (Schur::Symmetric, false) => shifted(1.0, 0.5 / diagonal),
                };
                self.links.run(out, &self.even, ODD, dagger, &last)
            }
        }
    }
}
