// Complex numbers in lanes.
#pragma once
#include "lane.cuh"

template <class F> struct Complex { F re, im; };

// a + i^K b
template <int K, class F> HD Complex<F> add_phase(Complex<F> a, Complex<F> b) {
    if constexpr ((K & 3) == 0) return {a.re + b.re, a.im + b.im};
    else if constexpr ((K & 3) == 1) return {a.re - b.im, a.im + b.re};
    else if constexpr ((K & 3) == 2) return {a.re - b.re, a.im - b.im};
    else return {a.re + b.im, a.im - b.re};
}
// a + s i^K b for a sign s; the sum is rounded once, as in add_phase.
template <int K, class F> HD Complex<F> mad_phase(Complex<F> a, F s, Complex<F> b) {
    if constexpr ((K & 3) == 0) return {mad(s, b.re, a.re), mad(s, b.im, a.im)};
    else if constexpr ((K & 3) == 1) return {nmad(s, b.im, a.re), mad(s, b.re, a.im)};
    else if constexpr ((K & 3) == 2) return {nmad(s, b.re, a.re), nmad(s, b.im, a.im)};
    else return {mad(s, b.im, a.re), nmad(s, b.re, a.im)};
}
template <class F> HD Complex<F> zero() { return {F{}, F{}}; }
// r += a b
template <class F> HD void cmad(Complex<F>& r, Complex<F> a, Complex<F> b) {
    r.re = mad(a.re, b.re, r.re);
    r.im = mad(a.re, b.im, r.im);
    r.re = nmad(a.im, b.im, r.re);
    r.im = mad(a.im, b.re, r.im);
}
// r -= a b
template <class F> HD void cnmad(Complex<F>& r, Complex<F> a, Complex<F> b) {
    r.re = nmad(a.re, b.re, r.re);
    r.im = nmad(a.re, b.im, r.im);
    r.re = mad(a.im, b.im, r.re);
    r.im = nmad(a.im, b.re, r.im);
}
// r += conj(a) b
template <class F> HD void cmad_conj(Complex<F>& r, Complex<F> a, Complex<F> b) {
    r.re = mad(a.re, b.re, r.re);
    r.im = mad(a.re, b.im, r.im);
    r.re = mad(a.im, b.im, r.re);
    r.im = nmad(a.im, b.re, r.im);
}
template <class F> HD Complex<F> conj(Complex<F> a) { return {a.re, -a.im}; }
