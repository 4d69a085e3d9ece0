// The unitary factor W = V (V^dag V)^(-1/2) of a matrix, by one-sided Jacobi rotations, and the gradient through it.
//
// Rotations J of pairs of columns make the columns of A = V J orthogonal: A = Q diag(s), W = Q J^dag. Small singular
// values s keep their digits (Demmel, Veselic, SIAM J. Matrix Anal. Appl. 13, 1204 (1992)).
//
// P = (V^dag V)^(1/2) = J diag(s) J^dag. With V = W P and Omega = W^dag dW, Omega P + P Omega = M - M^dag, where M =
// W^dag dV. A gradient G with respect to W gives dS = Re tr(C^dag Omega), where C is the antihermitian part of W^dag G.
// So dS = 2 Re tr(E^dag M) with E P + P E = C. The gradient with respect to V is 2 W E; E_ij = C_ij / (s_i + s_j) in
// the basis J.
//
// SU(3): W det(W)^(-1/3) with the root nearest to 1; the trace of C is removed.
#pragma once
#include "staples.cuh"

constexpr int SWEEPS = 6;
// Overlaps and lengths of columns below this count as zero.
constexpr double NOTHING = 1e-140;

// The columns of A = Q diag(s) and of J, and s.
template <class F> struct Singular {
    Complex<F> a[3][3], j[3][3];
    F s[3];
};
template <class F> HD F length2(const Complex<F>* v) {
    F n = F{};
    UNROLL for (int r = 0; r < 3; ++r) n = mad(v[r].im, v[r].im, mad(v[r].re, v[r].re, n));
    return n;
}
// p <- cos p - conj(sin) q, q <- sin p + cos q
template <class F> HD void rotate(Complex<F>* p, Complex<F>* q, F cosine, Complex<F> sine) {
    UNROLL for (int r = 0; r < 3; ++r) {
        Complex<F> x = {cosine * p[r].re, cosine * p[r].im}, y = {cosine * q[r].re, cosine * q[r].im};
        cnmad(x, conj(sine), q[r]);
        cmad(y, sine, p[r]);
        p[r] = x;
        q[r] = y;
    }
}
template <class F> HD Singular<F> singular(const Matrix<F>& v) {
    Singular<F> d;
    const F one = splat<F>(1), nothing = splat<F>(NOTHING);
    UNROLL for (int c = 0; c < 3; ++c) UNROLL for (int r = 0; r < 3; ++r) {
        d.a[c][r] = v.e[3 * r + c];
        d.j[c][r] = {r == c ? one : F{}, F{}};
    }
    for (int sweep = 0; sweep < SWEEPS; ++sweep)
        UNROLL for (int n = 0; n < 3; ++n) {
            const int p = n == 2, q = n == 0 ? 1 : 2;
            Complex<F> overlap = zero<F>();
            UNROLL for (int r = 0; r < 3; ++r) cmad_conj(overlap, d.a[p][r], d.a[q][r]);
            F size = root(mad(overlap.im, overlap.im, overlap.re * overlap.re));
            size = where_negative(size - nothing, F{}, size);
            // tan = sign 2 |overlap| / (|difference| + sqrt(difference^2 + 4 |overlap|^2))
            const F difference = length2(d.a[q]) - length2(d.a[p]), twice = size + size;
            const F sum = absolute(difference) + root(mad(difference, difference, twice * twice));
            const F tangent = where_negative(difference, -twice, twice) / larger(sum, nothing);
            const F cosine = one / root(mad(tangent, tangent, one));
            const F sine = cosine * tangent / larger(size, nothing);
            const Complex<F> turn = {sine * overlap.re, sine * overlap.im};
            rotate(d.a[p], d.a[q], cosine, turn);
            rotate(d.j[p], d.j[q], cosine, turn);
        }
    UNROLL for (int c = 0; c < 3; ++c) d.s[c] = root(length2(d.a[c]));
    return d;
}
// sum_c x_c y_c^dag: a matrix from columns.
template <class F> HD Matrix<F> outer_product(const Complex<F> (*x)[3], const Complex<F> (*y)[3]) {
    Matrix<F> r;
    UNROLL for (int i = 0; i < 3; ++i) UNROLL for (int j = 0; j < 3; ++j) {
        Complex<F> s = zero<F>();
        UNROLL for (int c = 0; c < 3; ++c) cmad(s, x[c][i], conj(y[c][j]));
        r.e[3 * i + j] = s;
    }
    return r;
}
// Replaces A = Q diag(s) by Q. Zero columns remain zero.
template <class F> HD void normalise(Singular<F>& d) {
    UNROLL for (int c = 0; c < 3; ++c) {
        const F inverse = splat<F>(1) / larger(d.s[c], splat<F>(NOTHING));
        UNROLL for (int r = 0; r < 3; ++r) d.a[c][r] = {inverse * d.a[c][r].re, inverse * d.a[c][r].im};
    }
}
template <class F> HD Complex<F> determinant(const Matrix<F>& u) {
    Complex<F> d = zero<F>();
    UNROLL for (int k = 0; k < 3; ++k) {
        const int a = (k + 1) % 3, b = (k + 2) % 3;
        Complex<F> minor = zero<F>();
        cmad(minor, u.e[3 + a], u.e[6 + b]);
        cnmad(minor, u.e[3 + b], u.e[6 + a]);
        cmad(d, u.e[k], minor);
    }
    return d;
}
// e^{i theta / 2} from e^{i theta}, theta from -pi to pi, without cancellation.
template <class F> HD Complex<F> half_angle(Complex<F> z) {
    const F half = splat<F>(0.5), greater = root(mad(half, absolute(z.re), half)), less = half * absolute(z.im) / greater;
    const F sine = where_negative(z.re, greater, less);
    return {where_negative(z.re, less, greater), where_negative(z.im, -sine, sine)};
}
// The third root of a phase that is nearest to 1: Newton's iteration from theta / 4 + theta / 16, which is off by theta
// / 48.
template <class F> HD Complex<F> third_root(Complex<F> z) {
    const Complex<F> fourth = half_angle(half_angle(z));
    Complex<F> r = zero<F>();
    cmad(r, fourth, half_angle(half_angle(fourth)));
    const F third = splat<F>(1.0 / 3.0);
    for (int n = 0; n < 5; ++n) {
        // r <- (2 r + z / r^2) / 3
        Complex<F> square = zero<F>(), quotient = zero<F>();
        cmad(square, r, r);
        cmad(quotient, z, conj(square));
        const F scale = splat<F>(1) / mad(square.im, square.im, square.re * square.re);
        r.re = third * mad(scale, quotient.re, r.re + r.re);
        r.im = third * mad(scale, quotient.im, r.im + r.im);
    }
    return r;
}

// unitary <- the unitary factor of links. Sum 0: number of links with a small singular value.
template <class F> HD void unitary_factor(const UnitaryFactor& a, int i, Accumulator& sum) {
    const int parity = parity_of_index<F>(a, i);
    const Walk x = walk_from(coord_of(a.g, i, parity));
    const F one = splat<F>(1), least = splat<F>(a.least);
    F small = F{};
    for (int mu = 0; mu < 4; ++mu) {
        Singular<F> d = singular(matrix_at<4, F>(a.g, a.links, x, mu));
        F below = F{};
        UNROLL for (int c = 0; c < 3; ++c) below = larger(below, where_negative(d.s[c] - least, one, F{}));
        small = small + below;
        normalise(d);
        Matrix<F> w = outer_product<F>(d.a, d.j);
        if (a.special) {
            const Complex<F> phase = conj(third_root(determinant(w)));
            UNROLL for (int e = 0; e < 9; ++e) {
                Complex<F> r = zero<F>();
                cmad(r, phase, w.e[e]);
                w.e[e] = r;
            }
        }
        store_at<4>(a.g, a.unitary, x, mu, w);
    }
    sum.add(0, small);
}
// Transforms the gradient with respect to the factors into that with respect to links, in place. If s_i + s_j is below
// 2 `least`, 2 `least` replaces it.
template <class F> HD void unitary_gradient(const UnitaryGradient& a, int i) {
    const int parity = parity_of_index<F>(a, i);
    const Walk x = walk_from(coord_of(a.g, i, parity));
    const F least = splat<F>(2 * a.least);
    for (int mu = 0; mu < 4; ++mu) {
        Matrix<F> c = multiply<true, false>(matrix_at<4, F>(a.g, a.unitary, x, mu), matrix_at<4, F>(a.g, a.gradient, x, mu));
        Singular<F> d = singular(matrix_at<4, F>(a.g, a.links, x, mu));
        normalise(d);
        Matrix<F> j;
        UNROLL for (int k = 0; k < 3; ++k) UNROLL for (int r = 0; r < 3; ++r) j.e[3 * r + k] = d.j[k][r];
        c = multiply<true, false>(j, c * j);
        // 2 E, with its columns in terms of those of Q
        Matrix<F> e;
        UNROLL for (int m = 0; m < 3; ++m) UNROLL for (int n = 0; n < 3; ++n) {
            const F scale = splat<F>(1) / larger(d.s[m] + d.s[n], least);
            const Complex<F> twice = add_phase<2>(c.e[3 * m + n], conj(c.e[3 * n + m]));
            e.e[3 * m + n] = {scale * twice.re, scale * twice.im};
        }
        if (a.special) {
            const F mean = splat<F>(1.0 / 3.0) * ((c.e[0].im + c.e[4].im) + c.e[8].im);
            UNROLL for (int m = 0; m < 3; ++m) {
                const F scale = splat<F>(1) / larger(d.s[m] + d.s[m], least);
                e.e[4 * m].im = nmad(scale, mean + mean, e.e[4 * m].im);
            }
        }
        Matrix<F> q;
        UNROLL for (int k = 0; k < 3; ++k) UNROLL for (int r = 0; r < 3; ++r) q.e[3 * r + k] = d.a[k][r];
        store_at<4>(a.g, a.gradient, x, mu, multiply<false, true>(q * e, j));
    }
}

#define UNITARY_KERNELS(SITE, SUM)                                        \
    SUM(unitary, unitary_factor, UnitaryFactor, 1, (unitary_factor<F>))     \
    SITE(unitary, unitary_gradient, UnitaryGradient, (unitary_gradient<F>))
