// Wilson hopping term on one parity, with the epilogues of even-odd preconditioning:
//
//   D psi(x) = sum_mu [ (1 - gamma_mu) U_mu(x)        psi(x+mu)
//                     + (1 + gamma_mu) U_mu(x-mu)^dag psi(x-mu) ],      H = -D/2 in M = A + H,
//
// and, for the adjoint, the signs of gamma_mu turned. 1320 flop a site. Links as double or single,
// 18 or 12 reals. Order of directions: x, y, z, t, forward before backward, always.
// Only half spinors cross ranks: those for forward hops bare, those for backward hops times U^dag.
#pragma once
#include "spinor.cuh"
#include "su3.cuh"

// out = scale D in | scale C D in | C x - scale D in | x - scale C D in | shift x - scale D in, where
// C is the packed clover field given: A or its inverse.
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
template <int MU, bool FORWARD, int NR, class F> HD void prefetch_hop(const HopArgs& a, const Coord& c, int s) {
    const bool edge = FORWARD ? c.x[MU] == outer(a.g, MU) - 1 : c.x[MU] == 0;
    Coord n = c;
    n.x[MU] = edge ? (FORWARD ? 0 : outer(a.g, MU) - 1) : c.x[MU] + (FORWARD ? 1 : -1);
    const long there = index_of(a.g, n);
    const char* p = (const char*)a.input + there * 24 * sizeof(F);
    const char* u = FORWARD ? (const char*)a.links_out + (4L * s + MU) * NR * sizeof(F)
                            : (const char*)a.links_in + (4L * there + MU) * NR * sizeof(F);
    for (unsigned k = 0; k < 24 * sizeof(F); k += 64) __builtin_prefetch(p + k);
    for (unsigned k = 0; k < NR * sizeof(F); k += 64) __builtin_prefetch(u + k);
}
#endif

template <int MU, bool FORWARD, bool DAGGER, int NR, class F>
HD void hop(Complex<F>* r, const HopArgs& a, const Coord& c, int s, const Coord& next) {
#ifndef __CUDACC__
    prefetch_hop<MU, FORWARD, NR, F>(a, next, s + 1);
#endif
    constexpr int S = FORWARD != DAGGER ? 2 : 0;
    const bool edge = FORWARD ? c.x[MU] == outer(a.g, MU) - 1 : c.x[MU] == 0;
    Coord n = c;
    n.x[MU] = edge ? (FORWARD ? 0 : outer(a.g, MU) - 1) : c.x[MU] + (FORWARD ? 1 : -1);
    const int there = index_of(a.g, n);
    const bool ghost = GHOSTS && edge && (a.ghost_mask >> MU & 1);
    Complex<F> h[6], v[6];
    if (ghost) {
        load<12, 1>(reinterpret_cast<F*>(FORWARD ? h : v), a.ghost[2 * MU + (FORWARD ? 0 : 1)], 0,
                    face_index<MU>(a.g, c), half_of(a.g) / outer(a.g, MU));
    } else {
        Complex<F> p[12];
        load_spinor(p, a.input, there, half_of(a.g));
        project<MU, S>(h, p);
    }
    if constexpr (FORWARD) {
        if (!ghost && edge) permute_half(h, a.g, MU, true);
        multiply_half<false>(v, load_matrix<NR, 4, F>(a.links_out, MU, s, half_of(a.g)), h);
    } else if (!ghost) {
        multiply_half<true>(v, load_matrix<NR, 4, F>(a.links_in, MU, there, half_of(a.g)), h);
        if (edge) permute_half(v, a.g, MU, false);
    }
    if (edge && (a.phase_mask >> (2 * MU + (FORWARD ? 0 : 1)) & 1)) apply_phase(v, a.phases, 2 * MU + (FORWARD ? 0 : 1));
    expand_add<MU, S>(r, v);
}

template <class F, int NR, bool DAGGER, Epilogue E> HD void wilson_hop(const HopArgs& a, int i) {
    const int s = a.sites ? ((const int*)a.sites)[i] : a.first + i;
    const Coord c = coord_of(a.g, s, a.parity);
#ifdef __CUDACC__
    const Coord& next = c;
#else
    const Coord next = coord_of(a.g, s + 1 < half_of(a.g) ? s + 1 : s, a.parity);
#endif
    Complex<F> r[12];
    UNROLL for (int k = 0; k < 12; ++k) r[k] = zero<F>();
    hop<0, true, DAGGER, NR>(r, a, c, s, next);
    hop<0, false, DAGGER, NR>(r, a, c, s, next);
    hop<1, true, DAGGER, NR>(r, a, c, s, next);
    hop<1, false, DAGGER, NR>(r, a, c, s, next);
    hop<2, true, DAGGER, NR>(r, a, c, s, next);
    hop<2, false, DAGGER, NR>(r, a, c, s, next);
    hop<3, true, DAGGER, NR>(r, a, c, s, next);
    hop<3, false, DAGGER, NR>(r, a, c, s, next);
    const F scale = splat<F>(real_of<F>(a.scale));
    Complex<F> x[12], y[12];
    if constexpr (E == CLOVER || E == MINUS_CLOVER) {
        multiply_clover(y, a.clover, s, half_of(a.g), r);
        UNROLL for (int k = 0; k < 12; ++k) r[k] = y[k];
    }
    if constexpr (E == PLAIN || E == CLOVER) {
        UNROLL for (int k = 0; k < 12; ++k) r[k] = {scale * r[k].re, scale * r[k].im};
    } else {
        load_spinor(x, a.x, s, half_of(a.g));
        if constexpr (E == CLOVER_MINUS) {
            multiply_clover(y, a.clover, s, half_of(a.g), x);
        } else if constexpr (E == SHIFT) {
            const F shift = splat<F>(real_of<F>(a.shift));
            UNROLL for (int k = 0; k < 12; ++k) y[k] = {shift * x[k].re, shift * x[k].im};
        } else {
            UNROLL for (int k = 0; k < 12; ++k) y[k] = x[k];
        }
        UNROLL for (int k = 0; k < 12; ++k) r[k] = {nmad(scale, r[k].re, y[k].re), nmad(scale, r[k].im, y[k].im)};
    }
    store_spinor(a.out, s, half_of(a.g), r);
}

// Half spinors of a face for the neighbour. Lanes at the rank's edge go into the wire, the others to
// the lane of this rank that asks for them.
template <class F> HD void deliver(const FaceArgs& a, int f, const Complex<F>* h) {
    const int faces = half_of(a.g) / outer(a.g, a.mu);
    const F* r = reinterpret_cast<const F*>(h);
    if (lane<F>::W == 1 || a.g.lanes[a.mu] == 1) {
        store<12, 1>(a.wire, 0, f, faces, r);
        return;
    }
    if constexpr (lane<F>::W > 1) {
        using R = real_of<F>;
        const int n = a.g.lanes[a.mu], edge = a.forward ? 0 : n - 1, width = lane<F>::W / n;
        const int* to = permutation(a.g, a.mu, !a.forward, lane<F>::W);
        int e = 0;
        for (int l = 0; l < lane<F>::W; ++l) {
            const bool leaves = lane_coord(a.g, l, a.mu) == edge;
            for (int k = 0; k < 12; ++k) {
                if (leaves) ((R*)a.wire)[(f * 12L + k) * width + e] = get(r[k], l);
                else ((R*)a.ghost)[place<F>(1, 12, 0, k, f, faces, to[l])] = get(r[k], l);
            }
            e += leaves;
        }
    }
}
template <int MU, bool DAGGER, int NR, class F> HD void face_of(const FaceArgs& a, int f) {
    const Coord c = face_coord(a.g, MU, a.forward ? 0 : outer(a.g, MU) - 1, f, a.parity);
    const int s = index_of(a.g, c);
    Complex<F> p[12], h[6], v[6];
    load_spinor(p, a.input, s, half_of(a.g));
    if (a.forward) {
        project<MU, DAGGER ? 0 : 2>(h, p);
        deliver(a, f, h);
    } else {
        project<MU, DAGGER ? 2 : 0>(h, p);
        multiply_half<true>(v, load_matrix<NR, 4, F>(a.links, MU, s, half_of(a.g)), h);
        deliver(a, f, v);
    }
}
template <class F, int NR> HD void wilson_face(const FaceArgs& a, int f) {
    switch (2 * a.mu + a.dagger) {
        case 0: face_of<0, false, NR, F>(a, f); break;
        case 1: face_of<0, true, NR, F>(a, f); break;
        case 2: face_of<1, false, NR, F>(a, f); break;
        case 3: face_of<1, true, NR, F>(a, f); break;
        case 4: face_of<2, false, NR, F>(a, f); break;
        case 5: face_of<2, true, NR, F>(a, f); break;
        case 6: face_of<3, false, NR, F>(a, f); break;
        default: face_of<3, true, NR, F>(a, f); break;
    }
}
// What came from another rank, into the edge lanes of the ghost zone.
template <class F> HD void face_merge(const LaneArgs& a, int f) {
    using R = real_of<F>;
    const int n = a.g.lanes[a.mu], edge = a.forward ? n - 1 : 0, width = lane<F>::W / n;
    int e = 0;
    for (int l = 0; l < lane<F>::W; ++l) {
        if (lane_coord(a.g, l, a.mu) != edge) continue;
        for (int k = 0; k < a.reals; ++k)
            ((R*)a.ghost)[place<F>(1, a.reals, 0, k, f, a.sites, l)] = ((const R*)a.wire)[((i64)f * a.reals + k) * width + e];
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

#define WILSON_HOPS(SITE, NR)                                                    \
    SITE(wilson, hop_##NR, HopArgs, (wilson_hop<F, NR, false, PLAIN>))                 \
    SITE(wilson, hop_##NR##_dagger, HopArgs, (wilson_hop<F, NR, true, PLAIN>))         \
    SITE(wilson, hop_##NR##_clover, HopArgs, (wilson_hop<F, NR, false, CLOVER>))       \
    SITE(wilson, hop_##NR##_clover_dagger, HopArgs, (wilson_hop<F, NR, true, CLOVER>)) \
    SITE(wilson, hop_##NR##_clover_minus, HopArgs, (wilson_hop<F, NR, false, CLOVER_MINUS>))        \
    SITE(wilson, hop_##NR##_clover_minus_dagger, HopArgs, (wilson_hop<F, NR, true, CLOVER_MINUS>))  \
    SITE(wilson, hop_##NR##_minus_clover, HopArgs, (wilson_hop<F, NR, false, MINUS_CLOVER>))        \
    SITE(wilson, hop_##NR##_shift, HopArgs, (wilson_hop<F, NR, false, SHIFT>))          \
    SITE(wilson, hop_##NR##_shift_dagger, HopArgs, (wilson_hop<F, NR, true, SHIFT>))    \
    SITE(wilson, face_##NR, FaceArgs, (wilson_face<F, NR>))
#define WILSON_KERNELS(SITE, SUM)                          \
    WILSON_HOPS(SITE, 18)                                  \
    WILSON_HOPS(SITE, 12)                                  \
    SITE(wilson, face_merge, LaneArgs, (face_merge<F>))    \
    SITE(wilson, clover_apply, HopArgs, (clover_apply<F>))
