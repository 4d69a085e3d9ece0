//! Configurations.

use super::border::{Room, borrowed, give_text, taken, text, values};
use super::fault::{Failure, guarded};
use super::session::{four, hmc_session, possible};
use crate::app::Links;
use crate::io::Format;
use std::ffi::{c_char, c_int};
use std::path::Path;

/// A configuration.
#[allow(non_camel_case_types, reason = "its name in C")]
pub struct hmc_links(pub(super) Links);

/// Reads a configuration of any format, found by its content, and verifies it.
///
/// # Safety
/// `session` is of this interface or null, `path` is null or a text, `links` is null or room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hmc_links_read(
    session: *const hmc_session,
    path: *const c_char,
    links: *mut *mut hmc_links,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (session, room) = unsafe { (borrowed(session, "session")?, Room::new(links, 1, "links")?) };
        // SAFETY: the caller's promise.
        let path = unsafe { text(path, "path")? };
        let _turn = session.0.turn()?;
        room.give(hmc_links(Links::read(&session.0, Path::new(path))?));
        Ok(())
    })
}

/// Makes a configuration of the caller's links, which are copied and must be in SU(3) to 1e-4.
///
/// `reals` is 72 times the sites of this rank's box: `[t][z][y][x][mu][row][column][re, im]`.
///
/// # Safety
/// `session` is of this interface or null, `extents` is null or four numbers, `u` is null or `reals` reals, `links` is null
/// or room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hmc_links_new(
    session: *const hmc_session,
    extents: *const usize,
    u: *const f64,
    reals: usize,
    links: *mut *mut hmc_links,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (session, room) = unsafe { (borrowed(session, "session")?, Room::new(links, 1, "links")?) };
        // SAFETY: the caller's promise.
        let (extents, u) = unsafe { (four(extents, "extents")?, values(u, reals, "u")?) };
        let _turn = session.0.turn()?;
        room.give(hmc_links(Links::new(&session.0, possible(extents)?, u)?));
        Ok(())
    })
}

/// Writes a configuration and reads it back.
///
/// `format`: "hdf5", "ildg", "nersc", "milc" or "openqcd"; null: by the ending of `path`, .h5, .ildg, .nersc, .milc or
/// .openqcd. What is there is replaced only if `overwrite` is not 0.
///
/// # Safety
/// `links` is of this interface or null, `path` and `format` are null or texts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hmc_links_write(
    links: *const hmc_links,
    path: *const c_char,
    format: *const c_char,
    overwrite: c_int,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (links, path) = unsafe { (borrowed(links, "links")?, text(path, "path")?) };
        let format = if format.is_null() {
            None
        } else {
            // SAFETY: the caller's promise.
            let name = unsafe { text(format, "format")? };
            let named = |format: &Format| format.to_string().eq_ignore_ascii_case(name);
            let unknown = || Failure::refused(format!("format: '{name}' is unknown"));
            Some(Format::ALL.into_iter().find(named).ok_or_else(unknown)?)
        };
        let _turn = links.0.session().turn()?;
        Ok(links.0.write(Path::new(path), format, overwrite != 0)?)
    })
}

/// The extents of the lattice, x to t.
///
/// # Safety
/// `links` is of this interface or null, `extents` is null or room for four numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hmc_links_extents(links: *const hmc_links, extents: *mut usize) -> c_int {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (links, room) = unsafe { (borrowed(links, "links")?, Room::new(extents, 4, "extents")?) };
        room.write(&links.0.partition().global)
    })
}

/// Copies the links of this rank's box to the caller, in the order of `hmc_links_new`.
///
/// # Safety
/// `links` is of this interface or null, `u` is null or room for `reals` reals.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hmc_links_get(links: *const hmc_links, u: *mut f64, reals: usize) -> c_int {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (links, room) = unsafe { (borrowed(links, "links")?, Room::new(u, reals, "u")?) };
        room.write(links.0.reals())
    })
}

/// The mean over sites and planes of Re tr P / 3.
///
/// # Safety
/// `links` is of this interface or null, `plaquette` is null or room for a real.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hmc_links_plaquette(links: *const hmc_links, plaquette: *mut f64) -> c_int {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (links, room) = unsafe { (borrowed(links, "links")?, Room::new(plaquette, 1, "plaquette")?) };
        let _turn = links.0.session().turn()?;
        room.write(&[links.0.plaquette()?])
    })
}

/// A number that depends on all bits of the links and on nothing else: `links_checksum` of `hmc info`.
///
/// # Safety
/// `links` is of this interface or null, `checksum` is null or room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hmc_links_checksum(links: *const hmc_links, checksum: *mut u64) -> c_int {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (links, room) = unsafe { (borrowed(links, "links")?, Room::new(checksum, 1, "checksum")?) };
        let _turn = links.0.session().turn()?;
        room.write(&[links.0.checksum()])
    })
}

/// What is known of the configuration, as a JSON object: for a file that of `hmc info --json`.
///
/// # Safety
/// `links` is of this interface or null, `json` is null or room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hmc_links_info(links: *const hmc_links, json: *mut *mut c_char) -> c_int {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (links, room) = unsafe { (borrowed(links, "links")?, Room::new(json, 1, "json")?) };
        let _turn = links.0.session().turn()?;
        give_text(room, &links.0.info()?)
    })
}

/// The gauge action, and its force unless `force` is null.
///
/// `toml`: a text with `[gauge]`. `reals` is 32 times the sites of this rank's box, for F_a: `[t][z][y][x][mu][a]`, a = 1 to 8.
///
/// # Safety
/// `links` is of this interface or null, `toml` is null or a text, `action` is null or room for a real, `force` is null or
/// room for `reals` reals.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hmc_links_gauge(
    links: *const hmc_links,
    toml: *const c_char,
    action: *mut f64,
    force: *mut f64,
    reals: usize,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (links, toml) = unsafe { (borrowed(links, "links")?, text(toml, "toml")?) };
        // SAFETY: the caller's promise.
        let room = unsafe { Room::new(action, 1, "action")? };
        // SAFETY: the caller's promise.
        let room_of_force =
            if force.is_null() { None } else { Some(unsafe { Room::new(force, reals, "force")? }) };
        let _turn = links.0.session().turn()?;
        let (value, found) = links.0.gauge(toml, room_of_force.is_some())?;
        room_of_force.map_or(Ok(()), |room| room.write(&found))?;
        room.write(&[value])
    })
}

/// Measures, and gives a JSON object: a line of `hmc measure --json` without `file`.
///
/// `toml`: a text as `hmc measure` takes it, with `[measure]` and, for quarks, `[fermion.NAME]`.
///
/// # Safety
/// `links` is of this interface or null, `toml` is null or a text, `json` is null or room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hmc_links_measure(
    links: *const hmc_links,
    toml: *const c_char,
    json: *mut *mut c_char,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (links, toml) = unsafe { (borrowed(links, "links")?, text(toml, "toml")?) };
        // SAFETY: the caller's promise.
        let room = unsafe { Room::new(json, 1, "json")? };
        let _turn = links.0.session().turn()?;
        give_text(room, &links.0.measure(toml)?)
    })
}

/// Frees a configuration. Quarks on it stay valid. Null is allowed.
///
/// # Safety
/// `links` is null, or of this interface and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hmc_links_free(links: *mut hmc_links) {
    guarded(|| {
        // SAFETY: the caller's promise.
        drop(unsafe { taken(links) });
        Ok(())
    });
}
