// The memory of fields on a GPU (site.cuh): [block][chunk][site], in chunks of 16 bytes.
#pragma once

template <class R, int N> struct chunk { using type = double2; static constexpr int n = 2; };
template <int N, bool FOUR> struct float_chunk { using type = float4; static constexpr int n = 4; };
template <int N> struct float_chunk<N, false> { using type = float2; static constexpr int n = 2; };
template <int N> struct chunk<float, N> : float_chunk<N, N % 4 == 0> {};

template <int N, bool GHOST, class F> HD void load_chunks(F* r, const void* field, int block, int site, int stride) {
    using V = typename chunk<F, N>::type;
    constexpr int n = chunk<F, N>::n;
    const V* p = (const V*)field + (size_t)(block * (N / n)) * stride + site;
    UNROLL for (int k = 0; k < N / n; ++k) {
        const V v = GHOST ? __ldcg(p + (size_t)k * stride) : __ldg(p + (size_t)k * stride);
        const F* f = reinterpret_cast<const F*>(&v);
        UNROLL for (int j = 0; j < n; ++j) r[k * n + j] = f[j];
    }
}
template <int N, int NB, class F> HD void load_plain(F* r, const void* field, int block, int site, int stride) {
    load_chunks<N, false>(r, field, block, site, stride);
}
// Of a ghost zone, which other GPUs may have filled while this kernel ran.
template <int N, int NB, class F> HD void load_ghost(F* r, const void* field, int block, int site, int stride) {
    load_chunks<N, true>(r, field, block, site, stride);
}
// Of a field in double that this thread wrote in this kernel.
template <int N, int NB, class F> HD void load_own(F* r, const void* field, int block, int site, int stride) {
    const volatile F* p = (const volatile F*)field + ((size_t)(block * (N / 2)) * stride + site) * 2;
    UNROLL for (int k = 0; k < N; ++k) r[k] = p[(size_t)(k / 2) * stride * 2 + k % 2];
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
// The place of one real, for code that goes real by real and lane by lane.
template <class F> HD size_t place(int, int reals, int block, int real, int site, int stride, int) {
    const int n = sizeof(F) == 8 || reals % 4 != 0 ? 2 : 4;
    return ((size_t)(block * (reals / n) + real / n) * stride + site) * n + real % n;
}

// A block's integers are in chunks of eight or of four if N is a multiple of these; otherwise in chunks of eight, with
// a four and a two for the rest.
template <int N> struct short_chunk { using type = int; };
template <> struct short_chunk<8> { using type = int4; };
template <> struct short_chunk<4> { using type = int2; };
HD constexpr int shorts_of(int n) { return n % 8 != 0 && n % 4 == 0 ? 4 : n >= 8 ? 8 : n >= 4 ? 4 : 2; }
// Integers are stored with 2^15 added, two per word, and read as the low bits of 2^23 + 2^15 + integer, since a GPU's
// own conversion of 16-bit integers is slow.
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
// The raised integers of a block, and the factor to multiply them by.
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

template <int N, int NB, class F> HD void load_unit_half(F* r, const void* field, int block, int site, int stride) {
    u32 words[N / 2];
    load_words<N>(words, (const char*)field + (size_t)2 * N * block * stride, site, stride);
    UNROLL for (int k = 0; k < N; ++k) r[k] = mad(F(1 / STEPS), raised(words[k / 2], k), F(-RAISED * (1 / STEPS)));
}
template <int N, int NB, class F> HD F load_unscaled_half(F* r, const void* field, int block, int site, int stride) {
    u32 words[N / 2];
    const F step = load_raised<N, NB, F>(words, field, block, site, stride);
    UNROLL for (int k = 0; k < N; ++k) r[k] = raised(words[k / 2], k) - RAISED;
    return step;
}
template <int N, int NB, class F> HD void store_half(void* field, int block, int site, int stride, const F* q, F norm) {
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
}
// The greatest |r|; NaN if any is not finite, since an integer could not hold it. The bits of |r| have the order of the
// values, with infinity and NaN above all others.
template <int N, class F> HD F greatest(const F* r) {
    int most = 0;
    UNROLL for (int k = 0; k < N; ++k) {
        const int bits = __float_as_int(r[k]) & 0x7fffffff;
        most = bits > most ? bits : most;
    }
    const F norm = __int_as_float(most);
    return norm + mad(F{}, norm, F{});
}

template <class F> HD F load_ninth(const void* field, int mu, int site, int stride) {
    const size_t at = (size_t)mu * stride + site;
    if constexpr (is_half<F>()) return F(1 / STEPS) * F(__ldg((const short*)field + at));
    else return __ldg((const F*)field + at);
}
template <class F> HD void store_ninth(void* field, int mu, int site, int stride, F r) {
    const size_t at = (size_t)mu * stride + site;
    if constexpr (is_half<F>()) ((short*)field)[at] = short(__float_as_int(STEPS * r + ROUND));
    else ((F*)field)[at] = r;
}
