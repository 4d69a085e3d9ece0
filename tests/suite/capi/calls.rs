//! Calls of the interface, with texts and memory of Rust.

use hmc::capi::{
    HMC_OK, hmc_close, hmc_error, hmc_free_text, hmc_links, hmc_links_free, hmc_links_new, hmc_open,
    hmc_quark, hmc_quark_free, hmc_quark_new, hmc_session,
};
use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::null_mut;

/// Text for C.
pub fn c(text: &str) -> CString {
    CString::new(text).unwrap()
}

/// The last message.
pub fn message() -> String {
    // SAFETY: it ends in zero, and no function fails meanwhile.
    unsafe { CStr::from_ptr(hmc_error()) }.to_str().unwrap().to_owned()
}

/// Fails with the message.
pub fn done(code: c_int) {
    assert_eq!(code, HMC_OK, "{}", message());
}

/// A text that a function gives.
pub fn given(give: impl FnOnce(*mut *mut c_char) -> c_int) -> String {
    let mut text = null_mut();
    done(give(&mut text));
    // SAFETY: the function has given it.
    let found = unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned();
    // SAFETY: as above, once.
    unsafe { hmc_free_text(text) };
    found
}

/// A session, closed when it is dropped.
pub struct Session(pub *mut hmc_session);

impl Session {
    pub fn new() -> Self {
        let mut session = null_mut();
        // SAFETY: a text and room for a pointer.
        done(unsafe { hmc_open(c("[parallel]\nthreads = 2\n").as_ptr(), &mut session) });
        Self(session)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: it is closed once.
        unsafe { hmc_close(self.0) };
    }
}

/// Links, freed when they are dropped.
pub struct Links(pub *mut hmc_links);

impl Links {
    pub fn new(session: &Session, extents: [usize; 4], u: &[f64]) -> Self {
        let mut links = null_mut();
        // SAFETY: four numbers, so many reals, room for a pointer.
        done(unsafe { hmc_links_new(session.0, extents.as_ptr(), u.as_ptr(), u.len(), &mut links) });
        Self(links)
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        // SAFETY: they are freed once.
        unsafe { hmc_links_free(self.0) };
    }
}

/// A quark, freed when it is dropped.
pub struct Quark(pub *mut hmc_quark);

impl Quark {
    pub fn new(links: &Links, toml: &str) -> Self {
        let mut quark = null_mut();
        // SAFETY: a text and room for a pointer.
        done(unsafe { hmc_quark_new(links.0, c(toml).as_ptr(), &mut quark) });
        Self(quark)
    }
}

impl Drop for Quark {
    fn drop(&mut self) {
        // SAFETY: it is freed once.
        unsafe { hmc_quark_free(self.0) };
    }
}
