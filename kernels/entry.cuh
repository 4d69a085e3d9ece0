// The frame of a GPU kernel around a site's function; src/device/cuda/nvrtc.rs writes the kernel itself.
#pragma once
#include "faces.cuh"

#ifndef HMC_BLOCK
#define HMC_BLOCK 128
#endif

// A block has packed one chunk.
HD void raise_when_packed(const Geometry& g, const Outgoing& a) {
    if (a.chunk == 1) return;
    __syncthreads();
    if (threadIdx.x <= 8) raise_packed(g, a, blockIdx.x, threadIdx.x);
}
template <class A> HD void end(const A&) {}
HD void end(const WilsonFace& a) { raise_when_packed(a.g, a.faces); }
HD void end(const StaggeredFace& a) { raise_when_packed(a.g, a.faces); }
HD void end(const LinkFace& a) { raise_when_packed(a.g, a.faces); }
HD void end(const StaggeredLinkFace& a) { raise_when_packed(a.g, a.faces); }
// The number of this block among those of a launch's sites or teams. The first blocks of a hop pack a chunk each, and have none.
template <class F, class A> HD int block_of(const A& a) {
    if constexpr (!GHOSTS || same<decltype(hop_of(a)), NoHop>) {
        return blockIdx.x;
    } else {
        const auto& hop = hop_of(a);
        const int block = blockIdx.x - hop.places.packing;
        if (block < 0) {
            for (int i = threadIdx.x; i < FACE_CHUNK; i += blockDim.x) pack_site<F>(hop, blockIdx.x * FACE_CHUNK + i);
            raise_when_packed(hop.g, hop.places.packs);
        }
        return block;
    }
}

// The places of a launch's sums (src/device/cuda/mod.rs has the same struct).
struct SumPlaces {
    i64* words;              // [COUNT][WORDS], the maximum; the number of blocks that have added to them
    volatile u64* host;      // the finished words in halves, each with the number of these sums above it
    double* rounded;         // [COUNT], for later launches
    i64 number;              // the number of these sums
    RankRound ranks;          // without addresses if the sums are this rank's alone
};

// Adds a thread's sums to the global ones, and raises the maximum. The last block to finish adds those of other ranks,
// copies them to the host, clears them for the next sum, and writes them rounded for later launches. A half word and the
// number travel in one store, so no store waits for others: a fence to the host takes a microsecond.
template <int COUNT> HD void add_to_global(Accumulator& sum, const SumPlaces& to) {
    i64* words = to.words;
    UNROLL for (int n = 0; n < COUNT; ++n) carry_bins(sum.words[n]);
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
    if (k <= COUNT * WORDS) part[0][k] = (i64)atomicExch((unsigned long long*)words + k, 0ull);
    __syncthreads();
    if (k < COUNT) carry_bins(part[0] + k * WORDS);
    __syncthreads();
    if (k <= COUNT * WORDS) {
        i64 v = part[0][k];
        if (to.ranks.of_ranks) v = over_ranks(v, k, k == COUNT * WORDS, to.ranks);
        part[0][k] = v;
        const u64 number = (u64)to.number << 32;
        to.host[2 * k] = number | (u32)v;
        to.host[2 * k + 1] = number | (u32)((u64)v >> 32);
    }
    __syncthreads();
    if (k < COUNT) to.rounded[k] = rounded_sum(part[0] + k * WORDS);
    if (k == 0) words[ALL_WORDS] = 0;
}
