// What ranks do in each other's memory: flags, by which one waits for what the other packed, and sums.
#pragma once
#include "sum.cuh"

// Waits until the neighbour has raised the flag of a chunk of face k; what it packed there is then here. Only a GPU's ranks
// do, and they wait for nothing that comes through the host. Numbers of exchanges go round after 2^32.
HD void wait_for_chunk(const HaloWait& a, int k, int chunk) {
    if constexpr (GPU) {
        if (a.flags != nullptr && chunk < a.chunks[k])
            while ((int)((u32)acquired((const int*)a.flags + k * a.stride + chunk) - (u32)a.number) < 0) wait_a_little();
    }
}
HD void raise_flag(const HaloSignal& a, int k, int chunk) {
    if (a.flags[k] != nullptr) release((int*)a.flags[k] + k * a.stride + chunk, a.number);
}
HD void raise_flags(const HaloSignal& a, int i) { raise_flag(a, i / a.stride, i % a.stride); }
HD void await_flags(const HaloWait& a, int i) {
    wait_for_chunk(a, i / a.stride, i % a.stride);
}

// Half words in the memory of all ranks. Each travels in one store with the number of its round, so whoever sees the number
// has it. Rounds take turns with `turns` places of `count` half words.
struct Exchange {
    int turns, count;
    HD volatile u64* at(const RankRound& to, int rank, i64 k) const {
        return (volatile u64*)((const u64*)to.of_ranks)[rank] + (i64)((u32)to.round % (u32)turns) * count + k;
    }
    HD void put(const RankRound& to, int rank, i64 k, u32 half) const {
        *at(to, rank, k) = (u64)(u32)to.round << 32 | half;
    }
    // Number k of this rank's memory, when it is there.
    HD u32 get(const RankRound& to, i64 k) const {
        volatile u64* p = at(to, to.rank, k);
        u64 v;
        while ((v = *p) >> 32 != (u32)to.round) wait_a_little();
        return (u32)v;
    }
};
// Gives the other ranks this one's word number k of `words`, and calls `with` with theirs. Two places are enough: a rank that
// begins round n + 2 has read all of round n + 1, whose senders had read round n.
template <class Work> HD void exchange_word(u64 own, int k, int words, const RankRound& to, Work with) {
    const Exchange halves = {2, 2 * words * to.ranks};
    for (int r = 0; r < to.ranks; ++r) {
        if (r == to.rank) continue;
        halves.put(to, r, ((i64)to.rank * words + k) * 2, (u32)own);
        halves.put(to, r, ((i64)to.rank * words + k) * 2 + 1, (u32)(own >> 32));
    }
    for (int r = 0; r < to.ranks; ++r) {
        if (r == to.rank) continue;
        const u64 low = halves.get(to, ((i64)r * words + k) * 2), high = halves.get(to, ((i64)r * words + k) * 2 + 1);
        with(high << 32 | low);
    }
}

constexpr int ALL_WORDS = MAX_SUMS * WORDS + 1;
// A word summed over ranks, or the greatest.
HD i64 over_ranks(i64 own, int k, bool greatest, const RankRound& to) {
    i64 all = own;
    exchange_word((u64)own, k, ALL_WORDS, to, [&](u64 other) {
        const i64 word = (i64)other;
        if (greatest) all = word > all ? word : all;
        else all += word;
    });
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
