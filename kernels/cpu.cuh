// A CPU core: F is a number, or the SIMD vector of HMC_LANES numbers (platform.cuh).
#pragma once

HD float mad(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
HD double mad(double a, double b, double c) { return __builtin_fma(a, b, c); }
HD float nmad(float a, float b, float c) { return __builtin_fmaf(-a, b, c); }
HD double nmad(double a, double b, double c) { return __builtin_fma(-a, b, c); }
HD double square_root(double x) { return __builtin_sqrt(x); }
HD float square_root(float x) { return __builtin_sqrtf(x); }
HD double widen(float x) { return x; }
HD double widen(double x) { return x; }
template <class To, class From> HD To same_bits(From x) {
    To r;
    __builtin_memcpy(&r, &x, sizeof r);
    return r;
}
HD i64 bits_of(double x) { return same_bits<i64>(x); }
HD double double_of(i64 bits) { return same_bits<double>(bits); }
HD u32 word_of(float x) { return same_bits<u32>(x); }
HD float float_of(u32 word) { return same_bits<float>(word); }
template <class T> HD T read_only(const T* p) { return *p; }
HD int acquired(const int* p) { return *(const volatile int*)p; }
HD void release(int* p, int x) { *(volatile int*)p = x; }

#define COMMA ,
template <class R, int N> struct vector_of { typedef R type __attribute__((vector_size(sizeof(R) * N))); };

#ifdef __FMA__
#define HMC_MAD(V, FMADD, FNMADD)                                    \
    HD V mad(V a, V b, V c) { return (V)FMADD(a, b, c); }            \
    HD V nmad(V a, V b, V c) { return (V)FNMADD(a, b, c); }
HMC_MAD(vector_of<float COMMA 4>::type, _mm_fmadd_ps, _mm_fnmadd_ps)
HMC_MAD(vector_of<float COMMA 8>::type, _mm256_fmadd_ps, _mm256_fnmadd_ps)
HMC_MAD(vector_of<double COMMA 4>::type, _mm256_fmadd_pd, _mm256_fnmadd_pd)
#ifdef __AVX512F__
HMC_MAD(vector_of<float COMMA 16>::type, _mm512_fmadd_ps, _mm512_fnmadd_ps)
HMC_MAD(vector_of<double COMMA 8>::type, _mm512_fmadd_pd, _mm512_fnmadd_pd)
#endif
#undef HMC_MAD
#endif

// Two vectors as one, if W lanes are wider than a register.
template <class V> struct Pair { V lo, hi; };
template <class F> constexpr bool two_registers = false;
template <class V> constexpr bool two_registers<Pair<V>> = true;
template <class V> HD Pair<V> operator+(Pair<V> a, Pair<V> b) { return {a.lo + b.lo, a.hi + b.hi}; }
template <class V> HD Pair<V> operator-(Pair<V> a, Pair<V> b) { return {a.lo - b.lo, a.hi - b.hi}; }
template <class V> HD Pair<V> operator*(Pair<V> a, Pair<V> b) { return {a.lo * b.lo, a.hi * b.hi}; }
template <class V> HD Pair<V> operator/(Pair<V> a, Pair<V> b) { return {a.lo / b.lo, a.hi / b.hi}; }
template <class V> HD Pair<V> operator-(Pair<V> a) { return {-a.lo, -a.hi}; }

template <class R, int N, bool FITS> struct choose_vector { using type = typename vector_of<R, N>::type; };
template <class R, int N> struct choose_vector<R, N, false> {
    using type = Pair<typename choose_vector<R, N / 2, (N / 2 * sizeof(R) <= HMC_REGISTER)>::type>;
};
template <class R, int N> struct lanes_of {
    using type = typename choose_vector<R, N, (N * sizeof(R) <= HMC_REGISTER)>::type;
};
template <class R> struct lanes_of<R, 1> { using type = R; };
template <class V> HD Pair<V> mad(Pair<V> a, Pair<V> b, Pair<V> c) {
    return {mad(a.lo, b.lo, c.lo), mad(a.hi, b.hi, c.hi)};
}
template <class V> HD Pair<V> nmad(Pair<V> a, Pair<V> b, Pair<V> c) {
    return {nmad(a.lo, b.lo, c.lo), nmad(a.hi, b.hi, c.hi)};
}


#if HMC_LANES > 1
using float_lanes = typename lanes_of<float, HMC_LANES>::type;
using double_lanes = typename lanes_of<double, HMC_LANES>::type;
template <> struct lane<float_lanes> { using real = float; using wide = double_lanes; static constexpr int W = HMC_LANES; };
template <> struct lane<double_lanes> { using real = double; using wide = double_lanes; static constexpr int W = HMC_LANES; };
template <class To, class From> HD To in_register(From v) {
#ifdef __AVX512F__
    if constexpr (sizeof(From) == 32 && sizeof(To) == 64) return (To)_mm512_cvtps_pd((__m256)v);
#endif
    return __builtin_convertvector(v, To);
}
// Register by register: compilers do not find the vectors in loops over lanes.
template <class To, class From> HD To convert(From v) {
    using Half = typename vector_of<float, HMC_LANES / 2>::type;
    if constexpr (two_registers<To> && two_registers<From>) {
        using V = decltype(To::lo);
        return {in_register<V>(v.lo), in_register<V>(v.hi)};
    } else if constexpr (two_registers<To>) {
        using V = decltype(To::lo);
        Half half[2];
        __builtin_memcpy(half, &v, sizeof v);
        return {in_register<V>(half[0]), in_register<V>(half[1])};
    } else if constexpr (two_registers<From>) {
        const Half half[2] = {in_register<Half>(v.lo), in_register<Half>(v.hi)};
        To r;
        __builtin_memcpy(&r, half, sizeof r);
        return r;
    } else {
        return in_register<To>(v);
    }
}
HD double_lanes widen(float_lanes v) { return convert<double_lanes>(v); }
HD double_lanes widen(double_lanes v) { return v; }
template <class F> HD F narrow(double_lanes v) { return convert<F>(v); }
#endif

// The same number in every lane: x - 0 is x to the bit, and one instruction.
template <class F> HD F splat(real_of<F> x) {
    if constexpr (lane<F>::W == 1) {
        return x;
    } else if constexpr (two_registers<F>) {
        using V = decltype(F::lo);
        return {x - V{}, x - V{}};
    } else {
        return x - F{};
    }
}
template <class F> HD F root(F x) {
    F r;
    for (int l = 0; l < lane<F>::W; ++l) set(r, l, square_root(get(x, l)));
    return r;
}
#ifdef __AVX__
#define HMC_ROOT(V, SQRT) HD V root(V x) { return (V)SQRT(x); }
HMC_ROOT(vector_of<float COMMA 4>::type, _mm_sqrt_ps)
HMC_ROOT(vector_of<float COMMA 8>::type, _mm256_sqrt_ps)
HMC_ROOT(vector_of<double COMMA 4>::type, _mm256_sqrt_pd)
#ifdef __AVX512F__
HMC_ROOT(vector_of<float COMMA 16>::type, _mm512_sqrt_ps)
HMC_ROOT(vector_of<double COMMA 8>::type, _mm512_sqrt_pd)
#endif
#undef HMC_ROOT
#endif
template <class V> HD Pair<V> root(Pair<V> x) { return {root(x.lo), root(x.hi)}; }
template <class V> HD Pair<V> larger(Pair<V> a, Pair<V> b) { return {larger(a.lo, b.lo), larger(a.hi, b.hi)}; }
template <class V> HD Pair<V> where_negative(Pair<V> x, Pair<V> a, Pair<V> b) {
    return {where_negative(x.lo, a.lo, b.lo), where_negative(x.hi, a.hi, b.hi)};
}

// Whether every lane of a comparison of doubles holds.
template <class B> HD bool all_lanes(const B& b) {
#ifdef __AVX512DQ__
    if constexpr (sizeof(B) == 64) return _mm512_movepi64_mask((__m512i)b) == 0xff;
#endif
    i64 all = -1;
    for (unsigned l = 0; l < sizeof(B) / 8; ++l) all &= b[l];
    return all;
}

// Lane l of the result is lane table[l] of v.
template <class F> HD F permute(F v, const int* table) {
    if constexpr (lane<F>::W > 1) {
#ifdef __AVX512F__
        if constexpr (lane<F>::W == 16 && sizeof(F) == 64) return (F)_mm512_permutexvar_ps(_mm512_loadu_si512(table), v);
        if constexpr (lane<F>::W == 8 && sizeof(F) == 64)
            return (F)_mm512_permutexvar_pd(_mm512_cvtepi32_epi64(_mm256_loadu_si256((const __m256i*)table)), v);
        if constexpr (lane<F>::W == 4 && sizeof(F) == 32)
            return (F)_mm256_permutexvar_pd(_mm256_cvtepi32_epi64(_mm_loadu_si128((const __m128i*)table)), v);
#endif
#ifdef __AVX2__
        if constexpr (lane<F>::W == 8 && sizeof(F) == 32)
            return (F)_mm256_permutevar8x32_ps(v, _mm256_loadu_si256((const __m256i*)table));
        if constexpr (lane<F>::W == 4 && sizeof(F) == 16)
            return (F)_mm_permutevar_ps(v, _mm_loadu_si128((const __m128i*)table));
#endif
        F r;
        for (int l = 0; l < lane<F>::W; ++l) set(r, l, get(v, table[l]));
        return r;
    }
    return v;
}
// The same for two registers.
template <class V> HD Pair<V> permute(Pair<V> v, const int* table) {
    constexpr int N = sizeof(V) / sizeof(v.lo[0]);
    using Index = typename vector_of<i64, N>::type;
    if constexpr (sizeof(v.lo[0]) == 8) {
        typename vector_of<int, N>::type half[2];
        __builtin_memcpy(half, table, sizeof half);
        return {__builtin_shuffle(v.lo, v.hi, __builtin_convertvector(half[0], Index)),
                __builtin_shuffle(v.lo, v.hi, __builtin_convertvector(half[1], Index))};
    } else {
        Pair<V> r;
        for (int l = 0; l < 2 * N; ++l) set(r, l, get(v, table[l]));
        return r;
    }
}
