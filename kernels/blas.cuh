// Linear algebra on spinors (N = 24 reals per site) and colour vectors (N = 6) of one parity. Products are summed in
// double: in a few chains over the reals of a site, then exactly over sites.
#pragma once
#include "number.cuh"
#include "sum.cuh"

template <int N, class F> HD void load_site(F* r, const void* x, int i, int half) { load<N, 1>(r, x, 0, i, half); }
template <int N, class F> HD void store_site(void* x, int i, int half, const F* r) { store<N, 1>(x, 0, i, half, r); }
// Solutions to which many small steps are added. They are never in less than single precision, where each step would be
// rounded at the size of the whole.
template <int N, class F> HD void load_solution(F* r, const void* x, int i, int half) { load_plain<N, 1>(r, x, 0, i, half); }
template <int N, class F> HD void store_solution(void* x, int i, int half, const F* r) { store_plain<N, 1>(x, 0, i, half, r); }
template <class F> HD void load24(F* r, const void* x, int i, int half) { load<24, 1>(r, x, 0, i, half); }
template <class F> HD void store24(void* x, int i, int half, const F* r) { store<24, 1>(x, 0, i, half, r); }

// The sum of four chains, or of two chains.
template <int CHAINS, class D> HD D sum_of_chains(const D* s) {
    if constexpr (CHAINS == 4) return (s[0] + s[1]) + (s[2] + s[3]);
    else return s[0] + s[1];
}
// Re (x, y) of a site
template <int N = 24, class F> HD wide_of<F> site_dot(const F* x, const F* y) {
    using D = wide_of<F>;
    constexpr int CHAINS = N % 4 == 0 ? 4 : 2;
    D s[CHAINS];
    UNROLL for (int j = 0; j < CHAINS; ++j) {
        s[j] = D{};
        UNROLL for (int k = 0; k < N / CHAINS; ++k)
            s[j] = mad(widen(x[CHAINS * k + j]), widen(y[CHAINS * k + j]), s[j]);
    }
    return sum_of_chains<CHAINS>(s);
}
// Im (x, y) of a site
template <int N = 24, class F> HD wide_of<F> site_dot_imaginary(const F* x, const F* y) {
    using D = wide_of<F>;
    constexpr int CHAINS = N % 4 == 0 ? 4 : 2, PAIRS = N / 2;
    D s[CHAINS];
    UNROLL for (int j = 0; j < CHAINS; ++j) s[j] = D{};
    UNROLL for (int k = 0; k < PAIRS; ++k) {
        D& t = s[k % CHAINS];
        t = mad(widen(x[2 * k]), widen(y[2 * k + 1]), t);
        t = nmad(widen(x[2 * k + 1]), widen(y[2 * k]), t);
    }
    return sum_of_chains<CHAINS>(s);
}
// y += (a + i b) x on a site
template <int N = 24, class F> HD void site_caxpy(F* y, F a, F b, const F* x) {
    UNROLL for (int k = 0; k < N; k += 2) {
        y[k] = nmad(b, x[k + 1], mad(a, x[k], y[k]));
        y[k + 1] = mad(b, x[k], mad(a, x[k + 1], y[k + 1]));
    }
}
// y += a x
template <class F, int N> HD void axpy(const Axpy& a, int i) {
    F x[N], y[N];
    load_site<N>(x, a.x, i, a.half);
    load_site<N>(y, a.y, i, a.half);
    const F f = splat<F>(real_of<F>(a.a));
    UNROLL for (int k = 0; k < N; ++k) y[k] = mad(f, x[k], y[k]);
    store_site<N>(a.y, i, a.half, y);
}
// y = x + a y
template <class F, int N> HD void xpay(const Xpay& a, int i) {
    F x[N], y[N];
    load_site<N>(x, a.x, i, a.half);
    load_site<N>(y, a.y, i, a.half);
    const F f = splat<F>(real_of<F>(a.a));
    UNROLL for (int k = 0; k < N; ++k) y[k] = mad(f, y[k], x[k]);
    store_site<N>(a.y, i, a.half, y);
}
// y += (a + i b) x
template <class F, int N> HD void caxpy(const Caxpy& a, int i) {
    F x[N], y[N];
    load_site<N>(x, a.x, i, a.half);
    load_site<N>(y, a.y, i, a.half);
    site_caxpy<N>(y, splat<F>(real_of<F>(a.a)), splat<F>(real_of<F>(a.b)), x);
    store_site<N>(a.y, i, a.half, y);
}
// y = a y
template <class F, int N> HD void scale(const Scale& a, int i) {
    F x[N];
    load_site<N>(x, a.y, i, a.half);
    const F f = splat<F>(real_of<F>(a.a));
    UNROLL for (int k = 0; k < N; ++k) x[k] = f * x[k];
    store_site<N>(a.y, i, a.half, x);
}
// Sum 0: |x|^2
template <class F, int N> HD void norm2(const Norm2& a, int i, Accumulator& sum) {
    F x[N];
    load_site<N>(x, a.x, i, a.half);
    sum.add(0, site_dot<N>(x, x));
}
// Sums 0, 1: |x|^2, |y|^2
template <class F, int N> HD void two_norms(const TwoNorms& a, int i, Accumulator& sum) {
    F x[N];
    load_site<N>(x, a.x, i, a.half);
    sum.add(0, site_dot<N>(x, x));
    load_site<N>(x, a.y, i, a.half);
    sum.add(1, site_dot<N>(x, x));
}
// Sums 0, 1: (x, y), antilinear in x
template <class F, int N> HD void dot(const Dot& a, int i, Accumulator& sum) {
    F x[N], y[N];
    load_site<N>(x, a.x, i, a.half);
    load_site<N>(y, a.y, i, a.half);
    sum.add(0, site_dot<N>(x, y));
    sum.add(1, site_dot_imaginary<N>(x, y));
}
// Sum 0: Re (x, y)
template <class F, int N> HD void real_dot(const RealDot& a, int i, Accumulator& sum) {
    F x[N], y[N];
    load_site<N>(x, a.x, i, a.half);
    load_site<N>(y, a.y, i, a.half);
    sum.add(0, site_dot<N>(x, y));
}
// y += a x; sum 0: |y|^2
template <class F, int N> HD void axpy_norm2(const AxpyNorm2& a, int i, Accumulator& sum) {
    const double number = number_of(a.a);
    if (!is_finite(number)) return sum.add_one(0, not_a_number());
    F x[N], y[N];
    load_site<N>(x, a.x, i, a.half);
    load_site<N>(y, a.y, i, a.half);
    const F f = splat<F>(real_of<F>(number));
    UNROLL for (int k = 0; k < N; ++k) y[k] = mad(f, x[k], y[k]);
    store_site<N>(a.y, i, a.half, y);
    sum.add(0, site_dot<N>(y, y));
}
// y = x + a y; sum 0: |y|^2
template <class F, int N> HD void xpay_norm2(const XpayNorm2& a, int i, Accumulator& sum) {
    const double number = number_of(a.a);
    if (!is_finite(number)) return sum.add_one(0, not_a_number());
    F x[N], y[N];
    load_site<N>(x, a.x, i, a.half);
    load_site<N>(y, a.y, i, a.half);
    const F f = splat<F>(real_of<F>(number));
    UNROLL for (int k = 0; k < N; ++k) y[k] = mad(f, y[k], x[k]);
    store_site<N>(a.y, i, a.half, y);
    sum.add(0, site_dot<N>(y, y));
}
// Adds Re (x, x), Re (x, y), Im (x, y) of a site to sums 2, 0, 1.
template <class F> HD void add_products(Accumulator& sum, const F* x, const F* y) {
    sum.add(0, site_dot(x, y));
    sum.add(1, site_dot_imaginary(x, y));
    sum.add(2, site_dot(x, x));
}
// y += (a + i b) x; sum 0: |y|^2
template <class F> HD void caxpy_norm2(const CaxpyNorm2& a, int i, Accumulator& sum) {
    F x[24], y[24];
    load24(x, a.x, i, a.half);
    load24(y, a.y, i, a.half);
    site_caxpy(y, splat<F>(real_of<F>(a.a)), splat<F>(real_of<F>(a.b)), x);
    store24(a.y, i, a.half, y);
    sum.add(0, site_dot(y, y));
}
// y += (a + i b) x; sums 0, 1: (z, y)
template <class F> HD void caxpy_dot(const CaxpyDot& a, int i, Accumulator& sum) {
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
template <class F> HD void dot_norm2(const DotNorm2& a, int i, Accumulator& sum) {
    F x[24], y[24];
    load24(x, a.x, i, a.half);
    load24(y, a.y, i, a.half);
    add_products(sum, x, y);
}
// The first half of a step of BiCGstab: y -= alpha z. y is the residual, z = M times the direction.
template <class F> HD void bicgstab_half(const BicgstabHalf& a, int i) {
    const ComplexNumber alpha = alpha_of(a.numbers);
    if (!is_finite(alpha)) return;
    F y[24], z[24];
    load24(z, a.z, i, a.half);
    load24(y, a.y, i, a.half);
    site_caxpy(y, splat<F>(real_of<F>(-alpha.re)), splat<F>(real_of<F>(-alpha.im)), z);
    store24(a.y, i, a.half, y);
}
// The second half of a step of BiCGstab: x += alpha z + omega y, y -= omega w; sums 0, 1: (v, y), sum 2: |y|^2. y is the
// residual, z the direction, w = M y, v the shadow residual.
template <class F> HD void bicgstab_step(const BicgstabStep& a, int i, Accumulator& sum) {
    const ComplexNumber alpha = alpha_of(a.numbers), omega = omega_of(a.numbers);
    if (!is_finite(alpha) || !is_finite(omega)) return sum.add_one(2, not_a_number());
    F x[24], y[24], t[24];
    const F c = splat<F>(real_of<F>(omega.re)), d = splat<F>(real_of<F>(omega.im));
    load24(x, a.x, i, a.half);
    load24(t, a.z, i, a.half);
    load24(y, a.y, i, a.half);
    site_caxpy(x, splat<F>(real_of<F>(alpha.re)), splat<F>(real_of<F>(alpha.im)), t);
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
// The next direction of BiCGstab: y = x + beta (y - omega z)
template <class F> HD void bicgstab_direction(const BicgstabDirection& a, int i) {
    const ComplexNumber omega = omega_of(a.numbers), beta = beta_of(a.numbers);
    if (!is_finite(omega) || !is_finite(beta)) return;
    F x[24], y[24], z[24];
    load24(x, a.x, i, a.half);
    load24(y, a.y, i, a.half);
    load24(z, a.z, i, a.half);
    site_caxpy(y, splat<F>(real_of<F>(-omega.re)), splat<F>(real_of<F>(-omega.im)), z);
    site_caxpy(x, splat<F>(real_of<F>(beta.re)), splat<F>(real_of<F>(beta.im)), y);
    store24(a.y, i, a.half, x);
}
// A step of minimal residuals: y += a x, x -= a z
template <class F> HD void mr_step(const MrStep& a, int i) {
    F x[24], y[24];
    const ComplexNumber length = length_of(a);
    const F f = splat<F>(real_of<F>(length.re)), g = splat<F>(real_of<F>(length.im));
    load24(x, a.x, i, a.half);
    load24(y, a.y, i, a.half);
    site_caxpy(y, f, g, x);
    store24(a.y, i, a.half, y);
    load24(y, a.z, i, a.half);
    site_caxpy(x, -f, -g, y);
    store24(a.x, i, a.half, x);
}
// y += i a gamma_5 x
template <class F> HD void add_twist(const AddTwist& a, int i) {
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
template <class F, int N> HD void from_double(const FromDouble& a, int i) {
    wide_of<F> x[N];
    F y[N];
    load_double<N, 1>(x, a.g, a.x, 0, i, a.half);
    for (int k = 0; k < N; ++k) y[k] = narrow<F>(x[k]);
    store_site<N>(a.y, i, a.half, y);
}
// y = x, y in double
template <class F, int N> HD void to_double(const ToDouble& a, int i) {
    F x[N];
    wide_of<F> y[N];
    load_site<N>(x, a.x, i, a.half);
    UNROLL for (int k = 0; k < N; ++k) y[k] = widen(x[k]);
    store_double<N, 1>(a.y, a.g, 0, i, a.half, y);
}
// y += x, y in double
template <class F, int N> HD void add_to_double(const AddToDouble& a, int i) {
    F x[N];
    wide_of<F> y[N];
    load_site<N>(x, a.x, i, a.half);
    load_double<N, 1>(y, a.g, a.y, 0, i, a.half);
    UNROLL for (int k = 0; k < N; ++k) y[k] = y[k] + widen(x[k]);
    store_double<N, 1>(a.y, a.g, 0, i, a.half, y);
}
#ifdef HMC_HALF
// y = x, x in single and y in half
template <class F, int N> HD void from_single(const FromSingle& a, int i) {
    F x[N];
    load_plain<N, 1>(x, a.x, 0, i, a.half);
    store_site<N>(a.y, i, a.half, x);
}
// y += x, y in single and x in half
template <class F, int N> HD void add_to_single(const AddToSingle& a, int i) {
    F x[N], y[N];
    load_site<N>(x, a.x, i, a.half);
    load_plain<N, 1>(y, a.y, 0, i, a.half);
    UNROLL for (int k = 0; k < N; ++k) y[k] = y[k] + x[k];
    store_plain<N, 1>(a.y, 0, i, a.half, y);
}
#endif
// Clover blocks y = x, x in double: 2 x 36 reals per site.
template <class F> HD void clover_from_double(const CloverFromDouble& a, int i) {
    for (int chirality = 0; chirality < 2; ++chirality) {
        wide_of<F> x[36];
        F y[36];
        load_double<36, 2>(x, a.g, a.x, chirality, i, half_of(a.g));
        for (int k = 0; k < 36; ++k) y[k] = narrow<F>(x[k]);
        store<36, 2>(a.y, chirality, i, half_of(a.g), y);
    }
}

// Linear algebra on up to four fields, one after the other in memory, with one number and one sum per field.
HD double one_of(const double* a, int n) { return n == 0 ? a[0] : n == 1 ? a[1] : n == 2 ? a[2] : a[3]; }
template <class F, int N> HD const void* field_of(const void* first, int n, int half) {
    return (const char*)first + n * field_bytes<N, F>(half);
}
template <class F, int N> HD void* field_of(void* first, int n, int half) {
    return (char*)first + n * field_bytes<N, F>(half);
}
// Sum n: Re (x_n, y_n)
template <class F, int N> HD void fields_dot(const FieldsDot& a, int i, Accumulator& sum) {
    UNROLL for (int n = 0; n < MAX_SUMS; ++n) {
        if (n >= a.fields) break;
        F x[N], y[N];
        load_site<N>(x, field_of<F, N>(a.x, n, a.half), i, a.half);
        load_site<N>(y, field_of<F, N>(a.y, n, a.half), i, a.half);
        sum.add(n, site_dot<N>(x, y));
    }
}
// y_n += a_n x_n
template <class F, int N> HD void fields_axpy(const FieldsAxpy& a, int i) {
    for (int n = 0; n < a.fields; ++n) {
        F x[N], y[N];
        const F f = splat<F>(real_of<F>(one_of(a.a, n)));
        load_site<N>(x, field_of<F, N>(a.x, n, a.half), i, a.half);
        load_site<N>(y, field_of<F, N>(a.y, n, a.half), i, a.half);
        UNROLL for (int k = 0; k < N; ++k) y[k] = mad(f, x[k], y[k]);
        store_site<N>(field_of<F, N>(a.y, n, a.half), i, a.half, y);
    }
}
// y_n = x_n + a_n y_n
template <class F, int N> HD void fields_xpay(const FieldsXpay& a, int i) {
    for (int n = 0; n < a.fields; ++n) {
        F x[N], y[N];
        const F f = splat<F>(real_of<F>(one_of(a.a, n)));
        load_site<N>(x, field_of<F, N>(a.x, n, a.half), i, a.half);
        load_site<N>(y, field_of<F, N>(a.y, n, a.half), i, a.half);
        UNROLL for (int k = 0; k < N; ++k) y[k] = mad(f, y[k], x[k]);
        store_site<N>(field_of<F, N>(a.y, n, a.half), i, a.half, y);
    }
}
// y_n += a_n x_n; sum n: |y_n|^2
template <class F, int N> HD void fields_axpy_norm2(const FieldsAxpyNorm2& a, int i, Accumulator& sum) {
    UNROLL for (int n = 0; n < MAX_SUMS; ++n) {
        if (n >= a.fields) break;
        F x[N], y[N];
        const F f = splat<F>(real_of<F>(one_of(a.a, n)));
        load_site<N>(x, field_of<F, N>(a.x, n, a.half), i, a.half);
        load_site<N>(y, field_of<F, N>(a.y, n, a.half), i, a.half);
        UNROLL for (int k = 0; k < N; ++k) y[k] = mad(f, x[k], y[k]);
        store_site<N>(field_of<F, N>(a.y, n, a.half), i, a.half, y);
        sum.add(n, site_dot<N>(y, y));
    }
}
// The end of steps of conjugate gradients: x_n += a_n p_n, p_n = r_n + b_n p_n. x_n are solutions.
template <class F, int N> HD void cg_steps(const CgSteps& a, int i) {
    F r[N];
    load_site<N>(r, a.r[0], i, a.half);
    for (int n = 0; n < a.count; ++n) {
        if (n > 0 && a.r[n] != a.r[n - 1]) load_site<N>(r, a.r[n], i, a.half);
        const double step = number_of(a.a[n]), ratio = number_of(a.b[n]);
        if (!is_finite(step) || !is_finite(ratio)) continue;
        F x[N], p[N];
        load_solution<N>(x, a.x[n], i, a.half);
        load_site<N>(p, a.p[n], i, a.half);
        const F f = splat<F>(real_of<F>(step)), g = splat<F>(real_of<F>(ratio));
        UNROLL for (int k = 0; k < N; ++k) {
            x[k] = mad(f, p[k], x[k]);
            p[k] = mad(g, p[k], r[k]);
        }
        store_solution<N>(a.x[n], i, a.half, x);
        store_site<N>(a.p[n], i, a.half, p);
    }
}

static_assert(SHIFT_NUMBERS == CG_STEPS * SHIFT_GROUP);
// Steps of several iterations for each of many shifts, a few reals of a site after the other: residuals, which all shifts
// share, stay in registers, and x and p are read and written once.
template <class F, int N> HD void shift_steps(const ShiftSteps& a, int i) {
    constexpr int C = is_half<F>() ? N : GPU && N % 4 == 0 ? 4 : 2, NB = N / C;
    for (int block = 0; block < NB; ++block) {
        F r[SHIFT_GROUP][C];
        UNROLL for (int m = 0; m < SHIFT_GROUP; ++m) {
            if (m < a.residuals) load<C, NB>(r[m], a.r[m], block, i, a.half);
        }
        for (int n = 0; n < a.count; ++n) {
            F x[C], p[C];
            load_plain<C, NB>(x, a.x[n], block, i, a.half);
            load<C, NB>(p, a.p[n], block, i, a.half);
            UNROLL for (int m = 0; m < SHIFT_GROUP; ++m) {
                if (m >= a.steps[n]) break;
                const F f = splat<F>(real_of<F>(a.a[n * SHIFT_GROUP + m])), g = splat<F>(real_of<F>(a.b[n * SHIFT_GROUP + m]));
                UNROLL for (int k = 0; k < C; ++k) {
                    x[k] = mad(f, p[k], x[k]);
                    p[k] = mad(g, p[k], r[m][k]);
                }
            }
            store_plain<C, NB>(a.x[n], block, i, a.half, x);
            store<C, NB>(a.p[n], block, i, a.half, p);
        }
    }
}

#define BLAS_OF(SITE, SUM, N)                                                \
    SITE(blas, axpy_##N, Axpy, (axpy<F, N>))                             \
    SITE(blas, xpay_##N, Xpay, (xpay<F, N>))                             \
    SITE(blas, caxpy_##N, Caxpy, (caxpy<F, N>))                           \
    SITE(blas, scale_##N, Scale, (scale<F, N>))                           \
    SUM(blas, norm2_##N, Norm2, 1, (norm2<F, N>))                         \
    SUM(blas, two_norms_##N, TwoNorms, 2, (two_norms<F, N>))                 \
    SUM(blas, dot_##N, Dot, 2, (dot<F, N>))                             \
    SUM(blas, real_dot_##N, RealDot, 1, (real_dot<F, N>))                   \
    SUM(blas, axpy_norm2_##N, AxpyNorm2, 1, (axpy_norm2<F, N>))               \
    SUM(blas, xpay_norm2_##N, XpayNorm2, 1, (xpay_norm2<F, N>))               \
    SUM(blas, fields_dot_##N, FieldsDot, 4, (fields_dot<F, N>))               \
    SITE(blas, fields_axpy_##N, FieldsAxpy, (fields_axpy<F, N>))               \
    SITE(blas, fields_xpay_##N, FieldsXpay, (fields_xpay<F, N>))               \
    SUM(blas, fields_axpy_norm2_##N, FieldsAxpyNorm2, 4, (fields_axpy_norm2<F, N>)) \
    SITE(blas, cg_steps_##N, CgSteps, (cg_steps<F, N>))                       \
    SITE(blas, shift_steps_##N, ShiftSteps, (shift_steps<F, N>))              \
    SITE(blas, from_double_##N, FromDouble, (from_double<F, N>))               \
    SITE(blas, to_double_##N, ToDouble, (to_double<F, N>))               \
    SITE(blas, add_to_double_##N, AddToDouble, (add_to_double<F, N>))
#define BLAS_KERNELS(SITE, SUM)                                         \
    BLAS_OF(SITE, SUM, 24)                                              \
    BLAS_OF(SITE, SUM, 6)                                               \
    SUM(blas, caxpy_norm2, CaxpyNorm2, 1, (caxpy_norm2<F>))               \
    SUM(blas, caxpy_dot, CaxpyDot, 2, (caxpy_dot<F>))                   \
    SUM(blas, dot_norm2, DotNorm2, 3, (dot_norm2<F>))                   \
    SITE(blas, bicgstab_half, BicgstabHalf, (bicgstab_half<F>))             \
    SUM(blas, bicgstab_step, BicgstabStep, 3, (bicgstab_step<F>))           \
    SITE(blas, bicgstab_direction, BicgstabDirection, (bicgstab_direction<F>))   \
    SITE(blas, mr_step, MrStep, (mr_step<F>))                         \
    SITE(blas, add_twist, AddTwist, (add_twist<F>))                     \
    SITE(blas, clover_from_double, CloverFromDouble, (clover_from_double<F>))
#define HALF_BLAS_KERNELS(SITE, SUM)                                    \
    SITE(blas, from_single_24, FromSingle, (from_single<F, 24>))          \
    SITE(blas, from_single_6, FromSingle, (from_single<F, 6>))            \
    SITE(blas, add_to_single_24, AddToSingle, (add_to_single<F, 24>))      \
    SITE(blas, add_to_single_6, AddToSingle, (add_to_single<F, 6>))
