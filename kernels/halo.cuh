// Copies: borders of fields, an operator's own links, and file order.
#pragma once
#include "gauge.cuh"

// Site i of the slab of `layers` layers at one end of direction mu. In directions before mu the slab includes the
// borders, which are filled by then, so corners are included.
HD Coord slab_coord(const Slab& a, int i) {
    Coord c;
    for (int nu = 0; nu < 4; ++nu) {
        const int wide = nu < a.mu && a.g.border[nu] > 0 ? a.layers : 0;
        const int extent = nu == a.mu ? a.layers : a.g.outer[nu] + 2 * wide;
        c.x[nu] = i % extent - wide;
        i /= extent;
    }
    return c;
}
template <class F> HD i64 slab_place(const Slab& a, const Coord& c, int block, int real, int l) {
    const i64 half = (i64)a.g.half_bordered * a.blocks * a.reals * lane<F>::W;
    return parity_of(c) * half + place<F>(a.blocks, a.reals, block, real, bordered_index_of(a.g, c), a.g.half_bordered, l);
}
// The place in the wire of a real of a block: neighbouring threads of a GPU have neighbouring sites.
HD i64 wire_place(const Slab& a, int site, int block, int real, int width) {
    const int number = block * a.reals + real;
    return GPU ? (i64)number * a.sites + site : ((i64)site * a.blocks * a.reals + number) * width;
}
// Packs a block of a site of this rank's first (forward) or last layers into the wire, edge lanes only. Or fills the border
// after this rank's last site (forward) or before its first one, from the wire and from neighbouring lanes.
template <class F, class A> HD void slab(const A& args, int thread) {
    using R = real_of<F>;
    constexpr bool UNPACK = same<A, SlabUnpack>;
    const Slab& a = args.slab;
    const int i = thread % a.sites, block = thread / a.sites;
    const int mu = a.mu, n = a.g.lanes[mu], width = lane<F>::W / n;
    Coord from = slab_coord(a, i), to = from;
    if (!a.forward) from.x[mu] += a.g.outer[mu] - a.layers;
    to.x[mu] += a.forward ? a.g.outer[mu] : -a.layers;
    auto* field = pointer_like<R>(args.field);
    auto* wire = pointer_like<R>(args.wire);
    const int edge = (a.forward != 0) == UNPACK ? n - 1 : 0;
    const int* source = lane<F>::W > 1 ? permutation(a.g, mu, a.forward, lane<F>::W) : nullptr;
    int e = 0;
    for (int l = 0; l < lane<F>::W; ++l) {
        const bool at_edge = lane_coord(a.g, l, mu) == edge;
        if (!at_edge && !UNPACK) continue;
        for (int k = 0; k < a.reals; ++k) {
            auto& w = wire[wire_place(a, i, block, k, width) + e];
            if constexpr (!UNPACK) w = field[slab_place<F>(a, from, block, k, l)];
            else if (at_edge) field[slab_place<F>(a, to, block, k, l)] = w;
            else field[slab_place<F>(a, to, block, k, l)] = field[slab_place<F>(a, from, block, k, source[l])];
        }
        e += at_edge;
    }
}
// Fills an operator's own links of one parity, with NR reals, in its precision.
template <class F, int NR> HD void import_links(const ImportLinks& a, int i) {
    using D = wide_of<F>;
    const Coord c = coord_of(a.g, i, a.parity);
    for (int mu = 0; mu < 4; ++mu) {
        Matrix<D> u = double_link_at<D>(a.g, a.links, c, mu);
        if (has_walls(a.g)) u = scaled(is_hop<D>(a.g, c, mu), u);
        const D* all = reinterpret_cast<const D*>(u.e);
        D few[NR];
        if constexpr (NR == 8) compress_matrix(few, u);
        else for (int k = 0; k < NR; ++k) few[k] = all[k];
        F r[NR];
        for (int k = 0; k < NR; ++k) r[k] = narrow<F>(few[k]);
        store_unit<NR, 4>(a.out, mu, i, a.g.half, r);
    }
}

// Puts an operator's own links where hops backward read them; those that begin in another lane's box are not permuted.
template <class F> HD void gather_links(const GatherLinks& a, int s) {
    if constexpr (GPU) return;
    const Coord c = coord_of(a.g, s, a.parity);
    for (int mu = 0; mu < 4; ++mu) {
        Coord n = c;
        for (n.x[mu] -= a.steps; n.x[mu] < 0; n.x[mu] += outer(a.g, mu)) {}
        char* to = (char*)a.out + (4L * s + mu) * a.bytes;
        const char* from = (const char*)a.links + (4L * index_of(a.g, n) + mu) * a.bytes;
        for (int k = 0; k < a.bytes; ++k) to[k] = from[k];
    }
}

// Copies between a field and the rank's sites in natural order, in double.
template <class F, class A> HD void transpose(const A& args, int i) {
    const Order& a = args.order;
    const Coord c = coord_of(a.g, i, a.parity);
    const int s = a.bordered ? bordered_index_of(a.g, c) : a.slice * a.g.half + i;
    const int stride = a.bordered ? a.g.half_bordered : a.slices * a.g.half;
    auto* field = pointer_like<real_of<F>>(args.field);
    for (int l = 0; l < lane<F>::W; ++l) {
        i64 site = 0;
        for (int mu = 3; mu >= 0; --mu)
            site = site * (a.g.outer[mu] * a.g.lanes[mu]) + lane_coord(a.g, l, mu) * a.g.outer[mu] + c.x[mu];
        auto* natural = pointer_like<double>(args.natural) + site * a.blocks * a.reals;
        for (int block = 0; block < a.blocks; ++block)
            for (int k = 0; k < a.reals; ++k) {
                auto& r = field[place<F>(a.blocks, a.reals, block, k, s, stride, l)];
                if constexpr (same<A, ToNatural>) natural[block * a.reals + k] = r;
                else r = real_of<F>(natural[block * a.reals + k]);
            }
    }
}

#define IMPORT_KERNELS(SITE, SUM)                                          \
    SITE(halo, import_links_18, ImportLinks, (import_links<F, 18>))        \
    SITE(halo, import_links_12, ImportLinks, (import_links<F, 12>))        \
    SITE(halo, import_links_8, ImportLinks, (import_links<F, 8>))          \
    SITE(halo, gather_links, GatherLinks, (gather_links<F>))
#define HALO_KERNELS(SITE, SUM)                                            \
    SITE(halo, to_natural, ToNatural, (transpose<F>))                      \
    SITE(halo, from_natural, FromNatural, (transpose<F>))
#define HALO_DOUBLE_KERNELS(SITE, SUM)                                     \
    SITE(halo, slab_pack, SlabPack, (slab<F>))                             \
    SITE(halo, slab_unpack, SlabUnpack, (slab<F>))
