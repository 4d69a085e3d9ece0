// The coarse operator of aggregation multigrid. Threads take W rows of a coarse field or matrix. A rank has
// the places of its own aggregates, and gives its neighbours what their next hop reads of it: where GPUs reach each other's
// memory by posting it there, elsewhere in messages. Systems that are solved together have vectors of their own and share the
// loads of matrices.
#pragma once
#include "multigrid.cuh"
#include "ranks.cuh"

#ifdef HMC_ROWS
template <class A> HD constexpr int rows_of(const A&) { return HMC_ROWS; }
#else
template <class A> HD int rows_of(const A& a) { return a.rows; }
#endif

// The first real of a column of matrix `which` of a place that has `count`.
HD i64 column_at(int place, int count, int which, int rows, int column) {
    return ((((i64)place * count + which) * rows) + column) * 2 * rows;
}
// Of thread i, where `chunks` threads serve a field on a place: its system, its place, its number there, and the first real of the
// field.
struct SystemPlace {
    int system, place, inside;
    i64 field;
    HD SystemPlace(int i, int chunks, int places, int half, int rows) {
        inside = i % chunks;
        i /= chunks;
        system = i / places;
        place = i % places;
        field = ((i64)system * half + place) * 2 * rows;
    }
};
// The coarse gamma_5.
HD int sign_of(int row, int rows) { return row < rows / 2 ? 1 : -1; }
// W rows of a column of a matrix of a place, for thread i.
struct CoarseElement {
    int row, column, place;
    HD CoarseElement(int i, int rows, int width) {
        row = i % (rows / width) * width;
        i /= rows / width;
        column = i % rows;
        place = i / rows;
    }
};
template <class F> HD void coarse_backward(const CoarseBackward& a, int i) {
    using R = real_of<F>;
    const CoarseElement e(i, a.rows, lane<F>::W);
    R* links = (R*)a.links;
    const int behind = ((const int*)a.neighbours)[e.place * COARSE_LINKS + 5 + a.mu], parity = e.place < a.half ? 1 : 0;
    const bool ghost = behind >= a.half;
    const R* matrix = ghost ? (const R*)a.ghosts + column_at(parity * a.face + behind - a.half - a.first, 1, 0, a.rows, 0)
                            : links + column_at(behind + parity * a.half, COARSE_LINKS, 1 + a.mu, a.rows, 0);
    const i64 to = column_at(e.place, COARSE_LINKS, 5 + a.mu, a.rows, e.column);
    for (int l = 0; l < lane<F>::W; ++l) {
        const int row = e.row + l;
        const R* from = matrix + (i64)row * 2 * a.rows + e.column;
        const R sign = R(sign_of(row, a.rows) * sign_of(e.column, a.rows));
        links[to + row] = sign * from[0];
        links[to + a.rows + row] = -sign * from[a.rows];
    }
}
template <class F> HD void coarse_twist(const CoarseTwist& a, int i) {
    const CoarseElement e(i, a.rows, lane<F>::W);
    const i64 from = column_at(e.place, COARSE_LINKS, 0, a.rows, e.column) + e.row;
    const i64 to = column_at(e.place, 1, 0, a.rows, e.column) + e.row;
    F re = vector_at<F>(a.links, from), im = vector_at<F>(a.links, from + a.rows);
    const double sign = sign_of(e.column, a.rows);
    if (a.t) {
        // T is zero between chiralities.
        const F twist = splat<F>(real_of<F>(sign * a.odd));
        re = nmad(twist, vector_at<F>(a.t, to + a.rows), re);
        im = mad(twist, vector_at<F>(a.t, to), im);
    }
    // P^dag P is 1.
    for (int l = 0; l < lane<F>::W; ++l)
        if (a.all != 0 && e.row + l == e.column) set(im, l, get(im, l) + real_of<F>(sign * a.all));
    put_vector(a.out, to, re);
    put_vector(a.out, to + a.rows, im);
}
template <class F> HD void coarse_eliminate(const CoarseEliminate& a, int i) {
    using R = real_of<F>;
    constexpr int W = lane<F>::W;
    const CoarseElement e(i, a.rows, W);
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
    const CoarseElement e(i, a.rows, lane<F>::W);
    F re = F{}, im = F{};
    const i64 from = column_at(e.place, COARSE_LINKS, 1 + a.which, a.rows, e.column);
    add_product(re, im, a.b, column_at(e.place, 1, 0, a.rows, 0) + e.row, (const real_of<F>*)a.links + from, a.rows);
    const i64 to = column_at(e.place, COARSE_LINKS - 1, a.which, a.rows, e.column) + e.row;
    put_vector(a.out, to, re);
    put_vector(a.out, to + a.rows, im);
}
template <class F> HD void coarse_round(const CoarseRound& a, int i) {
    using R = real_of<F>;
    const R* from = (const R*)a.matrices + (i64)i * 2 * a.rows;
    R most = 0, wrong = 0;
    for (int k = 0; k < 2 * a.rows; ++k) {
        most = larger(absolute(from[k]), most);
        wrong = wrong + (from[k] - from[k]);
    }
    ((R*)a.scales)[i] = most * (1 / STEPS) + wrong;
    const R factor = to_steps(most);
    int* to = (int*)a.out + (i64)i * a.rows;
    for (int row = 0; row < a.rows; ++row) to[row] = pair_of(factor, from[row], from[a.rows + row]);
}
template <class F> HD void coarse_local(const CoarseLocal& a, int i) {
    const SystemPlace at(i, a.rows / lane<F>::W, a.places, a.half, a.rows);
    const int row = at.inside * lane<F>::W;
    F re = F{}, im = F{};
    const i64 matrix = column_at(at.place, 1, 0, a.rows, 0) + row;
    add_product(re, im, a.matrices, matrix, (const real_of<F>*)a.input + at.field, a.rows);
    put_vector(a.out, at.field + row, re);
    put_vector(a.out, at.field + row + a.rows, im);
}
template <class F> HD void coarse_part(const CoarsePart& a, int i) {
    const int rows = a.rows, chunks = rows / lane<F>::W, row = i % chunks * lane<F>::W;
    const int place = i / chunks + a.parity * a.half;
    const int leaving = ((const int*)a.leaving)[place];
    F re = F{}, im = F{};
    for (int n = a.part; n < COARSE_LINKS; ++n) {
        const bool leaves = n && (leaving >> (n - 1) & 1);
        if (leaves != (a.part > 0) || (a.part && n > a.part)) continue;
        const int there = ((const int*)a.neighbours)[place * COARSE_LINKS + n], parity = (n > 0) != a.parity;
        const real_of<F>* x = there < a.half ? (const real_of<F>*)a.x + (i64)(there + parity * a.half) * 2 * rows
                                             : (const real_of<F>*)a.ghosts + (i64)(there - a.half) * 2 * rows;
        add_product(re, im, a.links, column_at(place, COARSE_LINKS, n, rows, 0) + row, x, rows);
    }
    put_vector(a.out, (i64)place * 2 * rows + row, re);
    put_vector(a.out, (i64)place * 2 * rows + row + rows, im);
}
// A number of a field on places, and of one in the order of their aggregates, for thread i; `from` is negative where the field
// is not.
struct PlaceNumber {
    i64 from, to;
    HD PlaceNumber(const void* members, int i, int places, int rows, int skip, int fields, int field) {
        const int row = i % rows, inside = i / rows % places, aggregate = i / rows / places, vectors = rows / 2;
        from = (i64)(((const int*)members)[i / rows] - skip) * 2 * rows + row;
        to = part_at(2 * aggregate + row / vectors, fields, field, places * vectors / 2) + inside * vectors + row % vectors;
    }
};
template <class F> HD void gather_places(const GatherPlaces& a, int i) {
    using R = real_of<F>;
    const PlaceNumber at(a.members, i, a.places, a.rows, a.skip, a.fields, a.field);
    R* out = (R*)a.out + at.to;
    out[0] = at.from < 0 ? R(0) : ((const R*)a.x)[at.from];
    out[a.places * a.rows / 2] = at.from < 0 ? R(0) : ((const R*)a.x)[at.from + a.rows];
}
template <class F> HD void scatter_places(const ScatterPlaces& a, int i) {
    using R = real_of<F>;
    const PlaceNumber at(a.members, i, a.places, a.rows, a.skip, a.fields, a.field);
    if (at.from < 0) return;
    ((R*)a.out)[at.from] = ((const R*)a.x)[at.to];
    ((R*)a.out)[at.from + a.rows] = ((const R*)a.x)[at.to + a.places * a.rows / 2];
}
// What ranks post: float numbers of ghosts of one parity, of all systems.
HD Exchange posts(int rows, int ghosts, int systems) { return {POSTS, ghosts * systems * 2 * rows}; }
// Where a number of a ghost is, with so many systems.
HD i64 ghost_at(int ghost, int system, int systems, int rows, int number) {
    return ((i64)ghost * systems + system) * 2 * rows + number;
}
// Gives the ranks around what a place has.
template <class F, class A> HD void give(const A& a, int ghosts, int rows, int place, int system, int systems, int number, F x) {
    for (int face = 0; face < 8; ++face) {
        const int ghost = ((const int*)a.gift.leaves)[place * 8 + face];
        if (ghost < 0) continue;
        const i64 k = ghost_at(ghost, system, systems, rows, number);
        if constexpr (GPU) {
            if (a.gift.to.of_ranks) {
                posts(rows, ghosts, a.systems).put(a.gift.to, ((const int*)a.gift.ranks)[ghost], k, word_of(x));
                continue;
            }
        }
        put_vector(a.gift.packed, k, x);
    }
}
template <class F> HD void coarse_post(const CoarsePost& a, int i) {
    constexpr int W = lane<F>::W;
    const SystemPlace at(i, 2 * a.rows / W, a.places, a.half, a.rows);
    const int number = at.inside * W;
    give(a, a.ghosts, a.rows, at.place, at.system, a.now, number, vector_at<F>(a.input, at.field + number));
}

// Vectors of rows of one column that a thread has.
constexpr int HOP_VECTORS = GPU ? HOP_ROWS : 1;
struct alignas(4 * HOP_ROWS) HopPairs { int row[HOP_ROWS]; };
template <class F> HD void load_rows(F (&re)[HOP_VECTORS], F (&im)[HOP_VECTORS], const void* p, i64 at) {
    if constexpr (GPU) {
        const HopPairs v = *(const HopPairs*)((const int*)p + at);
        UNROLL for (int n = 0; n < HOP_VECTORS; ++n) load_pairs(re[n], im[n], v.row, n);
    } else {
        load_pairs(re[0], im[0], p, at);
    }
}
// A team has a place, for N systems. Each of its threads has one link of the eight, and a quarter of its columns.
template <class F, int N> struct CoarseHopping {
    using R = real_of<F>;
    static constexpr int PHASES = 3, NEAR = COARSE_LINKS - 1, W = lane<F>::W, SUMS = NEAR * HOP_SHARES;
    HD static int chunks(const CoarseHop& a) { return rows_of(a) / (W * HOP_VECTORS); }
    HD static int threads(const CoarseHop& a) { return SUMS * chunks(a); }
    // A number of a neighbour, which may be a ghost.
    HD static R number_at(const CoarseHop& a, int there, int system, int number) {
        const int rows = rows_of(a);
        if (there < a.half) return ((const R*)a.input)[((i64)system * a.half + there) * 2 * rows + number];
        const i64 k = ghost_at(there - a.half, system, N, rows, number);
        if constexpr (GPU) {
            const RankRound& from = a.ghosts.from;
            if (from.of_ranks) return float_of(posts(rows, a.ghosts.all, a.systems).get(from, k));
        }
        return ((const R*)a.ghosts.ghosts)[k];
    }
    template <int PHASE> HD static void phase(const CoarseHop& a, int team, int thread, F* shared) {
        const int rows = rows_of(a), place = team, near = NEAR * rows;
        // The neighbours' numbers, scaled; then sums over some columns of a link. Of each system.
        R *x = (R*)shared, *sums = x + N * 2 * near;
        if (PHASE == 0) {
            for (int k = thread; k < N * near; k += threads(a)) {
                const int system = k / near, column = k % near;
                const int there = ((const int*)a.neighbours)[place * COARSE_LINKS + 1 + column / rows];
                const R scale = ((const R*)a.scales)[(i64)place * near + column];
                x[2 * k] = scale * number_at(a, there, system, column % rows);
                x[2 * k + 1] = scale * number_at(a, there, system, column % rows + rows);
            }
        }
        if (PHASE == 1) {
            const int sum = thread / chunks(a), row = thread % chunks(a) * W * HOP_VECTORS;
            const int first = sum / HOP_SHARES * rows + sum % HOP_SHARES;
            F re[N][HOP_VECTORS], im[N][HOP_VECTORS];
            UNROLL for (int s = 0; s < N; ++s) UNROLL for (int n = 0; n < HOP_VECTORS; ++n) re[s][n] = im[s][n] = F{};
            UNROLL_16 for (int j = 0; j < rows / HOP_SHARES; ++j) {
                const int column = first + j * HOP_SHARES;
                F are[HOP_VECTORS], aim[HOP_VECTORS];
                load_rows(are, aim, a.links, ((i64)place * near + column) * rows + row);
                UNROLL for (int s = 0; s < N; ++s) {
                    const F xre = splat<F>(x[2 * (s * near + column)]), xim = splat<F>(x[2 * (s * near + column) + 1]);
                    UNROLL for (int n = 0; n < HOP_VECTORS; ++n) {
                        re[s][n] = nmad(aim[n], xim, mad(are[n], xre, re[s][n]));
                        im[s][n] = mad(aim[n], xre, mad(are[n], xim, im[s][n]));
                    }
                }
            }
            UNROLL for (int s = 0; s < N; ++s) UNROLL for (int n = 0; n < HOP_VECTORS; ++n) {
                const int at = 2 * (s * SUMS + sum) * rows + row + n * W;
                put_vector(sums, at, re[s][n]);
                put_vector(sums, at + rows, im[s][n]);
            }
        }
        if (PHASE == 2) {
            for (int k = thread * W; k < N * 2 * rows; k += threads(a) * W) {
                const int system = k / (2 * rows), number = k % (2 * rows);
                const R* own = sums + 2 * system * SUMS * rows;
                F all = vector_at<F>(own, number);
                UNROLL_8 for (int n = 1; n < SUMS; ++n) all = all + vector_at<F>(own, 2 * n * rows + number);
                all = splat<F>(R(a.scale)) * all;
                const i64 to = ((i64)system * a.half + place) * 2 * rows + number;
                if (a.x) all = vector_at<F>(a.x, to) + all;
                put_vector(a.out, to, all);
                if (a.gift.leaves) give(a, a.ghosts.all, rows, place, system, N, number, all);
            }
        }
    }
};

#define COARSE_KERNELS(SITE, SUM, TEAM)                                     \
    SITE(coarse, coarse_backward, CoarseBackward, (coarse_backward<F>))     \
    SITE(coarse, coarse_twist, CoarseTwist, (coarse_twist<F>))              \
    SITE(coarse, coarse_eliminate, CoarseEliminate, (coarse_eliminate<F>))  \
    SITE(coarse, coarse_multiply, CoarseMultiply, (coarse_multiply<F>))     \
    SITE(coarse, coarse_round, CoarseRound, (coarse_round<F>))              \
    SITE(coarse, coarse_local, CoarseLocal, (coarse_local<F>))              \
    SITE(coarse, coarse_part, CoarsePart, (coarse_part<F>))                 \
    SITE(coarse, gather_places, GatherPlaces, (gather_places<F>))           \
    SITE(coarse, scatter_places, ScatterPlaces, (scatter_places<F>))        \
    SITE(coarse, coarse_post, CoarsePost, (coarse_post<F>))                 \
    TEAM(coarse, coarse_hop_1, CoarseHop, (CoarseHopping<F, 1>{}))          \
    TEAM(coarse, coarse_hop_4, CoarseHop, (CoarseHopping<F, 4>{}))
