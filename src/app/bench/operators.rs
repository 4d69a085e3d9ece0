//! Speed of the hopping term and of the clover operator.

use super::rows::{Bench, Operation};
use super::{probe, random_links};
use crate::app::AppError;
use crate::device::Precision;
use crate::family::{Doublet, DoubletParams, Schur, Wilson, WilsonParams};
use crate::field::{Dagger, Domain, EVEN, Kind, MatrixField, ODD, Spinor};
use crate::lattice::Boundary;
use crate::operator::{CloverForm, Operator, WilsonLinks};
use std::sync::Arc;

/// Flops per site: the hopping term; the even-odd clover operator as counted by QUDA.
pub(super) const HOP_FLOPS: f64 = 1320.0;
pub(super) const CLOVER_FLOPS: f64 = 3792.0;
/// Numbers of right-hand sides that share links.
const FIELDS: [usize; 4] = [2, 4, 8, 16];

/// `fields` random fields of one kind in any precision.
pub(super) fn spinors(
    domain: &Arc<Domain>,
    kind: Kind,
    precision: Precision,
    fields: usize,
) -> Result<Spinor, AppError> {
    let of = |precision, fields| Spinor::of(domain, kind, precision, fields);
    let (mut double, mut one, mut all) =
        (of(Precision::Double, 1)?, of(precision, 1)?, of(precision, fields)?);
    double.set_random(ODD, 1.0, probe(0))?;
    one.copy_from(&double)?;
    (0..fields).try_for_each(|n| all.set_field(n, &one))?;
    Ok(all)
}

/// The hopping term in every storage, then with several right-hand sides.
pub(super) fn hops(bench: &mut Bench) -> Result<(), AppError> {
    let domain = bench.domain;
    let links = random_links(domain)?;
    let mut one = |precision: Precision, reals: usize, fields: usize| -> Result<(), AppError> {
        let mut hop = WilsonLinks::new(domain, precision, reals, fields, Boundary::ANTIPERIODIC)?;
        hop.update(&links)?;
        let input = spinors(domain, Kind::Dirac, precision, fields)?;
        let mut out = Spinor::several(domain, precision, fields)?;
        let shared = precision.stored(8 * reals, 0) as f64 / fields as f64;
        let operation = Operation {
            operator: "Wilson hop",
            precision,
            reals: Some(reals),
            slices: None,
            right_hand_sides: fields,
            flops_per_site: HOP_FLOPS,
            bytes_per_site: shared + 2.0 * precision.stored(24, 1) as f64,
        };
        bench.operator(operation, || Ok(hop.hop(&mut out, &input, EVEN, Dagger::No)?)).map(drop)
    };
    for precision in Precision::ALL {
        for reals in [18, 12, 8] {
            one(precision, reals, 1)?;
        }
    }
    for precision in [Precision::Single, Precision::Half] {
        for fields in FIELDS {
            one(precision, 12, fields)?;
        }
    }
    Ok(())
}

/// `A_oo - D_oe A_ee^-1 D_eo / 4` in every storage; a doublet of two masses with 12 reals a link.
pub(super) fn clover(bench: &mut Bench) -> Result<(), AppError> {
    let domain = bench.domain;
    let links = random_links(domain)?;
    // On random links the term is positive only for small c_sw. Its value does not affect the speed.
    let params = WilsonParams {
        kappa: 0.12,
        mu: 0.0,
        twisted_mass: 0.0,
        c_sw: 0.1,
        boundary: Boundary::ANTIPERIODIC,
        schur: Schur::Asymmetric,
        clover: CloverForm::Linear,
    };
    let mut term = Wilson::clover_term(domain, &params)?;
    if let Some(term) = &mut term {
        term.update(&links)?;
    }
    for precision in Precision::ALL {
        for reals in [18, 12, 8] {
            let mut operator = Wilson::new(domain, precision, reals, params)?;
            operator.update(&links, term.as_ref())?;
            let input = spinors(domain, Kind::Dirac, precision, 1)?;
            let mut out = Spinor::new(domain, precision)?;
            // Two hops with their links, A and A^-1; five spinors: in, an intermediate one (written and read), x, out.
            let bytes = 2 * precision.stored(8 * reals, 0)
                + 2 * precision.stored(72, 2)
                + 5 * precision.stored(24, 1);
            let operation = Operation {
                operator: "clover even-odd",
                precision,
                reals: Some(reals),
                slices: None,
                right_hand_sides: 1,
                flops_per_site: CLOVER_FLOPS,
                bytes_per_site: bytes as f64,
            };
            bench.operator(operation, || Ok(operator.apply(&mut out, &input, Dagger::No)?))?;
        }
    }
    doublet(bench, params, &links)
}

/// Flops of A or its inverse on a site.
const BLOCK_FLOPS: f64 = 504.0;

/// `A_oo + X - D_oe (A_ee + X)^-1 D_eo / 4`
fn doublet(bench: &mut Bench, wilson: WilsonParams, links: &MatrixField) -> Result<(), AppError> {
    let domain = bench.domain;
    let params = DoubletParams { wilson: WilsonParams { twisted_mass: 0.2, ..wilson }, epsbar: 0.1 };
    let mut term = Doublet::clover_term(domain, &params)?;
    if let Some(term) = &mut term {
        term.update(links)?;
    }
    for precision in Precision::ALL {
        let mut operator = Doublet::several(domain, precision, 12, 1, params)?;
        operator.update(links, term.as_ref())?;
        let input = spinors(domain, operator.kind(), precision, 1)?;
        let mut out = spinors(domain, operator.kind(), precision, 1)?;
        // As above, with A besides its inverse on even sites. Flavours share links and blocks; flops and bytes are a flavour's.
        let shared = 2 * precision.stored(8 * 12, 0) + 3 * precision.stored(72, 2);
        let operation = Operation {
            operator: "clover 1+1 even-odd",
            precision,
            reals: Some(12),
            slices: Some(2),
            right_hand_sides: 1,
            flops_per_site: CLOVER_FLOPS + BLOCK_FLOPS,
            bytes_per_site: (shared / 2 + 5 * precision.stored(24, 1)) as f64,
        };
        bench.operator(operation, || Ok(operator.apply(&mut out, &input, Dagger::No)?))?;
    }
    Ok(())
}
