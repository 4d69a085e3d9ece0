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
HD FacePlace face_at(const Geometry& g, const Outgoing& a, int i) {
    for (int face = 0; face < 8; ++face) {
        if (a.wire[face] == nullptr) continue;
        const int sites = half_of(g) / outer(g, face / 2) * a.fields, padded = (sites + a.chunk - 1) & -a.chunk;
        if (i < padded) return {i < sites ? face : -1, i};
        i -= padded;
    }
    return {-1, i};
}

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

#define FACES_KERNELS(SITE, SUM) SITE(faces, face_merge, FaceMerge, (face_merge<F>))
