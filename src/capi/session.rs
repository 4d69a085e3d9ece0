//! Ranks, threads and device of the caller.

use super::border::{Room, borrowed, free_text, give_text, taken, text, values};
use super::fault::{Failure, guarded};
use crate::app::Session;
use crate::lattice::Extents;
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

/// Threads, device and ranks.
#[allow(non_camel_case_types, reason = "its name in C")]
pub struct hmc_session(pub(super) Arc<Session>);

/// A text of the caller, or nothing.
///
/// # Safety
/// That of [`text`].
unsafe fn machine_text<'a>(machine: *const c_char) -> Result<&'a str, Failure> {
    // SAFETY: the caller's promise.
    if machine.is_null() { Ok("") } else { unsafe { text(machine, "machine") } }
}

/// Four extents or coordinates of the caller.
///
/// # Safety
/// That of [`values`], for four.
pub(super) unsafe fn four(pointer: *const usize, what: &str) -> Result<Extents, Failure> {
    // SAFETY: the caller's promise.
    let found = unsafe { values(pointer, 4, what)? };
    Ok(std::array::from_fn(|mu| found[mu]))
}

/// Refuses extents whose volume does not fit.
pub(super) fn possible(extents: Extents) -> Result<Extents, Failure> {
    // As in an input.
    if extents.iter().all(|extent| (2..=4096).contains(extent)) {
        return Ok(extents);
    }
    Err(Failure::refused(format!("extents: {extents:?}; expected four even numbers from 2 to 4096")))
}

/// Opens a session of this process alone.
///
/// `machine`: a TOML text with `[parallel]`, of which `device`, `threads` and `lanes` count; null for the defaults.
///
/// # Safety
/// `machine` is null or a text, `session` is null or room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hmc_open(machine: *const c_char, session: *mut *mut hmc_session) -> c_int {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (machine, room) = unsafe { (machine_text(machine)?, Room::new(session, 1, "session")?) };
        room.give(hmc_session(Session::alone(machine)?));
        Ok(())
    })
}

/// Opens a session on the ranks of a communicator, collectively, as are all calls of what is made with it.
///
/// `comm`: the address of an MPI_Comm. The caller has started MPI with MPI_THREAD_SERIALIZED or more, closes the session
/// on all ranks before MPI_Finalize, and frees all that was made with it.
///
/// # Safety
/// `comm` is null or points to a communicator within one group; the others as in `hmc_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hmc_open_mpi(
    machine: *const c_char,
    comm: *const c_void,
    session: *mut *mut hmc_session,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (machine, room) = unsafe { (machine_text(machine)?, Room::new(session, 1, "session")?) };
        // SAFETY: the caller's promise.
        let ranks = unsafe { ranks(comm)? };
        room.give(hmc_session(Session::on(machine, ranks)?));
        Ok(())
    })
}

/// The ranks of a communicator.
///
/// # Safety
/// `comm` is null or points to a communicator within one group.
#[cfg(feature = "mpi")]
unsafe fn ranks(comm: *const c_void) -> Result<crate::app::Ranks, Failure> {
    // SAFETY: the caller's promise.
    let raw = unsafe { *borrowed(comm.cast::<mpi::ffi::MPI_Comm>(), "comm")? };
    // SAFETY: the caller's promise.
    let world = unsafe { crate::comm::World::beside(raw) };
    Ok(Arc::new(world.map_err(|error| Failure::refused(error.to_string()))?))
}

/// There are none.
#[cfg(not(feature = "mpi"))]
unsafe fn ranks(_: *const c_void) -> Result<crate::app::Ranks, Failure> {
    Err(Failure::refused("comm: this library was built without MPI"))
}

/// Closes a session. What was made with it stays valid until it is freed itself. Null is allowed.
///
/// # Safety
/// `session` is null, or of this interface and not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hmc_close(session: *mut hmc_session) {
    guarded(|| {
        // SAFETY: the caller's promise.
        drop(unsafe { taken(session) });
        Ok(())
    });
}

/// The lines, each with its end, that warn of what was odd in texts and files since the last call; often empty.
///
/// # Safety
/// `session` is of this interface or null, `text` is null or room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hmc_warnings(session: *const hmc_session, text: *mut *mut c_char) -> c_int {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (session, room) = unsafe { (borrowed(session, "session")?, Room::new(text, 1, "text")?) };
        let lines: String = session.0.warnings().into_iter().map(|line| line + "\n").collect();
        give_text(room, &lines)
    })
}

/// Frees a text that a function gave. Null is allowed.
///
/// # Safety
/// `text` is null, or of this interface and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hmc_free_text(text: *mut c_char) {
    guarded(|| {
        // SAFETY: the caller's promise.
        unsafe { free_text(text) };
        Ok(())
    });
}

/// The box that this rank has of a lattice: its extents and the coordinates of its first site. Alone it is the lattice.
///
/// # Safety
/// `session` is of this interface or null; the others are null, or four numbers and room for four.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hmc_box(
    session: *const hmc_session,
    extents: *const usize,
    local: *mut usize,
    offset: *mut usize,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (session, extents) = unsafe { (borrowed(session, "session")?, four(extents, "extents")?) };
        // SAFETY: the caller's promise.
        let [local, offset] = unsafe { [Room::new(local, 4, "local")?, Room::new(offset, 4, "offset")?] };
        let _turn = session.0.turn()?;
        let partition = session.0.partition(possible(extents)?)?;
        local.write(&partition.local())?;
        offset.write(&partition.offset())
    })
}
