// Sums over sites that do not depend on their order (src/math/exact_sum.rs has the other half).
//
// A site's double is split on five binary grids of 40 bits, 2^20 .. 2^-140, each summed in int64.
// What is too large (2^70) or no number is counted. A maximum of non-negative doubles is one of
// their bit patterns.
#pragma once
#include "site.cuh"

constexpr int BINS = 5, WORDS = BINS + 1, MAX_SUMS = 4;

HD constexpr double magic(int k) {  // 1.5 * 2^(52 + e_k), e_k = 20 - 40 k
    double m = 1.5;
    int e = 72 - 40 * k;
    for (; e > 0; --e) m *= 2;
    for (; e < 0; ++e) m /= 2;
    return m;
}
HD i64 bits_of(double x) {
#ifdef __CUDACC__
    return __double_as_longlong(x);
#else
    i64 r;
    __builtin_memcpy(&r, &x, sizeof r);
    return r;
#endif
}

struct Accumulator {
    i64 words[MAX_SUMS][WORDS];
    i64 max;

    HD void clear() {
        for (int n = 0; n < MAX_SUMS; ++n)
            for (int k = 0; k < WORDS; ++k) words[n][k] = 0;
        max = 0;
    }
    HD void add_one(int n, double x) {
        if (!(x < 0x1p70 && x > -0x1p70)) {
            words[n][BINS] += 1;
            return;
        }
        UNROLL for (int k = 0; k < BINS; ++k) {
            const double t = x + magic(k);
            words[n][k] += bits_of(t) - bits_of(magic(k));
            x -= t - magic(k);
        }
    }
    // Adds every lane of x to sum n.
    template <class D> HD void add(int n, const D& x) {
        for (int l = 0; l < lane<D>::W; ++l) add_one(n, get(x, l));
    }
    template <class D> HD void raise(const D& x) {
        for (int l = 0; l < lane<D>::W; ++l) {
            const double v = get(x, l);
            const i64 b = v >= 0 ? bits_of(v) : 0x7ff8000000000000ll;  // NaN is above all
            max = b > max ? b : max;
        }
    }
};
