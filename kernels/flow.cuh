// The force of the Zeuthen flow (Ramos, Sint, arXiv:1508.05552): P_mu <- (1 + D_mu D_mu^* / 12) P_mu, with
//
//   D_mu D_mu^* P(x) = U_mu(x) P(x+mu) U_mu(x)^dag - 2 P(x) + U_mu(x-mu)^dag P(x-mu) U_mu(x-mu).
#pragma once
#include "gauge.cuh"

// P as hermitian matrices.
template <class F> HD void algebra_matrices(const AlgebraMatrices& a, int i) {
    const LinkSite x = link_site<4>(a.g, i);
    F p[8];
    load<8, 4>(p, momentum_half<F>(a.algebra, a.g, x.parity), x.part, x.index, a.g.half);
    void* half = half_field<F>(a.out, x.parity, a.g.half_bordered, 72);
    store_matrix<4>(half, x.part, bordered_index_of(a.g, x.c), a.g.half_bordered, hermitian(p));
}
// P_mu += scale D_mu D_mu^* P_mu; the matrices' borders must be filled.
template <class F> HD void zeuthen_force(const ZeuthenForce& a, int i) {
    const LinkSite x = link_site<4>(a.g, i);
    const int mu = x.part;
    const Walk here = walk_from(x.c);
    Walk next = here, last = here;
    step(a.g, next, mu, 1);
    step(a.g, last, mu, -1);
    const Matrix<F> u = link_at<F>(a.g, a.links, here, mu), v = link_at<F>(a.g, a.links, last, mu);
    const Matrix<F> forward = multiply<false, true>(u * matrix_at<4, F>(a.g, a.matrices, next, mu), u);
    const Matrix<F> backward = multiply<true, false>(v, matrix_at<4, F>(a.g, a.matrices, last, mu) * v);
    const Matrix<F> around = forward + backward;
    // p_a = 2 Re tr(T_a P)
    Matrix<F> w;
    UNROLL for (int e = 0; e < 9; ++e) w.e[e] = {around.e[e].im, -around.e[e].re};
    F p[8];
    void* force = momentum_half<F>(a.force, a.g, x.parity);
    load<8, 4>(p, force, mu, x.index, a.g.half);
    UNROLL for (int k = 0; k < 8; ++k) p[k] = p[k] * splat<F>(1 - 2 * a.scale);
    add_projection(p, splat<F>(2 * a.scale), w);
    store<8, 4>(force, mu, x.index, a.g.half, p);
}

#define FLOW_KERNELS(SITE, SUM)                                            \
    SITE(flow, algebra_matrices, AlgebraMatrices, (algebra_matrices<F>))   \
    SITE(flow, zeuthen_force, ZeuthenForce, (zeuthen_force<F>))
