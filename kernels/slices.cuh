// Teams of threads that have all slices of some sites: a thread a spinor. Slices are those of a fifth dimension, or flavours.
#pragma once
#include "team.cuh"
#include "wilson.cuh"

// A thread's place: its site in the team, the number of its site in the launch, its slice, and its field (of all
// slices).
struct Member { int site, place, slice, field; };
HD Member member_of(int fields, int team, int thread) {
    const int site = thread % TEAM_SITES;
    return {site, team / fields * TEAM_SITES + site, thread / TEAM_SITES, team % fields};
}
template <class F> HD Slice slice_of(int half, int slices, const Member& m) {
    const int stride = slices * half;
    return {m.field * field_bytes<24, F>(stride), m.slice * half, stride};
}

// The place in shared memory of a site's real.
HD int shared_index(int slice, int site, int real) {
    if constexpr (GPU) return slice * TEAM_REALS + real * TEAM_SITES + site;
    else return slice * TEAM_REALS + site * 24 + real;
}
template <class F> HD void share(F* shared, const Member& m, const Complex<F>* p) {
    const F* reals = reinterpret_cast<const F*>(p);
    UNROLL for (int k = 0; k < 24; ++k) shared[shared_index(m.slice, m.site, k)] = reals[k];
}
template <class F> HD void shared_spinor(Complex<F>* p, const F* shared, int slice, int site) {
    F* reals = reinterpret_cast<F*>(p);
    UNROLL for (int k = 0; k < 24; ++k) reals[k] = shared[shared_index(slice, site, k)];
}
