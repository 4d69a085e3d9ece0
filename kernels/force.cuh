// Force of the Wilson hopping term, with S = -2 Re Y^dag dM X:
//   F_a(x, mu) = Re tr(i T_a W),  W = U hX(x+mu) hY(x)^dag + U hY(x+mu) hX(x)^dag  (spins traced, slices summed),
// hX(x+mu) is the upper half of (1 - gamma_mu) X, hY(x+mu) that of (1 + gamma_mu) Y, and similarly at x: Y^dag (1 -
// gamma) X is the product of the upper halves.
#pragma once
#include "gauge.cuh"
#include "wilson.cuh"

template <int MU, int S, class F>
HD void add_outer(Matrix<F>& w, const HopForce& a, const Coord& c, int s, int slice, const Matrix<F>& u, const void* there,
                  const void* ghost_zone, const void* here) {
    const bool edge = c.x[MU] == a.g.outer[MU] - 1;
    const int first = slice * a.g.half, stride = a.slices * a.g.half;
    Complex<F> h[6], v[6], k[6], p[12];
    if (GHOSTS && edge && (a.ghost_mask >> MU & 1)) {
        const int faces = a.g.half / a.g.outer[MU];
        load_ghost<12, 1>(reinterpret_cast<F*>(h), (const F*)ghost_zone + 12L * faces * slice, 0, face_index<MU>(a.g, c), faces);
    } else {
        Coord n = c;
        n.x[MU] = edge ? 0 : c.x[MU] + 1;
        load_spinor(p, there, first + index_of(a.g, n), stride);
        project<MU, S>(h, p, splat<F>(1));
        if (edge) permute_half(h, a.g, MU, true);
    }
    multiply_half<false>(v, u, h);
    if (edge && (a.phase_mask >> (2 * MU) & 1)) apply_phase(v, a.phases, 2 * MU);
    load_spinor(p, here, first + s, stride);
    project<MU, S>(k, p, splat<F>(1));
    UNROLL for (int r = 0; r < 3; ++r) UNROLL for (int t = 0; t < 3; ++t) UNROLL for (int spin = 0; spin < 2; ++spin)
        cmad_conj(w.e[3 * r + t], k[3 * spin + t], v[3 * spin + r]);
}
template <int MU, class F> HD void hop_force_of(const HopForce& a, const Coord& c, int s) {
    const Matrix<F> u = link_at<F>(a.g, a.links, walk_from(c), MU);
    Matrix<F> w = null_matrix<F>();
    for (int slice = 0; slice < a.slices; ++slice) {
        add_outer<MU, 2>(w, a, c, s, slice, u, a.x_there, a.ghost_x[MU], a.y_here);
        add_outer<MU, 0>(w, a, c, s, slice, u, a.y_there, a.ghost_y[MU], a.x_here);
    }
    F f[8];
    void* half = momentum_half<F>(a.force, a.g, a.parity);
    load<8, 4>(f, half, MU, s, a.g.half);
    add_projection(f, splat<F>(real_of<F>(a.scale)), w);
    store<8, 4>(half, MU, s, a.g.half, f);
}
template <class F> HD void hop_force(const HopForce& a, int s) {
    const Coord c = coord_of(a.g, s, a.parity);
    hop_force_of<0, F>(a, c, s);
    hop_force_of<1, F>(a, c, s);
    hop_force_of<2, F>(a, c, s);
    hop_force_of<3, F>(a, c, s);
}

#define FORCE_KERNELS(SITE, SUM) SITE(force, hop_force, HopForce, (hop_force<F>))
