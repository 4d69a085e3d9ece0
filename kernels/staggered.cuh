// The operator D of improved staggered quarks on one parity,
//
//   D chi(x) = sum_mu { X_mu(x) chi(x+mu) - X_mu(x-mu)^dag chi(x-mu) + N_mu(x) chi(x+3mu) - N_mu(x-3mu)^dag chi(x-3mu) },
//
// with one and three hops fused, 1146 flop per site and field. Links are the operator's own, and include the signs
// eta_mu and the boundary phases. X has 18 reals, in units of `fat_scale`. N is unitary in units of `long_scale`, and
// has 18 reals, 14 (two rows and the determinant) or 9 (eight as for a link of SU(3), and the phase of the
// determinant). Order: x, y, z, t, forward before backward, with separate sums for fat and long links.
// Only vectors cross ranks, in three layers. For hops backward a rank keeps borders of links of the rank before, a layer of
// fat links and three of long ones.
#pragma once
#include "faces.cuh"
#include "gauge.cuh"

template <class F> HD void load_colour(Complex<F>* v, const void* field, int site, int stride) {
    load<6, 1>(reinterpret_cast<F*>(v), field, 0, site, stride);
}
template <class F> HD void permute_colour(Complex<F>* v, const Geometry& g, int mu, bool forward, int turns) {
    if constexpr (lane<F>::W > 1) {
        const int* table = permutation(g, mu, forward, lane<F>::W);
        for (; turns > 0; --turns)
            for (int k = 0; k < 3; ++k) v[k] = {permute(v[k].re, table), permute(v[k].im, table)};
    }
}
// r += U v
template <class F> HD void add_product(Complex<F>* r, const Matrix<F>& u, const Complex<F>* v) {
    UNROLL for (int i = 0; i < 3; ++i) UNROLL for (int j = 0; j < 3; ++j) cmad(r[i], u.e[3 * i + j], v[j]);
}
// r = U^dag v
template <class F> HD void adjoint_product(Complex<F>* r, const Matrix<F>& u, const Complex<F>* v) {
    UNROLL for (int i = 0; i < 3; ++i) {
        r[i] = zero<F>();
        UNROLL for (int j = 0; j < 3; ++j) cmad_conj(r[i], u.e[3 * j + i], v[j]);
    }
}

// A unitary matrix from NR reals.
template <int NR, class F> HD Matrix<F> load_long(const void* links, const void* ninth, int mu, int site, int stride) {
    if constexpr (NR == 18) {
        return load_matrix<18, 4, F>(links, mu, site, stride);
    } else if constexpr (NR == 14) {
        F r[14];
        load_unit<14, 4>(r, links, mu, site, stride);
        Matrix<F> u;
        UNROLL for (int k = 0; k < 6; ++k) u.e[k] = {r[2 * k], r[2 * k + 1]};
        third_row(u);
        turn_third_row(u, Complex<F>{r[12], r[13]});
        return u;
    } else {
        F r[8];
        load_unit<8, 4>(r, links, mu, site, stride);
        return expand_matrix<false>(r, load_phase(load_ninth<F>(ninth, mu, site, stride), splat<F>(1)));
    }
}

#ifdef HMC_EACH
HD constexpr int vectors_of(const StaggeredHop&) { return HMC_FIELDS; }
#else
HD int vectors_of(const StaggeredHop& a) { return a.fields; }
#endif

// The sums over fat and over long links for up to EACH fields.
template <class F, int EACH> struct Hops {
    Complex<F> fat[EACH][3], lng[EACH][3];
};

// The hop of HOP steps from site c (index s), for `count` fields from `input` on.
template <int MU, bool FORWARD, int HOP, int NR, int EACH, class F>
HD void staggered_hop_of(Hops<F, EACH>& sum, const StaggeredHop& a, const char* input, int field, int count, const Coord& c, int s) {
    const int extent = outer(a.g, MU), half = half_of(a.g);
    const int target = FORWARD ? c.x[MU] + HOP : c.x[MU] - HOP;
    const bool edge = FORWARD ? target >= extent : target < 0;
    const bool ghost = GHOSTS && edge && (a.ghost_mask >> MU & 1);
    Coord n = c;
    int turns = 0;
    for (n.x[MU] = target; n.x[MU] >= extent; n.x[MU] -= extent) ++turns;
    for (; n.x[MU] < 0; n.x[MU] += extent) ++turns;
    const int there = index_of(a.g, n);
    const int from = FORWARD ? s : place_of_link(there, s);
    const void* links = FORWARD ? (HOP == 1 ? a.fat_out : a.long_out) : (HOP == 1 ? a.fat_in : a.long_in);
    // Layers that came are counted from the far end.
    const int layer = FORWARD ? target - extent : target + 3;
    constexpr int FACE = 2 * MU + (FORWARD ? 0 : 1);
    const int faces = half / extent, f = face_index<MU>(a.g, c);
    Matrix<F> u;
    if (!FORWARD && ghost) {
        const void* links = HOP == 1 ? a.ghost_fat[MU] : a.ghost_long[MU];
        load_plain<18, HOP>(reinterpret_cast<F*>(u.e), links, HOP == 1 ? 0 : layer, f, faces);
    } else {
        if constexpr (HOP == 1) u = load_matrix<18, 4, F>(links, MU, from, half);
        else u = load_long<NR, F>(links, FORWARD ? a.ninth_out : a.ninth_in, MU, from, half);
    }
    UNROLL for (int k = 0; k < EACH; ++k) {
        if (k >= count) break;
        Complex<F>* r = HOP == 1 ? sum.fat[k] : sum.lng[k];
        Complex<F> v[3], w[3];
        if (ghost) {
            wait_for_chunk(a.places.wait, FACE, (faces * (field + k) + f) / FACE_CHUNK);
            load_delivered<6, 3>(reinterpret_cast<F*>(v), a.ghost[FACE], field + k, layer, f, faces);
        } else {
            load_colour(v, input + k * field_bytes<6, F>(half), there, half);
        }
        if constexpr (FORWARD) {
            if (!ghost && edge) permute_colour(v, a.g, MU, true, turns);
            add_product(r, u, v);
        } else {
            adjoint_product(w, u, v);
            if (!ghost && edge) permute_colour(w, a.g, MU, false, turns);
            UNROLL for (int j = 0; j < 3; ++j) r[j] = add_phase<2>(r[j], w[j]);
        }
    }
}
template <int MU, int NR, int EACH, class F>
HD void staggered_direction(Hops<F, EACH>& sum, const StaggeredHop& a, const char* input, int field, int count, const Coord& c, int s) {
    staggered_hop_of<MU, true, 1, NR>(sum, a, input, field, count, c, s);
    staggered_hop_of<MU, false, 1, NR>(sum, a, input, field, count, c, s);
    staggered_hop_of<MU, true, 3, NR>(sum, a, input, field, count, c, s);
    staggered_hop_of<MU, false, 3, NR>(sum, a, input, field, count, c, s);
}
// out = fat_scale (fat hops) + long_scale (long hops) + shift x, for EACH fields from `field` on.
template <int NR, int EACH, class F> HD void staggered_site(const StaggeredHop& a, int place, int field, int count) {
    const int s = site_at(a.places, place), half = half_of(a.g);
    const Coord c = coord_of(a.g, s, a.parity);
    const i64 bytes = field_bytes<6, F>(half);
    const char* input = (const char*)a.input + field * bytes;
    Hops<F, EACH> sum;
    UNROLL for (int k = 0; k < EACH; ++k) UNROLL for (int j = 0; j < 3; ++j) sum.fat[k][j] = sum.lng[k][j] = zero<F>();
    staggered_direction<0, NR>(sum, a, input, field, count, c, s);
    staggered_direction<1, NR>(sum, a, input, field, count, c, s);
    staggered_direction<2, NR>(sum, a, input, field, count, c, s);
    staggered_direction<3, NR>(sum, a, input, field, count, c, s);
    const F fat = splat<F>(real_of<F>(a.fat_scale)), lng = splat<F>(real_of<F>(a.long_scale)), shift = splat<F>(real_of<F>(a.shift));
    UNROLL for (int k = 0; k < EACH; ++k) {
        if (k >= count) break;
        Complex<F> r[3], x[3];
        UNROLL for (int j = 0; j < 3; ++j)
            r[j] = {mad(lng, sum.lng[k][j].re, fat * sum.fat[k][j].re), mad(lng, sum.lng[k][j].im, fat * sum.fat[k][j].im)};
        if (a.x) {
            load_colour(x, (const char*)a.x + (field + k) * bytes, s, half);
            UNROLL for (int j = 0; j < 3; ++j) r[j] = {mad(shift, x[j].re, r[j].re), mad(shift, x[j].im, r[j].im)};
        }
        store<6, 1>((char*)a.out + (field + k) * bytes, 0, s, half, reinterpret_cast<const F*>(r));
    }
}
// Thread i works on a site and a group of up to EACH fields.
template <int NR, int EACH, class F> HD void staggered_group(const StaggeredHop& a, int i) {
    const int n = vectors_of(a), groups = (n + EACH - 1) / EACH;
    int place, group;
    place_and_group<1>(i, a.places.count, groups, place, group);
    const int field = group * EACH;
    staggered_site<NR, EACH, F>(a, place, field, n % EACH == 0 ? EACH : n - field < EACH ? n - field : EACH);
}
template <class F, int NR> HD void staggered_hop(const StaggeredHop& a, int i) {
#ifdef HMC_EACH
    staggered_group<NR, HMC_EACH, F>(a, i);
#else
    if (a.each == 1) staggered_group<NR, 1, F>(a, i);
    else if (EMULATED && a.each == 2) staggered_group<NR, EMULATED ? 2 : 4, F>(a, i);
    else staggered_group<NR, 4, F>(a, i);
#endif
}

// Packs a site of a face for the neighbour: three layers of vectors.
struct PackedVectors { const Geometry& g; const Fermions* input; const Outgoing& faces; int parity; };
template <class F> HD void pack_vectors(const PackedVectors& a, int i) {
    const FacePlace p = face_at(a.g, a.faces, i);
    if (p.face < 0) return;
    const int face = p.face, mu = face / 2;
    const bool forward = face % 2 == 0;
    const int extent = outer(a.g, mu), half = half_of(a.g), faces = half / extent, f = p.i % faces, field = p.i / faces;
    const char* input = (const char*)a.input + field * field_bytes<6, F>(half);
    for (int layer = 0; layer < 3; ++layer) {
        const int s = index_of(a.g, face_coord(a.g, mu, forward ? layer : extent - 3 + layer, f, a.parity));
        F v[6];
        const F factor = load_unscaled<6, 1>(v, input, 0, s, half);
        deliver_scaled<6, 3>(a, face, f, field, layer, v, factor);
    }
}
template <class F> HD void staggered_face(const StaggeredFace& a, int i) { pack_vectors<F>({a.g, a.input, a.faces, a.parity}, i); }
template <class F> HD void pack_site(const StaggeredHop& a, int i) { pack_vectors<F>({a.g, a.input, a.places.packs, 1 - a.parity}, i); }
HD const StaggeredHop& hop_of(const StaggeredHop& a) { return a; }
template <int LAYERS, int NR, class F> HD void staggered_links_of(const StaggeredLinkFace& a, int face, int f) {
    const int mu = face / 2;
    for (int layer = 0; layer < LAYERS; ++layer) {
        const int s = index_of(a.g, face_coord(a.g, mu, outer(a.g, mu) - LAYERS + layer, f, a.parity));
        const Matrix<F> u = load_long<NR, F>(a.links, a.ninth, mu, s, half_of(a.g));
        deliver<18, LAYERS>(a, face, f, 0, layer, reinterpret_cast<const F*>(u.e));
    }
}
template <class F, int NR> HD void staggered_link_face(const StaggeredLinkFace& a, int i) {
    const FacePlace p = face_at(a.g, a.faces, i);
    if (p.face < 0) return;
    if (a.layers == 3) staggered_links_of<3, NR, F>(a, p.face, p.i);
    else if constexpr (NR == 18) staggered_links_of<1, NR, F>(a, p.face, p.i);
}

// eta_mu(x) times the boundary phase for a hop of `hop` steps forward, in every lane; phases [mu][crossings][re, im].
template <class F> HD Complex<F> hop_phase(const Geometry& g, const void* phases, const Coord& c, int mu, int hop) {
    const int power = mu == 3 ? 0 : c.x[3] + (mu > 0 ? c.x[0] : 0) + (mu > 1 ? c.x[1] : 0);
    const double eta = power & 1 ? -1 : 1;
    Complex<F> r;
    for (int l = 0; l < lane<F>::W; ++l) {
        const int x = g.offset[mu] + lane_coord(g, l, mu) * outer(g, mu) + c.x[mu];
        const double* phase = (const double*)phases + 8 * mu + 2 * ((x + hop) / g.global[mu]);
        set(r.re, l, real_of<F>(eta * phase[0]));
        set(r.im, l, real_of<F>(eta * phase[1]));
    }
    return r;
}
// phase * u * scale
template <class F> HD Matrix<F> phased(const Matrix<F>& u, Complex<F> phase, F scale) {
    Matrix<F> r = null_matrix<F>();
    UNROLL for (int k = 0; k < 9; ++k) {
        cmad(r.e[k], phase, u.e[k]);
        r.e[k] = {scale * r.e[k].re, scale * r.e[k].im};
    }
    return r;
}
template <class F, int NR> HD void store_narrow(void* out, int mu, int i, int stride, const wide_of<F>* few) {
    F r[NR];
    for (int k = 0; k < NR; ++k) r[k] = narrow<F>(few[k]);
    store_unit<NR, 4>(out, mu, i, stride, r);
}
// Fills an operator's own fat links.
template <class F> HD void import_fat(const ImportFat& a, int i) {
    using D = wide_of<F>;
    const Coord c = coord_of(a.g, i, a.parity);
    for (int mu = 0; mu < 4; ++mu) {
        const Matrix<D> u = phased(double_link_at<D>(a.g, a.links, c, mu), hop_phase<D>(a.g, a.phases, c, mu, 1), splat<D>(a.scale));
        store_narrow<F, 18>(a.out, mu, i, a.g.half, reinterpret_cast<const D*>(u.e));
    }
}
// Fills an operator's own long links, from unitary ones.
template <class F, int NR> HD void import_long(const ImportLong& a, int i) {
    using D = wide_of<F>;
    const Coord c = coord_of(a.g, i, a.parity);
    for (int mu = 0; mu < 4; ++mu) {
        const Matrix<D> u = phased(double_link_at<D>(a.g, a.links, c, mu), hop_phase<D>(a.g, a.phases, c, mu, 3), splat<D>(1));
        if constexpr (NR == 18) {
            store_narrow<F, 18>(a.out, mu, i, a.g.half, reinterpret_cast<const D*>(u.e));
            continue;
        }
        // The determinant: the third row is det times conj(row 0 x row 1).
        Matrix<D> special = u;
        third_row(special);
        Complex<D> det = zero<D>();
        UNROLL for (int k = 6; k < 9; ++k) cmad_conj(det, special.e[k], u.e[k]);
        D few[14];
        if constexpr (NR == 14) {
            UNROLL for (int k = 0; k < 6; ++k) few[2 * k] = u.e[k].re, few[2 * k + 1] = u.e[k].im;
            few[12] = det.re;
            few[13] = det.im;
            store_narrow<F, 14>(a.out, mu, i, a.g.half, few);
        } else if constexpr (NR == 9) {
            compress_matrix(few, u);
            store_narrow<F, 8>(a.out, mu, i, a.g.half, few);
            store_ninth<F>(a.ninth, mu, i, a.g.half, narrow<F>(store_phase(det)));
        }
    }
}
// Maximum: the greatest |re| or |im| of any matrix element.
template <class F> HD void greatest_real(const GreatestReal& a, int i, Accumulator& sum) {
    const int parity = parity_of_index<F>(a, i);
    const Walk w = walk_from(coord_of(a.g, i, parity));
    for (int mu = 0; mu < 4; ++mu) {
        const Matrix<F> u = link_at<F>(a.g, a.links, w, mu);
        for (int k = 0; k < 9; ++k) sum.raise(larger(absolute(u.e[k].re), absolute(u.e[k].im)));
    }
}

// psi(x + hop mu) of field n; x is on parity `parity`.
template <int MU, class F> HD void forward_vector(Complex<F>* v, const StaggeredForce& a, const Coord& c, int hop, int n) {
    const int extent = outer(a.g, MU), half = half_of(a.g), target = c.x[MU] + hop;
    if (GHOSTS && target >= extent && (a.ghost_mask >> MU & 1)) {
        const int faces = half / extent;
        load_ghost<6, 3>(reinterpret_cast<F*>(v), (const F*)a.ghost[MU] + 18L * faces * n, target - extent, face_index<MU>(a.g, c), faces);
        return;
    }
    Coord there = c;
    int turns = 0;
    for (there.x[MU] = target; there.x[MU] >= extent; there.x[MU] -= extent) ++turns;
    load_colour(v, (const char*)a.there + n * field_bytes<6, F>(half), index_of(a.g, there), half);
    permute_colour(v, a.g, MU, true, turns);
}
// Gradients of S = sum_n w_n phi^dag (-D^2 + p_n)^-1 phi with respect to links that start at sites of one parity:
//   G_mu(x) += +-2 w_n conj(phase) psi_n(x) psi_n(x + hop mu)^dag,  + on even sites,
// psi_n = (-D^2 + p_n)^-1 phi on even sites, and D psi_n on odd ones.
template <int MU, class F> HD void staggered_force_of(const StaggeredForce& a, const Coord& c, int s) {
    const int at = bordered_index_of(a.g, c);
    for (int hop = 1; hop <= 3; hop += 2) {
        Matrix<F> g = null_matrix<F>();
        for (int n = 0; n < a.fields; ++n) {
            Complex<F> here[3], there[3];
            load_colour(here, (const char*)a.here + n * field_bytes<6, F>(half_of(a.g)), s, half_of(a.g));
            forward_vector<MU>(there, a, c, hop, n);
            const F weight = splat<F>(((const double*)a.weights)[n]);
            UNROLL for (int k = 0; k < 3; ++k) {
                const Complex<F> h = {weight * here[k].re, weight * here[k].im};
                UNROLL for (int j = 0; j < 3; ++j) cmad_conj(g.e[3 * k + j], there[j], h);
            }
        }
        const F sign = splat<F>(a.parity == 0 ? 2 : -2);
        g = phased(g, conj(hop_phase<F>(a.g, a.phases, c, MU, hop)), sign);
        void* half = half_field<F>(hop == 1 ? a.fat : a.lng, a.parity, a.g.half_bordered, 72);
        add_to_matrix<4>(half, MU, at, a.g.half_bordered, splat<F>(hop == 1 ? a.fat_weight : a.long_weight), g);
        if (hop == 1 && a.one_weight != 0) {
            void* one = half_field<F>(a.one, a.parity, a.g.half_bordered, 72);
            add_to_matrix<4>(one, MU, at, a.g.half_bordered, splat<F>(a.one_weight), g);
        }
    }
}
template <class F> HD void staggered_force(const StaggeredForce& a, int s) {
    const Coord c = coord_of(a.g, s, a.parity);
    staggered_force_of<0, F>(a, c, s);
    staggered_force_of<1, F>(a, c, s);
    staggered_force_of<2, F>(a, c, s);
    staggered_force_of<3, F>(a, c, s);
}

#define STAGGERED_LINKS(SITE, NR)                                               \
    SITE(staggered, staggered_hop_##NR, StaggeredHop, (staggered_hop<F, NR>))  \
    SITE(staggered, staggered_link_face_##NR, StaggeredLinkFace, (staggered_link_face<F, NR>)) \
    SITE(staggered, import_long_##NR, ImportLong, (import_long<F, NR>))
#define STAGGERED_KERNELS(SITE, SUM)                                            \
    STAGGERED_LINKS(SITE, 18)                                                   \
    STAGGERED_LINKS(SITE, 14)                                                   \
    STAGGERED_LINKS(SITE, 9)                                                    \
    SITE(staggered, staggered_face, StaggeredFace, (staggered_face<F>))         \
    SITE(staggered, import_fat, ImportFat, (import_fat<F>))
// Kernels that exist only in double.
#define STAGGERED_DOUBLE_KERNELS(SITE, SUM)                                     \
    SUM(staggered, greatest_real, GreatestReal, 1, (greatest_real<F>))              \
    SITE(staggered, staggered_force, StaggeredForce, (staggered_force<F>))
