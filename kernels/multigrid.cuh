// Aggregation multigrid (Babich et al., arXiv:1005.3043): transfers between a spinor and its aggregates. Threads take W
// consecutive numbers of an aggregate. Sums over an aggregate are made in COLUMNS chains, so their bits depend on neither
// lanes nor ranks.
#pragma once
#include "schwarz.cuh"

template <class F> HD F vector_at(const void* p, i64 at) { return *(const F*)((const real_of<F>*)p + at); }
template <class F> HD void put_vector(void* p, i64 at, F x) { *(F*)((real_of<F>*)p + at) = x; }
template <class F> HD F scalar_at(const void* p, i64 at) { return splat<F>(((const real_of<F>*)p)[at]); }

// Where a field begins in an aggregate and chirality.
HD i64 part_at(int part, int fields, int field, int reals) { return ((i64)part * fields + field) * 4 * reals; }

template <class F> HD void to_aggregates(const ToAggregates& a, int i) {
    F x[24];
    load24(x, a.x, i, half_of(a.g));
    const Coord c = coord_of(a.g, i, a.parity);
    const int sites = sites_of_block(a.grid), reals = 6 * sites;
    for (int l = 0; l < lane<F>::W; ++l) {
        int block, inside;
        block_of(a.g, a.grid, c, l, block, inside);
        for (int k = 0; k < 24; ++k) {
            const i64 at = part_at(2 * block + k / 12, a.fields, a.field, reals) + k % 2 * 2 * reals;
            ((real_of<F>*)a.out)[at + a.parity * reals + k % 12 / 2 * sites + inside] = get(x[k], l);
        }
    }
}
template <class F> HD void from_aggregates(const FromAggregates& a, int i) {
    F x[24];
    const Coord c = coord_of(a.g, i, a.parity);
    const int sites = sites_of_block(a.grid), reals = 6 * sites;
    for (int l = 0; l < lane<F>::W; ++l) {
        int block, inside;
        block_of(a.g, a.grid, c, l, block, inside);
        for (int k = 0; k < 24; ++k) {
            const i64 at = part_at(2 * block + k / 12, a.fields, a.field, reals) + k % 2 * 2 * reals;
            const bool kept = a.chirality < 0 || k / 12 == a.chirality;
            set(x[k], l, kept ? ((const real_of<F>*)a.x)[at + a.parity * reals + k % 12 / 2 * sites + inside] : 0);
        }
    }
    store24(a.out, i, half_of(a.g), x);
}

template <class F, int N> HD void restrict_parts(const RestrictParts& a, int i) {
    constexpr int W = lane<F>::W;
    const int tiles = (a.used + TILE - 1) / TILE;
    const int column = i % (COLUMNS / W) * W;
    i /= COLUMNS / W;
    const int tile = i % tiles * TILE, part = i / tiles;
    i64 v[TILE], x[N];
    UNROLL for (int t = 0; t < TILE; ++t)
        v[t] = part_at(part, a.vectors, tile + t < a.used ? tile + t : a.used - 1, a.reals);
    UNROLL for (int n = 0; n < N; ++n) x[n] = part_at(part, a.fields, a.field + n, a.reals);
    F re[TILE][N], im[TILE][N];
    UNROLL for (int t = 0; t < TILE; ++t) UNROLL for (int n = 0; n < N; ++n) re[t][n] = im[t][n] = F{};
    for (int k = a.first + column; k < a.first + a.count; k += COLUMNS) {
        F xre[N], xim[N];
        UNROLL for (int n = 0; n < N; ++n) {
            xre[n] = vector_at<F>(a.x, x[n] + k);
            xim[n] = vector_at<F>(a.x, x[n] + 2 * a.reals + k);
        }
        UNROLL for (int t = 0; t < TILE; ++t) {
            const F vre = vector_at<F>(a.v, v[t] + k), vim = vector_at<F>(a.v, v[t] + 2 * a.reals + k);
            UNROLL for (int n = 0; n < N; ++n) {
                re[t][n] = mad(vim, xim[n], mad(vre, xre[n], re[t][n]));
                im[t][n] = nmad(vim, xre[n], mad(vre, xim[n], im[t][n]));
            }
        }
    }
    UNROLL for (int t = 0; t < TILE; ++t) {
        if (tile + t >= a.used) continue;
        UNROLL for (int n = 0; n < N; ++n) {
            const i64 to = (((i64)part * a.used + tile + t) * N + n) * 2 * COLUMNS + column;
            put_vector(a.parts, to, re[t][n]);
            put_vector(a.parts, to + COLUMNS, im[t][n]);
        }
    }
}
// The sum of COLUMNS numbers.
template <class R> HD R sum_of_columns(const R* from) {
    R s[COLUMNS];
    UNROLL for (int k = 0; k < COLUMNS; ++k) s[k] = from[k];
    UNROLL for (int n = COLUMNS / 2; n; n /= 2) UNROLL for (int k = 0; k < n; ++k) s[k] = s[k] + s[k + n];
    return s[0];
}
// For each part and vector and field.
template <class F> HD void restrict_sum(const RestrictSum& a, int i) {
    using R = real_of<F>;
    const R* from = (const R*)a.parts + (i64)i * 2 * COLUMNS;
    const int column = i % a.columns;
    i /= a.columns;
    const int n = i % a.used, part = i / a.used;
    const R factor = R(part % 2 ? a.lower : a.upper);
    R* to = (R*)a.out + (i64)((const int*)a.places)[part / 2] * a.place_stride + (i64)column * a.column_stride + part % 2 * a.vectors + n;
    to[0] = factor * sum_of_columns(from);
    to[2 * a.vectors] = factor * sum_of_columns(from + COLUMNS);
}
template <class F> HD void prolong(const Prolong& a, int i) {
    using R = real_of<F>;
    constexpr int W = lane<F>::W;
    const int chunks = a.count / W, k = a.first + i % chunks * W, part = i / chunks;
    const R factor = R(part % 2 ? a.lower : a.upper);
    const R* c = (const R*)a.c + (i64)((const int*)a.places)[part / 2] * 4 * a.vectors + part % 2 * a.vectors;
    const i64 to = part_at(part, a.fields, a.field, a.reals) + k;
    F re = F{}, im = F{};
    if (a.base != 0) {
        const F base = splat<F>(R(a.base));
        re = base * vector_at<F>(a.out, to);
        im = base * vector_at<F>(a.out, to + 2 * a.reals);
    }
    for (int n = 0; n < a.used; ++n) {
        const i64 v = part_at(part, a.vectors, n, a.reals) + k;
        const F vre = vector_at<F>(a.v, v), vim = vector_at<F>(a.v, v + 2 * a.reals);
        const F cre = splat<F>(factor * c[n]), cim = splat<F>(factor * c[2 * a.vectors + n]);
        re = nmad(cim, vim, mad(cre, vre, re));
        im = mad(cim, vre, mad(cre, vim, im));
    }
    put_vector(a.out, to, re);
    put_vector(a.out, to + 2 * a.reals, im);
}
template <class F> HD void normalise_vector(const NormaliseVector& a, int i) {
    using R = real_of<F>;
    const int chunks = 4 * a.reals / lane<F>::W, part = i / chunks;
    const R square = ((const R*)a.c)[(i64)(part / 2) * 4 * a.vectors + part % 2 * a.vectors + a.n];
    const i64 at = part_at(part, a.vectors, a.n, a.reals) + i % chunks * lane<F>::W;
    put_vector(a.v, at, splat<F>(square > 0 ? R(1) / square_root(square) : R(0)) * vector_at<F>(a.v, at));
}

#define MULTIGRID_FIELD_KERNELS(SITE, SUM)                                  \
    SITE(multigrid, to_aggregates, ToAggregates, (to_aggregates<F>))        \
    SITE(multigrid, from_aggregates, FromAggregates, (from_aggregates<F>))
#define MULTIGRID_KERNELS(SITE, SUM)                                        \
    SITE(multigrid, restrict_parts_1, RestrictParts, (restrict_parts<F, 1>)) \
    SITE(multigrid, restrict_parts_4, RestrictParts, (restrict_parts<F, 4>)) \
    SITE(multigrid, restrict_sum, RestrictSum, (restrict_sum<F>))           \
    SITE(multigrid, prolong, Prolong, (prolong<F>))                         \
    SITE(multigrid, normalise_vector, NormaliseVector, (normalise_vector<F>))
