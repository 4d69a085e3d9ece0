// The force through one step of stout smearing (Morningstar, Peardon, hep-lat/0311018).
//
//   V = exp(iQ) U,  Q_mu(x) = sum_a q_a T_a,  q_a = 2 rho sum Re tr(i T_a P),
//
// where P are the six plaquettes that start with U_mu(x). These are their equations (1) to (3) with the same rho in all
// directions. For dU = i w U and ad Q = [Q, .],
//
//   dV = i w' V,  w' = exp(i ad Q) w + phi(i ad Q) dQ,  phi(z) = (e^z - 1) / z,
//
// so with F' the force on V, dS = 2 tr(F' w') is 2 tr(w exp(-i ad Q) F') + 2 tr(dQ Lambda) with
//
//   Lambda = phi(-i ad Q) F',  exp(-i ad Q) F' = F' - i [Q, Lambda].
//
// To rounding, the series of phi is finite, and it has no small divisors: ad Q is at most 12 rho, since plaquettes are
// unitary. (Their section III has the same Lambda, by the eigenvalues of Q.)
#pragma once
#include "clover.cuh"

// Replaces F' in `force` by its direct part; the insertion is L = 2 i rho Lambda. The terms of phi, z^k / (k+1)! for k
// = 0 .. terms, are summed by Horner's scheme, whose last step is exp(-i ad Q) F'.
template <class F> HD void stout_insertion(const StoutInsertion& a, int i) {
    const int parity = parity_of_index<F>(a, i);
    const int s = bordered_index_of(a.g, coord_of(a.g, i, parity));
    const F scale = splat<F>(2 * a.rho), two = splat<F>(2);
    for (int mu = 0; mu < 4; ++mu) {
        F r[8];
        load<8, 4>(r, momentum_half<F>(a.exponent, a.g, parity), mu, i, a.g.half);
        const Matrix<F> q = hermitian(r);
        load<8, 4>(r, momentum_half<F>(a.force, a.g, parity), mu, i, a.g.half);
        const Matrix<F> f = hermitian(r);
        Matrix<F> x = f;
        for (int k = a.terms; k >= 0; --k) {
            if (k == 0) {
                Matrix<F> l;
                UNROLL for (int e = 0; e < 9; ++e) l.e[e] = {-(scale * x.e[e].im), scale * x.e[e].re};
                store_matrix<4>(half_field<F>(a.insertion, parity, a.g.half_bordered, 72), mu, s, a.g.half_bordered, l);
            }
            // x <- f - i [q, x] / (k+1)
            const Matrix<F> p = q * x;
            const F c = splat<F>(1.0 / (k + 1));
            UNROLL for (int m = 0; m < 3; ++m) UNROLL for (int n = 0; n < 3; ++n) {
                const Complex<F> d = add_phase<2>(p.e[3 * m + n], conj(p.e[3 * n + m]));
                x.e[3 * m + n] = {mad(c, d.im, f.e[3 * m + n].re), nmad(c, d.re, f.e[3 * m + n].im)};
            }
        }
        // p_a = 2 Re tr(T_a x)
        Matrix<F> w;
        UNROLL for (int e = 0; e < 9; ++e) w.e[e] = {x.e[e].im, -x.e[e].re};
        UNROLL for (int k = 0; k < 8; ++k) r[k] = F{};
        add_projection(r, two, w);
        store<8, 4>(momentum_half<F>(a.force, a.g, parity), mu, i, a.g.half, r);
    }
}

// L of a link; links of a fixed upper wall have none.
template <class F> HD Matrix<F> inserted_at(const StoutForce& a, const Walk& w, int mu) {
    Matrix<F> l = matrix_at<4, F>(a.g, a.insertion, w, mu);
    if (is_fixed_above(a.g)) end_at_walls(a.g, nullptr, w, mu, l);
    return l;
}
// force += 2 tr(dQ Lambda) = Re tr(L dP) for all plaquettes P through a link; the insertions' borders must be filled.
// In a plaquette U a b c through the corners 0 (x), 1, 2, 3, each link inserts its L before the link that starts at its
// first site, with a minus sign if the plaquette runs against it. The order of the products keeps few matrices in
// registers.
template <class F> HD void stout_force(const StoutForce& a, int i) {
    const int parity = parity_of_index<F>(a, i);
    const Walk x = walk_from(coord_of(a.g, i, parity));
    for (int mu = 0; mu < 4; ++mu) {
        Matrix<F> total = null_matrix<F>();
        Walk right = x;
        step(a.g, right, mu, 1);
        for (int nu = 0; nu < 4; ++nu) {
            if (nu == mu) continue;
            for (int side = 0; side < 2; ++side) {
                Walk over = x, corner = right;
                step(a.g, over, nu, side == 0 ? 1 : -1);
                step(a.g, corner, nu, side == 0 ? 1 : -1);
                const Matrix<F> first =
                    side == 0 ? link_at<F>(a.g, a.links, right, nu) : adjoint(link_at<F>(a.g, a.links, corner, nu));
                // The link in nu starts at corner 1 above, and at corner 2 below.
                const Matrix<F> far = side == 0 ? inserted_at<F>(a, right, nu) * first
                                                : first * inserted_at<F>(a, corner, nu);
                const Matrix<F> back = adjoint(link_at<F>(a.g, a.links, over, mu)), there = first * back;
                // The other link in nu starts at 0 above, and at 3 below; those in mu start at 0 and 3.
                Matrix<F> l3 = inserted_at<F>(a, over, mu);
                if (side == 1) l3 = l3 - inserted_at<F>(a, over, nu);
                Matrix<F> against = there * l3;
                against = side == 0 ? against - far * back : against + far * back;
                const Matrix<F> last = side == 0 ? adjoint(link_at<F>(a.g, a.links, x, nu)) : link_at<F>(a.g, a.links, over, nu);
                total = total - against * last;
                Matrix<F> l0 = inserted_at<F>(a, x, mu);
                if (side == 0) l0 = l0 - inserted_at<F>(a, x, nu);
                total = total + there * last * l0;
            }
        }
        F f[8];
        load<8, 4>(f, momentum_half<F>(a.force, a.g, parity), mu, i, a.g.half);
        const F weight = is_fixed_below(a.g) ? is_free<F>(a.g, x.c, mu) : splat<F>(1);
        add_projection(f, weight, link_at<F>(a.g, a.links, x, mu) * total);
        store<8, 4>(momentum_half<F>(a.force, a.g, parity), mu, i, a.g.half, f);
    }
}

#define STOUT_KERNELS(SITE, SUM)                                  \
    SITE(stout, stout_insertion, StoutInsertion, (stout_insertion<F>)) \
    SITE(stout, stout_force, StoutForce, (stout_force<F>))
