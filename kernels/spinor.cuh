// Spin projection, in the DeGrand-Rossi basis, Comput. Phys. Commun. 60 (1990) 211: gamma_5 = diag(1, 1, -1, -1),
// gamma_mu = [[0, e_mu], [e_mu^dag, 0]] with e = (i sigma_1, -i sigma_2, i sigma_3, 1) for x, y, z, t. A spinor is
// Complex[4 spin][3 colour].
//
// Since 1 -+ gamma_mu has rank 2, only the upper half of (1 -+ gamma_mu) psi is multiplied by a link.
// NORMALISATION: no factor 1/2, so these square to twice themselves.
#pragma once
#include "complex.cuh"

// Row a of e_mu holds i^PHASEa in column COLUMNa - 2.
template <int MU> struct gamma_ {
    static constexpr int COLUMN0 = MU < 2 ? 3 : 2, COLUMN1 = MU < 2 ? 2 : 3;
    static constexpr int PHASE0 = MU == 0 ? 1 : MU == 1 ? 2 : MU == 2 ? 1 : 0;
    static constexpr int PHASE1 = MU == 0 ? 1 : MU == 1 ? 0 : MU == 2 ? 3 : 0;
};
// Upper half of (1 + sign i^S gamma_mu) psi, S = 0 or 2, sign = 1 or -1.
template <int MU, int S, class F> HD void project(Complex<F>* h, const Complex<F>* p, F sign) {
    using G = gamma_<MU>;
    UNROLL for (int c = 0; c < 3; ++c) {
        h[c] = mad_phase<S + G::PHASE0>(p[c], sign, p[3 * G::COLUMN0 + c]);
        h[3 + c] = mad_phase<S + G::PHASE1>(p[3 + c], sign, p[3 * G::COLUMN1 + c]);
    }
}
// r += (1 + sign i^S gamma_mu) psi, from its upper half v.
template <int MU, int S, class F> HD void expand_add(Complex<F>* r, const Complex<F>* v, F sign) {
    using G = gamma_<MU>;
    UNROLL for (int c = 0; c < 3; ++c) {
        r[c] = add_phase<0>(r[c], v[c]);
        r[3 + c] = add_phase<0>(r[3 + c], v[3 + c]);
        r[3 * G::COLUMN0 + c] = mad_phase<S - G::PHASE0 + 4>(r[3 * G::COLUMN0 + c], sign, v[c]);
        r[3 * G::COLUMN1 + c] = mad_phase<S - G::PHASE1 + 4>(r[3 * G::COLUMN1 + c], sign, v[3 + c]);
    }
}
// h *= the phase of a hop that crosses the boundary; other lanes hold 1.
template <class F> HD void apply_phase(Complex<F>* h, const void* phases, int hop) {
    const F re = ((const F*)phases)[2 * hop], im = ((const F*)phases)[2 * hop + 1];
    UNROLL for (int k = 0; k < 6; ++k) {
        Complex<F> r = zero<F>();
        cmad(r, {re, im}, h[k]);
        h[k] = r;
    }
}
