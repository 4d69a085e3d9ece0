// A thread of a GPU (platform.cuh).
#pragma once

HD float mad(float a, float b, float c) { return fmaf(a, b, c); }
HD double mad(double a, double b, double c) { return fma(a, b, c); }
HD float nmad(float a, float b, float c) { return fmaf(-a, b, c); }
HD double nmad(double a, double b, double c) { return fma(-a, b, c); }
HD double square_root(double x) { return sqrt(x); }
HD float square_root(float x) { return sqrtf(x); }
HD double widen(float x) { return x; }
HD double widen(double x) { return x; }
HD i64 bits_of(double x) { return __double_as_longlong(x); }
HD double double_of(i64 bits) { return __longlong_as_double(bits); }
HD u32 word_of(float x) { return (u32)__float_as_int(x); }
HD float float_of(u32 word) { return __int_as_float((int)word); }
// Loads data that no kernel writes while this one runs.
template <class T> HD T read_only(const T* p) { return __ldg(p); }
// A number in memory that other GPUs write: what they wrote before they released it is then here.
HD int acquired(const int* p) {
#ifdef __CUDACC__
    int x;
    asm volatile("ld.acquire.sys.global.b32 %0, [%1];" : "=r"(x) : "l"(p) : "memory");
    return x;
#else
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
#endif
}
// Writes a number into memory of another GPU, after all that this one wrote.
HD void release(int* p, int x) {
#ifdef __CUDACC__
    asm volatile("st.release.sys.global.b32 [%0], %1;" : : "l"(p), "r"(x) : "memory");
#else
    __atomic_store_n(p, x, __ATOMIC_RELEASE);
#endif
}
template <class F> constexpr bool two_registers = false;
template <class F> HD F splat(real_of<F> x) { return x; }
template <class F> HD F root(F x) { return square_root(x); }
// Lane l of the result is lane table[l] of v.
template <class F> HD F permute(F v, const int*) { return v; }
