// Matrices on the fifth dimension of domain-wall quarks, one per chirality, in O(N_s) operations by their structure:
//
//   (T y)_i = d_i y_i + e_i r_i + u_i sum_j v_j y_j,   r_0 = 0,   r_{i+1} = a_i r_i + f_i y_i,
//
// i runs from 0 to N_s - 1 along the slices, or in the opposite order. A quotient of two-term operators p + q L is such
// a matrix (src/math/slices.rs). A team has all slices of some sites. Each of its threads computes or loads a spinor,
// then runs along the slices with a few reals, and finally stores a spinor. So T follows the hopping term without a
// trip to memory.
#pragma once
#include "slices.cuh"

enum SliceCoefficient { SLICE_D, SLICE_E, SLICE_A, SLICE_F, SLICE_U, SLICE_V, SLICE_COEFFICIENTS };

// Options of a launch; constants if a GPU's kernel is compiled for them.
#ifdef HMC_SLICES
HD constexpr int slices_of(const Wall&) { return HMC_SLICES; }
#else
HD int slices_of(const Wall& a) { return a.slices; }
#endif
#ifdef HMC_REVERSED
HD constexpr int reversed_of(const Wall&) { return HMC_REVERSED; }
#else
HD int reversed_of(const Wall& a) { return a.reversed; }
#endif

template <class F> HD F slice_coefficient(const Wall& a, int chirality, int which, int i) {
    const int n = (chirality * SLICE_COEFFICIENTS + which) * slices_of(a) + i;
    if constexpr (sizeof(real_of<F>) == 4) return splat<F>(a.coefficients[n]);
    else return splat<F>(read_only((const double*)a.table + n));
}
// The slice that has number i in the order of a chirality.
HD int slice_number(const Wall& a, int chirality, int i) {
    return reversed_of(a) >> chirality & 1 ? slices_of(a) - 1 - i : i;
}

// The number of reals that a thread takes along the slices, all of one chirality. On a GPU they are two apart, so that the
// two groups of sites of a warp lie in different banks of shared memory.
constexpr int CHAINED = GPU ? 2 : 12, CHAINED_STEP = GPU ? 2 : 1;

// scale T on CHAINED reals of a site from `first` on, in place.
template <int CHIRALITY, class F> HD void chain(const Wall& a, F* shared, int site, int first) {
    const int slices = slices_of(a);
    const F scale = splat<F>(real_of<F>(a.scale));
    F corner[CHAINED], r[CHAINED];
    UNROLL for (int k = 0; k < CHAINED; ++k) corner[k] = r[k] = F{};
    UNROLL_SLICES for (int i = 0; i < slices; ++i) {
        const int slice = slice_number(a, CHIRALITY, i);
        const F v = slice_coefficient<F>(a, CHIRALITY, SLICE_V, i);
        UNROLL for (int k = 0; k < CHAINED; ++k)
            corner[k] = mad(v, shared[shared_index(slice, site, first + CHAINED_STEP * k)], corner[k]);
    }
    UNROLL_SLICES for (int i = 0; i < slices; ++i) {
        const int slice = slice_number(a, CHIRALITY, i);
        auto coefficient = [&](int which) { return slice_coefficient<F>(a, CHIRALITY, which, i); };
        const F d = coefficient(SLICE_D), e = coefficient(SLICE_E), u = coefficient(SLICE_U), along = coefficient(SLICE_A),
                f = coefficient(SLICE_F);
        UNROLL for (int k = 0; k < CHAINED; ++k) {
            F& y = shared[shared_index(slice, site, first + CHAINED_STEP * k)];
            const F here = y;
            y = scale * mad(d, here, mad(e, r[k], u * corner[k]));
            r[k] = mad(along, r[k], f * here);
        }
    }
}
// The second phase: T on all shared reals.
template <class F> HD void chains(const Wall& a, int thread, F* shared) {
    for (int n = thread; n < 24 / CHAINED * TEAM_SITES; n += TEAM_SITES * slices_of(a)) {
        const int site = n % TEAM_SITES, group = n / TEAM_SITES;
        const int first = CHAINED * (group - group % CHAINED_STEP) + group % CHAINED_STEP;
        if (first < 12) chain<0>(a, shared, site, first);
        else chain<1>(a, shared, site, first);
    }
}
// The third phase: out = shared reals + shift x.
template <class F> HD void take(const Wall& a, const Member& m, int s, const F* shared) {
    const Slice slice = slice_of<F>(a.half, slices_of(a), m);
    F r[24];
    UNROLL for (int k = 0; k < 24; ++k) r[k] = shared[shared_index(m.slice, m.site, k)];
    if (a.x) {
        const F shift = splat<F>(real_of<F>(a.shift));
        F x[24];
        load<24, 1>(x, (const char*)a.x + slice.offset, 0, slice.first + s, slice.stride);
        UNROLL for (int k = 0; k < 24; ++k) r[k] = mad(shift, x[k], r[k]);
    }
    store<24, 1>((char*)a.out + slice.offset, 0, slice.first + s, slice.stride, r);
}

// out = scale T input + shift x
template <class F> struct OnSlices {
    static constexpr int PHASES = 3;
    HD static int threads(const SliceMatrix& a) { return TEAM_SITES * slices_of(a.wall); }
    template <int PHASE> HD static void phase(const SliceMatrix& a, int team, int thread, F* shared) {
        const Member m = member_of(a.wall.fields, team, thread);
        const bool works = m.place < a.wall.half;
        if (PHASE == 0 && works) {
            const Slice slice = slice_of<F>(a.wall.half, slices_of(a.wall), m);
            Complex<F> p[12];
            load_spinor(p, (const char*)a.input + slice.offset, slice.first + m.place, slice.stride);
            share(shared, m, p);
        }
        if (PHASE == 1) chains(a.wall, thread, shared);
        if (PHASE == 2 && works) take(a.wall, m, m.place, shared);
    }
};
// out = scale T D input + shift x
template <class F, int NR> struct OnSlicesOfHops {
    static constexpr int PHASES = 3;
    HD static int threads(const SliceMatrixOfHops& a) { return TEAM_SITES * slices_of(a.wall); }
    template <int PHASE> HD static void phase(const SliceMatrixOfHops& a, int team, int thread, F* shared) {
        const Member m = member_of(a.wall.fields, team, thread);
        const bool works = m.place < a.hop.places.count;
        const int s = works ? site_at(a.hop.places, m.place) : m.place;
        if (PHASE == 0 && works) {
            Complex<F> p[12];
            hops<NR>(p, a.hop, slice_of<F>(a.wall.half, slices_of(a.wall), m), m.field * slices_of(a.wall) + m.slice, s);
            share(shared, m, p);
        }
        if (PHASE == 1) chains(a.wall, thread, shared);
        if (PHASE == 2 && works) take(a.wall, m, s, shared);
    }
};

HD const Hopping& hop_of(const SliceMatrixOfHops& a) { return a.hop; }

// out = sum_s c_s input_s, a Dirac spinor, with one number per slice and chirality.
template <class F> HD void slice_sum(const SliceSum& a, int place) {
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
// The reverse: out_s = c_s input.
template <class F> HD void slice_spread(const SliceSpread& a, int place) {
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
template <class F> HD void slice_reflect(const SliceReflect& a, int i) {
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

#define DOMAIN_WALL_KERNELS(SITE, SUM, TEAM)                                                \
    TEAM(domain_wall, slice_matrix, SliceMatrix, (OnSlices<F>{}))                           \
    TEAM(domain_wall, slice_matrix_of_hops_18, SliceMatrixOfHops, (OnSlicesOfHops<F, 18>{}))   \
    TEAM(domain_wall, slice_matrix_of_hops_12, SliceMatrixOfHops, (OnSlicesOfHops<F, 12>{}))   \
    TEAM(domain_wall, slice_matrix_of_hops_8, SliceMatrixOfHops, (OnSlicesOfHops<F, 8>{}))
#define DOMAIN_WALL_DOUBLE_KERNELS(SITE, SUM)                     \
    SITE(domain_wall, slice_sum, SliceSum, (slice_sum<F>))        \
    SITE(domain_wall, slice_spread, SliceSpread, (slice_spread<F>))  \
    SITE(domain_wall, slice_reflect, SliceReflect, (slice_reflect<F>))
