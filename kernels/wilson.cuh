// Wilson hopping term on one parity, with the epilogues of even-odd preconditioning:
//
//   D psi(x) = sum_mu [ (1 - gamma_mu) U_mu(x)        psi(x+mu)
//                     + (1 + gamma_mu) U_mu(x-mu)^dag psi(x-mu) ],      M = A - D/2;
//
// for the adjoint, the signs of gamma_mu change. 1320 flop per site. Links have 18, 12 or 8 reals.
// The order of directions is always x, y, z, t, forward before backward.
// Only half spinors cross ranks. For hops backward a rank keeps a border of links of the rank before.
// Hops may be left out: those that leave a Schwarz block (Dirichlet boundaries), or all but those in one direction.
#pragma once
#include "faces.cuh"
#include "spinor.cuh"
#include "su3.cuh"

// y = B x for one chirality: B is a hermitian 6x6 block in 36 reals, its diagonal, then the rows of the lower triangle.
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
#if ON_GPU
// step (a + s i^K b) of two complex numbers in half precision; s = -1 if `minus`, else 1. The offset of the integers
// cancels in the difference; for a sum, a word with all bits inverted has 2^15 - 1 - b instead of 2^15 + b.
HD float sum_of_raised(u32 a, u32 b, int of_a, int of_b, bool minus, float step) {
    const float x = raised(a, of_a);
    return minus ? step * (x - raised(b, of_b)) : mad(step, x - raised(~b, of_b), -step);
}
template <int K> HD Complex<float> mad_phase_of_raised(u32 a, bool minus, u32 b, float step) {
    constexpr int ODD = K & 1;
    return {sum_of_raised(a, b, 0, ODD, minus != ((K & 3) == 1 || (K & 3) == 2), step),
            sum_of_raised(a, b, 1, 1 - ODD, minus != ((K & 3) >= 2), step)};
}
#endif
// The upper half of (1 + sign i^S gamma_mu) times a spinor; in half precision it is scaled after the projection.
template <int MU, int S, class F> HD void load_projected(Complex<F>* h, const void* field, int site, int stride, F sign) {
#if ON_GPU
    if constexpr (is_half<F>()) {
        using G = gamma_<MU>;
        u32 p[12];
        const F step = load_raised<24, 1, F>(p, field, 0, site, stride);
        UNROLL for (int c = 0; c < 3; ++c) {
            h[c] = mad_phase_of_raised<S + G::PHASE0>(p[c], sign < 0, p[3 * G::COLUMN0 + c], step);
            h[3 + c] = mad_phase_of_raised<S + G::PHASE1>(p[3 + c], sign < 0, p[3 * G::COLUMN1 + c], step);
        }
        return;
    }
#endif
    Complex<F> p[12];
    const F step = load_unscaled<24, 1>(reinterpret_cast<F*>(p), field, 0, site, stride);
    project<MU, S>(h, p, sign);
    if constexpr (is_half<F>()) {
        UNROLL for (int k = 0; k < 6; ++k) h[k] = {step * h[k].re, step * h[k].im};
    }
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

// One slice of the fifth dimension of one of several fields: its first byte, its first site, its stride.
struct Slice { i64 offset; int first, stride; };
template <class F> HD Slice slice_of(const Geometry& g, int field, int slices) {
    return {field / slices * field_bytes<24, F>(half_of(g) * slices), field % slices * half_of(g), half_of(g) * slices};
}

// Options of a launch; constants if a GPU's kernel is compiled for them.
#ifdef HMC_EPILOGUE
HD constexpr int epilogue_of(const WilsonHop&) { return HMC_EPILOGUE; }
#else
HD int epilogue_of(const WilsonHop& a) { return a.epilogue; }
#endif
#ifdef HMC_DAGGER
HD constexpr bool dagger_of(const Hopping&) { return HMC_DAGGER; }
HD constexpr int hops_of(const Hopping&) { return HMC_HOPS; }
HD constexpr int fields_of(const Hopping&) { return HMC_FIELDS; }
HD constexpr int slices_of(const Hopping&) { return HMC_SLICES; }
#else
HD bool dagger_of(const Hopping& a) { return a.dagger; }
HD int hops_of(const Hopping& a) { return a.hops; }
HD int fields_of(const Hopping& a) { return a.fields; }
HD int slices_of(const Hopping& a) { return a.slices; }
#endif

// 1 or 0 in every lane: whether to make a hop.
template <int MU, bool FORWARD, class F> HD F kept(const Hopping& a, const Coord& c) {
    return ((const F*)a.keep)[(2 * MU + (FORWARD ? 0 : 1)) * a.keep_stride + c.x[MU]];
}
template <class F> HD bool any(const F& x) {
    bool r = false;
    for (int l = 0; l < lane<F>::W; ++l) r |= get(x, l) != 0;
    return r;
}

template <int MU, bool FORWARD, int NR, class F>
HD void hop(Complex<F>* r, const Hopping& a, const Slice& slice, int field, const Coord& c, int s, F sign) {
    const char* input = (const char*)a.input + slice.offset;
    constexpr int S = FORWARD ? 2 : 0;
    const bool edge = FORWARD ? c.x[MU] == outer(a.g, MU) - 1 : c.x[MU] == 0;
    Coord n = c;
    n.x[MU] = edge ? (FORWARD ? 0 : outer(a.g, MU) - 1) : c.x[MU] + (FORWARD ? 1 : -1);
    const int there = index_of(a.g, n);
    const bool ghost = GHOSTS && edge && hops_of(a) != WITHIN && (a.ghost_mask >> MU & 1);
    if (hops_of(a) != EVERY && !any(kept<MU, FORWARD, F>(a, c))) return;
    Complex<F> h[6], v[6];
    Matrix<F> u;
    if (ghost) {
        constexpr int FACE = 2 * MU + (FORWARD ? 0 : 1);
        const int faces = half_of(a.g) / outer(a.g, MU), f = face_index<MU>(a.g, c);
        if constexpr (MU > 1) wait_for_chunk(a.places.wait, FACE, (faces * field + f) / FACE_CHUNK);
        if constexpr (!FORWARD) load_plain<18, 1>(reinterpret_cast<F*>(u.e), a.ghost_links[MU], 0, f, faces);
        load_delivered<12, 1>(reinterpret_cast<F*>(h), a.ghost[FACE], field, 0, f, faces);
    } else {
        load_projected<MU, S>(h, input, slice.first + there, slice.stride, sign);
    }
    if constexpr (FORWARD) {
        if (!ghost && edge) permute_half(h, a.g, MU, true);
        multiply_half<false>(v, load_matrix<NR, 4, F>(a.links_out, MU, s, half_of(a.g)), h);
    } else {
        if (!ghost) u = load_matrix<NR, 4, F>(a.links_in, MU, place_of_link(there, s), half_of(a.g));
        multiply_half<true>(v, u, h);
        if (!ghost && edge) permute_half(v, a.g, MU, false);
    }
    if (edge && (a.phase_mask >> (2 * MU + (FORWARD ? 0 : 1)) & 1)) apply_phase(v, a.phases, 2 * MU + (FORWARD ? 0 : 1));
    if constexpr (lane<F>::W > 1) {
        if (hops_of(a) != EVERY) {
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

// Waits for a ghost zone at once, where later hops would wait behind. A GPU's box has two sites at least in each direction,
// so that no site is at both edges.
template <int MU> HD void wait_early(const Hopping& a, int field, const Coord& c) {
    if (!GHOSTS || hops_of(a) == WITHIN || !(a.ghost_mask >> MU & 1)) return;
    const int face = c.x[MU] == outer(a.g, MU) - 1 ? 2 * MU : c.x[MU] == 0 ? 2 * MU + 1 : -1;
    const int faces = half_of(a.g) / outer(a.g, MU);
    if (face >= 0) wait_for_chunk(a.places.wait, face, (faces * field + face_index<MU>(a.g, c)) / FACE_CHUNK);
}
// The sum of all hops to a site.
template <int NR, class F> HD void hops(Complex<F>* r, const Hopping& a, const Slice& slice, int field, int s) {
    const Coord c = coord_of(a.g, s, a.parity);
    const F sign = splat<F>(dagger_of(a) ? -1 : 1);
    UNROLL for (int k = 0; k < 12; ++k) r[k] = zero<F>();
    wait_early<0>(a, field, c);
    wait_early<1>(a, field, c);
    hop<0, true, NR>(r, a, slice, field, c, s, sign);
    hop<0, false, NR>(r, a, slice, field, c, s, sign);
    hop<1, true, NR>(r, a, slice, field, c, s, sign);
    hop<1, false, NR>(r, a, slice, field, c, s, sign);
    hop<2, true, NR>(r, a, slice, field, c, s, sign);
    hop<2, false, NR>(r, a, slice, field, c, s, sign);
    hop<3, true, NR>(r, a, slice, field, c, s, sign);
    hop<3, false, NR>(r, a, slice, field, c, s, sign);
}

template <class F, int NR> HD void wilson_hop(const WilsonHop& a, int i) {
    const Hopping& h = a.hop;
    int place, field;
    place_and_group<32>(i, h.places.count, fields_of(h), place, field);
    const int s = site_at(h.places, place);
    const Slice slice = slice_of<F>(h.g, field, slices_of(h));
    Complex<F> r[12];
    hops<NR>(r, h, slice, field, s);
    const F scale = splat<F>(real_of<F>(a.scale)), twist = splat<F>(real_of<F>(a.twist));
    const int epilogue = epilogue_of(a);
    Complex<F> x[12], y[12];
    if (epilogue >= CLOVER_MINUS) load_spinor(x, (const char*)a.x + slice.offset, slice.first + s, slice.stride);
    if (epilogue == CLOVER || epilogue == MINUS_CLOVER) {
        if (epilogue == MINUS_CLOVER && a.twist != 0) add_twist(r, twist, x);
        multiply_clover(y, a.clover, s, half_of(h.g), r);
        UNROLL for (int k = 0; k < 12; ++k) r[k] = y[k];
    }
    if (epilogue == TWISTED) {
        // (A - i twist gamma_5) (A^2 + twist^2)^-1; without a term the scale has the inverse, and A is `shift`
        if (a.clover != nullptr) multiply_clover(y, a.clover, s, half_of(h.g), r), multiply_clover(r, a.term, s, half_of(h.g), y);
        else UNROLL for (int k = 0; k < 12; ++k) y[k] = r[k], r[k] = {real_of<F>(a.shift) * y[k].re, real_of<F>(a.shift) * y[k].im};
        add_twist(r, -twist, y);
    }
    if (epilogue < CLOVER_MINUS) {
        UNROLL for (int k = 0; k < 12; ++k) r[k] = {scale * r[k].re, scale * r[k].im};
    } else {
        if (epilogue == CLOVER_MINUS) {
            multiply_clover(y, a.clover, s, half_of(h.g), x);
        } else if (epilogue == SHIFT) {
            const F shift = splat<F>(real_of<F>(a.shift));
            UNROLL for (int k = 0; k < 12; ++k) y[k] = {shift * x[k].re, shift * x[k].im};
        } else {
            UNROLL for (int k = 0; k < 12; ++k) y[k] = x[k];
        }
        if (epilogue != MINUS_CLOVER && a.twist != 0) add_twist(y, twist, x);
        UNROLL for (int k = 0; k < 12; ++k) r[k] = {nmad(scale, r[k].re, y[k].re), nmad(scale, r[k].im, y[k].im)};
    }
    store_spinor((char*)a.out + slice.offset, slice.first + s, slice.stride, r);
    if (epilogue == MINUS_CLOVER && a.also != nullptr) {
        round_as_stored<24>(reinterpret_cast<F*>(r));
        multiply_clover(y, a.clover, s, half_of(h.g), r);
        store_spinor((char*)a.also + slice.offset, slice.first + s, slice.stride, y);
    }
}

// Spinors of one parity that are packed.
struct PackedSpinors { const Geometry& g; const Fermions* input; const Outgoing& faces; int parity; bool dagger; int slices; };
// Packs the half spinors of a face for the neighbour.
template <int MU, class F> HD void face_of(const PackedSpinors& a, int face, int i) {
    const bool forward = face % 2 == 0;
    const int faces = half_of(a.g) / outer(a.g, MU), f = i % faces, field = i / faces;
    const Coord c = face_coord(a.g, MU, forward ? 0 : outer(a.g, MU) - 1, f, a.parity);
    const int s = index_of(a.g, c);
    const F sign = splat<F>(a.dagger ? -1 : 1);
    Complex<F> h[6], p[12];
    const Slice slice = slice_of<F>(a.g, field, a.slices);
    const char* input = (const char*)a.input + slice.offset;
    const F factor = load_unscaled<24, 1>(reinterpret_cast<F*>(p), input, 0, slice.first + s, slice.stride);
    if (forward) project<MU, 2>(h, p, sign);
    else project<MU, 0>(h, p, sign);
    deliver_scaled<12, 1>(a, face, f, field, 0, reinterpret_cast<const F*>(h), factor);
}
template <class F> HD void pack_spinors(const PackedSpinors& a, int i) {
    const FacePlace p = face_at(a.g, a.faces, i);
    switch (p.face >> 1) {
        case 0: face_of<0, F>(a, p.face, p.i); break;
        case 1: face_of<1, F>(a, p.face, p.i); break;
        case 2: face_of<2, F>(a, p.face, p.i); break;
        case 3: face_of<3, F>(a, p.face, p.i); break;
        default: break;
    }
}
template <class F> HD void wilson_face(const WilsonFace& a, int i) {
    pack_spinors<F>({a.g, a.input, a.faces, a.parity, a.dagger != 0, a.slices}, i);
}
// What a hop packs before its own sites.
template <class F> HD void pack_site(const Hopping& a, int i) {
    pack_spinors<F>({a.g, a.input, a.places.packs, 1 - a.parity, dagger_of(a), slices_of(a)}, i);
}
HD const Hopping& hop_of(const WilsonHop& a) { return a.hop; }
template <class F, int NR> HD void link_face(const LinkFace& a, int i) {
    const FacePlace p = face_at(a.g, a.faces, i);
    if (p.face < 0) return;
    const int mu = p.face / 2, s = index_of(a.g, face_coord(a.g, mu, outer(a.g, mu) - 1, p.i, a.parity));
    const Matrix<F> u = load_matrix<NR, 4, F>(a.links, mu, s, half_of(a.g));
    deliver<18, 1>(a, p.face, p.i, 0, 0, reinterpret_cast<const F*>(u.e));
}
// out = B x on one parity, where B are clover blocks.
template <class F> HD void clover_apply(const CloverApply& a, int s) {
    Complex<F> x[12], y[12];
    load_spinor(x, a.x, s, half_of(a.g));
    multiply_clover(y, a.clover, s, half_of(a.g), x);
    store_spinor(a.out, s, half_of(a.g), y);
}

#define WILSON_LINKS(SITE, NR)                                        \
    SITE(wilson, wilson_hop_##NR, WilsonHop, (wilson_hop<F, NR>))              \
    SITE(wilson, link_face_##NR, LinkFace, (link_face<F, NR>))
#define WILSON_KERNELS(SITE, SUM)                          \
    WILSON_LINKS(SITE, 18)                                 \
    WILSON_LINKS(SITE, 12)                                 \
    WILSON_LINKS(SITE, 8)                                  \
    SITE(wilson, wilson_face, WilsonFace, (wilson_face<F>)) \
    SITE(wilson, clover_apply, CloverApply, (clover_apply<F>))
