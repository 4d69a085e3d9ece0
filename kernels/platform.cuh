// The hardware: a thread of a GPU, the same source on a CPU (HMC_EMULATION), or a CPU core with SIMD lanes. All
// differences are here and in the files included here; other files use `if constexpr (GPU)`.
//
// THE BIT RULE: a product that is followed by a sum is written with `mad` (a b + c) or `nmad` (c - a b), which are one
// fused operation on every target. Compilers do not contract anything else (-ffp-contract=off, --fmad=false). So the
// bits do not depend on W, target and compiler.
#pragma once

typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;

#ifdef HMC_EMULATION
#include "emulation.h"
constexpr bool EMULATED = true;
#else
constexpr bool EMULATED = false;
#endif
#if defined __CUDACC__ || defined HMC_EMULATION
#define ON_GPU 1
#define HD __device__ __forceinline__
#define UNROLL _Pragma("unroll")
#define NO_UNROLL _Pragma("unroll 1")
#define UNROLL_4 _Pragma("unroll 4")
#define UNROLL_8 _Pragma("unroll 8")
#define UNROLL_16 _Pragma("unroll 16")
// In double, full unrolling takes too many registers.
#define UNROLL_SLICES _Pragma("unroll sizeof(F) == 8 ? 4 : 64")
#define HARDWARE "gpu.cuh"
#define MEMORY "gpu_memory.cuh"
#else
#define ON_GPU 0
#define HD inline __attribute__((always_inline))
#define UNROLL
#define NO_UNROLL
#define UNROLL_4
#define UNROLL_8
#define UNROLL_16
#define UNROLL_SLICES
#define HARDWARE "cpu.cuh"
#define MEMORY "cpu_memory.cuh"
#endif
constexpr bool GPU = ON_GPU;
constexpr int WARP = 32;
// Whether any direction may be cut; a constant in a GPU's kernels.
#ifndef HMC_GHOSTS
#define HMC_GHOSTS true
#endif
constexpr bool GHOSTS = HMC_GHOSTS;

// Blocks of 128 threads of the kernel with arguments A that a GPU's multiprocessor holds at least, which limits registers.
template <class A> constexpr int RESIDENT = 1;
// No load is moved across it, so that fewer matrices are in registers at once.
HD void keep_loads_apart() {
    if constexpr (GPU) asm volatile("" ::: "memory");
}

// Between two looks at memory that another rank is to write.
HD void wait_a_little() {
#ifdef HMC_EMULATION
    sched_yield();
#endif
}

// Whether the threads of a team run concurrently, and the barrier for all of them.
#if defined __CUDACC__
constexpr bool THREADS_AT_ONCE = true;
HD int thread_of_team() { return threadIdx.x; }
HD void wait_for_team() { __syncthreads(); }
#else
constexpr bool THREADS_AT_ONCE = false;
HD int thread_of_team() { return 0; }
HD void wait_for_team() {}
#endif

// The number of lanes of F, the type of its reals, and the type of as many doubles.
template <class F> struct lane;
template <> struct lane<float> { using real = float; using wide = double; static constexpr int W = 1; };
template <> struct lane<double> { using real = double; using wide = double; static constexpr int W = 1; };
template <class F> using real_of = typename lane<F>::real;
template <class F> using wide_of = typename lane<F>::wide;

// One lane of a vector; `get` and `set` are also for code that goes lane by lane.
template <class F> HD real_of<F> get(const F& v, int l) { return reinterpret_cast<const real_of<F>*>(&v)[l]; }
template <class F> HD void set(F& v, int l, real_of<F> x) { reinterpret_cast<real_of<F>*>(&v)[l] = x; }

// Per lane: the greater of a and b; a if x is negative, else b.
template <class F> HD F larger(F a, F b) { return a > b ? a : b; }
template <class F> HD F where_negative(F x, F a, F b) { return x < F{} ? a : b; }
template <class F> HD F narrow(double x) { return F(x); }

#include HARDWARE
