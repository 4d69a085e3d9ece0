// Wilson hopping term on one parity, with the epilogues of even-odd preconditioning:
//
//   D psi(x) = sum_mu [ (1 - gamma_mu) U_mu(x)        psi(x+mu)
//                     + (1 + gamma_mu) U_mu(x-mu)^dag psi(x-mu) ],      H = -D/2 in M = A + H,
//
// and, for the adjoint, the signs of gamma_mu turned. 1320 flop a site. Links of 18, 12 or 8 reals.
// Order of directions: x, y, z, t, forward before backward, always.
// Only half spinors cross ranks: those for forward hops bare, those for backward hops times U^dag.
// With `blocked`, hops that leave a Schwarz block are left out (Dirichlet boundaries).
#pragma once
#include "spinor.cuh"
#include "su3.cuh"

// out = scale D in | scale C D in | C x - scale D in | x - scale C D in | shift x - scale D in, where
// C is the packed clover field given: A or its inverse. The last three may have a twisted mass: + i twist gamma_5 x,
// in the middle one to the sum that C multiplies.
enum Epilogue { PLAIN, CLOVER, CLOVER_MINUS, MINUS_CLOVER, SHIFT };

// y = C x for one chirality: a hermitian 6x6 block in 36 reals, its diagonal, then the rows of the
// lower triangle.
template <class F> HD void multiply_block(Complex<F>* y, const F* block, const Complex<F>* x) {
    UNROLL for (int i = 0; i < 6; ++i) {
        Complex<F> r = {mad(block[i], x[i].re, F{}), mad(block[i], x[i].im, F{})};
        UNROLL for (int j = 0; j < 6; ++j) {
            if (j < i) {
                const int k = 6 + i * (i - 1) + 2 * j;
                cmad(r, {block[k], block[k + 1]}, x[j]);
            } else if (j > i) {
                const int k = 6 + j * (j - 1) + 2 * i;
                cmad_conj(r, {block[k], block[k + 1]}, x[j]);
            }
        }
        y[i] = r;
    }
}
template <class F> HD void multiply_clover(Complex<F>* y, const void* clover, int site, int stride, const Complex<F>* x) {
    UNROLL for (int chirality = 0; chirality < 2; ++chirality) {
        F block[36];
        load<36, 2>(block, clover, chirality, site, stride);
        multiply_block(y + 6 * chirality, block, x + 6 * chirality);
    }
}

template <class F> HD void load_spinor(Complex<F>* p, const void* field, int site, int stride) {
    load<24, 1>(reinterpret_cast<F*>(p), field, 0, site, stride);
}
template <class F> HD void store_spinor(void* field, int site, int stride, const Complex<F>* p) {
    store<24, 1>(field, 0, site, stride, reinterpret_cast<const F*>(p));
}
template <class F> HD void permute_half(Complex<F>* h, const Geometry& g, int mu, bool forward) {
    if constexpr (lane<F>::W > 1) {
        const int* table = permutation(g, mu, forward, lane<F>::W);
        for (int k = 0; k < 6; ++k) h[k] = {permute(h[k].re, table), permute(h[k].im, table)};
    }
}

#ifdef __CUDACC__
constexpr bool GHOSTS = HMC_GHOSTS;
#else
constexpr bool GHOSTS = true;
// Fetches what this hop of the next site will read, so that misses overlap with arithmetic.
template <int MU, bool FORWARD, int NR, class F>
HD void prefetch_hop(const HopArgs& a, const void* input, const Coord& c, int s) {
    constexpr int SPINOR = is_half<F>() ? 52 * lane<F>::W : 24 * sizeof(F), LINK = NR * sizeof(F) / (is_half<F>() ? 2 : 1);
    const bool edge = FORWARD ? c.x[MU] == outer(a.g, MU) - 1 : c.x[MU] == 0;
    Coord n = c;
    n.x[MU] = edge ? (FORWARD ? 0 : outer(a.g, MU) - 1) : c.x[MU] + (FORWARD ? 1 : -1);
    const long there = index_of(a.g, n);
    const char* p = (const char*)input + there * SPINOR;
    const char* u = FORWARD ? (const char*)a.links_out + (4L * s + MU) * LINK : (const char*)a.links_in + (4L * there + MU) * LINK;
    for (unsigned k = 0; k < SPINOR; k += 64) __builtin_prefetch(p + k);
    for (unsigned k = 0; k < LINK; k += 64) __builtin_prefetch(u + k);
}
#endif

// Options of a launch: constants where a GPU's kernel is compiled for them.
#ifdef HMC_EPILOGUE
HD constexpr int epilogue_of(const HopArgs&) { return HMC_EPILOGUE; }
HD constexpr bool dagger_of(const HopArgs&) { return HMC_DAGGER; }
HD constexpr bool blocked_of(const HopArgs&) { return HMC_BLOCKED; }
HD constexpr int fields_of(const HopArgs&) { return HMC_FIELDS; }
#else
HD int epilogue_of(const HopArgs& a) { return a.epilogue; }
HD bool dagger_of(const HopArgs& a) { return a.dagger; }
HD bool blocked_of(const HopArgs& a) { return a.blocked; }
HD int fields_of(const HopArgs& a) { return a.fields; }
#endif

// The 1 or 0 of a hop in every lane: whether it stays in its Schwarz block.
template <int MU, bool FORWARD, class F> HD F kept(const HopArgs& a, const Coord& c) {
    return ((const F*)a.keep)[(2 * MU + (FORWARD ? 0 : 1)) * a.keep_stride + c.x[MU]];
}
template <class F> HD bool any(const F& x) {
    bool r = false;
    for (int l = 0; l < lane<F>::W; ++l) r |= get(x, l) != 0;
    return r;
}

template <int MU, bool FORWARD, int NR, class F>
HD void hop(Complex<F>* r, const HopArgs& a, const void* input, int field, const Coord& c, int s, const Coord& next, F sign) {
#ifndef __CUDACC__
    prefetch_hop<MU, FORWARD, NR, F>(a, input, next, s + 1);
#endif
    constexpr int S = FORWARD ? 2 : 0;
    const bool edge = FORWARD ? c.x[MU] == outer(a.g, MU) - 1 : c.x[MU] == 0;
    Coord n = c;
    n.x[MU] = edge ? (FORWARD ? 0 : outer(a.g, MU) - 1) : c.x[MU] + (FORWARD ? 1 : -1);
    const int there = index_of(a.g, n);
    const bool ghost = GHOSTS && edge && !blocked_of(a) && (a.ghost_mask >> MU & 1);
    if (blocked_of(a) && !any(kept<MU, FORWARD, F>(a, c))) return;
    Complex<F> h[6], v[6];
    if (ghost) {
        const int faces = half_of(a.g) / outer(a.g, MU);
        load_plain<12, 1>(reinterpret_cast<F*>(FORWARD ? h : v), (const F*)a.ghost[2 * MU + (FORWARD ? 0 : 1)] + 12L * faces * field,
                          0, face_index<MU>(a.g, c), faces);
    } else {
        Complex<F> p[12];
        load_spinor(p, input, there, half_of(a.g));
        project<MU, S>(h, p, sign);
    }
    if constexpr (FORWARD) {
        if (!ghost && edge) permute_half(h, a.g, MU, true);
        multiply_half<false>(v, load_matrix<NR, 4, F>(a.links_out, MU, s, half_of(a.g)), h);
    } else if (!ghost) {
        multiply_half<true>(v, load_matrix<NR, 4, F>(a.links_in, MU, there, half_of(a.g)), h);
        if (edge) permute_half(v, a.g, MU, false);
    }
    if (edge && (a.phase_mask >> (2 * MU + (FORWARD ? 0 : 1)) & 1)) apply_phase(v, a.phases, 2 * MU + (FORWARD ? 0 : 1));
    if constexpr (lane<F>::W > 1) {
        if (blocked_of(a)) {
            const F keep = kept<MU, FORWARD, F>(a, c);
            for (int k = 0; k < 6; ++k) v[k] = {keep * v[k].re, keep * v[k].im};
        }
    }
    expand_add<MU, S>(r, v, sign);
}

// r += i twist gamma_5 x
template <class F> HD void add_twist(Complex<F>* r, F twist, const Complex<F>* x) {
    UNROLL for (int k = 0; k < 12; ++k) {
        const F t = k < 6 ? twist : -twist;
        r[k] = {nmad(t, x[k].im, r[k].re), mad(t, x[k].re, r[k].im)};
    }
}

// Thread i is a site of one of the fields: on a GPU the warps of a block are the fields of the same
// sites, so that all but one find the links in the cache.
template <class F> HD void site_and_field(const HopArgs& a, int i, int& site, int& field) {
    const int n = fields_of(a);
    if (n == 1) {
        site = i;
        field = 0;
        return;
    }
#ifdef __CUDACC__
    const int first = i / (32 * n) * 32, width = a.count - first < 32 ? a.count - first : 32, rest = i - first * n;
    site = first + rest % width;
    field = rest / width;
#else
    site = i / n;
    field = i % n;
#endif
}

template <class F, int NR> HD void wilson_hop(const HopArgs& a, int i) {
    int place, field;
    site_and_field<F>(a, i, place, field);
    const int s = a.sites ? ((const int*)a.sites)[place] : place;
    const Coord c = coord_of(a.g, s, a.parity);
    const i64 offset = field * spinor_bytes<F>(half_of(a.g));
    const char* input = (const char*)a.input + offset;
#ifdef __CUDACC__
    const Coord& next = c;
#else
    const Coord next = coord_of(a.g, s + 1 < half_of(a.g) ? s + 1 : s, a.parity);
#endif
    const F sign = splat<F>(dagger_of(a) ? -1 : 1);
    Complex<F> r[12];
    UNROLL for (int k = 0; k < 12; ++k) r[k] = zero<F>();
    hop<0, true, NR>(r, a, input, field, c, s, next, sign);
    hop<0, false, NR>(r, a, input, field, c, s, next, sign);
    hop<1, true, NR>(r, a, input, field, c, s, next, sign);
    hop<1, false, NR>(r, a, input, field, c, s, next, sign);
    hop<2, true, NR>(r, a, input, field, c, s, next, sign);
    hop<2, false, NR>(r, a, input, field, c, s, next, sign);
    hop<3, true, NR>(r, a, input, field, c, s, next, sign);
    hop<3, false, NR>(r, a, input, field, c, s, next, sign);
    const F scale = splat<F>(real_of<F>(a.scale)), twist = splat<F>(real_of<F>(a.twist));
    const int epilogue = epilogue_of(a);
    Complex<F> x[12], y[12];
    if (epilogue >= CLOVER_MINUS) load_spinor(x, (const char*)a.x + offset, s, half_of(a.g));
    if (epilogue == CLOVER || epilogue == MINUS_CLOVER) {
        if (epilogue == MINUS_CLOVER && a.twist != 0) add_twist(r, twist, x);
        multiply_clover(y, a.clover, s, half_of(a.g), r);
        UNROLL for (int k = 0; k < 12; ++k) r[k] = y[k];
    }
    if (epilogue <= CLOVER) {
        UNROLL for (int k = 0; k < 12; ++k) r[k] = {scale * r[k].re, scale * r[k].im};
    } else {
        if (epilogue == CLOVER_MINUS) {
            multiply_clover(y, a.clover, s, half_of(a.g), x);
        } else if (epilogue == SHIFT) {
            const F shift = splat<F>(real_of<F>(a.shift));
            UNROLL for (int k = 0; k < 12; ++k) y[k] = {shift * x[k].re, shift * x[k].im};
        } else {
            UNROLL for (int k = 0; k < 12; ++k) y[k] = x[k];
        }
        if (epilogue != MINUS_CLOVER && a.twist != 0) add_twist(y, twist, x);
        UNROLL for (int k = 0; k < 12; ++k) r[k] = {nmad(scale, r[k].re, y[k].re), nmad(scale, r[k].im, y[k].im)};
    }
    store_spinor((char*)a.out + offset, s, half_of(a.g), r);
}

// Half spinors of a face for the neighbour. Lanes at the rank's edge go into the wire, the others to
// the lane of this rank that asks for them.
template <class F> HD void deliver(const FaceArgs& a, int f, int field, const Complex<F>* h) {
    using R = real_of<F>;
    const int faces = half_of(a.g) / outer(a.g, a.mu), n = a.g.lanes[a.mu], width = lane<F>::W / n;
    const F* r = reinterpret_cast<const F*>(h);
    R* wire = (R*)a.wire + 12L * faces * width * field;
    if (width == lane<F>::W) {
        store_plain<12, 1>(wire, 0, f, faces, r);
        return;
    }
    if constexpr (lane<F>::W > 1) {
        R* ghost = (R*)a.ghost + 12L * faces * lane<F>::W * field;
        const int edge = a.forward ? 0 : n - 1;
        const int* to = permutation(a.g, a.mu, !a.forward, lane<F>::W);
        int e = 0;
        for (int l = 0; l < lane<F>::W; ++l) {
            const bool leaves = lane_coord(a.g, l, a.mu) == edge;
            for (int k = 0; k < 12; ++k) {
                if (leaves) wire[(f * 12L + k) * width + e] = get(r[k], l);
                else ghost[place<F>(1, 12, 0, k, f, faces, to[l])] = get(r[k], l);
            }
            e += leaves;
        }
    }
}
template <int MU, int NR, class F> HD void face_of(const FaceArgs& a, int i) {
    const int faces = half_of(a.g) / outer(a.g, MU), f = i % faces, field = i / faces;
    const Coord c = face_coord(a.g, MU, a.forward ? 0 : outer(a.g, MU) - 1, f, a.parity);
    const int s = index_of(a.g, c);
    const F sign = splat<F>(a.dagger ? -1 : 1);
    Complex<F> p[12], h[6], v[6];
    load_spinor(p, (const char*)a.input + field * spinor_bytes<F>(half_of(a.g)), s, half_of(a.g));
    if (a.forward) {
        project<MU, 2>(h, p, sign);
        deliver(a, f, field, h);
    } else {
        project<MU, 0>(h, p, sign);
        multiply_half<true>(v, load_matrix<NR, 4, F>(a.links, MU, s, half_of(a.g)), h);
        deliver(a, f, field, v);
    }
}
template <class F, int NR> HD void wilson_face(const FaceArgs& a, int i) {
    switch (a.mu) {
        case 0: face_of<0, NR, F>(a, i); break;
        case 1: face_of<1, NR, F>(a, i); break;
        case 2: face_of<2, NR, F>(a, i); break;
        default: face_of<3, NR, F>(a, i); break;
    }
}
// What came from another rank, into the edge lanes of the ghost zone.
template <class F> HD void face_merge(const LaneArgs& a, int i) {
    using R = real_of<F>;
    const int n = a.g.lanes[a.mu], edge = a.forward ? n - 1 : 0, width = lane<F>::W / n, f = i % a.sites, field = i / a.sites;
    const R* wire = (const R*)a.wire + (i64)a.reals * a.sites * width * field;
    R* ghost = (R*)a.ghost + (i64)a.reals * a.sites * lane<F>::W * field;
    int e = 0;
    for (int l = 0; l < lane<F>::W; ++l) {
        if (lane_coord(a.g, l, a.mu) != edge) continue;
        for (int k = 0; k < a.reals; ++k)
            ghost[place<F>(1, a.reals, 0, k, f, a.sites, l)] = wire[((i64)f * a.reals + k) * width + e];
        ++e;
    }
}

// y = C x on one parity.
template <class F> HD void clover_apply(const HopArgs& a, int s) {
    Complex<F> x[12], y[12];
    load_spinor(x, a.x, s, half_of(a.g));
    multiply_clover(y, a.clover, s, half_of(a.g), x);
    store_spinor(a.out, s, half_of(a.g), y);
}

#define WILSON_LINKS(SITE, NR)                                        \
    SITE(wilson, hop_##NR, HopArgs, (wilson_hop<F, NR>))              \
    SITE(wilson, face_##NR, FaceArgs, (wilson_face<F, NR>))
#define WILSON_KERNELS(SITE, SUM)                          \
    WILSON_LINKS(SITE, 18)                                 \
    WILSON_LINKS(SITE, 12)                                 \
    WILSON_LINKS(SITE, 8)                                  \
    SITE(wilson, face_merge, LaneArgs, (face_merge<F>))    \
    SITE(wilson, clover_apply, HopArgs, (clover_apply<F>))
