// log, sin and cos of doubles by + - * / only, so that every target gives the same bits. Polynomials of fdlibm (Sun
// Microsystems, 1993: e_log.c, k_sin.c, k_cos.c); errors are below 1 ulp.
#pragma once
#include "sum.cuh"

// For normal x; NaN unless x is positive.
HD double natural_log(double x) {
    if (!(x > 0)) return double_of(0x7ff8000000000000ll);
    i64 bits = bits_of(x);
    // m in [sqrt(1/2), sqrt(2)), x = 2^k m
    bits += 0x3ff0000000000000ll - 0x3fe6a09e667f3bcdll;
    const int k = int(bits >> 52) - 1023;
    const double m = double_of((bits & 0x000fffffffffffffll) + 0x3fe6a09e667f3bcdll);
    const double f = m - 1, s = f / (2 + f), z = s * s, w = z * z;
    const double t1 = w * mad(w, mad(w, 1.531383769920937332e-01, 2.222219843214978396e-01), 3.999999999940941908e-01);
    const double t2 = z * mad(w, mad(w, mad(w, 1.479819860511658591e-01, 1.818357216161805012e-01), 2.857142874366239149e-01),
                              6.666666666666735130e-01);
    const double r = t1 + t2, half = 0.5 * f * f, dk = k;
    return mad(dk, 6.93147180369123816490e-01, -((half - mad(s, half + r, dk * 1.90821492927058770002e-10)) - f));
}
// sin and cos of 2 pi u, 0 <= u < 1
HD void sin_cos_turns(double u, double& sine, double& cosine) {
    const int quarter = int(mad(u, 4.0, 0.5));
    const double x = (u - 0.25 * quarter) * 6.28318530717958647693, z = x * x;
    const double s = mad(z, mad(z, mad(z, mad(z, mad(z, 1.58969099521155010221e-10, -2.50507602534068634195e-08),
                                              2.75573137070700676789e-06), -1.98412698298579493134e-04),
                                8.33333333332248946124e-03), -1.66666666666666324348e-01);
    const double sin_x = mad(x * z, s, x);
    const double c = mad(z, mad(z, mad(z, mad(z, mad(z, -1.13596475577881948265e-11, 2.08757232129817482790e-09),
                                              -2.75573143513906633035e-07), 2.48015872894767294178e-05),
                                -1.38888888888741095749e-03), 4.16666666666666019037e-02);
    const double cos_x = mad(z * z, c, mad(z, -0.5, 1.0));
    const bool swap = quarter & 1;
    sine = swap ? cos_x : sin_x;
    cosine = swap ? sin_x : cos_x;
    if (quarter & 2) sine = -sine;
    if ((quarter + 1) & 2) cosine = -cosine;
}
