// A doublet of two masses on fields of two slices, its flavours: M = A + X - D/2, X = i mubar gamma_5 tau_3 - epsbar tau_1, and
// (A + X)^-1 = (A - X) (A^2 - X^2)^-1, where X^2 = epsbar^2 - mubar^2.
#pragma once
#include "slices.cuh"

// r = A x; a number without a term.
template <class F> HD void multiply_term(Complex<F>* r, const Clover* term, double diagonal, int s, int half, const Complex<F>* x) {
    if (term != nullptr) {
        multiply_clover(r, term, s, half, x);
        return;
    }
    const F d = splat<F>(real_of<F>(diagonal));
    UNROLL for (int k = 0; k < 12; ++k) r[k] = {d * x[k].re, d * x[k].im};
}
// r += X x for one flavour, where `other` is the other one of x.
template <class F>
HD void add_masses(Complex<F>* r, double mubar, double epsbar, int flavour, const Complex<F>* x, const Complex<F>* other) {
    add_twist(r, splat<F>(real_of<F>(flavour == 0 ? mubar : -mubar)), x);
    const F e = splat<F>(real_of<F>(epsbar));
    UNROLL for (int k = 0; k < 12; ++k) r[k] = {nmad(e, other[k].re, r[k].re), nmad(e, other[k].im, r[k].im)};
}

template <class F, int NR> struct DoubletOfHops {
    static constexpr int PHASES = 2;
    HD static int threads(const DoubletHop&) { return 2 * TEAM_SITES; }
    template <int PHASE> HD static void phase(const DoubletHop& a, int team, int thread, F* shared) {
        const Hopping& h = a.hop;
        const Member m = member_of(fields_of(h) / 2, team, thread);
        if (m.place >= h.places.count || (PHASE == 1 && a.x != nullptr)) return;
        const int s = site_at(h.places, m.place), half = half_of(h.g);
        const double mubar = dagger_of(h) ? -a.mubar : a.mubar;
        const F scale = splat<F>(real_of<F>(a.scale));
        const Slice slice = slice_of<F>(half, 2, m);
        Complex<F> r[12], x[12], y[12];
        if (PHASE == 0) {
            hops<NR>(r, h, slice, m.field * 2 + m.slice, s);
            if (a.x == nullptr) {
                // Not by a pointer to one of both, which would keep them in memory.
                if (a.clover == nullptr) {
                    share(shared, m, r);
                } else {
                    multiply_clover(y, a.clover, s, half, r);
                    share(shared, m, y);
                }
                return;
            }
            const char* field = (const char*)a.x + slice.offset;
            load_spinor(x, field, slice.first + s, slice.stride);
            multiply_term(y, a.term, a.diagonal, s, half, x);
            Complex<F> other[12];
            load_spinor(other, field, half - slice.first + s, slice.stride);
            add_masses(y, mubar, a.epsbar, m.slice, x, other);
            UNROLL for (int k = 0; k < 12; ++k) r[k] = {nmad(scale, r[k].re, y[k].re), nmad(scale, r[k].im, y[k].im)};
        } else {
            shared_spinor(x, shared, m.slice, m.site);
            shared_spinor(y, shared, 1 - m.slice, m.site);
            multiply_term(r, a.term, a.diagonal, s, half, x);
            add_masses(r, -mubar, -a.epsbar, m.slice, x, y);
            UNROLL for (int k = 0; k < 12; ++k) r[k] = {scale * r[k].re, scale * r[k].im};
        }
        store_spinor((char*)a.out + slice.offset, slice.first + s, slice.stride, r);
    }
};
HD const Hopping& hop_of(const DoubletHop& a) { return a.hop; }

// r = B input for a flavour; without a term B is in the scale.
template <class F> HD void multiply_inverse(Complex<F>* r, const DoubletInverse& a, int flavour, int s) {
    Complex<F> x[12];
    const int half = half_of(a.g);
    load_spinor(x, a.input, flavour * half + s, 2 * half);
    if (a.clover != nullptr) {
        multiply_clover(r, a.clover, s, half, x);
    } else {
        UNROLL for (int k = 0; k < 12; ++k) r[k] = x[k];
    }
}
// out = scale (A - X) B input on one parity
template <class F> HD void doublet_inverse(const DoubletInverse& a, int i) {
    const int half = half_of(a.g), flavour = i / half, s = i % half;
    Complex<F> x[12], y[12], r[12];
    multiply_inverse(x, a, flavour, s);
    multiply_inverse(y, a, 1 - flavour, s);
    multiply_term(r, a.term, a.diagonal, s, half, x);
    add_masses(r, -a.mubar, -a.epsbar, flavour, x, y);
    const F scale = splat<F>(real_of<F>(a.scale));
    UNROLL for (int k = 0; k < 12; ++k) r[k] = {scale * r[k].re, scale * r[k].im};
    store_spinor(a.out, flavour * half + s, 2 * half, r);
}

#define DOUBLET_KERNELS(SITE, SUM, TEAM)                                      \
    TEAM(doublet, doublet_hop_18, DoubletHop, (DoubletOfHops<F, 18>{}))       \
    TEAM(doublet, doublet_hop_12, DoubletHop, (DoubletOfHops<F, 12>{}))       \
    TEAM(doublet, doublet_hop_8, DoubletHop, (DoubletOfHops<F, 8>{}))
#define DOUBLET_DOUBLE_KERNELS(SITE, SUM) SITE(doublet, doublet_inverse, DoubletInverse, (doublet_inverse<F>))
