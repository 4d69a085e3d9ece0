// Matrices on the fifth dimension of domain-wall quarks, one for each chirality, in O(N_s) by their structure:
//
//   (T y)_i = d_i y_i + e_i r_i + u_i sum_j v_j y_j,   r_0 = 0,   r_{i+1} = a_i r_i + f_i y_i,
//
// i from 0 to N_s - 1 along the slices, or against them. A quotient of two-term operators p + q L is such a matrix
// (src/math/slices.rs). A thread has all slices of a part of a spinor of one chirality.
#pragma once
#include "wilson.cuh"

constexpr int MOST_SLICES = 48;
enum SliceCoefficient { SLICE_D, SLICE_E, SLICE_A, SLICE_F, SLICE_U, SLICE_V, SLICE_COEFFICIENTS };

// Options of a launch: constants where a GPU's kernel is compiled for them.
#ifdef HMC_SLICES
HD constexpr int slices_of(const WallArgs&) { return HMC_SLICES; }
constexpr int ROOM_FOR_SLICES = HMC_SLICES;
#else
HD int slices_of(const WallArgs& a) { return a.slices; }
constexpr int ROOM_FOR_SLICES = MOST_SLICES;
#endif
#ifdef HMC_REVERSED
HD constexpr int reversed_of(const WallArgs&) { return HMC_REVERSED; }
#else
HD int reversed_of(const WallArgs& a) { return a.reversed; }
#endif

// Reals of a part: on a GPU a chunk, or half of one of integers.
#ifdef __CUDACC__
template <class F> HD constexpr int part_of() { return 16 / sizeof(F); }
#else
template <class F> HD constexpr int part_of() { return 12; }
#endif
// Threads that share a spinor.
#ifdef __CUDACC__
template <class F> constexpr int PARTS = 24 / part_of<F>();
#else
template <class F> constexpr int PARTS = 1;
#endif

template <class F> HD F slice_coefficient(const WallArgs& a, int chirality, int which, int i) {
    return splat<F>(((const real_of<F>*)a.table)[(chirality * SLICE_COEFFICIENTS + which) * slices_of(a) + i]);
}
// The slice that is number i in the order of a chirality.
HD int slice_number(const WallArgs& a, int chirality, int i) {
    return reversed_of(a) >> chirality & 1 ? slices_of(a) - 1 - i : i;
}

// The norm of a spinor as it is stored.
template <class F> HD F norm_at(const char* field, int site, [[maybe_unused]] int stride) {
#ifdef __CUDACC__
    return __ldg(norm_of<24, 1, F>(field, 0, site, stride));
#else
    F r;
    __builtin_memcpy(&r, field + (long)site * half_bytes<24, F>() + short_bytes<24, F>(), sizeof r);
    return r;
#endif
}
// N reals of a spinor from real `first` on. In half precision a GPU keeps them as memory holds them: fewer registers.
#if defined __CUDACC__ && defined HMC_HALF
template <int N, class F> struct Part {
    int2 integers;
    F norm;
    HD void load(const char* field, int first, int site, int stride) {
        integers = __ldg((const int2*)(field + (size_t)(first / 8) * 16 * stride + (size_t)16 * site + first % 8 * 2));
        norm = norm_at<F>(field, site, stride);
    }
    HD const F* reals(F* room) const {
        const short* q = reinterpret_cast<const short*>(&integers);
        const F step = (1 / STEPS) * norm;
        UNROLL for (int k = 0; k < N; ++k) room[k] = step * float(q[k]);
        return room;
    }
};
#else
template <int N, class F> struct Part {
    F r[N];
    HD void load(const char* field, int first, int site, int stride) {
#ifdef __CUDACC__
        load_plain<N, 1>(r, field, first / N, site, stride);
#else
        if constexpr (is_half<F>()) {
            load_shorts<N>(r, field + (long)site * half_bytes<24, F>() + first * short_bytes<1, F>());
            const F step = splat<F>(1 / STEPS) * norm_at<F>(field, site, stride);
            for (int k = 0; k < N; ++k) r[k] = step * r[k];
        } else {
            load_plain<N, 1>(r, (const F*)field + 24L * site + first, 0, 0, stride);
        }
#endif
    }
    HD const F* reals(F*) const { return r; }
};
#endif
// The same stored, its norm a bound of all reals of the spinor.
template <int N, class F> HD void store_part(char* field, int first, int site, int stride, const F* r, const F& bound) {
    if constexpr (is_half<F>()) {
        const F inverse = where_negative(-bound, splat<F>(STEPS) / bound, F{});
        F q[N];
        UNROLL for (int k = 0; k < N; ++k) q[k] = inverse * r[k];
#ifdef __CUDACC__
        int2 v;
        short* to = reinterpret_cast<short*>(&v);
        UNROLL for (int k = 0; k < N; ++k) to[k] = short(__float_as_int(q[k] + ROUND));
        *(int2*)(field + (size_t)(first / 8) * 16 * stride + (size_t)16 * site + first % 8 * 2) = v;
        if (first == 0) *norm_of<24, 1, F>(field, 0, site, stride) = bound;
#else
        char* to = field + (long)site * half_bytes<24, F>();
        store_shorts<N>(to + first * short_bytes<1, F>(), q);
        if (first == 0) __builtin_memcpy(to + short_bytes<24, F>(), &bound, sizeof bound);
#endif
    } else {
#ifdef __CUDACC__
        store_plain<N, 1>(field, first / N, site, stride, r);
#else
        store_plain<N, 1>((F*)field + 24L * site + first, 0, 0, stride, r);
#endif
    }
}

// Bounds of the reals of every slice of the result, from the norms of what goes in, for storage in half precision:
// the greatest real itself is known to no single thread.
template <class F> HD void slice_bounds(F* bound, const WallArgs& a, const char* input, const char* x, int place, int stride) {
    const int slices = slices_of(a);
    const F scale = absolute(splat<F>(real_of<F>(a.scale))), shift = absolute(splat<F>(real_of<F>(a.shift)));
    F poison = F{};
    UNROLL for (int slice = 0; slice < slices; ++slice) {
        bound[slice] = F{};
        poison = mad(F{}, norm_at<F>(input, slice * a.half + place, stride), poison);
    }
    UNROLL for (int chirality = 0; chirality < 2; ++chirality) {
        auto size = [&](int which, int i) { return absolute(slice_coefficient<F>(a, chirality, which, i)); };
        auto norm = [&](int i) { return norm_at<F>(input, slice_number(a, chirality, i) * a.half + place, stride); };
        F corner = F{}, r = F{};
        UNROLL for (int i = 0; i < slices; ++i) corner = mad(size(SLICE_V, i), norm(i), corner);
        UNROLL for (int i = 0; i < slices; ++i) {
            F& b = bound[slice_number(a, chirality, i)];
            b = larger(b, mad(size(SLICE_D, i), norm(i), mad(size(SLICE_E, i), r, size(SLICE_U, i) * corner)));
            r = mad(size(SLICE_A, i), r, size(SLICE_F, i) * norm(i));
        }
    }
    UNROLL for (int slice = 0; slice < slices; ++slice) {
        F b = scale * bound[slice];
        if (a.x) b = mad(shift, norm_at<F>(x, slice * a.half + place, stride), b);
        // A little more, for rounding; what is too small for a quotient is zero; what is no number stays none.
        b = mad(splat<F>(0x1p-20f), b, b) + poison;
        bound[slice] = where_negative(b - splat<F>(1e-30f), F{}, b);
    }
}

// The reals from `first` on, of one chirality, in all slices.
template <int CHIRALITY, class F>
HD void slice_part(const WallArgs& a, const char* input, const char* x, char* out, int first, int place, int stride, const F* bound) {
    constexpr int N = part_of<F>();
    const int slices = slices_of(a);
    const F scale = splat<F>(real_of<F>(a.scale)), shift = splat<F>(real_of<F>(a.shift));
    Part<N, F> y[ROOM_FOR_SLICES], added;
    F corner[N], r[N], room[N];
    UNROLL for (int k = 0; k < N; ++k) corner[k] = r[k] = F{};
    UNROLL for (int i = 0; i < slices; ++i) {
        y[i].load(input, first, slice_number(a, CHIRALITY, i) * a.half + place, stride);
        const F* here = y[i].reals(room);
        const F v = slice_coefficient<F>(a, CHIRALITY, SLICE_V, i);
        UNROLL for (int k = 0; k < N; ++k) corner[k] = mad(v, here[k], corner[k]);
    }
    UNROLL for (int i = 0; i < slices; ++i) {
        const int slice = slice_number(a, CHIRALITY, i), site = slice * a.half + place;
        auto coefficient = [&](int which) { return slice_coefficient<F>(a, CHIRALITY, which, i); };
        const F d = coefficient(SLICE_D), e = coefficient(SLICE_E), u = coefficient(SLICE_U), along = coefficient(SLICE_A),
                f = coefficient(SLICE_F);
        const F* here = y[i].reals(room);
        F z[N];
        UNROLL for (int k = 0; k < N; ++k) {
            z[k] = scale * mad(d, here[k], mad(e, r[k], u * corner[k]));
            r[k] = mad(along, r[k], f * here[k]);
        }
        if (a.x) {
            added.load(x, first, site, stride);
            const F* more = added.reals(room);
            UNROLL for (int k = 0; k < N; ++k) z[k] = mad(shift, more[k], z[k]);
        }
        store_part<N>(out, first, site, stride, z, is_half<F>() ? bound[slice] : F{});
    }
}

// out = scale T input + shift x; a thread has a part of a spinor on a GPU, all of it on a CPU.
template <class F> HD void slice_matrix(const WallArgs& a, int i) {
    const int stride = slices_of(a) * a.half, place = i % a.half;
    const int part = i / a.half % PARTS<F>, field = i / (a.half * PARTS<F>);
    const i64 offset = field * field_bytes<24, F>(stride);
    const char *input = (const char*)a.input + offset, *x = a.x ? (const char*)a.x + offset : nullptr;
    char* out = (char*)a.out + offset;
    F bound[is_half<F>() ? ROOM_FOR_SLICES : 1];
    if constexpr (is_half<F>()) slice_bounds(bound, a, input, x, place, stride);
#ifdef __CUDACC__
    const int first = part * part_of<F>();
    if (first < 12) slice_part<0>(a, input, x, out, first, place, stride, bound);
    else slice_part<1>(a, input, x, out, first, place, stride, bound);
#else
    (void)part;
    slice_part<0>(a, input, x, out, 0, place, stride, bound);
    slice_part<1>(a, input, x, out, 12, place, stride, bound);
#endif
}

// A Dirac spinor of all slices, each real of a chirality times a number: out = sum_s c_s input_s.
template <class F> HD void slice_sum(const WallArgs& a, int place) {
    const int stride = a.slices * a.half;
    Complex<F> r[12], p[12];
    UNROLL for (int k = 0; k < 12; ++k) r[k] = zero<F>();
    for (int slice = 0; slice < a.slices; ++slice) {
        load_spinor(p, a.input, slice * a.half + place, stride);
        UNROLL for (int k = 0; k < 12; ++k) {
            const F c = splat<F>(((const real_of<F>*)a.table)[k / 6 * a.slices + slice]);
            r[k] = {mad(c, p[k].re, r[k].re), mad(c, p[k].im, r[k].im)};
        }
    }
    store_spinor(a.out, place, a.half, r);
}
// The other way round: out_s = c_s input.
template <class F> HD void slice_spread(const WallArgs& a, int place) {
    const int stride = a.slices * a.half;
    Complex<F> r[12], p[12];
    load_spinor(p, a.input, place, a.half);
    for (int slice = 0; slice < a.slices; ++slice) {
        UNROLL for (int k = 0; k < 12; ++k) {
            const F c = splat<F>(((const real_of<F>*)a.table)[k / 6 * a.slices + slice]);
            r[k] = {c * p[k].re, c * p[k].im};
        }
        store_spinor(a.out, slice * a.half + place, stride, r);
    }
}
// out_s = scale gamma_5 input_{N_s - 1 - s}
template <class F> HD void slice_reflect(const WallArgs& a, int i) {
    const int stride = a.slices * a.half, place = i % a.half, slice = i / a.half;
    const F scale = splat<F>(real_of<F>(a.scale));
    Complex<F> p[12];
    load_spinor(p, a.input, (a.slices - 1 - slice) * a.half + place, stride);
    UNROLL for (int k = 0; k < 12; ++k) {
        const F c = k < 6 ? scale : -scale;
        p[k] = {c * p[k].re, c * p[k].im};
    }
    store_spinor(a.out, slice * a.half + place, stride, p);
}

#define DOMAIN_WALL_KERNELS(SITE, SUM) SITE(domain_wall, slice_matrix, WallArgs, (slice_matrix<F>))
#define DOMAIN_WALL_DOUBLE_KERNELS(SITE, SUM)                     \
    SITE(domain_wall, slice_sum, WallArgs, (slice_sum<F>))        \
    SITE(domain_wall, slice_spread, WallArgs, (slice_spread<F>))  \
    SITE(domain_wall, slice_reflect, WallArgs, (slice_reflect<F>))
