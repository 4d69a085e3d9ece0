// Random fields. ChaCha12 as in rand_chacha: words 4-11 are the key, 12-13 the block counter, 14-15 the stream. The key
// is from the run's seed, the stream is the global site, and the counter is from (trajectory, purpose). So a field does
// not depend on ranks, lanes or device. Gaussians by Box-Muller, lane by lane.
#pragma once
#include "elementary.cuh"
#include "gauge.cuh"

HD u32 rotate(u32 x, int n) { return (x << n) | (x >> (32 - n)); }
HD void quarter_round(u32& a, u32& b, u32& c, u32& d) {
    a += b; d = rotate(d ^ a, 16);
    c += d; b = rotate(b ^ c, 12);
    a += b; d = rotate(d ^ a, 8);
    c += d; b = rotate(b ^ c, 7);
}
HD void chacha_block(u32* out, const int* key, u64 counter, u64 stream) {
    const u32 s[16] = {0x61707865u, 0x3320646eu, 0x79622d32u, 0x6b206574u, u32(key[0]), u32(key[1]), u32(key[2]), u32(key[3]),
                       u32(key[4]), u32(key[5]), u32(key[6]), u32(key[7]), u32(counter), u32(counter >> 32), u32(stream), u32(stream >> 32)};
    u32 x[16];
    UNROLL for (int i = 0; i < 16; ++i) x[i] = s[i];
    for (int r = 0; r < 6; ++r) {
        quarter_round(x[0], x[4], x[8], x[12]);
        quarter_round(x[1], x[5], x[9], x[13]);
        quarter_round(x[2], x[6], x[10], x[14]);
        quarter_round(x[3], x[7], x[11], x[15]);
        quarter_round(x[0], x[5], x[10], x[15]);
        quarter_round(x[1], x[6], x[11], x[12]);
        quarter_round(x[2], x[7], x[8], x[13]);
        quarter_round(x[3], x[4], x[9], x[14]);
    }
    UNROLL for (int i = 0; i < 16; ++i) out[i] = x[i] + s[i];
}
// Eight unit Gaussians.
HD void gaussians(double* g, const Stream& a, int block, i64 site) {
    u32 w[16];
    const u64 counter = (u64(u32(a.counter_high)) << 32 | u32(a.counter_low)) + u64(block);
    chacha_block(w, a.key, counter, u64(site));
    UNROLL for (int k = 0; k < 4; ++k) {
        const u64 first = u64(w[4 * k + 1]) << 32 | w[4 * k], second = u64(w[4 * k + 3]) << 32 | w[4 * k + 2];
        const double u = double(i64(first >> 11) + 1) * 0x1p-53, v = double(i64(second >> 11)) * 0x1p-53;
        const double r = square_root(-2 * natural_log(u));
        double sine, cosine;
        sin_cos_turns(v, sine, cosine);
        g[2 * k] = r * cosine;
        g[2 * k + 1] = r * sine;
    }
}
// N Gaussians per site, from block `first` on, in all lanes.
template <int N, class F, class A> HD void gaussian_lanes(F* p, const A& a, const Coord& c, int first) {
    for (int l = 0; l < lane<F>::W; ++l) {
        const i64 site = global_site(a.g, c, l);
        for (int b = 0; b < N / 8; ++b) {
            double g[8];
            gaussians(g, a.stream, first + b, site);
            for (int k = 0; k < 8; ++k) set(p[8 * b + k], l, real_of<F>(g[k]));
        }
    }
}
// p_a ~ N(0, 1)
template <class F> HD void random_momenta(const RandomMomenta& a, int i) {
    const int parity = parity_of_index<F>(a, i);
    const Coord c = coord_of(a.g, i, parity);
    for (int mu = 0; mu < 4; ++mu) {
        F p[8];
        gaussian_lanes<8>(p, a, c, mu);
        if (has_walls(a.g)) for (int k = 0; k < 8; ++k) p[k] = is_free<F>(a.g, c, mu) * p[k];
        store<8, 4>(momentum_half<F>(a.out, a.g, parity), mu, i, a.g.half, p);
    }
}
// A spinor of one slice, or a colour vector, of one parity; each real is scale * N(0, 1).
template <class F, int N> HD void random_field(const RandomField& a, int i) {
    F p[(N + 7) / 8 * 8];
    gaussian_lanes<(N + 7) / 8 * 8>(p, a, coord_of(a.g, i, a.parity), a.slice * ((N + 7) / 8));
    F scale = splat<F>(real_of<F>(a.scale));
    if (has_walls(a.g)) scale = scale * has_quarks<F>(a.g, coord_of(a.g, i, a.parity));
    for (int k = 0; k < N; ++k) p[k] = scale * p[k];
    store<N, 1>(a.out, 0, a.slice * a.g.half + i, a.slices * a.g.half, p);
}
// Random links from the Haar measure: Gaussian matrices made special unitary by Gram-Schmidt.
template <class F> HD void random_links(const RandomLinks& a, int i) {
    const int parity = parity_of_index<F>(a, i);
    const Coord c = coord_of(a.g, i, parity);
    void* half = half_field<F>(a.out, parity, a.g.half_bordered, 72);
    for (int mu = 0; mu < 4; ++mu) {
        F p[24];
        gaussian_lanes<24>(p, a, c, 3 * mu);
        Matrix<F> u;
        for (int k = 0; k < 9; ++k) u.e[k] = {p[2 * k], p[2 * k + 1]};
        reunitarise(u);
        store_matrix<4>(half, mu, bordered_index_of(a.g, c), a.g.half_bordered, u);
    }
}

#define RANDOM_KERNELS(SITE, SUM)                                      \
    SITE(random, random_field_24, RandomField, (random_field<F, 24>))  \
    SITE(random, random_field_6, RandomField, (random_field<F, 6>))
#define RANDOM_DOUBLE_KERNELS(SITE, SUM)                               \
    SITE(random, random_momenta, RandomMomenta, (random_momenta<F>))   \
    SITE(random, random_links, RandomLinks, (random_links<F>))
