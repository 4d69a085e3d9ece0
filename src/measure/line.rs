//! Products of links along straight lines, one from each site: the parts of Polyakov and Wilson loops.
//!
//! Lines grow by one link at a time on all sites at once, so every product is the same for all ranks and lanes.

use crate::device::kernels::ExtendLine;
use crate::field::{FieldError, MatrixField};
use num_complex::Complex64;
use std::sync::Arc;

/// One step: `out(x) = U_mu(x) W(x + mu) B(x)^dag`; a factor that is `None` is left out.
#[derive(Clone, Copy)]
pub(super) struct Extension<'a> {
    /// The direction, 0 to 3 for x, y, z, t.
    pub mu: usize,
    /// U.
    pub links: Option<&'a MatrixField>,
    /// W; at least one of U and W is required.
    pub line: Option<&'a MatrixField>,
    /// B.
    pub back: Option<&'a MatrixField>,
    /// C, the rest of the loop that the line closes.
    pub closing: Option<&'a MatrixField>,
}

impl Extension<'_> {
    /// Fills `out` and one layer of its borders. Returns the mean over sites of `tr out(x) / 3`, or with C the mean of
    /// `tr C(x) out(x)^dag / 3`.
    ///
    /// # Panics
    /// Both U and W are missing.
    pub(super) fn into(self, out: &mut MatrixField) -> Result<Complex64, FieldError> {
        assert!(self.links.is_some() || self.line.is_some(), "a line of nothing");
        let domain = Arc::clone(out.domain());
        let one = |field: &'_ MatrixField| domain.check([field.domain()]);
        [self.links, self.line, self.back, self.closing].into_iter().flatten().for_each(one);
        let kernel = ExtendLine {
            g: domain.geometry(),
            links: self.links.map(MatrixField::links),
            line: self.line.map(|line| line.matrices(1)),
            back: self.back.map(|back| back.matrices(1)),
            closing: self.closing.map(|closing| closing.matrices(1)),
            out: out.matrices_mut(1),
            mu: self.mu as i32,
        };
        domain.check_border(1);
        let sums = domain.sum(&kernel, 2 * domain.half())?.sums;
        let trace = Complex64::new(sums[0].value(), sums[1].value()) / domain.global_volume();
        out.fill_borders_to(1)?;
        Ok(trace)
    }
}
