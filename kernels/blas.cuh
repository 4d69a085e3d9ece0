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
// y += (a + i b) x on a site
template <class F> HD void site_caxpy(F* y, F a, F b, const F* x) {
    UNROLL for (int k = 0; k < 24; k += 2) {
        y[k] = nmad(b, x[k + 1], mad(a, x[k], y[k]));
        y[k + 1] = mad(b, x[k], mad(a, x[k + 1], y[k + 1]));
    }
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
    site_caxpy(y, splat<F>(real_of<F>(a.a)), splat<F>(real_of<F>(a.b)), x);
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
// Re (x, x), Re (x, y), Im (x, y) of a site to sums 2, 0, 1.
template <class F> HD void add_products(Accumulator& sum, const F* x, const F* y) {
    sum.add(0, site_dot(x, y));
    sum.add(1, site_dot_imaginary(x, y));
    sum.add(2, site_dot(x, x));
}
// y += (a + i b) x; sum 0: |y|^2
template <class F> HD void caxpy_norm2(const BlasArgs& a, int i, Accumulator& sum) {
    F x[24], y[24];
    load24(x, a.x, i, a.half);
    load24(y, a.y, i, a.half);
    site_caxpy(y, splat<F>(real_of<F>(a.a)), splat<F>(real_of<F>(a.b)), x);
    store24(a.y, i, a.half, y);
    sum.add(0, site_dot(y, y));
}
// y += (a + i b) x; sums 0, 1: (z, y)
template <class F> HD void caxpy_dot(const BlasArgs& a, int i, Accumulator& sum) {
    F x[24], y[24];
    load24(x, a.x, i, a.half);
    load24(y, a.y, i, a.half);
    site_caxpy(y, splat<F>(real_of<F>(a.a)), splat<F>(real_of<F>(a.b)), x);
    store24(a.y, i, a.half, y);
    load24(x, a.z, i, a.half);
    sum.add(0, site_dot(x, y));
    sum.add(1, site_dot_imaginary(x, y));
}
// Sums 0, 1: (x, y); sum 2: |x|^2
template <class F> HD void dot_norm2(const BlasArgs& a, int i, Accumulator& sum) {
    F x[24], y[24];
    load24(x, a.x, i, a.half);
    load24(y, a.y, i, a.half);
    add_products(sum, x, y);
}
// The second half of a step of BiCGstab: x += (a + i b) z + (c + i d) y, y -= (c + i d) w; sums 0, 1: (v, y),
// sum 2: |y|^2. y is the residual, z the direction, w = M y, v the shadow residual.
template <class F> HD void bicgstab_step(const BlasArgs& a, int i, Accumulator& sum) {
    F x[24], y[24], t[24];
    const F c = splat<F>(real_of<F>(a.c)), d = splat<F>(real_of<F>(a.d));
    load24(x, a.x, i, a.half);
    load24(t, a.z, i, a.half);
    load24(y, a.y, i, a.half);
    site_caxpy(x, splat<F>(real_of<F>(a.a)), splat<F>(real_of<F>(a.b)), t);
    site_caxpy(x, c, d, y);
    store24(a.x, i, a.half, x);
    load24(t, a.w, i, a.half);
    site_caxpy(y, -c, -d, t);
    store24(a.y, i, a.half, y);
    load24(t, a.v, i, a.half);
    sum.add(0, site_dot(t, y));
    sum.add(1, site_dot_imaginary(t, y));
    sum.add(2, site_dot(y, y));
}
// The next direction of BiCGstab: y = x + (a + i b) (y - (c + i d) z)
template <class F> HD void bicgstab_direction(const BlasArgs& a, int i) {
    F x[24], y[24], z[24];
    load24(x, a.x, i, a.half);
    load24(y, a.y, i, a.half);
    load24(z, a.z, i, a.half);
    site_caxpy(y, splat<F>(real_of<F>(-a.c)), splat<F>(real_of<F>(-a.d)), z);
    site_caxpy(x, splat<F>(real_of<F>(a.a)), splat<F>(real_of<F>(a.b)), y);
    store24(a.y, i, a.half, x);
}
// A step of minimal residuals: y += (a + i b) x, x -= (a + i b) z
template <class F> HD void mr_step(const BlasArgs& a, int i) {
    F x[24], y[24];
    const F f = splat<F>(real_of<F>(a.a)), g = splat<F>(real_of<F>(a.b));
    load24(x, a.x, i, a.half);
    load24(y, a.y, i, a.half);
    site_caxpy(y, f, g, x);
    store24(a.y, i, a.half, y);
    load24(y, a.z, i, a.half);
    site_caxpy(x, -f, -g, y);
    store24(a.x, i, a.half, x);
}
// y += i a gamma_5 x
template <class F> HD void add_twist(const BlasArgs& a, int i) {
    F x[24], y[24];
    load24(x, a.x, i, a.half);
    load24(y, a.y, i, a.half);
    const F f = splat<F>(real_of<F>(a.a));
    UNROLL for (int k = 0; k < 24; k += 2) {
        const F t = k < 12 ? f : -f;
        y[k] = nmad(t, x[k + 1], y[k]);
        y[k + 1] = mad(t, x[k], y[k + 1]);
    }
    store24(a.y, i, a.half, y);
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
#ifdef HMC_HALF
// y = x, x in single and y in half
template <class F> HD void from_single(const BlasArgs& a, int i) {
    F x[24];
    load_plain<24, 1>(x, a.x, 0, i, a.half);
    store24(a.y, i, a.half, x);
}
// y += x, y in single and x in half
template <class F> HD void add_to_single(const BlasArgs& a, int i) {
    F x[24], y[24];
    load24(x, a.x, i, a.half);
    load_plain<24, 1>(y, a.y, 0, i, a.half);
    UNROLL for (int k = 0; k < 24; ++k) y[k] = y[k] + x[k];
    store_plain<24, 1>(a.y, 0, i, a.half, y);
}
#endif
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
    SUM(blas, caxpy_norm2, BlasArgs, 1, (caxpy_norm2<F>))               \
    SUM(blas, caxpy_dot, BlasArgs, 2, (caxpy_dot<F>))                   \
    SUM(blas, dot_norm2, BlasArgs, 3, (dot_norm2<F>))                   \
    SUM(blas, bicgstab_step, BlasArgs, 3, (bicgstab_step<F>))           \
    SITE(blas, bicgstab_direction, BlasArgs, (bicgstab_direction<F>))   \
    SITE(blas, mr_step, BlasArgs, (mr_step<F>))                         \
    SITE(blas, add_twist, BlasArgs, (add_twist<F>))                     \
    SITE(blas, from_double, BlasArgs, (from_double<F>))                 \
    SITE(blas, add_to_double, BlasArgs, (add_to_double<F>))             \
    SITE(blas, clover_from_double, BlasArgs, (clover_from_double<F>))
#define HALF_BLAS_KERNELS(SITE, SUM)                                    \
    SITE(blas, from_single, BlasArgs, (from_single<F>))                 \
    SITE(blas, add_to_single, BlasArgs, (add_to_single<F>))
