// Sites of a lane's box, and the memory of fields.
//
// The parities of a field are separate. On a CPU the reals of a site are consecutive vectors, [site][block][real]; on a
// GPU they are spread in chunks of 16 bytes, [block][chunk][site] (Babich, Clark, Joo, SC10, equation (4)).
//
// With HMC_HALF, fields of F = float are stored in half precision: 16-bit integers times one float per site and block
// (the greatest real). On a CPU the float follows the block's reals, on a GPU it follows the field; a colour vector's
// six integers and its norm are one chunk. Links are bounded by 1 and need no float.
#pragma once
#include "args.h"
#include "lane.cuh"

struct Coord { int x[4]; };

// Extents of a lane's box, and sites of one parity; constants if a kernel is compiled for its lattice.
#ifdef HMC_OUTER_X
HD constexpr int outer(const Geometry&, int mu) {
    return mu == 0 ? HMC_OUTER_X : mu == 1 ? HMC_OUTER_Y : mu == 2 ? HMC_OUTER_Z : HMC_OUTER_T;
}
HD constexpr int half_of(const Geometry&) { return HMC_OUTER_X / 2 * HMC_OUTER_Y * HMC_OUTER_Z * HMC_OUTER_T; }
#else
HD int outer(const Geometry& g, int mu) { return g.outer[mu]; }
HD int half_of(const Geometry& g) { return g.half; }
#endif

// Where an operator's own links for hops backward are: a CPU has them by the sites where they end (GatherLinks).
HD int place_of_link(int begins, int ends) { return GPU ? begins : ends; }

HD int parity_of(const Coord& c) { return (c.x[0] + c.x[1] + c.x[2] + c.x[3]) & 1; }

// The outer site with index `s` among the sites of one parity.
HD Coord coord_of(const Geometry& g, int s, int parity) {
    Coord c;
    const int hx = outer(g, 0) >> 1;
    const int xh = s % hx;
    s /= hx;
    c.x[1] = s % outer(g, 1);
    s /= outer(g, 1);
    c.x[2] = s % outer(g, 2);
    c.x[3] = s / outer(g, 2);
    c.x[0] = 2 * xh + ((c.x[1] + c.x[2] + c.x[3] + parity) & 1);
    return c;
}
HD int index_of(const Geometry& g, const Coord& c) {
    return ((c.x[3] * outer(g, 2) + c.x[2]) * outer(g, 1) + c.x[1]) * (outer(g, 0) >> 1) + (c.x[0] >> 1);
}
// The index in a field with borders; coordinates run from -border to outer + border - 1.
HD int bordered_index_of(const Geometry& g, const Coord& c) {
    const int ex = outer(g, 0) + 2 * g.border[0], ey = outer(g, 1) + 2 * g.border[1], ez = outer(g, 2) + 2 * g.border[2];
    return (((c.x[3] + g.border[3]) * ez + c.x[2] + g.border[2]) * ey + c.x[1] + g.border[1]) * (ex >> 1) +
           ((c.x[0] + g.border[0]) >> 1);
}
// Index of a site on the face x_mu = const among those of its parity.
template <int MU> HD int face_index(const Geometry& g, const Coord& c) {
    if constexpr (MU == 0) return ((c.x[3] * outer(g, 2) + c.x[2]) * outer(g, 1) + c.x[1]) >> 1;
    if constexpr (MU == 1) return (c.x[3] * outer(g, 2) + c.x[2]) * (outer(g, 0) >> 1) + (c.x[0] >> 1);
    if constexpr (MU == 2) return (c.x[3] * outer(g, 1) + c.x[1]) * (outer(g, 0) >> 1) + (c.x[0] >> 1);
    return (c.x[2] * outer(g, 1) + c.x[1]) * (outer(g, 0) >> 1) + (c.x[0] >> 1);
}
// Inverse of face_index: the site f of parity `parity` with x_mu = at.
HD Coord face_coord(const Geometry& g, int mu, int at, int f, int parity) {
    Coord c;
    c.x[mu] = at;
    if (mu == 0) {
        const int hy = outer(g, 1) >> 1;
        const int y = f % hy;
        f /= hy;
        c.x[2] = f % outer(g, 2);
        c.x[3] = f / outer(g, 2);
        c.x[1] = 2 * y + ((at + c.x[2] + c.x[3] + parity) & 1);
        return c;
    }
    const int hx = outer(g, 0) >> 1;
    const int x = f % hx;
    f /= hx;
    const int a = mu == 1 ? 2 : 1, b = mu == 3 ? 2 : 3;
    c.x[a] = f % outer(g, a);
    c.x[b] = f / outer(g, a);
    c.x[0] = 2 * x + ((c.x[1] + c.x[2] + c.x[3] + parity) & 1);
    return c;
}

HD const int* permutation(const Geometry& g, int mu, bool forward, int width) {
    return (const int*)g.permutation + (2 * mu + (forward ? 0 : 1)) * width;
}
// Coordinates of lane l in the lane grid, in direction mu.
HD int lane_coord(const Geometry& g, int l, int mu) {
    for (int nu = 0; nu < mu; ++nu) l /= g.lanes[nu];
    return l % g.lanes[mu];
}
// Global natural index of a site in lane l.
HD i64 global_site(const Geometry& g, const Coord& c, int l) {
    i64 s = 0;
    for (int mu = 3; mu >= 0; --mu) {
        const int x = g.offset[mu] + lane_coord(g, l, mu) * outer(g, mu) + c.x[mu];
        s = s * g.global[mu] + x;
    }
    return s;
}

// Walls in time. Kernels that are compiled for their lattice know which.
#ifdef HMC_WALLS
HD constexpr int walls_of(const Geometry&) { return HMC_WALLS; }
#else
HD int walls_of(const Geometry& g) { return g.walls; }
#endif
HD bool has_walls(const Geometry& g) { return walls_of(g) != PERIODIC; }
HD bool is_fixed_below(const Geometry& g) { return walls_of(g) == FIXED; }
HD bool is_fixed_above(const Geometry& g) { return walls_of(g) == FIXED || walls_of(g) == OPEN_FIXED; }
// The slice of the upper wall. If it is fixed, it is the one after the last: its links in space are `given`.
HD int top(const Geometry& g) { return g.global[3] - (is_fixed_above(g) ? 0 : 1); }
// The slice of a site in lane l.
HD int slice_of(const Geometry& g, const Coord& c, int l) { return g.offset[3] + lane_coord(g, l, 3) * outer(g, 3) + c.x[3]; }
// In each lane, what `of` says of the slice of a site.
template <class F, class O> HD F by_slice(const Geometry& g, const Coord& c, const O& of) {
    F r = F{};
    for (int l = 0; l < lane<F>::W; ++l) set(r, l, real_of<F>(of(slice_of(g, c, l))));
    return r;
}
// Whether a number is other than zero in any lane.
template <class F> HD bool in_any_lane(const F& x) {
    bool any = false;
    for (int l = 0; l < lane<F>::W; ++l) any = any || get(x, l) != 0;
    return any;
}
// Whether a site is on a slice in any lane; `in` is 1 in those, else 0.
template <class F> HD bool on_slice(const Geometry& g, const Coord& c, int slice, F& in) {
    in = by_slice<F>(g, c, [=](int t) { return t == slice ? 1 : 0; });
    return in_any_lane(in);
}
// In each lane `wall` on a wall, `next` on the slices beside the lower and the upper one, and `inside` elsewhere.
template <class F> HD F by_distance(const Geometry& g, const Coord& c, double wall, const double* next, double inside) {
    const int last = top(g);
    const double lower = next[0], upper = next[1];
    return by_slice<F>(g, c, [=](int t) { return t == 0 || t == last ? wall : t == 1 ? lower : t == last - 1 ? upper : inside; });
}
// 0 on walls, else 1.
template <class F> HD F has_quarks(const Geometry& g, const Coord& c) {
    const int last = top(g);
    return by_slice<F>(g, c, [=](int t) { return t == 0 || t == last ? 0 : 1; });
}
// 0 where links in direction mu leave the lattice, else 1.
template <class F> HD F is_link(const Geometry& g, const Coord& c, int mu) {
    const int last = mu == 3 ? top(g) : -1;
    return by_slice<F>(g, c, [=](int t) { return t == last ? 0 : 1; });
}
// 0 where links in direction mu leave the lattice or are given, else 1.
template <class F> HD F is_free(const Geometry& g, const Coord& c, int mu) {
    const int never = mu == 3 ? top(g) : is_fixed_below(g) ? 0 : -1;
    return by_slice<F>(g, c, [=](int t) { return t == never ? 0 : 1; });
}
// 0 where no quark hops along links in direction mu, else 1.
template <class F> HD F is_hop(const Geometry& g, const Coord& c, int mu) {
    const int last = top(g), to = mu == 3 ? last - 1 : last;
    return by_slice<F>(g, c, [=](int t) { return t == 0 || t >= to ? 0 : 1; });
}

// N 16-bit integers in all lanes.
#ifdef HMC_HALF
constexpr bool HALF = true;
#else
constexpr bool HALF = false;
#endif
template <class F> HD constexpr bool is_half() { return HALF && sizeof(real_of<F>) == 4; }
constexpr float STEPS = 32767;
constexpr float ROUND = 12582912;  // 1.5 2^23: the low bits of x + ROUND are the integer nearest to x
// Bytes of a block's integers, and of a block with its norm.
template <int N, class F> HD constexpr int short_bytes() { return 2 * N * lane<F>::W; }
template <int N, class F> HD constexpr int half_bytes() { return short_bytes<N, F>() + 4 * lane<F>::W; }

// N reals of block `block` of a site, with NB blocks per site and `stride` sites of one parity. `load_plain` and
// `store_plain` take the type used in arithmetic (wires, ghost zones, tables). `place` is the place of one real, for
// code that goes real by real and lane by lane. Further, the half-precision variants of the functions below, and
// `load_ninth`, `store_ninth` for one real in [-1, 1] per link.
#include MEMORY

// Numbers bounded by 1, in their stored precision.
template <int N, int NB, class F> HD void load_unit(F* r, const void* field, int block, int site, int stride) {
    if constexpr (is_half<F>()) {
        load_unit_half<N, NB>(r, field, block, site, stride);
    } else {
        load_plain<N, NB>(r, field, block, site, stride);
    }
}
template <int N, int NB, class F> HD void store_unit(void* field, int block, int site, int stride, const F* r) {
    if constexpr (is_half<F>()) {
        F q[N];
        UNROLL for (int k = 0; k < N; ++k) q[k] = splat<F>(STEPS) * r[k];
        store_shorts<N, NB>(field, block, site, stride, q);
    } else {
        store_plain<N, NB>(field, block, site, stride, r);
    }
}
// Any numbers, in their stored precision, without a common factor, which is returned; for sums that are scaled later.
template <int N, int NB, class F> HD F load_unscaled(F* r, const void* field, int block, int site, int stride) {
    if constexpr (is_half<F>()) {
        return load_unscaled_half<N, NB>(r, field, block, site, stride);
    } else {
        load_plain<N, NB>(r, field, block, site, stride);
        return splat<F>(1);
    }
}
// Any numbers, in their stored precision.
template <int N, int NB, class F> HD void load(F* r, const void* field, int block, int site, int stride) {
    const F step = load_unscaled<N, NB>(r, field, block, site, stride);
    if constexpr (is_half<F>()) {
        UNROLL for (int k = 0; k < N; ++k) r[k] = step * r[k];
    }
}
// The integers of a block before they are rounded; returns its norm.
template <int N, class F> HD F integers_of(F* q, const F* r) {
    F norm = greatest<N>(r);
    // Numbers too small for a quotient become zero.
    norm = where_negative(norm - splat<F>(1e-30f), F{}, norm);
    const F inverse = where_negative(-norm, splat<F>(STEPS) / norm, F{});
    UNROLL for (int k = 0; k < N; ++k) q[k] = inverse * r[k];
    return norm;
}
// r becomes what `load` would find of it after `store`.
template <int N, class F> HD void round_as_stored(F* r) {
    if constexpr (is_half<F>()) {
        F q[N];
        const F step = splat<F>(1 / STEPS) * integers_of<N>(q, r), round = splat<F>(ROUND);
        UNROLL for (int k = 0; k < N; ++k) r[k] = step * ((q[k] + round) - round);
    }
}
template <int N, int NB, class F> HD void store(void* field, int block, int site, int stride, const F* r) {
    if constexpr (is_half<F>()) {
        F q[N];
        const F norm = integers_of<N>(q, r);
        store_half<N, NB>(field, block, site, stride, q, norm);
    } else {
        store_plain<N, NB>(field, block, site, stride, r);
    }
}
// Bytes of a field of N reals per site, on one parity with `sites` outer sites.
template <int N, class F> HD i64 field_bytes(int sites) {
    return (i64)sites * (is_half<F>() ? (2 * N + 4) * lane<F>::W : N * (int)sizeof(F));
}

// Fields in double, for kernels in a lower precision: their lanes may differ (Geometry::to_double). The two sites there
// that hold the lanes of a site here, and the stride of fields with borders.
struct DoubleSites {
    int at[2], half_bordered;
    HD DoubleSites(const Geometry& g, Coord c, bool bordered) {
        Geometry there = g;
        const int mu = g.double_direction;
        there.outer[mu] *= 2;
        half_bordered = 1;
        for (int nu = 0; nu < 4; ++nu) half_bordered *= there.outer[nu] + 2 * g.border[nu];
        half_bordered /= 2;
        for (int n = 0; n < 2; ++n) {
            at[n] = bordered ? bordered_index_of(there, c) : index_of(there, c);
            c.x[mu] += g.outer[mu];
        }
    }
    // Site i of a field of one parity; slices of a fifth dimension follow each other. The index is the same for both
    // parities.
    HD DoubleSites(const Geometry& g, int i) : DoubleSites(g, coord_of(g, i % g.half, 0), false) {
        for (int& site : at) site += i / g.half * 2 * g.half;
    }
};
// Vectors of two registers from the single ones of two sites, permuted; and back.
template <int N, int NB, class F> HD void load_halves(F* r, const void* field, int block, const int* sites, const int* table) {
    using V = decltype(r->lo);
    const V* p[2];
    for (int n = 0; n < 2; ++n) p[n] = (const V*)field + ((long)sites[n] * NB + block) * N;
    for (int k = 0; k < N; ++k) r[k] = permute(F{p[0][k], p[1][k]}, table);
}
template <int N, int NB, class F> HD void store_halves(void* field, int block, const int* sites, const int* table, const F* r) {
    using V = decltype(r->lo);
    V* p[2];
    for (int n = 0; n < 2; ++n) p[n] = (V*)field + ((long)sites[n] * NB + block) * N;
    for (int k = 0; k < N; ++k) {
        const F there = permute(r[k], table);
        p[0][k] = there.lo;
        p[1][k] = there.hi;
    }
}
template <class D> HD bool halves_doubles(const Geometry& g) { return two_registers<D> && g.to_double != nullptr; }
template <int N, int NB, class D> HD void load_double(D* r, const Geometry& g, const void* field, int block, int i, int stride) {
    if constexpr (two_registers<D>) {
        if (halves_doubles<D>(g)) {
            load_halves<N, NB>(r, field, block, DoubleSites(g, i).at, (const int*)g.from_double);
            return;
        }
    }
    load_plain<N, NB>(r, field, block, i, stride);
}
template <int N, int NB, class D> HD void store_double(void* field, const Geometry& g, int block, int i, int stride, const D* r) {
    if constexpr (two_registers<D>) {
        if (halves_doubles<D>(g)) {
            store_halves<N, NB>(field, block, DoubleSites(g, i).at, (const int*)g.to_double, r);
            return;
        }
    }
    store_plain<N, NB>(field, block, i, stride, r);
}

// Maps thread i to one of `count` places and one of n groups (of fields that share data at a place): first some places
// for all groups, then the next ones. On a GPU the warps of a block are the groups at the same places, so that all but
// one find the links in the cache. On a CPU the links stay in the cache, and so do data shared by neighbouring sites of
// a field.
template <int ON_CPU> HD void place_and_group(int i, int count, int n, int& place, int& group) {
    constexpr int TOGETHER = GPU ? WARP : ON_CPU;
    place = i;
    group = 0;
    if (n == 1) return;
    const int first = i / (TOGETHER * n) * TOGETHER, width = count - first < TOGETHER ? count - first : TOGETHER, rest = i - first * n;
    place = first + rest % width;
    group = rest / width;
}

// The two parities of a field follow each other.
template <class F> HD void* half_field(void* field, int parity, int stride, int reals) {
    return (char*)field + (unsigned long)parity * stride * reals * sizeof(F);
}
template <class F> HD const void* half_field(const void* field, int parity, int stride, int reals) {
    return (const char*)field + (unsigned long)parity * stride * reals * sizeof(F);
}
