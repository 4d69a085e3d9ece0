// Linear algebra on spinors of one parity, 24 reals a site. Products are summed in double: four
// chains over a site's reals, then exactly over sites.
#pragma once
#include "sum.cuh"

template <class F> HD void load24(F* r, const void* x, int i, int half) { load<24, 1>(r, x, 0, i, half); }
template <class F> HD void store24(void* x, int i, int half, const F* r) { store<24, 1>(x, 0, i, half, r); }

// Re (x, y) of a site
template <class F> HD wide_of<F> site_dot(const F* x, const F* y) {
    using D = wide_of<F>;
    D s[4];
    UNROLL for (int j = 0; j < 4; ++j) {
        s[j] = D{};
        UNROLL for (int k = 0; k < 6; ++k) s[j] = mad(widen(x[4 * k + j]), widen(y[4 * k + j]), s[j]);
    }
    return (s[0] + s[1]) + (s[2] + s[3]);
}
// Im (x, y) of a site
template <class F> HD wide_of<F> site_dot_imaginary(const F* x, const F* y) {
    using D = wide_of<F>;
    D s[4];
    UNROLL for (int j = 0; j < 4; ++j) {
        s[j] = D{};
        UNROLL for (int k = 0; k < 3; ++k) {
            const int n = 2 * (4 * k + j);
            s[j] = mad(widen(x[n]), widen(y[n + 1]), s[j]);
            s[j] = nmad(widen(x[n + 1]), widen(y[n]), s[j]);
        }
    }
    return (s[0] + s[1]) + (s[2] + s[3]);
}
// y += a x
template <class F> HD void axpy(const BlasArgs& a, int i) {
    F x[24], y[24];
    load24(x, a.x, i, a.half);
    load24(y, a.y, i, a.half);
    const F f = splat<F>(real_of<F>(a.a));
    UNROLL for (int k = 0; k < 24; ++k) y[k] = mad(f, x[k], y[k]);
    store24(a.y, i, a.half, y);
}
// y = x + a y
template <class F> HD void xpay(const BlasArgs& a, int i) {
    F x[24], y[24];
    load24(x, a.x, i, a.half);
    load24(y, a.y, i, a.half);
    const F f = splat<F>(real_of<F>(a.a));
    UNROLL for (int k = 0; k < 24; ++k) y[k] = mad(f, y[k], x[k]);
    store24(a.y, i, a.half, y);
}
// y += (a + i b) x
template <class F> HD void caxpy(const BlasArgs& a, int i) {
    F x[24], y[24];
    load24(x, a.x, i, a.half);
    load24(y, a.y, i, a.half);
    const F f = splat<F>(real_of<F>(a.a)), g = splat<F>(real_of<F>(a.b));
    UNROLL for (int k = 0; k < 24; k += 2) {
        y[k] = nmad(g, x[k + 1], mad(f, x[k], y[k]));
        y[k + 1] = mad(g, x[k], mad(f, x[k + 1], y[k + 1]));
    }
    store24(a.y, i, a.half, y);
}
// y = a x
template <class F> HD void scale(const BlasArgs& a, int i) {
    F x[24];
    load24(x, a.x, i, a.half);
    const F f = splat<F>(real_of<F>(a.a));
    UNROLL for (int k = 0; k < 24; ++k) x[k] = f * x[k];
    store24(a.y, i, a.half, x);
}
// y = gamma_5 x
template <class F> HD void gamma5(const BlasArgs& a, int i) {
    F x[24];
    load24(x, a.x, i, a.half);
    UNROLL for (int k = 12; k < 24; ++k) x[k] = -x[k];
    store24(a.y, i, a.half, x);
}
// Sum 0: |x|^2
template <class F> HD void norm2(const BlasArgs& a, int i, Accumulator& sum) {
    F x[24];
    load24(x, a.x, i, a.half);
    sum.add(0, site_dot(x, x));
}
// Sums 0, 1: (x, y), antilinear in x
template <class F> HD void dot(const BlasArgs& a, int i, Accumulator& sum) {
    F x[24], y[24];
    load24(x, a.x, i, a.half);
    load24(y, a.y, i, a.half);
    sum.add(0, site_dot(x, y));
    sum.add(1, site_dot_imaginary(x, y));
}
// Sum 0: Re (x, y)
template <class F> HD void real_dot(const BlasArgs& a, int i, Accumulator& sum) {
    F x[24], y[24];
    load24(x, a.x, i, a.half);
    load24(y, a.y, i, a.half);
    sum.add(0, site_dot(x, y));
}
// One step of conjugate gradients: x += a z, y -= a w; sum 0: |y|^2.
template <class F> HD void cg_step(const BlasArgs& a, int i, Accumulator& sum) {
    F x[24], y[24];
    const F f = splat<F>(real_of<F>(a.a));
    load24(x, a.x, i, a.half);
    load24(y, a.z, i, a.half);
    UNROLL for (int k = 0; k < 24; ++k) x[k] = mad(f, y[k], x[k]);
    store24(a.x, i, a.half, x);
    load24(x, a.w, i, a.half);
    load24(y, a.y, i, a.half);
    UNROLL for (int k = 0; k < 24; ++k) y[k] = nmad(f, x[k], y[k]);
    store24(a.y, i, a.half, y);
    sum.add(0, site_dot(y, y));
}
// y = x, x in double
template <class F> HD void from_double(const BlasArgs& a, int i) {
    wide_of<F> x[24];
    F y[24];
    load24(x, a.x, i, a.half);
    for (int k = 0; k < 24; ++k) y[k] = narrow<F>(x[k]);
    store24(a.y, i, a.half, y);
}
// y += x, y in double
template <class F> HD void add_to_double(const BlasArgs& a, int i) {
    F x[24];
    wide_of<F> y[24];
    load24(x, a.x, i, a.half);
    load24(y, a.y, i, a.half);
    UNROLL for (int k = 0; k < 24; ++k) y[k] = y[k] + widen(x[k]);
    store24(a.y, i, a.half, y);
}
// Clover blocks y = x, x in double: 2 x 36 reals a site.
template <class F> HD void clover_from_double(const BlasArgs& a, int i) {
    for (int chirality = 0; chirality < 2; ++chirality) {
        wide_of<F> x[36];
        F y[36];
        load<36, 2>(x, a.x, chirality, i, a.half);
        for (int k = 0; k < 36; ++k) y[k] = narrow<F>(x[k]);
        store<36, 2>(a.y, chirality, i, a.half, y);
    }
}

#define BLAS_KERNELS(SITE, SUM)                                         \
    SITE(blas, axpy, BlasArgs, (axpy<F>))                               \
    SITE(blas, xpay, BlasArgs, (xpay<F>))                               \
    SITE(blas, caxpy, BlasArgs, (caxpy<F>))                             \
    SITE(blas, scale, BlasArgs, (scale<F>))                             \
    SITE(blas, gamma5, BlasArgs, (gamma5<F>))                           \
    SUM(blas, norm2, BlasArgs, 1, (norm2<F>))                           \
    SUM(blas, dot, BlasArgs, 2, (dot<F>))                               \
    SUM(blas, real_dot, BlasArgs, 1, (real_dot<F>))                     \
    SUM(blas, cg_step, BlasArgs, 1, (cg_step<F>))                       \
    SITE(blas, from_double, BlasArgs, (from_double<F>))                 \
    SITE(blas, add_to_double, BlasArgs, (add_to_double<F>))             \
    SITE(blas, clover_from_double, BlasArgs, (clover_from_double<F>))
