// Aggregation multigrid (Babich et al., arXiv:1005.3043): transfers between a spinor and its aggregates, and the coarse
// operator. Threads take W consecutive numbers of an aggregate, or W rows of a coarse matrix. Sums over an aggregate, and
// over a coarse field, are made in COLUMNS chains, so their bits depend on neither lanes nor ranks.
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

// The first real of a column of matrix `which` of a place that has `count`.
HD i64 column_at(int place, int count, int which, int rows, int column) {
    return ((((i64)place * count + which) * rows) + column) * 2 * rows;
}
// The coarse gamma_5.
HD int sign_of(int row, int rows) { return row < rows / 2 ? 1 : -1; }
// W rows of a column of a matrix of a place, for thread i.
struct CoarseElement {
    int row, column, matrix, place;
    HD CoarseElement(int i, int rows, int width, int matrices) {
        row = i % (rows / width) * width;
        i /= rows / width;
        column = i % rows;
        i /= rows;
        matrix = i % matrices;
        place = i / matrices;
    }
};
template <class F> HD void coarse_backward(const CoarseBackward& a, int i) {
    using R = real_of<F>;
    const CoarseElement e(i, a.rows, lane<F>::W, 4);
    R* links = (R*)a.links;
    const int from = ((const int*)a.neighbours)[e.place * COARSE_LINKS + 5 + e.matrix] + (e.place < a.half ? a.half : 0);
    const i64 to = column_at(e.place, COARSE_LINKS, 5 + e.matrix, a.rows, e.column);
    for (int l = 0; l < lane<F>::W; ++l) {
        const int row = e.row + l;
        const i64 at = column_at(from, COARSE_LINKS, 1 + e.matrix, a.rows, row) + e.column;
        const R sign = R(sign_of(row, a.rows) * sign_of(e.column, a.rows));
        links[to + row] = sign * links[at];
        links[to + a.rows + row] = -sign * links[at + a.rows];
    }
}
template <class F> HD void coarse_twist(const CoarseTwist& a, int i) {
    const CoarseElement e(i, a.rows, lane<F>::W, 1);
    const i64 from = column_at(e.place, COARSE_LINKS, 0, a.rows, e.column) + e.row;
    const i64 to = column_at(e.place, 1, 0, a.rows, e.column) + e.row;
    F re = vector_at<F>(a.links, from), im = vector_at<F>(a.links, from + a.rows);
    if (a.t) {
        // T is zero between chiralities.
        const F twist = splat<F>(real_of<F>(sign_of(e.column, a.rows) * a.twist));
        re = nmad(twist, vector_at<F>(a.t, to + a.rows), re);
        im = mad(twist, vector_at<F>(a.t, to), im);
    }
    put_vector(a.out, to, re);
    put_vector(a.out, to + a.rows, im);
}
template <class F> HD void coarse_eliminate(const CoarseEliminate& a, int i) {
    using R = real_of<F>;
    constexpr int W = lane<F>::W;
    const CoarseElement e(i, a.rows, W, 1);
    const i64 here = column_at(e.place, 1, 0, a.rows, e.column), pivots = column_at(e.place, 1, 0, a.rows, a.pivot);
    const R* p = (const R*)a.a;
    // The inverse of the pivot, and the pivot's row in this column times that.
    const R pre = p[pivots + a.pivot], pim = p[pivots + a.rows + a.pivot];
    const R square = mad(pre, pre, pim * pim), ire = pre / square, iim = -pim / square;
    const bool own = e.column == a.pivot;
    const R cre = own ? R(1) : p[here + a.pivot], cim = own ? R(0) : p[here + a.rows + a.pivot];
    const R qre = nmad(cim, iim, cre * ire), qim = mad(cim, ire, cre * iim);
    F re = own ? F{} : vector_at<F>(a.a, here + e.row), im = own ? F{} : vector_at<F>(a.a, here + a.rows + e.row);
    const F fre = vector_at<F>(a.a, pivots + e.row), fim = vector_at<F>(a.a, pivots + a.rows + e.row);
    const F sre = splat<F>(qre), sim = splat<F>(qim);
    re = mad(fim, sim, nmad(fre, sre, re));
    im = nmad(fim, sre, nmad(fre, sim, im));
    if (a.pivot >= e.row && a.pivot < e.row + W) {
        set(re, a.pivot - e.row, qre);
        set(im, a.pivot - e.row, qim);
    }
    put_vector(a.out, here + e.row, re);
    put_vector(a.out, here + a.rows + e.row, im);
}
// (re, im) += A x for `rows` columns of A from `at` on.
template <class F> HD void add_product(F& re, F& im, const void* a, i64 at, const real_of<F>* x, int rows) {
    UNROLL_8 for (int j = 0; j < rows; ++j) {
        const F are = vector_at<F>(a, at + (i64)j * 2 * rows), aim = vector_at<F>(a, at + (i64)j * 2 * rows + rows);
        const F xre = splat<F>(x[j]), xim = splat<F>(x[rows + j]);
        re = nmad(aim, xim, mad(are, xre, re));
        im = mad(aim, xre, mad(are, xim, im));
    }
}
template <class F> HD void coarse_multiply(const CoarseMultiply& a, int i) {
    const CoarseElement e(i, a.rows, lane<F>::W, COARSE_LINKS - 1);
    F re = F{}, im = F{};
    const i64 from = column_at(e.place, COARSE_LINKS, 1 + e.matrix, a.rows, e.column);
    add_product(re, im, a.b, column_at(e.place, 1, 0, a.rows, 0) + e.row, (const real_of<F>*)a.links + from, a.rows);
    const i64 to = column_at(e.place, COARSE_LINKS - 1, e.matrix, a.rows, e.column) + e.row;
    put_vector(a.out, to, re);
    put_vector(a.out, to + a.rows, im);
}
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
// The integer nearest to x, which is less than 2^15.
HD int nearest(float x) { return x < 0 ? -(int)(0.5f - x) : (int)(x + 0.5f); }
template <class F> HD void coarse_round(const CoarseRound& a, int i) {
    using R = real_of<F>;
    const R* from = (const R*)a.matrices + (i64)i * 2 * a.rows;
    R most = 0;
    for (int k = 0; k < 2 * a.rows; ++k) most = larger(absolute(from[k]), most);
    ((R*)a.scales)[i] = most * (1 / STEPS);
    const R factor = most > R(1e-30f) ? STEPS / most : 0;
    int* to = (int*)a.out + (i64)i * a.rows;
    for (int row = 0; row < a.rows; ++row)
        to[row] = (nearest(factor * from[a.rows + row]) << 16) | (nearest(factor * from[row]) & 0xffff);
}
template <class F> HD void coarse_local(const CoarseLocal& a, int i) {
    const int chunks = a.rows / lane<F>::W, row = i % chunks * lane<F>::W, place = i / chunks;
    const i64 field = (i64)place * 2 * a.rows;
    F re = F{}, im = F{};
    add_product(re, im, a.matrices, column_at(place, 1, 0, a.rows, 0) + row, (const real_of<F>*)a.input + field, a.rows);
    put_vector(a.out, field + row, re);
    put_vector(a.out, field + row + a.rows, im);
}
template <class F> HD void coarse_hop(const CoarseHop& a, int i) {
    using R = real_of<F>;
    const int chunks = a.rows / lane<F>::W, row = i % chunks * lane<F>::W, place = i / chunks;
    F re = F{}, im = F{};
    for (int n = 0; n < COARSE_LINKS - 1; ++n) {
        const int there = ((const int*)a.neighbours)[place * COARSE_LINKS + 1 + n];
        const R* x = (const R*)a.input + (i64)there * 2 * a.rows;
        const i64 columns = ((i64)place * (COARSE_LINKS - 1) + n) * a.rows;
        UNROLL_16 for (int j = 0; j < a.rows; ++j) {
            F are, aim;
            load_pairs(are, aim, a.links, (columns + j) * a.rows + row);
            const R scale = ((const R*)a.scales)[columns + j];
            const F xre = splat<F>(scale * x[j]), xim = splat<F>(scale * x[a.rows + j]);
            re = nmad(aim, xim, mad(are, xre, re));
            im = mad(aim, xre, mad(are, xim, im));
        }
    }
    const F scale = splat<F>(R(a.scale));
    const i64 to = (i64)place * 2 * a.rows + row;
    re = scale * re;
    im = scale * im;
    if (a.x) {
        re = vector_at<F>(a.x, to) + re;
        im = vector_at<F>(a.x, to + a.rows) + im;
    }
    put_vector(a.out, to, re);
    put_vector(a.out, to + a.rows, im);
}

template <class F> HD void coarse_dots(const CoarseDots& a, int i) {
    constexpr int W = lane<F>::W;
    const int column = i % (COLUMNS / W) * W;
    i /= COLUMNS / W;
    const int piece = i % PIECES, v = i / PIECES;
    const int per = a.rows / COLUMNS, chunks = a.places * per;
    const real_of<F>* f = (const real_of<F>*)a.f + (i64)v * a.places * 2 * a.rows;
    F re = F{}, im = F{};
    for (int n = piece; n < chunks; n += PIECES) {
        const i64 at = (i64)(n / per) * 2 * a.rows + n % per * COLUMNS + column;
        const F fre = vector_at<F>(f, at), fim = vector_at<F>(f, at + a.rows);
        const F xre = vector_at<F>(a.x, at), xim = vector_at<F>(a.x, at + a.rows);
        re = mad(fim, xim, mad(fre, xre, re));
        im = nmad(fim, xre, mad(fre, xim, im));
    }
    const i64 to = (i64)(v * PIECES + piece) * 2 * COLUMNS + column;
    put_vector(a.parts, to, re);
    put_vector(a.parts, to + COLUMNS, im);
}
// For each product, its real and its imaginary part, and each column.
template <class F> HD void coarse_fold(const CoarseFold& a, int i) {
    const int product = i / (2 * COLUMNS), rest = i % (2 * COLUMNS);
    const real_of<F>* from = (const real_of<F>*)a.parts + (i64)product * PIECES * 2 * COLUMNS + rest;
    double sum = 0;
    UNROLL_8 for (int n = 0; n < PIECES; ++n) sum = sum + double(from[n * 2 * COLUMNS]);
    ((double*)a.out)[i] = sum;
}
// Product number v.
HD ComplexNumber folded(const void* dots, int v) {
    const double* from = (const double*)dots + 2 * COLUMNS * v;
    return {sum_of_columns(from), sum_of_columns(from + COLUMNS)};
}
template <class F> HD void coarse_projections(const CoarseProjections& a, int v) {
    const ComplexNumber sum = folded(a.dots, v);
    const double square = ((const double*)a.squares)[v];
    ((double*)a.out)[2 * v] = square > 0 ? sum.re / square : 0;
    ((double*)a.out)[2 * v + 1] = square > 0 ? sum.im / square : 0;
}
template <class F> HD void coarse_length(const CoarseLength& a, int) {
    const double square = folded(a.dots, 0).re;
    // (r, z), the conjugate of (z, r)
    const ComplexNumber overlap = folded(a.dots, 1);
    double* length = (double*)a.length;
    length[0] = square > 0 ? overlap.re / square : 0;
    length[1] = square > 0 ? -overlap.im / square : 0;
    ((double*)a.squares)[a.step] = square;
    double* residual = (double*)a.residual;
    residual[0] = residual[0] - mad(length[0], length[0], length[1] * length[1]) * square;
}
template <class F> HD void coarse_norm(const CoarseNorm& a, int) { ((double*)a.out)[0] = folded(a.dots, 0).re; }
// (re, im) -= b y at `at`
template <class F> HD void subtract_multiple(F& re, F& im, const double* b, const void* y, i64 at, int rows) {
    const F bre = splat<F>(real_of<F>(b[0])), bim = splat<F>(real_of<F>(b[1]));
    const F yre = vector_at<F>(y, at), yim = vector_at<F>(y, at + rows);
    re = mad(bim, yim, nmad(bre, yre, re));
    im = nmad(bim, yre, nmad(bre, yim, im));
}
// The first real of thread i's W rows in a coarse field.
template <class F> HD i64 coarse_at(int i, int rows) {
    const int chunks = rows / lane<F>::W;
    return (i64)(i / chunks) * 2 * rows + i % chunks * lane<F>::W;
}
template <class F> HD void coarse_orthogonalise(const CoarseOrthogonalise& a, int i) {
    const i64 at = coarse_at<F>(i, a.rows);
    void* const sets[2] = {a.p, a.z};
    UNROLL for (int n = 0; n < 2; ++n) {
        const i64 to = (i64)a.step * a.length + at;
        F re = vector_at<F>(sets[n], to), im = vector_at<F>(sets[n], to + a.rows);
        for (int v = 0; v < a.step; ++v)
            subtract_multiple(re, im, (const double*)a.b + 2 * v, sets[n], (i64)v * a.length + at, a.rows);
        put_vector(sets[n], to, re);
        put_vector(sets[n], to + a.rows, im);
    }
}
template <class F> HD void coarse_project(const CoarseProject& a, int i) {
    const i64 at = coarse_at<F>(i, a.rows);
    const double* b = (const double*)a.b;
    F xre = F{}, xim = F{}, re = vector_at<F>(a.r, at), im = vector_at<F>(a.r, at + a.rows);
    for (int v = 0; v < a.count; ++v) {
        const double minus[2] = {-b[2 * v], -b[2 * v + 1]};
        subtract_multiple(xre, xim, minus, a.p, (i64)v * a.length + at, a.rows);
        subtract_multiple(re, im, b + 2 * v, a.z, (i64)v * a.length + at, a.rows);
    }
    put_vector(a.x, at, xre);
    put_vector(a.x, at + a.rows, xim);
    put_vector(a.r, at, re);
    put_vector(a.r, at + a.rows, im);
    put_vector(a.p_out, at, re);
    put_vector(a.p_out, at + a.rows, im);
}
template <class F> HD void coarse_step(const CoarseStep& a, int i) {
    const i64 at = coarse_at<F>(i, a.rows);
    const double* length = (const double*)a.length;
    const double minus[2] = {-length[0], -length[1]};
    F re = vector_at<F>(a.x, at), im = vector_at<F>(a.x, at + a.rows);
    subtract_multiple(re, im, minus, a.p, at, a.rows);
    put_vector(a.x, at, re);
    put_vector(a.x, at + a.rows, im);
    re = vector_at<F>(a.r, at);
    im = vector_at<F>(a.r, at + a.rows);
    subtract_multiple(re, im, length, a.z, at, a.rows);
    put_vector(a.r_out, at, re);
    put_vector(a.r_out, at + a.rows, im);
    put_vector(a.p_out, at, re);
    put_vector(a.p_out, at + a.rows, im);
}

#define MULTIGRID_FIELD_KERNELS(SITE, SUM)                                  \
    SITE(multigrid, to_aggregates, ToAggregates, (to_aggregates<F>))        \
    SITE(multigrid, from_aggregates, FromAggregates, (from_aggregates<F>))
#define MULTIGRID_KERNELS(SITE, SUM)                                        \
    SITE(multigrid, restrict_parts_1, RestrictParts, (restrict_parts<F, 1>)) \
    SITE(multigrid, restrict_parts_4, RestrictParts, (restrict_parts<F, 4>)) \
    SITE(multigrid, restrict_sum, RestrictSum, (restrict_sum<F>))           \
    SITE(multigrid, prolong, Prolong, (prolong<F>))                         \
    SITE(multigrid, normalise_vector, NormaliseVector, (normalise_vector<F>)) \
    SITE(multigrid, coarse_backward, CoarseBackward, (coarse_backward<F>))  \
    SITE(multigrid, coarse_twist, CoarseTwist, (coarse_twist<F>))           \
    SITE(multigrid, coarse_eliminate, CoarseEliminate, (coarse_eliminate<F>)) \
    SITE(multigrid, coarse_multiply, CoarseMultiply, (coarse_multiply<F>))  \
    SITE(multigrid, coarse_round, CoarseRound, (coarse_round<F>))           \
    SITE(multigrid, coarse_local, CoarseLocal, (coarse_local<F>))           \
    SITE(multigrid, coarse_hop, CoarseHop, (coarse_hop<F>))                 \
    SITE(multigrid, coarse_dots, CoarseDots, (coarse_dots<F>))              \
    SITE(multigrid, coarse_fold, CoarseFold, (coarse_fold<F>))              \
    SITE(multigrid, coarse_projections, CoarseProjections, (coarse_projections<F>)) \
    SITE(multigrid, coarse_length, CoarseLength, (coarse_length<F>))        \
    SITE(multigrid, coarse_norm, CoarseNorm, (coarse_norm<F>))              \
    SITE(multigrid, coarse_orthogonalise, CoarseOrthogonalise, (coarse_orthogonalise<F>)) \
    SITE(multigrid, coarse_project, CoarseProject, (coarse_project<F>))     \
    SITE(multigrid, coarse_step, CoarseStep, (coarse_step<F>))
