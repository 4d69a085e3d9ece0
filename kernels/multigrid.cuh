// Aggregation multigrid (Babich et al., arXiv:1005.3043): transfers between a spinor and its aggregates. Threads take W
// consecutive numbers of an aggregate. Sums over an aggregate are made in COLUMNS chains, so their bits depend on neither
// lanes nor ranks.
#pragma once
#include "schwarz.cuh"
#include "team.cuh"

template <class F> HD F vector_at(const void* p, i64 at) { return *(const F*)((const real_of<F>*)p + at); }
template <class F> HD void put_vector(void* p, i64 at, F x) { *(F*)((real_of<F>*)p + at) = x; }

// Two 16-bit integers in an int of each lane: the lower one, then the upper one.
#if HMC_LANES > 1
template <class F> HD void load_pairs(F& lower, F& upper, const void* p, i64 at) {
    using I = typename vector_of<int, lane<F>::W>::type;
    const I v = *(const I*)((const int*)p + at);
    lower = __builtin_convertvector((v << 16) >> 16, F);
    upper = __builtin_convertvector(v >> 16, F);
}
#else
template <class F> HD void load_pairs(F& lower, F& upper, const void* p, i64 at) {
    const int v = ((const int*)p)[at];
    lower = F((short)(v & 0xffff));
    upper = F(v >> 16);
}
#endif
// The integer nearest to x, which is less than 2^15; 0 for NaN, which makes the scale NaN.
HD int nearest(float x) { return x != x ? 0 : x < 0 ? -(int)(0.5f - x) : (int)(x + 0.5f); }
// The factor that makes of the largest of some numbers the largest integer, or zero.
HD float to_steps(float most) { return most > 1e-30f ? STEPS / most : 0; }
HD int pair_of(float factor, float lower, float upper) {
    return (nearest(factor * upper) << 16) | (nearest(factor * lower) & 0xffff);
}

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
            set(x[k], l, ((const real_of<F>*)a.x)[at + a.parity * reals + k % 12 / 2 * sites + inside]);
        }
    }
    store24(a.out, i, half_of(a.g), x);
}

// Number k of vector n of a part: of the rounded vectors without their scale, or of those in single precision.
template <class F> HD void load_vector(F& re, F& im, const Vectors& a, int part, int n, int k) {
    const i64 at = part_at(part, a.count, n, a.reals);
    if (a.rounded) {
        load_pairs(re, im, a.rounded, at / 2 + k);
    } else {
        re = vector_at<F>(a.single, at + k);
        im = vector_at<F>(a.single, at + 2 * a.reals + k);
    }
}
HD float scale_of(const Vectors& a, int part, int n) {
    return a.rounded ? ((const float*)a.scales)[(i64)part * a.count + n] : 1;
}
template <class F, int N> HD void restrict_parts(const RestrictParts& a, int i) {
    constexpr int W = lane<F>::W;
    const int tiles = (a.used + TILE - 1) / TILE;
    const int column = i % (COLUMNS / W) * W;
    i /= COLUMNS / W;
    const int tile = i % tiles * TILE, part = i / tiles;
    const int reals = a.v.reals;
    i64 x[N];
    UNROLL for (int n = 0; n < N; ++n) x[n] = part_at(part, a.fields, a.field + n, reals);
    F re[TILE][N], im[TILE][N];
    UNROLL for (int t = 0; t < TILE; ++t) UNROLL for (int n = 0; n < N; ++n) re[t][n] = im[t][n] = F{};
    for (int k = a.first + column; k < a.first + a.count; k += COLUMNS) {
        F xre[N], xim[N];
        UNROLL for (int n = 0; n < N; ++n) {
            xre[n] = vector_at<F>(a.x, x[n] + k);
            xim[n] = vector_at<F>(a.x, x[n] + 2 * reals + k);
        }
        UNROLL for (int t = 0; t < TILE; ++t) {
            F vre, vim;
            load_vector(vre, vim, a.v, part, tile + t < a.used ? tile + t : a.used - 1, k);
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
    const R factor = R(part % 2 ? a.lower : a.upper) * scale_of(a.v, part, n);
    R* to = (R*)a.out + (i64)((const int*)a.places)[part / 2] * a.place_stride + (i64)column * a.column_stride + part % 2 * a.v.count + n;
    to[0] = factor * sum_of_columns(from);
    to[2 * a.v.count] = factor * sum_of_columns(from + COLUMNS);
}
template <class F, int N> HD void prolong(const Prolong& a, int i) {
    using R = real_of<F>;
    constexpr int W = lane<F>::W;
    const int chunks = a.count / W, k = a.first + i % chunks * W, part = i / chunks, vectors = a.v.count;
    const int reals = a.v.reals;
    const R factor = R(part % 2 ? a.lower : a.upper);
    const R* c = (const R*)a.c + (i64)((const int*)a.places)[part / 2] * 4 * vectors + part % 2 * vectors;
    const i64 to = part_at(part, a.fields, a.field, reals) + k;
    F re[N], im[N];
    UNROLL for (int m = 0; m < N; ++m) re[m] = im[m] = F{};
    if (a.base != 0) {
        const F base = splat<F>(R(a.base));
        UNROLL for (int m = 0; m < N; ++m) {
            re[m] = base * vector_at<F>(a.out, to + m * 4 * reals);
            im[m] = base * vector_at<F>(a.out, to + (m * 4 + 2) * reals);
        }
    }
    UNROLL_4 for (int n = 0; n < a.used; ++n) {
        F vre, vim;
        load_vector(vre, vim, a.v, part, n, k);
        const R own = factor * scale_of(a.v, part, n);
        UNROLL for (int m = 0; m < N; ++m) {
            const R* from = c + (i64)m * a.column_stride + n;
            const F cre = splat<F>(own * from[0]), cim = splat<F>(own * from[2 * vectors]);
            re[m] = nmad(cim, vim, mad(cre, vre, re[m]));
            im[m] = mad(cim, vre, mad(cre, vim, im[m]));
        }
    }
    UNROLL for (int m = 0; m < N; ++m) {
        put_vector(a.out, to + m * 4 * reals, re[m]);
        put_vector(a.out, to + (m * 4 + 2) * reals, im[m]);
    }
}
template <class F> HD void normalise_vector(const NormaliseVector& a, int i) {
    using R = real_of<F>;
    const int chunks = 4 * a.reals / lane<F>::W, part = i / chunks;
    const R square = ((const R*)a.c)[(i64)(part / 2) * 4 * a.vectors + part % 2 * a.vectors + a.n];
    const i64 at = part_at(part, a.vectors, a.n, a.reals) + i % chunks * lane<F>::W;
    put_vector(a.v, at, splat<F>(square > 0 ? R(1) / square_root(square) : R(0)) * vector_at<F>(a.v, at));
}

// A team has a vector in an aggregate and chirality.
template <class F> struct RoundingVectors {
    using R = real_of<F>;
    static constexpr int PHASES = 2;
    HD static int threads(const RoundVectors&) { return ROUND_THREADS; }
    template <int PHASE> HD static void phase(const RoundVectors& a, int team, int thread, F* shared) {
        R* most = (R*)shared;
        R* v = (R*)a.v + (i64)team * 4 * a.reals;
        if (PHASE == 0) {
            R own = 0, wrong = 0;
            for (int k = thread; k < 4 * a.reals; k += ROUND_THREADS) {
                own = larger(absolute(v[k]), own);
                wrong = wrong + (v[k] - v[k]);
            }
            most[thread] = own + wrong;
        }
        if (PHASE == 1) {
            R all = 0, wrong = 0;
            UNROLL_8 for (int k = 0; k < ROUND_THREADS; ++k) {
                all = larger(most[k], all);
                wrong = wrong + (most[k] - most[k]);
            }
            const R factor = to_steps(all), scale = all * (1 / STEPS) + wrong;
            if (thread == 0) ((R*)a.scales)[team] = scale;
            for (int k = thread; k < 2 * a.reals; k += ROUND_THREADS) {
                const int pair = pair_of(factor, v[k], v[k + 2 * a.reals]);
                ((int*)a.rounded)[(i64)team * 2 * a.reals + k] = pair;
                v[k] = scale * R((short)(pair & 0xffff));
                v[k + 2 * a.reals] = scale * R(pair >> 16);
            }
        }
    }
};

#define MULTIGRID_FIELD_KERNELS(SITE, SUM)                                  \
    SITE(multigrid, to_aggregates, ToAggregates, (to_aggregates<F>))        \
    SITE(multigrid, from_aggregates, FromAggregates, (from_aggregates<F>))
#define MULTIGRID_KERNELS(SITE, SUM, TEAM)                                      \
    SITE(multigrid, restrict_parts_1, RestrictParts, (restrict_parts<F, 1>)) \
    SITE(multigrid, restrict_parts_4, RestrictParts, (restrict_parts<F, 4>)) \
    SITE(multigrid, restrict_sum, RestrictSum, (restrict_sum<F>))           \
    SITE(multigrid, prolong_1, Prolong, (prolong<F, 1>))                    \
    SITE(multigrid, prolong_4, Prolong, (prolong<F, 4>))                    \
    SITE(multigrid, normalise_vector, NormaliseVector, (normalise_vector<F>)) \
    TEAM(multigrid, round_vectors, RoundVectors, (RoundingVectors<F>{}))
