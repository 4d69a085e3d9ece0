// The frame of a GPU kernel around a site's function; src/device/cuda/nvrtc.rs writes the kernel itself.
#pragma once
#include "sum.cuh"

#ifndef HMC_BLOCK
#define HMC_BLOCK 128
#endif

// Adds a thread's sums to the global ones, and raises the maximum: words[COUNT][WORDS], max. The last block to finish
// copies them to the host, clears them for the next sum, writes them rounded to `sums`, for later launches, and finally
// writes `turn`.
constexpr int ALL_WORDS = MAX_SUMS * WORDS + 1;
template <int COUNT> HD void add_to_global(const Accumulator& sum, i64* words, volatile i64* host, double* sums, i64 turn) {
    __shared__ i64 part[HMC_BLOCK / WARP][COUNT * WORDS + 1];
    const int lane_id = threadIdx.x & 31, warp = threadIdx.x >> 5;
    UNROLL for (int n = 0; n < COUNT; ++n) UNROLL for (int k = 0; k < WORDS; ++k) {
        i64 v = sum.words[n][k];
        UNROLL for (int o = 16; o; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
        if (lane_id == 0) part[warp][n * WORDS + k] = v;
    }
    i64 m = sum.max;
    UNROLL for (int o = 16; o; o >>= 1) {
        const i64 other = __shfl_down_sync(0xffffffffu, m, o);
        m = other > m ? other : m;
    }
    if (lane_id == 0) part[warp][COUNT * WORDS] = m;
    __syncthreads();
    const int k = threadIdx.x;
    if (k <= COUNT * WORDS) {
        i64 v = part[0][k];
        for (int w = 1; w < HMC_BLOCK / WARP; ++w) {
            if (k == COUNT * WORDS) v = part[w][k] > v ? part[w][k] : v;
            else v += part[w][k];
        }
        if (k == COUNT * WORDS) {
            if (v > 0) atomicMax((unsigned long long*)words + k, (unsigned long long)v);
        } else if (v != 0) {
            atomicAdd((unsigned long long*)words + k, (unsigned long long)v);
        }
    }
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (k == 0) last = atomicAdd((unsigned long long*)words + ALL_WORDS, 1ull) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    if (k <= COUNT * WORDS) host[k] = part[0][k] = (i64)atomicExch((unsigned long long*)words + k, 0ull);
    __threadfence_system();
    __syncthreads();
    if (k < COUNT) sums[k] = rounded_sum(part[0] + k * WORDS);
    if (k == 0) {
        words[ALL_WORDS] = 0;
        __threadfence_system();
        host[ALL_WORDS] = turn;
    }
}
