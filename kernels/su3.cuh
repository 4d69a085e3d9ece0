// 3x3 complex matrices in registers; links with 18 or 12 stored reals; the algebra su(3).
#pragma once
#include "complex.cuh"
#include "site.cuh"

template <class F> struct Matrix { Complex<F> e[9]; };

// The third row of an SU(3) matrix: conj(row 0 x row 1).
template <class F> HD void third_row(Matrix<F>& u) {
    UNROLL for (int k = 0; k < 3; ++k) {
        const int a = (k + 1) % 3, b = (k + 2) % 3;
        const Complex<F>*x = u.e, *y = u.e + 3;
        u.e[6 + k].re = nmad(x[b].re, y[a].re, mad(x[b].im, y[a].im, nmad(x[a].im, y[b].im, mad(x[a].re, y[b].re, F{}))));
        u.e[6 + k].im = mad(x[b].re, y[a].im, mad(x[b].im, y[a].re, nmad(x[a].im, y[b].re, nmad(x[a].re, y[b].im, F{}))));
    }
}
// Eight reals of an SU(3) matrix: u01, u02, u12, and the phases of u00 and u22 (Bunk, Sommer, Comput. Phys. Commun. 40
// (1986) 229). Two moduli are roots of differences, and lose accuracy if they are small: errors grow by 1 / |u00| and 1
// / |u22|. With the diagonal as these two, nothing is lost near the unit matrix and for diagonal matrices; |u02| = 1 is
// impossible. A phase is stored as half the distance along the square |x| + |y| = 1: in [-1, 1], without trigonometry.
template <class F> HD F store_phase(Complex<F> z) {
    const F s = absolute(z.re) + absolute(z.im);
    const F y = z.im / where_negative(-s, s, splat<F>(1));
    const F turned = where_negative(y, splat<F>(-2) - y, splat<F>(2) - y);
    return splat<F>(0.5) * where_negative(z.re, turned, y);
}
// The number with this phase and the squared modulus m2.
template <class F> HD Complex<F> load_phase(F p, F m2) {
    const F x = splat<F>(1) - absolute(p + p), y = splat<F>(1) - absolute(x);
    const F m = root(larger(m2, F{}) / mad(x, x, mad(y, y, F{})));
    return {m * x, m * where_negative(p, -y, y)};
}
template <class F> HD void compress_matrix(F* r, const Matrix<F>& u) {
    r[0] = u.e[1].re; r[1] = u.e[1].im;
    r[2] = u.e[2].re; r[3] = u.e[2].im;
    r[4] = u.e[5].re; r[5] = u.e[5].im;
    r[6] = store_phase(u.e[0]);
    r[7] = store_phase(u.e[8]);
}
// Converts the third row for determinant 1 to that for determinant `det`.
template <class F> HD void turn_third_row(Matrix<F>& u, Complex<F> det) {
    UNROLL for (int k = 6; k < 9; ++k) {
        Complex<F> t = zero<F>();
        cmad(t, det, u.e[k]);
        u.e[k] = t;
    }
}
// A matrix of SU(3), or, unless SPECIAL, the unitary matrix with the given determinant.
template <bool SPECIAL = true, class F> HD Matrix<F> expand_matrix(const F* r, Complex<F> det = zero<F>()) {
    Matrix<F> u;
    u.e[1] = {r[0], r[1]};
    u.e[2] = {r[2], r[3]};
    u.e[5] = {r[4], r[5]};
    const F n = nmad(r[3], r[3], nmad(r[2], r[2], splat<F>(1)));
    u.e[0] = load_phase(r[6], nmad(r[1], r[1], nmad(r[0], r[0], n)));
    Complex<F> c = load_phase(r[7], nmad(r[5], r[5], nmad(r[4], r[4], n)));
    // u10 conj(u00) + u11 conj(u01) = -u12 conj(u02),  u00 u11 - u01 u10 = det conj(u22)
    if constexpr (!SPECIAL) {
        Complex<F> t = zero<F>();
        cmad_conj(t, det, c);
        c = t;
    }
    const F inverse = splat<F>(1) / larger(n, splat<F>(1e-30f));
    Complex<F> d = zero<F>(), x = zero<F>(), y = zero<F>();
    cnmad(d, conj(u.e[2]), u.e[5]);
    cmad(x, u.e[0], d);
    cnmad(x, conj(u.e[1]), conj(c));
    cmad(y, u.e[1], d);
    cmad(y, conj(u.e[0]), conj(c));
    u.e[3] = {inverse * x.re, inverse * x.im};
    u.e[4] = {inverse * y.re, inverse * y.im};
    third_row(u);
    if constexpr (!SPECIAL) turn_third_row(u, det);
    return u;
}
template <int NR, int NB, class F> HD Matrix<F> load_matrix(const void* field, int block, int site, int stride) {
    if constexpr (NR == 8) {
        F r[8];
        load_unit<8, NB>(r, field, block, site, stride);
        return expand_matrix(r);
    } else {
        Matrix<F> u;
        load_unit<NR, NB>(reinterpret_cast<F*>(u.e), field, block, site, stride);
        if constexpr (NR == 12) third_row(u);
        return u;
    }
}
template <int NB, class F> HD void store_matrix(void* field, int block, int site, int stride, const Matrix<F>& u) {
    store<18, NB>(field, block, site, stride, reinterpret_cast<const F*>(u.e));
}
// The stored matrix += c u.
template <int NB, class F> HD void add_to_matrix(void* field, int block, int site, int stride, F c, const Matrix<F>& u) {
    Matrix<F> m = load_matrix<18, NB, F>(field, block, site, stride);
    UNROLL for (int k = 0; k < 9; ++k) m.e[k] = {mad(c, u.e[k].re, m.e[k].re), mad(c, u.e[k].im, m.e[k].im)};
    store_matrix<NB>(field, block, site, stride, m);
}

// a b, optionally with the adjoint of either.
template <bool ADJ_A, bool ADJ_B, class F> HD Matrix<F> multiply(const Matrix<F>& a, const Matrix<F>& b) {
    Matrix<F> r;
    UNROLL for (int i = 0; i < 3; ++i) UNROLL for (int j = 0; j < 3; ++j) {
        Complex<F> s = zero<F>();
        UNROLL for (int k = 0; k < 3; ++k) {
            const Complex<F> y = ADJ_B ? conj(b.e[3 * j + k]) : b.e[3 * k + j];
            if constexpr (ADJ_A) cmad_conj(s, a.e[3 * k + i], y);
            else cmad(s, a.e[3 * i + k], y);
        }
        r.e[3 * i + j] = s;
    }
    return r;
}
template <class F> HD Matrix<F> operator*(const Matrix<F>& a, const Matrix<F>& b) { return multiply<false, false>(a, b); }
template <class F> HD Matrix<F> operator+(const Matrix<F>& a, const Matrix<F>& b) {
    Matrix<F> r;
    UNROLL for (int k = 0; k < 9; ++k) r.e[k] = add_phase<0>(a.e[k], b.e[k]);
    return r;
}
template <class F> HD Matrix<F> operator-(const Matrix<F>& a, const Matrix<F>& b) {
    Matrix<F> r;
    UNROLL for (int k = 0; k < 9; ++k) r.e[k] = add_phase<2>(a.e[k], b.e[k]);
    return r;
}
template <class F> HD Matrix<F> adjoint(const Matrix<F>& m) {
    Matrix<F> r;
    UNROLL for (int i = 0; i < 3; ++i) UNROLL for (int j = 0; j < 3; ++j) r.e[3 * i + j] = conj(m.e[3 * j + i]);
    return r;
}
template <class F> HD Matrix<F> unit() {
    Matrix<F> r;
    UNROLL for (int k = 0; k < 9; ++k) r.e[k] = {k % 4 == 0 ? splat<F>(1) : F{}, F{}};
    return r;
}
template <class F> HD Matrix<F> scaled(const F& s, const Matrix<F>& m) {
    Matrix<F> r;
    UNROLL for (int k = 0; k < 9; ++k) r.e[k] = {s * m.e[k].re, s * m.e[k].im};
    return r;
}
template <class F> HD Matrix<F> null_matrix() {
    Matrix<F> r;
    UNROLL for (int k = 0; k < 9; ++k) r.e[k] = zero<F>();
    return r;
}
template <class F> HD F real_trace(const Matrix<F>& a) { return a.e[0].re + a.e[4].re + a.e[8].re; }
// Re tr(a b)
template <class F> HD F real_trace_of_product(const Matrix<F>& a, const Matrix<F>& b) {
    F s = F{};
    UNROLL for (int i = 0; i < 3; ++i) UNROLL for (int k = 0; k < 3; ++k)
        s = nmad(a.e[3 * i + k].im, b.e[3 * k + i].im, mad(a.e[3 * i + k].re, b.e[3 * k + i].re, s));
    return s;
}

// v = U h, or U^dag h, for the two spins of a half spinor.
template <bool ADJOINT, class F> HD void multiply_half(Complex<F>* v, const Matrix<F>& u, const Complex<F>* h) {
    UNROLL for (int s = 0; s < 2; ++s) UNROLL for (int i = 0; i < 3; ++i) {
        Complex<F> r = zero<F>();
        UNROLL for (int j = 0; j < 3; ++j) {
            if constexpr (ADJOINT) cmad_conj(r, u.e[3 * j + i], h[3 * s + j]);
            else cmad(r, u.e[3 * i + j], h[3 * s + j]);
        }
        v[3 * s + i] = r;
    }
}

// su(3): p_a with P = sum p_a T_a, where T_a is half a Gell-Mann matrix, a = 1..8 in the usual order.
constexpr double INVERSE_ROOT_3 = 0.57735026918962576451;

template <class F> HD Matrix<F> hermitian(const F* p) {
    const F half = splat<F>(0.5), d = p[7] * splat<F>(INVERSE_ROOT_3);
    Matrix<F> m;
    m.e[0] = {half * (d + p[2]), F{}};
    m.e[4] = {half * (d - p[2]), F{}};
    m.e[8] = {-d, F{}};
    m.e[1] = {half * p[0], -(half * p[1])};
    m.e[2] = {half * p[3], -(half * p[4])};
    m.e[5] = {half * p[5], -(half * p[6])};
    m.e[3] = conj(m.e[1]);
    m.e[6] = conj(m.e[2]);
    m.e[7] = conj(m.e[5]);
    return m;
}
// f_a += scale Re tr(i T_a W)
template <class F> HD void add_projection(F* f, F scale, const Matrix<F>& w) {
    const F h = splat<F>(-0.5) * scale, t = h * splat<F>(INVERSE_ROOT_3);
    f[0] = mad(h, w.e[1].im + w.e[3].im, f[0]);
    f[1] = mad(h, w.e[1].re - w.e[3].re, f[1]);
    f[2] = mad(h, w.e[0].im - w.e[4].im, f[2]);
    f[3] = mad(h, w.e[2].im + w.e[6].im, f[3]);
    f[4] = mad(h, w.e[2].re - w.e[6].re, f[4]);
    f[5] = mad(h, w.e[5].im + w.e[7].im, f[5]);
    f[6] = mad(h, w.e[5].re - w.e[7].re, f[6]);
    f[7] = mad(t, (w.e[0].im + w.e[4].im) - (w.e[8].im + w.e[8].im), f[7]);
}

template <int N> struct InverseFactorials {
    double at[N + 1];
    HD constexpr InverseFactorials() : at() {
        at[0] = 1;
        for (int k = 1; k <= N; ++k) at[k] = at[k - 1] / k;
    }
};

// exp(i Q) for hermitian traceless Q, by Q^3 = c1 Q + c0 and Horner's scheme with 30 terms of the series. Its error is
// below rounding for |Q| < 4 (|Q|^31 / 31! < 1e-15).
template <class F> HD Matrix<F> exponential(const Matrix<F>& q) {
    const Matrix<F> q2 = q * q;
    const F c1 = splat<F>(0.5) * real_trace(q2);
    const F c0 = splat<F>(1.0 / 3.0) * real_trace_of_product(q2, q);
    constexpr int TERMS = 30;
    constexpr InverseFactorials<TERMS> inverse_factorial;
    Complex<F> f0 = zero<F>(), f1 = zero<F>(), f2 = zero<F>();
    UNROLL for (int k = TERMS; k >= 0; --k) {
        const F a = splat<F>((k & 2) ? -inverse_factorial.at[k] : inverse_factorial.at[k]);
        const Complex<F> n1 = {mad(c1, f2.re, f0.re), mad(c1, f2.im, f0.im)}, n2 = f1;
        f0 = {mad(c0, f2.re, k & 1 ? F{} : a), mad(c0, f2.im, k & 1 ? a : F{})};
        f1 = n1;
        f2 = n2;
    }
    Matrix<F> r;
    UNROLL for (int k = 0; k < 9; ++k) {
        Complex<F> s = k % 4 == 0 ? f0 : zero<F>();
        cmad(s, f1, q.e[k]);
        cmad(s, f2, q2.e[k]);
        r.e[k] = s;
    }
    return r;
}

// Projection to SU(3) by Gram-Schmidt: row 0 normalised, row 1 made orthogonal to it and normalised, row 2 = conj(row 0
// x row 1). Special unitary matrices do not change, to rounding.
template <class F> HD void reunitarise(Matrix<F>& u) {
    const F one = splat<F>(1);
    F n = F{};
    UNROLL for (int k = 0; k < 3; ++k) n = mad(u.e[k].im, u.e[k].im, mad(u.e[k].re, u.e[k].re, n));
    n = one / root(n);
    UNROLL for (int k = 0; k < 3; ++k) u.e[k] = {u.e[k].re * n, u.e[k].im * n};
    Complex<F> d = zero<F>();
    UNROLL for (int k = 0; k < 3; ++k) cmad_conj(d, u.e[k], u.e[3 + k]);
    UNROLL for (int k = 0; k < 3; ++k) cnmad(u.e[3 + k], d, u.e[k]);
    n = F{};
    UNROLL for (int k = 3; k < 6; ++k) n = mad(u.e[k].im, u.e[k].im, mad(u.e[k].re, u.e[k].re, n));
    n = one / root(n);
    UNROLL for (int k = 3; k < 6; ++k) u.e[k] = {u.e[k].re * n, u.e[k].im * n};
    third_row(u);
}
