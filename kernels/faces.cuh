// Face data that cross ranks: packing for a neighbour, and merging what a neighbour sent.
#pragma once
#include "site.cuh"

// Delivers N reals of block `block` (of NB) of a face site, for one of several fields. Lanes at the rank's edge go into
// the wire, the others to the lane of this rank that needs them.
template <int N, int NB, class F, class A> HD void deliver(const A& a, int f, int field, int block, const F* r) {
    using R = real_of<F>;
    const int faces = half_of(a.g) / outer(a.g, a.mu), n = a.g.lanes[a.mu], width = lane<F>::W / n;
    R* wire = (R*)a.wire + (i64)N * NB * faces * width * field;
    if (width == lane<F>::W) {
        store_plain<N, NB>(wire, block, f, faces, r);
        return;
    }
    if constexpr (lane<F>::W > 1) {
        R* ghost = (R*)a.ghost + (i64)N * NB * faces * lane<F>::W * field;
        const int edge = a.forward ? 0 : n - 1;
        const int* to = permutation(a.g, a.mu, !a.forward, lane<F>::W);
        int e = 0;
        for (int l = 0; l < lane<F>::W; ++l) {
            const bool leaves = lane_coord(a.g, l, a.mu) == edge;
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
