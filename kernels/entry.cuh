// The frame of a GPU kernel around a site's function; src/device/cuda/nvrtc.rs writes the kernel itself.
#pragma once
#include "faces.cuh"
#include "sum.cuh"

#ifndef HMC_BLOCK
#define HMC_BLOCK 128
#endif

constexpr int ALL_WORDS = MAX_SUMS * WORDS + 1;
// What all threads do before and after a kernel's sites. A hop that waits for its neighbours may begin while the kernel
// that packs for it runs: it reads nothing of that one, but must not end before it, for later kernels wait for the hop
// alone.
HD void let_next_begin() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}
HD void wait_for_last() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" : : : "memory");
#endif
}
// A block packs one chunk. Faces without data have the flag of a chunk, too: their rank is then done with earlier ones.
HD void raise_when_packed(const Geometry& g, const Outgoing& a) {
    if (a.chunk == 1) return;
    __syncthreads();
    const int k = threadIdx.x;
    if (k == 8) {
        const FacePlace p = face_at(g, a, blockIdx.x * FACE_CHUNK);
        raise_flag(a.signal, p.face, p.i / FACE_CHUNK);
    } else if (k < 8 && blockIdx.x == 0 && a.wire[k] == nullptr) {
        raise_flag(a.signal, k, 0);
    }
}
template <class A> HD void before_sites(const A&) {}
template <class A> HD void after_sites(const A&) {}
HD void before_sites(const WilsonFace&) { let_next_begin(); }
HD void before_sites(const StaggeredFace&) { let_next_begin(); }
HD void after_sites(const WilsonFace& a) { raise_when_packed(a.g, a.faces); }
HD void after_sites(const StaggeredFace& a) { raise_when_packed(a.g, a.faces); }
HD void after_sites(const Hopping& a) { if (GHOSTS && a.places.wait.flags) wait_for_last(); }
HD void after_sites(const WilsonHop& a) { after_sites(a.hop); }
HD void after_sites(const SliceMatrixOfHops& a) { after_sites(a.hop); }
HD void after_sites(const StaggeredHop& a) { if (GHOSTS && a.places.wait.flags) wait_for_last(); }

// The places of a launch's sums (src/device/cuda/mod.rs has the same struct).
struct SumPlaces {
    i64* words;              // [COUNT][WORDS], the maximum; the number of blocks that have added to them
    volatile i64* host;      // the finished words; their number
    double* rounded;         // [COUNT], for later launches
    i64 number;              // the number of these sums
    const u64* of_ranks;     // addresses of each rank's memory for the others' words; null if the sums are this rank's alone
    int rank, ranks;
    u32 round;               // the number of these sums among those of all ranks
};

// A word summed over ranks, or the greatest. A half of a word travels in one store with the number of its round, so
// whoever sees the number has the half. Rounds take turns with two places: a rank that begins round n + 2 has read all of
// round n + 1, whose senders had read round n.
HD i64 over_ranks(i64 own, int k, bool greatest, const SumPlaces& to) {
    const auto places = [&](int of, int from) {
        return (volatile u64*)to.of_ranks[of] + ((size_t)((to.round & 1) * to.ranks + from) * ALL_WORDS + k) * 2;
    };
    const u64 round = (u64)to.round << 32;
    for (int r = 0; r < to.ranks; ++r) {
        if (r == to.rank) continue;
        volatile u64* p = places(r, to.rank);
        p[0] = round | (u32)own;
        p[1] = round | (u32)((u64)own >> 32);
    }
    i64 all = own;
    for (int r = 0; r < to.ranks; ++r) {
        if (r == to.rank) continue;
        volatile u64* p = places(to.rank, r);
        u64 low, high;
        while (((low = p[0]) ^ round) >> 32) {}
        while (((high = p[1]) ^ round) >> 32) {}
        const i64 word = (i64)(high << 32 | (u32)low);
        if (greatest) all = word > all ? word : all;
        else all += word;
    }
    return all;
}

// Adds a thread's sums to the global ones, and raises the maximum. The last block to finish adds those of other ranks,
// copies them to the host, clears them for the next sum, writes them rounded for later launches, and finally writes
// their number.
template <int COUNT> HD void add_to_global(const Accumulator& sum, const SumPlaces& to) {
    i64* words = to.words;
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
    if (k <= COUNT * WORDS) {
        i64 v = (i64)atomicExch((unsigned long long*)words + k, 0ull);
        if (to.of_ranks) v = over_ranks(v, k, k == COUNT * WORDS, to);
        to.host[k] = part[0][k] = v;
    }
    __threadfence_system();
    __syncthreads();
    if (k < COUNT) to.rounded[k] = rounded_sum(part[0] + k * WORDS);
    if (k == 0) {
        words[ALL_WORDS] = 0;
        __threadfence_system();
        to.host[ALL_WORDS] = to.number;
    }
}
