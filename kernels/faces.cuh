// Face data that cross ranks: packing for a neighbour, and merging what a neighbour sent.
#pragma once
#include "ranks.cuh"

// The site at a place of a hop's launch.
HD int site_at(const Places& a, int place) {
    place += a.first;
    if (a.sites) return ((const int*)a.sites)[place];
    place += a.from;
    return place < a.all ? place : place - a.all;
}

// Face site i of all that are packed: the face, and the site in it, of field after field; no face between chunks.
struct FacePlace { int face, i; };
HD FacePlace face_at(const Geometry& g, const Halo* const* wire, int fields, int chunk, int i) {
    for (int face = 0; face < 8; ++face) {
        if (wire[face] == nullptr) continue;
        const int sites = half_of(g) / outer(g, face / 2) * fields, padded = (sites + chunk - 1) & -chunk;
        if (i < padded) return {i < sites ? face : -1, i};
        i -= padded;
    }
    return {-1, i};
}
HD FacePlace face_at(const Geometry& g, const Outgoing& a, int i) { return face_at(g, a.wire, a.fields, a.chunk, i); }

// A launch of hops may pack for the neighbours before its own sites: `hop_of` is the part of its arguments that tells, and
// `pack_site` packs a site.
struct NoHop {};
template <class A> HD NoHop hop_of(const A&) { return {}; }
template <class F> HD void pack_site(NoHop, int) {}

// What threads 0 to 8 of a block do when it has packed its chunk: they raise its flag. Faces without data have the flag of
// a chunk, too: their rank is then done with earlier ones.
HD void raise_packed(const Geometry& g, const Outgoing& a, int block, int thread) {
    if (thread == 8) {
        const FacePlace p = face_at(g, a, block * FACE_CHUNK);
        raise_flag(a.signal, p.face, p.i / FACE_CHUNK);
    } else if (block == 0 && a.wire[thread] == nullptr) {
        raise_flag(a.signal, thread, 0);
    }
}

// In half precision a field's integers cross ranks as they are, which no bit of a result can tell from floats: N of them and a
// factor. Those of a colour vector have 16 bits, those of a half spinor, which are sums or differences of two, have 17. All
// are raised to be positive: the low 16 bits in pairs, the high bits of 17 in a word, and the factor.
template <int N> struct Packed {
    static constexpr bool WIDE = N == 12;
    static constexpr int WORDS = N / 2 + (WIDE ? 2 : 1), RAISED_BY = WIDE ? 65536 : 32768;
    static constexpr float FLOOR = 8388608 + RAISED_BY;
    alignas(16) u32 words[WORDS];
    HD void pack(const float* q, float factor) {
        u32 high = 0;
        UNROLL for (int k = 0; k < N; k += 2) {
            const u32 a = word_of(q[k] + FLOOR), b = word_of(q[k + 1] + FLOOR);
            words[k / 2] = (a & 0xffff) | b << 16;
            if (WIDE) high |= (a >> 16 & 1) << k | (b >> 16 & 1) << (k + 1);
        }
        if (WIDE) words[N / 2] = high;
        words[WORDS - 1] = word_of(factor);
    }
    HD void unpack(float* r) const {
        const float factor = float_of(words[WORDS - 1]);
        UNROLL for (int k = 0; k < N; ++k) {
            const u32 low = k % 2 == 0 ? words[k / 2] & 0xffff : words[k / 2] >> 16;
            const u32 high = WIDE ? (words[N / 2] >> k & 1) << 16 : 0;
            r[k] = factor * (float_of(0x4b000000u | high | low) - FLOOR);
        }
    }
};

// Delivers N reals of block `block` (of NB) of a site of a face, for one of several fields. Lanes at the rank's edge go
// into the wire, the others to the lane of this rank that needs them.
template <int N, int NB, class F, class A> HD void deliver(const A& a, int face, int f, int field, int block, const F* r) {
    using R = real_of<F>;
    const int mu = face / 2, faces = half_of(a.g) / outer(a.g, mu), n = a.g.lanes[mu], width = lane<F>::W / n;
    R* wire = (R*)a.faces.wire[face] + (i64)N * NB * faces * width * field;
    if (width == lane<F>::W) {
        store_plain<N, NB>(wire, block, f, faces, r);
        return;
    }
    if constexpr (lane<F>::W > 1) {
        R* ghost = (R*)a.faces.ghost[face] + (i64)N * NB * faces * lane<F>::W * field;
        const bool forward = face % 2 == 0;
        const int edge = forward ? 0 : n - 1;
        const int* to = permutation(a.g, mu, !forward, lane<F>::W);
        int e = 0;
        for (int l = 0; l < lane<F>::W; ++l) {
            const bool leaves = lane_coord(a.g, l, mu) == edge;
            for (int k = 0; k < N; ++k) {
                if (leaves) wire[(((i64)f * NB + block) * N + k) * width + e] = get(r[k], l);
                else ghost[place<F>(NB, N, block, k, f, faces, to[l])] = get(r[k], l);
            }
            e += leaves;
        }
    }
}
// The same for `factor` times N numbers, which are integers in half precision. A GPU's ghost zones have them as they travel, a
// CPU's have floats.
template <int N, int NB, class F, class A> HD void deliver_scaled(const A& a, int face, int f, int field, int block, const F* q, F factor) {
    if constexpr (!is_half<F>()) {
        deliver<N, NB>(a, face, f, field, block, q);
    } else {
        const int mu = face / 2, faces = half_of(a.g) / outer(a.g, mu);
        Packed<N> p;
#if ON_GPU
        p.pack(q, factor);
        int4* to = (int4*)a.faces.wire[face] + (size_t)(p.WORDS / 4) * (NB * field + block) * faces + f;
        UNROLL for (int k = 0; k < p.WORDS / 4; ++k) to[(size_t)k * faces] = reinterpret_cast<const int4*>(p.words)[k];
#else
        const int n = a.g.lanes[mu], width = lane<F>::W / n, edge = face % 2 == 0 ? 0 : n - 1;
        auto* wire = (Packed<N>*)a.faces.wire[face] + (((i64)field * faces + f) * NB + block) * width;
        float* ghost = (float*)a.faces.ghost[face] + (i64)N * NB * faces * lane<F>::W * field;
        const int* to = n > 1 ? permutation(a.g, mu, face % 2 != 0, lane<F>::W) : nullptr;
        for (int l = 0; l < lane<F>::W; ++l) {
            float own[N];
            for (int k = 0; k < N; ++k) own[k] = get(q[k], l);
            if (lane_coord(a.g, l, mu) == edge) {
                p.pack(own, get(factor, l));
                *wire++ = p;
            } else {
                for (int k = 0; k < N; ++k) ghost[place<F>(NB, N, block, k, f, faces, to[l])] = get(factor, l) * own[k];
            }
        }
#endif
    }
}
// N reals of a block of a ghost zone's site, as `deliver_scaled` brought them.
template <int N, int NB, class F> HD void load_delivered(F* r, const void* zone, int field, int block, int f, int faces) {
#if ON_GPU
    if constexpr (is_half<F>()) {
        Packed<N> p;
        const int4* from = (const int4*)zone + (size_t)(p.WORDS / 4) * (NB * field + block) * faces + f;
        UNROLL for (int k = 0; k < p.WORDS / 4; ++k) reinterpret_cast<int4*>(p.words)[k] = __ldcg(from + (size_t)k * faces);
        p.unpack(r);
        return;
    }
#endif
    load_ghost<N, NB>(r, (const F*)zone + (i64)N * NB * faces * field, block, f, faces);
}
// Merges the data of another rank into the edge lanes of the ghost zone.
template <class F> HD void face_merge(const FaceMerge& a, int i) {
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

// Unpacks a face's site of one of several fields for the edge lanes of a CPU's ghost zone.
template <int N, class F> HD void unpack_site(const FaceUnpack& a, int face, int i) {
    const int mu = face / 2, faces = half_of(a.g) / outer(a.g, mu), n = a.g.lanes[mu], width = lane<F>::W / n;
    const int f = i % faces, field = i / faces, edge = face % 2 == 0 ? n - 1 : 0;
    auto* wire = (const Packed<N>*)a.wire[face] + (i64)i * a.blocks * width;
    float* ghost = (float*)a.ghost[face] + (i64)N * a.blocks * faces * lane<F>::W * field;
    for (int block = 0; block < a.blocks; ++block)
        for (int l = 0; l < lane<F>::W; ++l) {
            if (lane_coord(a.g, l, mu) != edge) continue;
            float r[N];
            wire++->unpack(r);
            for (int k = 0; k < N; ++k) ghost[place<F>(a.blocks, N, block, k, f, faces, l)] = r[k];
        }
}
template <class F> HD void face_unpack(const FaceUnpack& a, int i) {
    if constexpr (GPU) return;
    const FacePlace p = face_at(a.g, a.wire, a.fields, 1, i);
    if (a.reals == 12) unpack_site<12, F>(a, p.face, p.i);
    else unpack_site<6, F>(a, p.face, p.i);
}

#define FACES_KERNELS(SITE, SUM) SITE(faces, face_merge, FaceMerge, (face_merge<F>))
#define HALF_FACES_KERNELS(SITE, SUM) SITE(faces, face_unpack, FaceUnpack, (face_unpack<F>))
