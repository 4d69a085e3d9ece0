// Contractions of propagators to one complex number per site, and their sums over the sites of a time slice
// (src/measure/contraction.rs).
//
// A propagator has one field per component of its source: S(x)_{a,alpha; b,beta} is spin a and colour alpha of the
// field for spin b and colour beta. Spin matrices are those of src/measure/gamma.rs: the only nonzero entry of row a is
// i^phase[a] in column[a], as for all products of gamma matrices in the basis of spinor.cuh.
#pragma once
#include "spinor.cuh"
#include "sum.cuh"

// i^k z
template <class F> HD Complex<F> times_power(int k, Complex<F> z) {
    switch (k & 3) {
        case 0: return z;
        case 1: return {-z.im, z.re};
        case 2: return {-z.re, -z.im};
        default: return {z.im, -z.re};
    }
}

// tr[A S B T^dag] over spins and colours: S is `quark`, T `antiquark`, A `sink`, B `source`.
template <class F> HD void contract_spinors(const ContractSpinors& a, int i) {
    Complex<F> total = zero<F>();
    for (int b = 0; b < 4; ++b) {
        Complex<F> s[3][12], t[3][12];
        for (int k = 0; k < 3; ++k) {
            load<24, 1>(reinterpret_cast<F*>(s[k]), a.quark[3 * b + k], 0, i, a.half);
            load<24, 1>(reinterpret_cast<F*>(t[k]), a.antiquark[3 * a.source.column[b] + k], 0, i, a.half);
        }
        for (int c = 0; c < 4; ++c) {
            const int d = a.sink.column[c];
            Complex<F> colours = zero<F>();
            for (int k = 0; k < 3; ++k)
                for (int j = 0; j < 3; ++j) cmad_conj(colours, t[k][3 * c + j], s[k][3 * d + j]);
            total = add_phase<0>(total, times_power(a.sink.phase[c] + a.source.phase[b], colours));
        }
    }
    store<2, 1>(a.out, 0, i, a.half, reinterpret_cast<const F*>(&total));
}
// tr[S T^dag] over colours, for staggered quarks.
template <class F> HD void contract_colours(const ContractColours& a, int i) {
    Complex<F> total = zero<F>();
    for (int k = 0; k < 3; ++k) {
        Complex<F> s[3], t[3];
        load<6, 1>(reinterpret_cast<F*>(s), a.quark[k], 0, i, a.half);
        load<6, 1>(reinterpret_cast<F*>(t), a.antiquark[k], 0, i, a.half);
        for (int j = 0; j < 3; ++j) cmad_conj(total, t[j], s[j]);
    }
    store<2, 1>(a.out, 0, i, a.half, reinterpret_cast<const F*>(&total));
}
// Sums 0, 1: real and imaginary part of a density times a phase for each of x, y and z, over the sites with x_t =
// `time` in the boxes of the lanes that `mask` selects.
template <class F> HD void time_slice_sum(const TimeSliceSum& a, int i, Accumulator& sum) {
    const int site = a.time * a.sites + i;
    const Coord c = coord_of(a.g, site, a.parity);
    Complex<F> d;
    load<2, 1>(reinterpret_cast<F*>(&d), a.density, 0, site, a.g.half);
    const F* table = (const F*)a.phases;
    for (int mu = 0; mu < 3; ++mu) {
        Complex<F> r = zero<F>();
        cmad(r, {table[2 * c.x[mu]], table[2 * c.x[mu] + 1]}, d);
        d = r;
        table += 2 * a.g.outer[mu];
    }
    const F mask = ((const F*)a.mask)[a.lane_time];
    sum.add(0, mask * d.re);
    sum.add(1, mask * d.im);
}

#define CONTRACTION_KERNELS(SITE, SUM)                                            \
    SITE(contraction, contract_spinors, ContractSpinors, (contract_spinors<F>))   \
    SITE(contraction, contract_colours, ContractColours, (contract_colours<F>))   \
    SUM(contraction, time_slice_sum, TimeSliceSum, 2, (time_slice_sum<F>))
