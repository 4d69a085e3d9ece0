// Sums over sites that do not depend on the order of summation (src/math/exact_sum.rs is the host's part).
//
// A site's double is split on five binary grids of 40 bits, 2^20 .. 2^-140, each of which is summed in int64. Values
// that are too large (2^70) or NaN are only counted. The maximum of non-negative doubles is the maximum of their bit
// patterns.
//
// A value adds at most 2^39 to a bin but the first, so 2^24 equal ones could fill an int64: what has summed CARRY_SITES
// sites, or as many partial sums as a launch has, carries into the bins before.
#pragma once
#include "site.cuh"

constexpr int BINS = WORDS - 1;
constexpr int CARRY_SITES = 1 << 16;
// All bins but the first into [0, 2^40); the sum is the same.
template <class I> HD void carry_bins(I* bins) {
    UNROLL for (int k = BINS - 1; k > 0; --k) {
        bins[k - 1] = bins[k - 1] + (bins[k] >> 40);
        bins[k] = bins[k] & ((1ll << 40) - 1);
    }
}
HD double not_a_number() { return double_of(0x7ff8000000000000ll); }

// 1.5 * 2^(52 + e_k), e_k = 20 - 40 k, as bits and as a number. Written so that it costs nothing even where a compiler
// does not unroll the loop over k.
HD i64 magic_bits(int k) { return (i64)(1023 + 72 - 40 * k) << 52 | 1ll << 51; }
HD double magic(int k) { return double_of(magic_bits(k)); }

#if HMC_LANES > 1
// These grids in every lane of a vector.
template <class D, class I> struct Bins {
    I words[BINS];
    // Returns false, and adds nothing, if a lane is too large or NaN.
    HD bool add(D x) {
        const D limit = D{} + 0x1p70;
        if (!all_lanes(absolute(x) < limit)) return false;
        UNROLL for (int k = 0; k < BINS; ++k) {
            const D m = D{} + magic(k), t = x + m;
            words[k] = words[k] + ((I)t - (I)m);
            x = x - (t - m);
        }
        return true;
    }
    HD void carry() { carry_bins(words); }
    HD i64 total(int k) const {
        i64 r = 0;
        for (unsigned l = 0; l < sizeof(I) / 8; ++l) r += words[k][l];
        return r;
    }
};
template <class D> struct bins_of { using type = Bins<D, typename vector_of<i64, sizeof(D) / 8>::type>; };
template <class V> struct Bins<Pair<V>, void> {
    typename bins_of<V>::type lo, hi;
    HD void carry() {
        lo.carry();
        hi.carry();
    }
    HD i64 total(int k) const { return lo.total(k) + hi.total(k); }
};
template <class V> struct bins_of<Pair<V>> { using type = Bins<Pair<V>, void>; };
#endif

struct Accumulator {
    i64 words[MAX_SUMS][WORDS];
    i64 max;
#if HMC_LANES > 1
    typename bins_of<double_lanes>::type bins[MAX_SUMS];
#endif

    HD void clear() { *this = Accumulator{}; }
    HD void add_one(int n, double x) {
        if (!(x < 0x1p70 && x > -0x1p70)) {
            words[n][BINS] += 1;
            return;
        }
        UNROLL for (int k = 0; k < BINS; ++k) {
            const double t = x + magic(k);
            words[n][k] += bits_of(t) - magic_bits(k);
            x -= t - magic(k);
        }
    }
    // Adds every lane of x to sum n.
    template <class D> HD void add(int n, const D& x) {
#if HMC_LANES > 1
        if constexpr (lane<D>::W > 1) {
            if (add_lanes(bins[n], x)) return;
        }
#endif
        for (int l = 0; l < lane<D>::W; ++l) add_one(n, get(x, l));
    }
#if HMC_LANES > 1
    template <class B, class D> HD static bool add_lanes(B& bins, const D& x) { return bins.add(x); }
    template <class B, class V> HD static bool add_lanes(B& bins, const Pair<V>& x) {
        const B before = bins;
        if (add_lanes(bins.lo, x.lo) && add_lanes(bins.hi, x.hi)) return true;
        bins = before;
        return false;
    }
#endif
    HD void carry() {
        UNROLL for (int n = 0; n < MAX_SUMS; ++n) {
            carry_bins(words[n]);
#if HMC_LANES > 1
            bins[n].carry();
#endif
        }
    }
    // Word k of sum n, summed over lanes.
    HD i64 total(int n, int k) const {
#if HMC_LANES > 1
        if (k < BINS) return words[n][k] + bins[n].total(k);
#endif
        return words[n][k];
    }
    template <class D> HD void raise(const D& x) {
        for (int l = 0; l < lane<D>::W; ++l) {
            const double v = get(x, l);
            const i64 b = v >= 0 ? bits_of(v) : bits_of(not_a_number());  // above all
            max = b > max ? b : max;
        }
    }
};

// The sum that these words make, rounded (src/math/exact_sum.rs: `value`).
HD double rounded_sum(const i64* words) {
    if (words[BINS] != 0) return not_a_number();
    i64 bins[BINS];
    UNROLL for (int k = 0; k < BINS; ++k) bins[k] = words[k];
    carry_bins(bins);
    const bool negative = bins[0] < 0;
    if (negative) {
        UNROLL for (int k = 0; k < BINS; ++k) bins[k] = -bins[k];
        carry_bins(bins);
    }
    double sum = 0;
    UNROLL for (int k = BINS - 1; k >= 0; --k) sum = sum + double(bins[k]) * double_of((i64)(1023 + 20 - 40 * k) << 52);
    return negative ? -sum : sum;
}
