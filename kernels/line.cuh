// Products of links along straight lines, and the loops that they close (src/measure/line.rs). A field of lines is
// double, with borders and one matrix per site.
#pragma once
#include "gauge.cuh"

// out(x) = U_mu(x) W(x + mu) B(x)^dag: W is `line`, B is `back`; absent factors are left out. Sums 0, 1: real and
// imaginary part of tr out(x) / 3, or, with `closing` as C, of tr C(x) out(x)^dag / 3.
template <class F> HD void extend_line(const ExtendLine& a, int i, Accumulator& sum) {
    const int parity = parity_of_index<F>(a, i);
    const Walk here = walk_from(coord_of(a.g, i, parity));
    Walk next = here;
    step(a.g, next, a.mu, 1);
    Matrix<F> w = a.links ? link_at<F>(a.g, a.links, here, a.mu) : matrix_at<1, F>(a.g, a.line, next, 0);
    if (a.links && a.line) w = w * matrix_at<1, F>(a.g, a.line, next, 0);
    if (a.back) w = multiply<false, true>(w, matrix_at<1, F>(a.g, a.back, here, 0));
    store_matrix<1>(half_field<F>(a.out, parity, a.g.half_bordered, 18), 0, bordered_index_of(a.g, here.c), a.g.half_bordered, w);
    if (a.closing) w = multiply<false, true>(matrix_at<1, F>(a.g, a.closing, here, 0), w);
    sum.add(0, splat<F>(1.0 / 3.0) * real_trace(w));
    sum.add(1, splat<F>(1.0 / 3.0) * ((w.e[0].im + w.e[4].im) + w.e[8].im));
}

#define LINE_KERNELS(SITE, SUM) SUM(line, extend_line, ExtendLine, 2, (extend_line<F>))
