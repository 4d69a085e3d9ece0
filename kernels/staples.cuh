// Smeared links of staggered quarks, and the gradient through them (fat7, asqtad, HISQ: Orginos, Toussaint, Sugar,
// hep-lat/9903032; Lepage, hep-lat/9809157; Follana et al., hep-lat/0610092).
//
// A staple in nu around a field B that transforms like U_mu under gauge transformations is
//
//   (S_nu B)(x) = U_nu(x) B(x+nu) U_nu(x+mu)^dag + U_nu(x-nu)^dag B(x-nu) U_nu(x-nu+mu).
//
// With D_nu = S_rho S_sigma + S_sigma S_rho, where rho and sigma are neither mu nor nu, the sum of all paths is
//
//   F B = c1 B + c3 sum_nu S_nu B + c5 sum_nu D_nu B + c7 sum_nu S_nu D_nu B + cL sum_nu (S_nu S_nu - 2) B:
//
// The paths of S_nu S_nu U_mu that turn back at once give 2 U_mu, since links are unitary. X_mu = F U_mu.
// Staples by S_nu ("single") and by D_nu ("twice") are fields of three matrices per site; number k has nu = beside(mu,
// k).
//
// A gradient G of a real function S has dS = sum Re tr(G^dag dU) and transforms like U. S_nu and hence F are
// self-adjoint under sum Re tr(A^dag B). So, given a gradient Y with respect to X_mu, the gradient through the link in
// the middle of the paths is F Y, by the same kernels. The gradient through the sides is in staple_sides.
#pragma once
#include "gauge.cuh"

// The k-th direction other than mu.
HD int beside(int mu, int k) { return k < mu ? k : k + 1; }
template <class F> HD void add_scaled(Matrix<F>& r, double c, const Matrix<F>& m) {
    const F s = splat<F>(c);
    UNROLL for (int e = 0; e < 9; ++e) r.e[e] = {mad(s, m.e[e].re, r.e[e].re), mad(s, m.e[e].im, r.e[e].im)};
}
template <int NB, class F> HD void store_at(const Geometry& g, void* field, const Walk& w, int block, const Matrix<F>& m) {
    store_matrix<NB>(half_field<F>(field, parity_of(w.c), g.half_bordered, 18 * NB), block, bordered_index_of(g, w.c),
                     g.half_bordered, m);
}

// One matrix of a field of NB, at any place.
template <int NB> struct Block {
    const void* field;
    int block;
    template <class F> HD Matrix<F> at(const Geometry& g, const Walk& w) const { return matrix_at<NB, F>(g, field, w, block); }
};
// seven D_nu + lepage S_nu
struct Outermost {
    const StapleSum& a;
    int k;
    template <class F> HD Matrix<F> at(const Geometry& g, const Walk& w) const {
        Matrix<F> r = null_matrix<F>();
        add_scaled(r, a.weights.seven, matrix_at<3, F>(g, a.twice, w, k));
        add_scaled(r, a.weights.lepage, matrix_at<3, F>(g, a.single, w, k));
        return r;
    }
};
template <class F, class A, class B> HD Matrix<F> staple(const A& a, const Walk& x, int nu, const B& b) {
    Walk up = x, ahead = x, down = x;
    step(a.g, up, nu, 1);
    step(a.g, ahead, a.mu, 1);
    step(a.g, down, nu, -1);
    Walk corner = down;
    step(a.g, corner, a.mu, 1);
    const Matrix<F> above =
        multiply<false, true>(link_at<F>(a.g, a.links, x, nu) * b.template at<F>(a.g, up), link_at<F>(a.g, a.links, ahead, nu));
    const Matrix<F> below = multiply<true, false>(link_at<F>(a.g, a.links, down, nu), b.template at<F>(a.g, down));
    return above + below * link_at<F>(a.g, a.links, corner, nu);
}

// single <- S_nu middle
template <class F> HD void staple_single(const StapleSingle& a, int i) {
    const LinkSite site = link_site<3>(a.g, i);
    const int k = site.part;
    const Walk x = walk_from(site.c);
    store_at<3>(a.g, a.single, x, k, staple<F>(a, x, beside(a.mu, k), Block<4>{a.middle, a.mu}));
}
// twice <- D_nu middle, from `single` with borders filled
template <class F> HD void staple_twice(const StapleTwice& a, int i) {
    const LinkSite site = link_site<3>(a.g, i);
    const int k = site.part;
    const Walk x = walk_from(site.c);
    const int l = (k + 1) % 3, m = (k + 2) % 3;
    const Matrix<F> one = staple<F>(a, x, beside(a.mu, l), Block<3>{a.single, m});
    store_at<3>(a.g, a.twice, x, k, one + staple<F>(a, x, beside(a.mu, m), Block<3>{a.single, l}));
}
// out <- F middle, or out += F middle, from `single` and `twice` with borders filled
template <class F> HD void staple_sum(const StapleSum& a, int i) {
    const int parity = parity_of_index<F>(a, i);
    const Walk x = walk_from(coord_of(a.g, i, parity));
    Matrix<F> total = a.add ? matrix_at<4, F>(a.g, a.out, x, a.mu) : null_matrix<F>();
    add_scaled(total, a.weights.one - 6 * a.weights.lepage, matrix_at<4, F>(a.g, a.middle, x, a.mu));
    for (int k = 0; k < 3; ++k) {
        add_scaled(total, a.weights.three, matrix_at<3, F>(a.g, a.single, x, k));
        add_scaled(total, a.weights.five, matrix_at<3, F>(a.g, a.twice, x, k));
        total = total + staple<F>(a, x, beside(a.mu, k), Outermost{a, k});
    }
    store_at<4>(a.g, a.out, x, a.mu, total);
}

// The sides in nu of all paths of X_mu. S_nu stands between the operators to its left, which act on Y through their
// adjoint, and those to its right, so X_mu is a sum of forms (T, S_nu B). The pairs (T, B):
//
//   (Y, (c3 + c5 (S_rho + S_sigma) + c7 D_nu + cL S_nu) U), ((c5 (S_rho + S_sigma) + c7 D_nu + cL S_nu) Y, U),
//   (c7 S_rho Y, S_sigma U), (c7 S_sigma Y, S_rho U).
constexpr int PAIRS = 4;
// c5 (S_rho + S_sigma) + c7 D_nu + cL S_nu, of U or of Y, for the first two pairs.
template <class F> HD Matrix<F> side_sum(const StapleSides& a, const void* single, const void* twice, const Walk& w, int k) {
    Matrix<F> r = matrix_at<3, F>(a.g, single, w, (k + 1) % 3) + matrix_at<3, F>(a.g, single, w, (k + 2) % 3);
    UNROLL for (int e = 0; e < 9; ++e) r.e[e] = {splat<F>(a.weights.five) * r.e[e].re, splat<F>(a.weights.five) * r.e[e].im};
    add_scaled(r, a.weights.seven, matrix_at<3, F>(a.g, twice, w, k));
    add_scaled(r, a.weights.lepage, matrix_at<3, F>(a.g, single, w, k));
    return r;
}
template <class F> HD Matrix<F> left_of_side(const StapleSides& a, const Walk& w, int k, int pair) {
    if (pair == 0) return matrix_at<4, F>(a.g, a.gradient, w, a.mu);
    if (pair == 1) return side_sum<F>(a, a.gradient_single, a.gradient_twice, w, k);
    Matrix<F> r = null_matrix<F>();
    add_scaled(r, a.weights.seven, matrix_at<3, F>(a.g, a.gradient_single, w, (k + pair - 1) % 3));
    return r;
}
template <class F> HD Matrix<F> right_of_side(const StapleSides& a, const Walk& w, int k, int pair) {
    if (pair > 1) return matrix_at<3, F>(a.g, a.single, w, (k + 4 - pair) % 3);
    const Matrix<F> u = matrix_at<4, F>(a.g, a.middle, w, a.mu);
    if (pair == 1) return u;
    Matrix<F> r = side_sum<F>(a, a.single, a.twice, w, k);
    add_scaled(r, a.weights.three, u);
    return r;
}
// out_nu(y) += T(y) V B(y+nu)^dag + B(y) V T(y+nu)^dag, V = U_nu(y+mu),
//            + T(y-mu)^dag V B(y-mu+nu) + B(y-mu)^dag V T(y-mu+nu), V = U_nu(y-mu), for all pairs.
template <class F> HD void staple_sides(const StapleSides& a, int i) {
    const LinkSite site = link_site<3>(a.g, i);
    const int k = site.part, nu = beside(a.mu, k);
    const Walk y = walk_from(site.c);
    Matrix<F> total = matrix_at<4, F>(a.g, a.out, y, nu);
    NO_UNROLL for (int side = 0; side < 2; ++side) {
        Walk near = y, across = y;
        step(a.g, across, a.mu, side == 0 ? 1 : -1);
        const Matrix<F> v = link_at<F>(a.g, a.links, across, nu);
        if (side == 1) near = across;
        Walk far = near;
        step(a.g, far, nu, 1);
        UNROLL for (int pair = 0; pair < PAIRS; ++pair)
            UNROLL for (int turned = 0; turned < 2; ++turned) {
                const Matrix<F> p = turned ? right_of_side<F>(a, near, k, pair) : left_of_side<F>(a, near, k, pair);
                const Matrix<F> q = turned ? left_of_side<F>(a, far, k, pair) : right_of_side<F>(a, far, k, pair);
                total = total + (side == 0 ? multiply<false, true>(p * v, q) : multiply<true, false>(p, v * q));
            }
    }
    store_at<4>(a.g, a.out, y, nu, total);
}

// out <- U_mu(x) U_mu(x+mu) U_mu(x+2mu)
template <class F> HD void long_links(const LongLinks& a, int i) {
    const int parity = parity_of_index<F>(a, i);
    const Walk x = walk_from(coord_of(a.g, i, parity));
    for (int mu = 0; mu < 4; ++mu) {
        Walk w = x;
        Matrix<F> p = link_at<F>(a.g, a.links, w, mu);
        for (int n = 0; n < 2; ++n) {
            step(a.g, w, mu, 1);
            p = p * link_at<F>(a.g, a.links, w, mu);
        }
        store_at<4>(a.g, a.out, x, mu, p);
    }
}
// out += Z(y) (U(y+mu) U(y+2mu))^dag + U(y-mu)^dag Z(y-mu) U(y+mu)^dag + (U(y-2mu) U(y-mu))^dag Z(y-2mu), where Z is
// the gradient with respect to long links
template <class F> HD void long_gradient(const LongGradient& a, int i) {
    const int parity = parity_of_index<F>(a, i);
    const Walk y = walk_from(coord_of(a.g, i, parity));
    for (int mu = 0; mu < 4; ++mu) {
        Walk ahead = y, behind = y;
        step(a.g, ahead, mu, 1);
        step(a.g, behind, mu, -1);
        const Matrix<F> next = link_at<F>(a.g, a.links, ahead, mu), last = link_at<F>(a.g, a.links, behind, mu);
        Matrix<F> total = matrix_at<4, F>(a.g, a.out, y, mu);
        Matrix<F> p = multiply<true, false>(last, matrix_at<4, F>(a.g, a.gradient, behind, mu));
        total = total + multiply<false, true>(p, next);
        step(a.g, ahead, mu, 1);
        step(a.g, behind, mu, -1);
        p = next * link_at<F>(a.g, a.links, ahead, mu);
        total = total + multiply<false, true>(matrix_at<4, F>(a.g, a.gradient, y, mu), p);
        p = link_at<F>(a.g, a.links, behind, mu) * last;
        total = total + multiply<true, false>(p, matrix_at<4, F>(a.g, a.gradient, behind, mu));
        store_at<4>(a.g, a.out, y, mu, total);
    }
}
// out <- x + scale y
template <class F> HD void blend_links(const BlendLinks& a, int i) {
    const int parity = parity_of_index<F>(a, i);
    const Walk x = walk_from(coord_of(a.g, i, parity));
    for (int mu = 0; mu < 4; ++mu) {
        Matrix<F> r = matrix_at<4, F>(a.g, a.x, x, mu);
        add_scaled(r, a.scale, matrix_at<4, F>(a.g, a.y, x, mu));
        store_at<4>(a.g, a.out, x, mu, r);
    }
}
// force_a += Re tr(i T_a U G^dag)
template <class F> HD void gradient_force(const GradientForce& a, int i) {
    const int parity = parity_of_index<F>(a, i);
    const Walk x = walk_from(coord_of(a.g, i, parity));
    for (int mu = 0; mu < 4; ++mu) {
        F f[8];
        load<8, 4>(f, momentum_half<F>(a.force, a.g, parity), mu, i, a.g.half);
        const Matrix<F> g = matrix_at<4, F>(a.g, a.gradient, x, mu);
        add_projection(f, splat<F>(1), multiply<false, true>(link_at<F>(a.g, a.links, x, mu), g));
        store<8, 4>(momentum_half<F>(a.force, a.g, parity), mu, i, a.g.half, f);
    }
}

#define STAPLE_KERNELS(SITE, SUM)                                  \
    SITE(staples, staple_single, StapleSingle, (staple_single<F>))   \
    SITE(staples, staple_twice, StapleTwice, (staple_twice<F>))     \
    SITE(staples, staple_sum, StapleSum, (staple_sum<F>))         \
    SITE(staples, staple_sides, StapleSides, (staple_sides<F>))     \
    SITE(staples, long_links, LongLinks, (long_links<F>))         \
    SITE(staples, long_gradient, LongGradient, (long_gradient<F>))   \
    SITE(staples, blend_links, BlendLinks, (blend_links<F>))       \
    SITE(staples, gradient_force, GradientForce, (gradient_force<F>))
