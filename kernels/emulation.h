// CUDA for a C++ compiler: what kernels use of it. A CPU then runs a GPU's kernels one thread after the other, on a
// GPU's layout of fields (src/device/cpu.rs).
#pragma once
#include <cstddef>
#include <sched.h>
#define __device__
#define __forceinline__ inline __attribute__((always_inline))

struct alignas(8) int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) double2 { double x, y; };

template <class T> __forceinline__ T __ldg(const T* p) { return *p; }
template <class T> __forceinline__ T __ldcg(const T* p) { return *p; }
template <class To, class From> __forceinline__ To reinterpreted(From x) {
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To r;
    __builtin_memcpy(&r, &x, sizeof r);
    return r;
}
__forceinline__ int __float_as_int(float x) { return reinterpreted<int>(x); }
__forceinline__ float __int_as_float(int x) { return reinterpreted<float>(x); }
// Four of the eight bytes of y and x, each selected by four bits of `selector`.
__forceinline__ unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    const unsigned long long bytes = (unsigned long long)y << 32 | x;
    unsigned r = 0;
    for (int k = 0; k < 4; ++k) r |= unsigned(bytes >> 8 * (selector >> 4 * k & 7) & 255) << 8 * k;
    return r;
}
__forceinline__ long long __double_as_longlong(double x) { return reinterpreted<long long>(x); }
__forceinline__ double __longlong_as_double(long long x) { return reinterpreted<double>(x); }
__forceinline__ float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
__forceinline__ double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
__forceinline__ float sqrtf(float x) { return __builtin_sqrtf(x); }
__forceinline__ double sqrt(double x) { return __builtin_sqrt(x); }
