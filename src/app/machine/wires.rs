//! A check of what GPUs write into each other's memory, before a run builds on it.

use crate::app::AppError;
use crate::comm::agree;
use crate::device::Precision;
use crate::field::{
    AlgebraField, Crossing, Dagger, Domain, FaceData, FaceSource, Faces, FieldError, Halo, MatrixField, ODD,
    Purpose, RandomAddress, Spinor,
};
use crate::math::ExactSum;
use crate::operator::GaugeLoops;
use std::sync::Arc;

/// Exchanges of each kind: what one leaves behind must not serve the next, and memory takes turns.
const ROUNDS: u64 = 4;

/// Compares exchanges of random links and spinors, and sums, in the memory of other GPUs with the same through the hosts, bit
/// for bit. Does nothing where all pass through the hosts. Collective.
///
/// # Errors
/// They differ, or memory runs out.
pub fn check_wires(domain: &Arc<Domain>) -> Result<(), AppError> {
    if !domain.transports().have_peer() && domain.transports().messages() == Halo::Staged {
        return Ok(());
    }
    // A rank that fails in the middle ends all: the others wait for it.
    let [found, expected] = [exchanged(domain)?, exchanged(&domain.through_hosts()?)?];
    let differs = || {
        AppError::Refused(format!(
            "what this rank gets from the memory of other GPUs (halos {}) is not what they send through their hosts; with \
             transport = \"staged\" all pass through these",
            domain.transports()
        ))
    };
    agree(domain.comm(), if found == expected { Ok(()) } else { Err(differs()) })
}

/// What comes in some exchanges of random fields: sums of what was made of borders, and halos as they are.
fn exchanged(domain: &Arc<Domain>) -> Result<(Vec<ExactSum>, Vec<Vec<u8>>), FieldError> {
    let mut links = MatrixField::new(domain, 4)?;
    let mut force = AlgebraField::new(domain)?;
    let mut spinor = Spinor::new(domain, Precision::Double)?;
    let what = (Crossing::HalfSpinor, &[true][..]);
    let mut faces = Faces::new(domain, Precision::Double, 1, what, 0)?;
    let deep = domain.cut_directions().all(|mu| domain.border()[mu] > 1);
    let loops = GaugeLoops::new(domain, 1.0, if deep { 1.0 } else { 0.0 }, 0.0)?;
    let (mut sums, mut halos) = (Vec::new(), Vec::new());
    for trajectory in 0..ROUNDS {
        let random = |purpose| RandomAddress { seed: 1, trajectory, purpose };
        links.set_random(random(Purpose::Start))?;
        force.set_zero()?;
        // Staples reach over both sides of every cut.
        loops.add_force(&links, &mut force, 1.0)?;
        sums.push(force.kinetic()?);
        spinor.set_random(ODD, 1.0, random(Purpose::Probe(0)))?;
        let data = FaceData::Spinors { input: spinor.fermions(), dagger: Dagger::No, slices: 1 };
        faces.exchange(FaceSource { parity: ODD, data }, 1)?;
        halos.extend(faces.received()?);
    }
    Ok((sums, halos))
}
