// Numbers that kernels take. The sums of which they are made may be on the device alone: then a solver launches what needs
// them without waiting for them. The host's formulas are in src/field/number.rs, with the same bits: each operation rounds by
// itself, as there, where sites use `mad`.
#pragma once
#include "args.h"
#include "platform.cuh"

HD bool is_finite(double x) { return x - x == 0; }

HD double number_of(const Number& a) {
    if (a.above != nullptr) return ((const double*)a.above)[0] / a.value;
    if (a.below == nullptr) return a.value;
    const double* sums = (const double*)a.below;
    return a.value / (a.weight == 0 ? sums[0] : sums[0] + a.weight * sums[1]);
}

struct ComplexNumber { double re, im; };
HD bool is_finite(ComplexNumber a) { return is_finite(a.re) && is_finite(a.im); }
HD ComplexNumber complex_of(const double* a) { return {a[0], a[1]}; }
HD ComplexNumber product(ComplexNumber a, ComplexNumber b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
HD ComplexNumber quotient(ComplexNumber a, ComplexNumber b) {
    const double square = b.re * b.re + b.im * b.im;
    return {(a.re * b.re + a.im * b.im) / square, (a.im * b.re - a.re * b.im) / square};
}

HD ComplexNumber alpha_of(const BicgstabNumbers& a) {
    if (a.dot == nullptr) return complex_of(a.alpha);
    return quotient(complex_of(a.rho), complex_of((const double*)a.dot));
}
HD ComplexNumber omega_of(const BicgstabNumbers& a) {
    if (a.overlap == nullptr) return complex_of(a.omega);
    const double* sums = (const double*)a.overlap;
    return {sums[0] / sums[2], sums[1] / sums[2]};
}
HD ComplexNumber length_of(const MrStep& a) {
    if (a.overlap == nullptr) return complex_of(a.length);
    const double* sums = (const double*)a.overlap;
    return sums[2] > 0 ? ComplexNumber{sums[0] / sums[2], sums[1] / sums[2]} : ComplexNumber{0, 0};
}
HD ComplexNumber beta_of(const BicgstabNumbers& a) {
    if (a.next == nullptr) return complex_of(a.beta);
    const ComplexNumber ratio = quotient(complex_of((const double*)a.next), complex_of(a.rho));
    return product(ratio, quotient(alpha_of(a), omega_of(a)));
}
