//! Operators and solves.

use super::border::{Room, borrowed, exclusive, taken, text, values};
use super::fault::{Failure, guarded};
use super::links::hmc_links;
use super::session::four;
use crate::app::{AppError, LentQuark};
use crate::field::Dagger;
use crate::solver::Info;
use std::ffi::{c_char, c_int};
use std::sync::Arc;

/// A quark on the links of a configuration.
#[allow(non_camel_case_types, reason = "its name in C")]
pub struct hmc_quark(LentQuark);

/// What a solve took: sums over right-hand sides, but for the residual.
#[allow(non_camel_case_types, reason = "its name in C")]
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hmc_solved {
    /// The greatest residual of the systems that were solved, in double precision.
    pub residual: f64,
    /// Wall time.
    pub seconds: f64,
    /// Iterations.
    pub iterations: u64,
    /// How often a precision or a method failed, and a higher one or another took over.
    pub fallbacks: u64,
}

/// Room for what a solve took, which may be missing.
///
/// # Safety
/// That of [`Room::new`], for one.
unsafe fn room_of(solved: *mut hmc_solved) -> Result<Option<Room<hmc_solved>>, Failure> {
    // SAFETY: the caller's promise.
    if solved.is_null() { Ok(None) } else { unsafe { Room::new(solved, 1, "solved").map(Some) } }
}

/// Makes a quark on links, which are copied.
///
/// `toml`: a text with `[fermion.NAME]` as in an input, and `[quark]` with `fermion = "NAME"`, `residual`, and `mass`,
/// `twisted_mass` or `naik_epsilon` where a measurement sets them.
///
/// # Safety
/// `links` is of this interface or null, `toml` is null or a text, `quark` is null or room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hmc_quark_new(
    links: *const hmc_links,
    toml: *const c_char,
    quark: *mut *mut hmc_quark,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (links, toml) = unsafe { (borrowed(links, "links")?, text(toml, "toml")?) };
        // SAFETY: the caller's promise.
        let room = unsafe { Room::new(quark, 1, "quark")? };
        let _turn = links.0.session().turn()?;
        room.give(hmc_quark(LentQuark::new(&links.0, toml)?));
        Ok(())
    })
}

/// The shape of the fields: complex numbers per site, 12 or 3, and slices of the fields on which M acts, 1 but for
/// domain-wall quarks.
///
/// # Safety
/// `quark` is of this interface or null, the others are null or room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hmc_quark_shape(
    quark: *const hmc_quark,
    components: *mut usize,
    slices: *mut usize,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (quark, room) = unsafe { (borrowed(quark, "quark")?, Room::new(components, 1, "components")?) };
        // SAFETY: the caller's promise.
        let room_of_slices = unsafe { Room::new(slices, 1, "slices")? };
        room.write(&[quark.0.components()])?;
        room_of_slices.write(&[quark.0.slices()])
    })
}

/// out = M x, or M^dag x if `dagger` is not 0. `out` may be `x`.
///
/// `reals` is 2 `components` `slices` times the sites of this rank's box: `[slice][t][z][y][x][spin][colour][re, im]`.
///
/// # Safety
/// `quark` is of this interface or null and nobody else uses it, `x` is null or `reals` reals, `out` is null or room for
/// as many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hmc_quark_apply(
    quark: *mut hmc_quark,
    dagger: c_int,
    x: *const f64,
    out: *mut f64,
    reals: usize,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (x, room) = unsafe { (values(x, reals, "x")?, Room::new(out, reals, "out")?) };
        // SAFETY: the caller's promise.
        unsafe { with(quark, |quark| room.write(&quark.apply(x, Dagger::from(dagger != 0))?)) }
    })
}

/// Solves M x = b, for one or several right-hand sides one behind the other. `x` may be `b`, `solved` may be null.
///
/// `reals` is that of `hmc_quark_apply` times the number of right-hand sides.
///
/// # Safety
/// `quark` is of this interface or null and nobody else uses it, `b` is null or `reals` reals, `x` is null or room for as
/// many, `solved` is null or room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hmc_quark_solve(
    quark: *mut hmc_quark,
    b: *const f64,
    x: *mut f64,
    reals: usize,
    solved: *mut hmc_solved,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { inverted(quark, (b, x, reals), solved, LentQuark::solve) }
}

/// As `hmc_quark_solve` for fields without slices: with domain-wall quarks the quark from wall to wall.
///
/// `reals` is 2 `components` times the sites of this rank's box, times the number of right-hand sides.
///
/// # Safety
/// As `hmc_quark_solve`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hmc_quark_propagate(
    quark: *mut hmc_quark,
    b: *const f64,
    x: *mut f64,
    reals: usize,
    solved: *mut hmc_solved,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { inverted(quark, (b, x, reals), solved, LentQuark::propagate) }
}

/// The propagator from a point, its coordinates x to t: `[component][t][z][y][x][spin][colour][re, im]`, where the first
/// index is 3 spin + colour of the source. `solved` may be null.
///
/// `reals` is 2 `components`^2 times the sites of this rank's box.
///
/// # Safety
/// `quark` is of this interface or null and nobody else uses it, `source` is null or four numbers, `out` is null or room
/// for `reals` reals, `solved` is null or room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hmc_quark_propagator(
    quark: *mut hmc_quark,
    source: *const usize,
    out: *mut f64,
    reals: usize,
    solved: *mut hmc_solved,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (source, room, solved) =
            unsafe { (four(source, "source")?, Room::new(out, reals, "out")?, room_of(solved)?) };
        // SAFETY: the caller's promise.
        unsafe {
            with(quark, |quark| {
                room.require(quark.propagator_reals())?;
                told(quark.propagator(source), room, solved)
            })
        }
    })
}

/// Frees a quark. Null is allowed.
///
/// # Safety
/// `quark` is null, or of this interface and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hmc_quark_free(quark: *mut hmc_quark) {
    guarded(|| {
        // SAFETY: the caller's promise.
        if let Some(quark) = unsafe { taken(quark) } {
            let session = Arc::clone(quark.0.session());
            let _turn = session.turn();
            drop(quark);
        }
        Ok(())
    });
}

/// Works with a quark in its session's turn.
///
/// # Safety
/// That of [`exclusive`].
unsafe fn with(
    quark: *mut hmc_quark,
    work: impl FnOnce(&mut LentQuark) -> Result<(), Failure>,
) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    let quark = unsafe { exclusive(quark, "quark")? };
    let session = Arc::clone(quark.0.session());
    let _turn = session.turn()?;
    work(&mut quark.0)
}

/// Solves for right-hand sides by `inverse`.
///
/// # Safety
/// That of [`hmc_quark_solve`].
unsafe fn inverted(
    quark: *mut hmc_quark,
    (b, x, reals): (*const f64, *mut f64, usize),
    solved: *mut hmc_solved,
    inverse: impl FnOnce(&mut LentQuark, &[f64]) -> Result<(Vec<f64>, Info), AppError>,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (b, room, solved) =
            unsafe { (values(b, reals, "b")?, Room::new(x, reals, "x")?, room_of(solved)?) };
        // SAFETY: the caller's promise.
        unsafe { with(quark, |quark| told(inverse(quark, b), room, solved)) }
    })
}

/// Writes the result of a solve.
fn told(
    found: Result<(Vec<f64>, Info), AppError>,
    room: Room<f64>,
    solved: Option<Room<hmc_solved>>,
) -> Result<(), Failure> {
    let (x, Info { residual, seconds, iterations, fallbacks, .. }) = found?;
    room.write(&x)?;
    let (iterations, fallbacks) = (iterations as u64, fallbacks as u64);
    solved.map_or(Ok(()), |solved| solved.write(&[hmc_solved { residual, seconds, iterations, fallbacks }]))
}
