// Face data that cross ranks: packing for a neighbour, and merging what a neighbour sent.
//
// A wire has floats, or in half precision, if so chosen, what a field of half spinors or of colour vectors would have in
// memory: 16-bit integers with a norm a block (site.cuh).
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

// Whether the wire of a face takes 16-bit integers; bytes of a site's lane on it.
template <class F> HD bool is_rounded(const Outgoing& a, int face) {
    if constexpr (is_half<F>()) return a.rounded >> face & 1;
    return false;
}
template <int N, int NB, class R> HD constexpr int wire_bytes(bool rounded) { return NB * (rounded ? 2 * N + 4 : N * (int)sizeof(R)); }

// Delivers N reals of block `block` (of NB) of a site of a face, for one of several fields. Lanes at the rank's edge go
// into the wire, the others to the lane of this rank that needs them.
template <int N, int NB, class F, class A> HD void deliver(const A& a, int face, int f, int field, int block, const F* r) {
    using R = real_of<F>;
    const int mu = face / 2, faces = half_of(a.g) / outer(a.g, mu), n = a.g.lanes[mu], width = lane<F>::W / n;
    const bool rounded = is_rounded<F>(a.faces, face);
    char* wire = (char*)a.faces.wire[face] + (i64)wire_bytes<N, NB, R>(rounded) * faces * width * field;
    if (width == lane<F>::W) {
        if (rounded) store<N, NB>(wire, block, f, faces, r);
        else store_plain<N, NB>(wire, block, f, faces, r);
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
            R own[N];
            for (int k = 0; k < N; ++k) {
                own[k] = get(r[k], l);
                if (!leaves) ghost[place<F>(NB, N, block, k, f, faces, to[l])] = own[k];
                else if (!rounded) ((R*)wire)[(((i64)f * NB + block) * N + k) * width + e] = own[k];
            }
            if (leaves && rounded) store<N, 1>(wire, 0, (f * NB + block) * width + e, 0, own);
            e += leaves;
        }
    }
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

// Restores the reals of a face's site, of one of several fields, as `deliver` has put them on the wire; edge lanes only.
template <int N, int NB, class F> HD void restore_site(const FaceRestore& a, int face, int i) {
    using R = real_of<F>;
    const int mu = face / 2, faces = half_of(a.g) / outer(a.g, mu), n = a.g.lanes[mu], width = lane<F>::W / n;
    const int f = i % faces, field = i / faces, edge = face % 2 == 0 ? n - 1 : 0;
    const char* wire = (const char*)a.wire[face] + (i64)wire_bytes<N, NB, R>(true) * faces * width * field;
    R* ghost = (R*)a.ghost[face] + (i64)N * NB * faces * lane<F>::W * field;
    for (int block = 0; block < NB; ++block) {
        if (width == lane<F>::W) {
            F r[N];
            load<N, NB>(r, wire, block, f, faces);
            store_plain<N, NB>(ghost, block, f, faces, r);
        } else if constexpr (lane<F>::W > 1) {
            int e = 0;
            for (int l = 0; l < lane<F>::W; ++l) {
                if (lane_coord(a.g, l, mu) != edge) continue;
                R r[N];
                load<N, 1>(r, wire, 0, (f * NB + block) * width + e++, 0);
                for (int k = 0; k < N; ++k) ghost[place<F>(NB, N, block, k, f, faces, l)] = r[k];
            }
        }
    }
}
template <class F> HD void face_restore(const FaceRestore& a, int i) {
    const FacePlace p = face_at(a.g, a.wire, a.fields, 1, i);
    switch (a.reals[p.face % 2]) {
        case 12: restore_site<12, 1, F>(a, p.face, p.i); break;
        case 18: restore_site<6, 3, F>(a, p.face, p.i); break;
        default: restore_site<6, 4, F>(a, p.face, p.i); break;
    }
}

#define FACES_KERNELS(SITE, SUM) SITE(faces, face_merge, FaceMerge, (face_merge<F>))
#define HALF_FACES_KERNELS(SITE, SUM) SITE(faces, face_restore, FaceRestore, (face_restore<F>))
