// Additive Schwarz: minimal-residual steps in blocks, each with its own step length, so that nothing crosses blocks
// (Babich, Clark, Joo, Shi, Brower, Gottlieb, SC11, section 8.1). A block lies within one rank. A lane's box may hold
// parts of blocks or whole ones, so sites find their blocks lane by lane.
#pragma once
#include "blas.cuh"

// The block of a site in lane l, and the site's number among the block's sites of its parity.
HD void block_of(const Geometry& g, const BlockGrid& a, const Coord& c, int l, int& block, int& inside) {
    block = inside = 0;
    for (int mu = 3; mu >= 0; --mu) {
        const int x = lane_coord(g, l, mu) * outer(g, mu) + c.x[mu];
        block = block * a.blocks[mu] + x / a.block[mu];
        inside = inside * a.block[mu] + x % a.block[mu];
    }
    inside >>= 1;
}
HD int block_count(const BlockGrid& a) { return a.blocks[0] * a.blocks[1] * a.blocks[2] * a.blocks[3]; }

// Re (y, x), Im (y, x), |y|^2 for every site: x is the residual, y = M x.
template <class F> HD void block_products(const BlockProducts& a, int i) {
    F x[24], y[24];
    load24(x, a.x, i, half_of(a.g));
    load24(y, a.y, i, half_of(a.g));
    const wide_of<F> re = site_dot(y, x), im = site_dot_imaginary(y, x), norm = site_dot(y, y);
    const Coord c = coord_of(a.g, i, a.parity);
    const int blocks = block_count(a.grid);
    for (int l = 0; l < lane<F>::W; ++l) {
        int block, inside;
        block_of(a.g, a.grid, c, l, block, inside);
        double* to = (double*)a.products + 3 * ((i64)inside * blocks + block);
        to[0] = get(re, l);
        to[1] = get(im, l);
        to[2] = get(norm, l);
    }
}
// A block's sites are summed in parts, in an order that depends only on the block's extents.
HD int sites_of_block(const BlockGrid& a) { return a.block[0] * a.block[1] * a.block[2] * a.block[3] / 2; }
// Adds the items first, first + step, .. below `end` of a block, in four chains.
HD void add_items(double* sum, const double* table, int blocks, int block, int first, int step, int end) {
    double s[3][4];
    for (int k = 0; k < 3; ++k) for (int j = 0; j < 4; ++j) s[k][j] = 0;
    int chain = 0;
    for (int n = first; n < end; n += step, chain = (chain + 1) & 3) {
        const double* from = table + 3 * ((i64)n * blocks + block);
        for (int k = 0; k < 3; ++k) s[k][chain] = s[k][chain] + from[k];
    }
    for (int k = 0; k < 3; ++k) sum[k] = (s[k][0] + s[k][1]) + (s[k][2] + s[k][3]);
}
// Part i / blocks of block i % blocks: sums the products of its sites into the place of its first site.
template <class F> HD void block_part(const BlockPart& a, int i) {
    const int blocks = block_count(a.grid), block = i % blocks, part = i / blocks, sites = sites_of_block(a.grid);
    const int first = part * PART, end = first + PART < sites ? first + PART : sites;
    double sum[3];
    add_items(sum, (const double*)a.products, blocks, block, first, 1, end);
    double* to = (double*)a.products + 3 * ((i64)first * blocks + block);
    for (int k = 0; k < 3; ++k) to[k] = sum[k];
}
// The step length of block i: (M x, x) / |M x|^2.
template <class F> HD void block_length(const BlockLength& a, int i) {
    double sum[3];
    add_items(sum, (const double*)a.products, block_count(a.grid), i, 0, PART, sites_of_block(a.grid));
    double* to = (double*)a.lengths + 2 * (i64)i;
    to[0] = sum[2] > 0 ? sum[0] / sum[2] : 0;
    to[1] = sum[2] > 0 ? sum[1] / sum[2] : 0;
}
// z += length x, x -= length y
template <class F> HD void block_step(const BlockStep& a, int i) {
    F x[24], y[24], re, im;
    const Coord c = coord_of(a.g, i, a.parity);
    for (int l = 0; l < lane<F>::W; ++l) {
        int block, inside;
        block_of(a.g, a.grid, c, l, block, inside);
        set(re, l, real_of<F>(((const double*)a.lengths)[2 * (i64)block]));
        set(im, l, real_of<F>(((const double*)a.lengths)[2 * (i64)block + 1]));
    }
    load24(x, a.x, i, half_of(a.g));
    load24(y, a.z, i, half_of(a.g));
    site_caxpy(y, re, im, x);
    store24(a.z, i, half_of(a.g), y);
    load24(y, a.y, i, half_of(a.g));
    site_caxpy(x, -re, -im, y);
    store24(a.x, i, half_of(a.g), x);
}

#define SCHWARZ_KERNELS(SITE, SUM)                                    \
    SITE(schwarz, block_products, BlockProducts, (block_products<F>))     \
    SITE(schwarz, block_part, BlockPart, (block_part<F>))             \
    SITE(schwarz, block_length, BlockLength, (block_length<F>))         \
    SITE(schwarz, block_step, BlockStep, (block_step<F>))
