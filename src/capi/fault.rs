//! Codes, messages, and panics, which do not cross the border.

use crate::app::AppError;
use crate::measure::MeasureError;
use crate::solver::SolverError;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Done.
pub const HMC_OK: c_int = 0;
/// A file, the device or the ranks failed.
pub const HMC_FAILED: c_int = 1;
/// An argument or a text is wrong. Nothing was done.
pub const HMC_REFUSED: c_int = 2;
/// A solver did not reach its residual.
pub const HMC_NOT_CONVERGED: c_int = 3;
/// A fault of the library. The session, and all that was made with it, refuses further work.
pub const HMC_FAULT: c_int = 4;

thread_local! {
    /// The message of the last failure on this thread.
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// Why a function failed: its code and a message.
pub(super) struct Failure {
    code: c_int,
    message: String,
}

impl Failure {
    /// A wrong argument.
    pub(super) fn refused(message: impl Into<String>) -> Self {
        Self { code: HMC_REFUSED, message: message.into() }
    }
}

impl From<AppError> for Failure {
    fn from(error: AppError) -> Self {
        use SolverError::{NotConverged, NotFinite, Stagnated};
        let code = match &error {
            AppError::Measure(MeasureError::Solver(
                NotConverged { .. } | NotFinite { .. } | Stagnated { .. },
            )) => HMC_NOT_CONVERGED,
            other => c_int::from(other.exit_code()),
        };
        Self { code, message: error.to_string() }
    }
}

/// Does the work of a function; its code.
pub(super) fn guarded(work: impl FnOnce() -> Result<(), Failure>) -> c_int {
    // What a panic leaves half done is behind the lock of a session, which is useless then.
    let Failure { code, message } = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => return HMC_OK,
        Ok(Err(failure)) => failure,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
            Failure { code: HMC_FAULT, message: format!("internal fault, please report it: {text}") }
        }
    };
    let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
    MESSAGE.with_borrow_mut(|last| *last = message);
    code
}

/// The message of the last function that failed on this thread; empty if none has. It is valid until the next one fails.
#[unsafe(no_mangle)]
pub extern "C" fn hmc_error() -> *const c_char {
    MESSAGE.with_borrow(|message| message.as_ptr())
}

/// The version of the library, such as "0.2.0".
#[unsafe(no_mangle)]
pub extern "C" fn hmc_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::Session;
    use std::ffi::CStr;

    fn message() -> String {
        // SAFETY: it ends in zero, and no function fails meanwhile.
        unsafe { CStr::from_ptr(hmc_error()) }.to_str().unwrap().to_owned()
    }

    /// A panic becomes a code, and the session that it broke refuses further work.
    #[test]
    fn panics_do_not_cross_the_border() {
        let session = Session::alone("").unwrap();
        let code = guarded(|| {
            let _turn = session.turn()?;
            panic!("a panic on {}\0", "purpose")
        });
        assert_eq!(
            (code, message().as_str()),
            (HMC_FAULT, "internal fault, please report it: a panic on purpose ")
        );
        assert_eq!(guarded(|| session.turn().map(drop).map_err(Failure::from)), HMC_REFUSED);
        assert!(message().contains("an earlier call"));
        assert_eq!(guarded(|| Ok(())), HMC_OK);
        assert!(message().contains("an earlier call"), "it stays until the next failure");
    }
}
