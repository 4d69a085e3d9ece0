// Sites of a lane's box, and the memory of fields.
//
// Fields hold each parity apart. On a CPU a site's reals are consecutive vectors, [site][block][real];
// on a GPU they are spread in chunks of 16 bytes, [block][chunk][site] (Babich, Clark, Joo, SC10,
// equation (4)).
//
// With HMC_HALF, fields of F = float are stored in half precision: 16-bit integers, times one float a
// site and block (its greatest real), which lies behind the block's reals on a CPU and behind the field
// on a GPU; a colour vector's six integers and norm are one chunk. Links are bounded by 1 and need none.
#pragma once
#include "args.h"
#include "lane.cuh"

#ifdef __CUDACC__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL
#endif

struct Coord { int x[4]; };

// Extents of a lane's box and sites of one parity; constants where a kernel is compiled for its lattice.
#ifdef HMC_OUTER_X
HD constexpr int outer(const Geometry&, int mu) {
    return mu == 0 ? HMC_OUTER_X : mu == 1 ? HMC_OUTER_Y : mu == 2 ? HMC_OUTER_Z : HMC_OUTER_T;
}
HD constexpr int half_of(const Geometry&) { return HMC_OUTER_X / 2 * HMC_OUTER_Y * HMC_OUTER_Z * HMC_OUTER_T; }
#else
HD int outer(const Geometry& g, int mu) { return g.outer[mu]; }
HD int half_of(const Geometry& g) { return g.half; }
#endif

HD int parity_of(const Coord& c) { return (c.x[0] + c.x[1] + c.x[2] + c.x[3]) & 1; }

// The outer site with index `s` among those of one parity.
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
// The same in a field with borders; coordinates run from -border to outer + border - 1.
HD int bordered_index_of(const Geometry& g, const Coord& c) {
    const int ex = outer(g, 0) + 2 * g.border[0], ey = outer(g, 1) + 2 * g.border[1], ez = outer(g, 2) + 2 * g.border[2];
    return (((c.x[3] + g.border[3]) * ez + c.x[2] + g.border[2]) * ey + c.x[1] + g.border[1]) * (ex >> 1) +
           ((c.x[0] + g.border[0]) >> 1);
}
// Index of a site of the face x_mu = const among those of its parity.
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

// N reals of block `block` of a site; NB blocks a site; `stride` sites of one parity. As they are computed
// with: wires, ghost zones, tables.
#ifdef __CUDACC__
template <class R, int N> struct chunk { using type = double2; static constexpr int n = 2; };
template <int N, bool FOUR> struct float_chunk { using type = float4; static constexpr int n = 4; };
template <int N> struct float_chunk<N, false> { using type = float2; static constexpr int n = 2; };
template <int N> struct chunk<float, N> : float_chunk<N, N % 4 == 0> {};

template <int N, int NB, class F> HD void load_plain(F* r, const void* field, int block, int site, int stride) {
    using V = typename chunk<F, N>::type;
    constexpr int n = chunk<F, N>::n;
    const V* p = (const V*)field + (size_t)(block * (N / n)) * stride + site;
    UNROLL for (int k = 0; k < N / n; ++k) {
        const V v = __ldg(p + (size_t)k * stride);
        const F* f = reinterpret_cast<const F*>(&v);
        UNROLL for (int j = 0; j < n; ++j) r[k * n + j] = f[j];
    }
}
template <int N, int NB, class F> HD void store_plain(void* field, int block, int site, int stride, const F* r) {
    using V = typename chunk<F, N>::type;
    constexpr int n = chunk<F, N>::n;
    V* p = (V*)field + (size_t)(block * (N / n)) * stride + site;
    UNROLL for (int k = 0; k < N / n; ++k) {
        V v;
        F* f = reinterpret_cast<F*>(&v);
        UNROLL for (int j = 0; j < n; ++j) f[j] = r[k * n + j];
        p[(size_t)k * stride] = v;
    }
}
// Place of one real, for code that goes real by real and lane by lane.
template <class F> HD size_t place(int, int reals, int block, int real, int site, int stride, int) {
    const int n = sizeof(F) == 8 || reals % 4 != 0 ? 2 : 4;
    return ((size_t)(block * (reals / n) + real / n) * stride + site) * n + real % n;
}
#else
template <int N, int NB, class F> HD void load_plain(F* r, const void* field, int block, int site, int) {
    const F* p = (const F*)field + ((long)site * NB + block) * N;
    for (int k = 0; k < N; ++k) r[k] = p[k];
}
template <int N, int NB, class F> HD void store_plain(void* field, int block, int site, int, const F* r) {
    F* p = (F*)field + ((long)site * NB + block) * N;
    for (int k = 0; k < N; ++k) p[k] = r[k];
}
template <class F> HD unsigned long place(int blocks, int reals, int block, int real, int site, int, int l) {
    return (((unsigned long)site * blocks + block) * reals + real) * lane<F>::W + l;
}
#endif

// 16-bit integers: N of them in all lanes.
#ifdef HMC_HALF
constexpr bool HALF = true;
#else
constexpr bool HALF = false;
#endif
template <class F> HD constexpr bool is_half() { return HALF && sizeof(real_of<F>) == 4; }
constexpr float STEPS = 32767;
constexpr float ROUND = 12582912;  // 1.5 2^23: the low bits of x + ROUND are the integer next to x

#ifdef __CUDACC__
// A block's integers lie in chunks of eight or of four where N is a multiple of them; else in eights, and a four and a
// two for the rest.
template <int N> struct short_chunk { using type = int; };
template <> struct short_chunk<8> { using type = int4; };
template <> struct short_chunk<4> { using type = int2; };
HD constexpr int shorts_of(int n) { return n % 8 != 0 && n % 4 == 0 ? 4 : n >= 8 ? 8 : n >= 4 ? 4 : 2; }
// Integers are stored with 2^15 added, two in a word, and read as the low bits of 2^23 + 2^15 + integer, for a GPU's own
// conversion of 16 bits is slow.
constexpr float RAISED = 8421376;
static_assert(double(RAISED * (1 / STEPS)) == double(RAISED) * double(1 / STEPS), "1 / STEPS is 2^-15 + 2^-30, of few bits");
HD short stored(float x) { return short(__float_as_int(x + (ROUND + 32768))); }
HD float raised(u32 word, int k) { return __int_as_float(__byte_perm(word, 0x4b000000u, k % 2 == 0 ? 0x7610 : 0x7632)); }
template <int N> HD void load_words(u32* words, const char* from, int site, int stride) {
    constexpr int n = shorts_of(N);
    using V = typename short_chunk<n>::type;
    const V v = __ldg((const V*)from + site);
    UNROLL for (int j = 0; j < n / 2; ++j) words[j] = reinterpret_cast<const u32*>(&v)[j];
    if constexpr (N > n) load_words<N - n>(words + n / 2, from + (size_t)2 * n * stride, site, stride);
}
template <int N, class F> HD void store_chunks(char* to, int site, int stride, const F* r) {
    constexpr int n = shorts_of(N);
    using V = typename short_chunk<n>::type;
    V v;
    short* q = reinterpret_cast<short*>(&v);
    UNROLL for (int j = 0; j < n; ++j) q[j] = stored(r[j]);
    *((V*)to + site) = v;
    if constexpr (N > n) store_chunks<N - n>(to + (size_t)2 * n * stride, site, stride, r + n);
}
template <int N, int NB, class F> HD void store_shorts(void* field, int block, int site, int stride, const F* r) {
    store_chunks<N>((char*)field + (size_t)2 * N * block * stride, site, stride, r);
}
template <int N, int NB, class F> HD F* norm_of(const void* field, int block, int site, int stride) {
    return (F*)((char*)field + (size_t)2 * N * NB * stride) + (size_t)block * stride + site;
}
// The integers of a block, raised, and what they are to be multiplied by.
template <int N, int NB, class F> HD F load_raised(u32* words, const void* field, int block, int site, int stride) {
    F norm;
    if constexpr (N == 6) {
        const int4 v = __ldg((const int4*)field + (size_t)block * stride + site);
        words[0] = v.x;
        words[1] = v.y;
        words[2] = v.z;
        norm = __int_as_float(v.w);
    } else {
        load_words<N>(words, (const char*)field + (size_t)2 * N * block * stride, site, stride);
        norm = __ldg(norm_of<N, NB, F>(field, block, site, stride));
    }
    return F(1 / STEPS) * norm;
}
#else
template <int N, class F> HD void load_shorts(F* r, const void* from) {
    constexpr int W = lane<F>::W;
    const short* p = (const short*)from;
    for (int k = 0; k < N; ++k) {
        if constexpr (W == 1) {
            r[k] = p[k];
        } else {
            typename vector_of<short, W>::type v;
            __builtin_memcpy(&v, p + k * W, sizeof v);
            r[k] = __builtin_convertvector(v, F);
        }
    }
}
template <int N, class F> HD void store_shorts(void* to, const F* r) {
    constexpr int W = lane<F>::W;
    short* p = (short*)to;
    for (int k = 0; k < N; ++k) {
        const F t = r[k] + splat<F>(ROUND);
        if constexpr (W == 1) {
            int bits;
            __builtin_memcpy(&bits, &t, 4);
            p[k] = short(bits);
        } else {
            typename vector_of<int, W>::type bits;
            __builtin_memcpy(&bits, &t, sizeof bits);
            const auto v = __builtin_convertvector(bits, typename vector_of<short COMMA W>::type);
            __builtin_memcpy(p + k * W, &v, sizeof v);
        }
    }
}
// Bytes of a block's integers, of a block with its norm.
template <int N, class F> HD constexpr int short_bytes() { return 2 * N * lane<F>::W; }
template <int N, class F> HD constexpr int half_bytes() { return short_bytes<N, F>() + 4 * lane<F>::W; }
template <int N, int NB, class F> HD void load_shorts(F* r, const void* field, int block, int site, int) {
    load_shorts<N>(r, (const char*)field + ((long)site * NB + block) * short_bytes<N, F>());
}
template <int N, int NB, class F> HD void store_shorts(void* field, int block, int site, int, const F* r) {
    store_shorts<N>((char*)field + ((long)site * NB + block) * short_bytes<N, F>(), r);
}
#endif

// The same for numbers bounded by 1, as they are stored.
template <int N, int NB, class F> HD void load_unit(F* r, const void* field, int block, int site, int stride) {
    if constexpr (is_half<F>()) {
#ifdef __CUDACC__
        u32 words[N / 2];
        load_words<N>(words, (const char*)field + (size_t)2 * N * block * stride, site, stride);
        UNROLL for (int k = 0; k < N; ++k) r[k] = mad(F(1 / STEPS), raised(words[k / 2], k), F(-RAISED * (1 / STEPS)));
#else
        load_shorts<N, NB>(r, field, block, site, stride);
        for (int k = 0; k < N; ++k) r[k] = splat<F>(1 / STEPS) * r[k];
#endif
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
// The greatest |r|; no number if one of them is not finite, so that it is not lost in an integer.
template <int N, class F> HD F greatest(const F* r) {
#ifdef __CUDACC__
    // The bits of |r| are in the order of their values, infinity and what is no number above all others.
    int most = 0;
    UNROLL for (int k = 0; k < N; ++k) {
        const int bits = __float_as_int(r[k]) & 0x7fffffff;
        most = bits > most ? bits : most;
    }
    const F norm = __int_as_float(most);
    return norm + mad(F{}, norm, F{});
#else
    F norm = F{}, poison = F{};
    for (int k = 0; k < N; ++k) {
        norm = larger(absolute(r[k]), norm);
        poison = mad(F{}, r[k], poison);
    }
    return norm + poison;
#endif
}
// Any numbers, as they are stored, but for a factor, which it returns: for what is summed up before it is scaled.
template <int N, int NB, class F> HD F load_unscaled(F* r, const void* field, int block, int site, int stride) {
    if constexpr (is_half<F>()) {
#ifdef __CUDACC__
        u32 words[N / 2];
        const F step = load_raised<N, NB, F>(words, field, block, site, stride);
        UNROLL for (int k = 0; k < N; ++k) r[k] = raised(words[k / 2], k) - RAISED;
        return step;
#else
        const char* from = (const char*)field + ((long)site * NB + block) * half_bytes<N, F>();
        load_shorts<N>(r, from);
        F norm;
        __builtin_memcpy(&norm, from + short_bytes<N, F>(), sizeof norm);
        return splat<F>(1 / STEPS) * norm;
#endif
    } else {
        load_plain<N, NB>(r, field, block, site, stride);
        return splat<F>(1);
    }
}
// The same, scaled.
template <int N, int NB, class F> HD void load(F* r, const void* field, int block, int site, int stride) {
    const F step = load_unscaled<N, NB>(r, field, block, site, stride);
    if constexpr (is_half<F>()) {
        UNROLL for (int k = 0; k < N; ++k) r[k] = step * r[k];
    }
}
template <int N, int NB, class F> HD void store(void* field, int block, int site, int stride, const F* r) {
    if constexpr (is_half<F>()) {
        F norm = greatest<N>(r), q[N];
        // What is too small for a quotient is zero.
        norm = where_negative(norm - splat<F>(1e-30f), F{}, norm);
        const F inverse = where_negative(-norm, splat<F>(STEPS) / norm, F{});
        UNROLL for (int k = 0; k < N; ++k) q[k] = inverse * r[k];
#ifdef __CUDACC__
        if constexpr (N == 6) {
            int4 v;
            short* t = reinterpret_cast<short*>(&v);
            UNROLL for (int k = 0; k < N; ++k) t[k] = stored(q[k]);
            v.w = __float_as_int(norm);
            *((int4*)field + (size_t)block * stride + site) = v;
        } else {
            store_shorts<N, NB>(field, block, site, stride, q);
            *norm_of<N, NB, F>(field, block, site, stride) = norm;
        }
#else
        char* to = (char*)field + ((long)site * NB + block) * half_bytes<N, F>();
        store_shorts<N>(to, q);
        __builtin_memcpy(to + short_bytes<N, F>(), &norm, sizeof norm);
#endif
    } else {
        store_plain<N, NB>(field, block, site, stride, r);
    }
}
// Bytes of a field of N reals a site, of one parity with `sites` outer sites.
template <int N, class F> HD i64 field_bytes(int sites) {
    return (i64)sites * (is_half<F>() ? (2 * N + 4) * lane<F>::W : N * (int)sizeof(F));
}

// Thread i as one of `count` places and one of n groups (fields that share what lies there): so many places in all groups,
// then the next ones. On a GPU the warps of a block are the groups of the same places, so that all but one find the links in
// the cache; on a CPU their links stay in the cache, and what a field's neighbouring sites share too.
template <int ON_CPU> HD void place_and_group(int i, int count, int n, int& place, int& group) {
#ifdef __CUDACC__
    constexpr int TOGETHER = 32;
#else
    constexpr int TOGETHER = ON_CPU;
#endif
    place = i;
    group = 0;
    if (n == 1) return;
    const int first = i / (TOGETHER * n) * TOGETHER, width = count - first < TOGETHER ? count - first : TOGETHER, rest = i - first * n;
    place = first + rest % width;
    group = rest / width;
}

// Both parities of a field lie one behind the other.
template <class F> HD void* half_field(void* field, int parity, int stride, int reals) {
    return (char*)field + (unsigned long)parity * stride * reals * sizeof(F);
}
