// What ranks do in each other's memory: flags, by which one waits for what the other packed, and sums.
#pragma once
#include "sum.cuh"

// Waits until the neighbour has raised the flag of a chunk of face k; what it packed there is then here. Only a GPU's ranks
// do, and they wait for nothing that comes through the host.
HD void wait_for_chunk(const HaloWait& a, int k, int chunk) {
    if constexpr (GPU) {
        if (a.flags != nullptr && chunk < a.chunks[k])
            while (acquired((const int*)a.flags + k * a.stride + chunk) - a.number < 0) wait_a_little();
    }
}
HD void raise_flag(const HaloSignal& a, int k, int chunk) {
    if (a.flags[k] != nullptr) release((int*)a.flags[k] + k * a.stride + chunk, a.number);
}
HD void raise_flags(const HaloSignal& a, int i) { raise_flag(a, i / a.stride, i % a.stride); }
HD void await_flags(const HaloWait& a, int i) {
    wait_for_chunk(a, i / a.stride, i % a.stride);
}

constexpr int ALL_WORDS = MAX_SUMS * WORDS + 1;
// A word summed over ranks, or the greatest. A half of a word travels in one store with the number of its round, so
// whoever sees the number has the half. Rounds take turns with two places: a rank that begins round n + 2 has read all of
// round n + 1, whose senders had read round n.
HD i64 over_ranks(i64 own, int k, bool greatest, const SumRound& to) {
    const auto places = [&](int of, int from) {
        return (volatile u64*)((const u64*)to.of_ranks)[of] + ((size_t)((to.round & 1) * to.ranks + from) * ALL_WORDS + k) * 2;
    };
    const u64 round = (u64)(u32)to.round << 32;
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
        while (((low = p[0]) ^ round) >> 32) wait_a_little();
        while (((high = p[1]) ^ round) >> 32) wait_a_little();
        const i64 word = (i64)(high << 32 | (u32)low);
        if (greatest) all = word > all ? word : all;
        else all += word;
    }
    return all;
}

// For a device whose kernels make the sums of one rank only.
HD void add_other_ranks(const SumOverRanks& a, int k) {
    if constexpr (GPU) {
        i64* words = (i64*)a.words;
        words[k] = over_ranks(words[k], k, k == a.greatest, a.round);
    }
}

#define RANKS_DOUBLE_KERNELS(SITE, SUM)                              \
    SITE(ranks, halo_signal, HaloSignal, raise_flags)                \
    SITE(ranks, halo_wait, HaloWait, await_flags)                    \
    SITE(ranks, sum_over_ranks, SumOverRanks, add_other_ranks)
