// The clover term A = diagonal + c_sw (i/2) sum_{mu<nu} sigma_{mu nu} F_{mu nu}, its inverse and log det,
// and the force through its leaves.
//
//   sigma_{mu nu} = (i/2) [gamma_mu, gamma_nu],  F_{mu nu} = (Q_{mu nu} - Q_{mu nu}^dag) / 8,
//   Q_{mu nu}(x): the four plaquettes in the plane that start at x, in the sense mu to nu.
//
// In the chiral basis A has two hermitian 6x6 blocks of 36 reals each: the diagonal, then the rows of the lower
// triangle, complex. Planes are numbered xy, xz, yz, xt, yt, zt.
#pragma once
#include "elementary.cuh"
#include "gauge.cuh"
#include "wilson.cuh"

HD constexpr int plane_mu(int plane) { return plane == 0 || plane == 1 || plane == 3 ? 0 : plane == 2 || plane == 4 ? 1 : 2; }
HD constexpr int plane_nu(int plane) { return plane == 0 ? 1 : plane <= 2 ? 2 : 3; }
HD constexpr int plane_of(int mu, int nu) { return nu == 1 ? 0 : nu == 2 ? 1 + mu : 3 + mu; }

// Q_{mu nu}(x)
template <class F> HD Matrix<F> leaves(const Geometry& g, const void* links, const Walk& w, int mu, int nu) {
    const unsigned f = 1 + mu, b = 5 + mu, u = 1 + nu, d = 5 + nu;
    Matrix<F> q = product_of<4, F>(g, links, w, f | u << 4 | b << 8 | d << 12);
    q = q + product_of<4, F>(g, links, w, u | b << 4 | d << 8 | f << 12);
    q = q + product_of<4, F>(g, links, w, b | d << 4 | f << 8 | u << 12);
    return q + product_of<4, F>(g, links, w, d | f << 4 | u << 8 | b << 12);
}
// F_{mu nu}(x), antihermitian
template <class F> HD Matrix<F> field_strength(const Geometry& g, const void* links, const Walk& w, int plane) {
    const Matrix<F> q = leaves<F>(g, links, w, plane_mu(plane), plane_nu(plane));
    Matrix<F> r;
    const F eighth = splat<F>(0.125);
    UNROLL for (int i = 0; i < 3; ++i) UNROLL for (int j = 0; j < 3; ++j) {
        const Complex<F> d = add_phase<2>(q.e[3 * i + j], conj(q.e[3 * j + i]));
        r.e[3 * i + j] = {eighth * d.re, eighth * d.im};
    }
    return r;
}

// For each chirality, sigma_{mu nu} is a sign times a Pauli matrix (0, 1, 2 for x, y, z). For planes with t the sign
// depends on the chirality. This follows from the gamma matrices of spinor.cuh.
HD constexpr int pauli_of(int plane) { return plane == 0 || plane == 5 ? 2 : plane == 1 || plane == 4 ? 1 : 0; }
HD constexpr int sigma_sign(int plane, int chirality) {
    return plane < 3 ? 1 : (plane == 4) == (chirality == 0) ? 1 : -1;
}
template <class F> HD void add_signed(Matrix<F>& r, int sign, const Matrix<F>& m) { r = sign > 0 ? r + m : r - m; }

template <class F, class V> HD auto clover_half(V* field, const Geometry& g, int parity) {
    return half_field<F>(field, parity, g.half, 72);
}
// A on both parities; `scale` is c_sw. Block: diagonal + tau_x H_x + tau_y H_y + tau_z H_z, H_k hermitian.
template <class F> HD void clover_build(const CloverBuild& a, int i) {
    const int parity = parity_of_index<F>(a, i);
    const Walk w = walk_from(coord_of(a.g, i, parity));
    Matrix<F> h[2][3];
    for (int k = 0; k < 6; ++k) h[k / 3][k % 3] = null_matrix<F>();
    for (int plane = 0; plane < 6; ++plane) {
        const Matrix<F> f = field_strength<F>(a.g, a.links, w, plane);
        for (int chirality = 0; chirality < 2; ++chirality) add_signed(h[chirality][pauli_of(plane)], sigma_sign(plane, chirality), f);
    }
    const F half = splat<F>(0.5 * a.scale), diagonal = splat<F>(a.diagonal);
    for (int chirality = 0; chirality < 2; ++chirality) {
        Matrix<F>* b = h[chirality];
        for (int k = 0; k < 3; ++k)
            for (int e = 0; e < 9; ++e) b[k].e[e] = {-(half * b[k].e[e].im), half * b[k].e[e].re};
        F block[36];
        for (int r = 0; r < 3; ++r) {
            block[r] = diagonal + b[2].e[4 * r].re;
            block[3 + r] = diagonal - b[2].e[4 * r].re;
        }
        for (int r = 1; r < 6; ++r)
            for (int c = 0; c < r; ++c) {
                Complex<F> v;
                if (r < 3) v = b[2].e[3 * r + c];
                else if (c >= 3) v = {-b[2].e[3 * (r - 3) + c - 3].re, -b[2].e[3 * (r - 3) + c - 3].im};
                else v = add_phase<1>(b[0].e[3 * (r - 3) + c], b[1].e[3 * (r - 3) + c]);
                block[6 + r * (r - 1) + 2 * c] = v.re;
                block[7 + r * (r - 1) + 2 * c] = v.im;
            }
        store<36, 2>(clover_half<F>(a.clover, a.g, parity), chirality, i, a.g.half, block);
    }
}

// inverse = A^-1 on one parity, by A = L D L^dag. Sum 0: log det A; sum 1: number of pivots that are not positive.
template <class F> HD void clover_invert(const CloverInvert& a, int i, Accumulator& sum) {
    F product = splat<F>(1);
    double bad = 0;
    for (int chirality = 0; chirality < 2; ++chirality) {
        F block[36], d[6], inverse_d[6];
        load<36, 2>(block, clover_half<F>(a.clover, a.g, a.parity), chirality, i, a.g.half);
        Complex<F> l[6][6], m[6][6];
        for (int j = 0; j < 6; ++j) {
            F s = block[j];
            for (int k = 0; k < j; ++k) {
                const F square = mad(l[j][k].im, l[j][k].im, mad(l[j][k].re, l[j][k].re, F{}));
                s = nmad(square, d[k], s);
            }
            d[j] = s;
            inverse_d[j] = splat<F>(1) / s;
            product = product * s;
            for (int n = 0; n < lane<F>::W; ++n) bad += !(get(s, n) > 0);
            for (int r = j + 1; r < 6; ++r) {
                Complex<F> v = {block[6 + r * (r - 1) + 2 * j], block[7 + r * (r - 1) + 2 * j]};
                for (int k = 0; k < j; ++k) {
                    const Complex<F> t = {l[r][k].re * d[k], l[r][k].im * d[k]};
                    cnmad(v, conj(l[j][k]), t);
                }
                l[r][j] = {v.re * inverse_d[j], v.im * inverse_d[j]};
            }
        }
        for (int c = 0; c < 6; ++c) {  // m = l^-1, unit lower triangular
            m[c][c] = {splat<F>(1), F{}};
            for (int r = c + 1; r < 6; ++r) {
                Complex<F> v = zero<F>();
                for (int k = c; k < r; ++k) cnmad(v, l[r][k], m[k][c]);
                m[r][c] = v;
            }
        }
        for (int r = 0; r < 6; ++r)
            for (int c = 0; c <= r; ++c) {
                Complex<F> v = zero<F>();
                for (int k = r; k < 6; ++k) {
                    const Complex<F> t = {m[k][c].re * inverse_d[k], m[k][c].im * inverse_d[k]};
                    cmad_conj(v, m[k][r], t);
                }
                if (c == r) {
                    block[r] = v.re;
                } else {
                    block[6 + r * (r - 1) + 2 * c] = v.re;
                    block[7 + r * (r - 1) + 2 * c] = v.im;
                }
            }
        store<36, 2>(a.inverse, chirality, i, a.g.half, block);
    }
    F logarithm;
    for (int n = 0; n < lane<F>::W; ++n) set(logarithm, n, natural_log(get(product, n)));
    sum.add(0, logarithm);
    sum.add_one(1, bad);
}

// The insertion L of each plane. The force through the leaves is Re tr(L dQ) with
// L = -i scale (T + T^dag) / 8, T_{beta alpha} = sum_ab sigma_ab P_{b beta, a alpha}, for P = X Y^dag
// or A^-1. p[b][a] are the four 3x3 parts of P for one chirality.
template <class F> HD void insert(Matrix<F>* t, int chirality, const Matrix<F> p[2][2]) {
    for (int plane = 0; plane < 6; ++plane) {
        const int sign = sigma_sign(plane, chirality);
        switch (pauli_of(plane)) {
            case 0: add_signed(t[plane], sign, p[1][0] + p[0][1]); break;
            case 1:
                for (int e = 0; e < 9; ++e) {
                    const Complex<F> d = add_phase<2>(p[0][1].e[e], p[1][0].e[e]);
                    t[plane].e[e] = sign > 0 ? add_phase<1>(t[plane].e[e], d) : add_phase<3>(t[plane].e[e], d);
                }
                break;
            default: add_signed(t[plane], sign, p[0][0] - p[1][1]);
        }
    }
}
template <class F, class A> HD void add_insertion(const A& a, int i, const Matrix<F>* t) {
    const Coord c = coord_of(a.g, i, a.parity);
    const int s = bordered_index_of(a.g, c);
    void* half = half_field<F>(a.insertion, a.parity, a.g.half_bordered, 108);
    const F scale = splat<F>(a.scale / 8);
    for (int plane = 0; plane < 6; ++plane) {
        Matrix<F> l = load_matrix<18, 6, F>(half, plane, s, a.g.half_bordered);
        for (int r = 0; r < 3; ++r)
            for (int k = 0; k < 3; ++k) {
                const Complex<F> h = add_phase<0>(t[plane].e[3 * r + k], conj(t[plane].e[3 * k + r]));
                l.e[3 * r + k] = {mad(scale, h.im, l.e[3 * r + k].re), nmad(scale, h.re, l.e[3 * r + k].im)};
            }
        store_matrix<6>(half, plane, s, a.g.half_bordered, l);
    }
}
template <class F> HD void insert_pair(const InsertPair& a, int i) {
    Complex<F> x[12], y[12];
    load_spinor(x, a.x, i, a.g.half);
    load_spinor(y, a.y, i, a.g.half);
    Matrix<F> t[6], p[2][2];
    for (int plane = 0; plane < 6; ++plane) t[plane] = null_matrix<F>();
    for (int chirality = 0; chirality < 2; ++chirality) {
        for (int b = 0; b < 2; ++b)
            for (int s = 0; s < 2; ++s)
                for (int r = 0; r < 3; ++r)
                    for (int k = 0; k < 3; ++k) {
                        Complex<F> v = zero<F>();
                        cmad_conj(v, y[6 * chirality + 3 * s + k], x[6 * chirality + 3 * b + r]);
                        p[b][s].e[3 * r + k] = v;
                    }
        insert(t, chirality, p);
    }
    add_insertion(a, i, t);
}
template <class F> HD void insert_inverse(const InsertInverse& a, int i) {
    Matrix<F> t[6], p[2][2];
    for (int plane = 0; plane < 6; ++plane) t[plane] = null_matrix<F>();
    for (int chirality = 0; chirality < 2; ++chirality) {
        F block[36];
        load<36, 2>(block, a.inverse, chirality, i, a.g.half);
        for (int r = 0; r < 6; ++r)
            for (int c = 0; c < 6; ++c) {
                const int hi = r > c ? r : c, lo = r > c ? c : r, k = 6 + hi * (hi - 1) + 2 * lo;
                Complex<F>& e = p[r / 3][c / 3].e[3 * (r % 3) + c % 3];
                if (r == c) e = {block[r], F{}};
                else if (r > c) e = {block[k], block[k + 1]};
                else e = {block[k], -block[k + 1]};
            }
        insert(t, chirality, p);
    }
    add_insertion(a, i, t);
}

// One side of a link's leaves: the loop U a b c through the corners 0 (x), 1, 2, 3, with L inserted before the link
// that starts at each corner.
template <class F>
HD Matrix<F> leaf_sum(const Matrix<F>& a, const Matrix<F>& b, const Matrix<F>& c, const Matrix<F>& l0, const Matrix<F>& l1,
                      const Matrix<F>& l2, const Matrix<F>& l3) {
    return (l1 * a + a * l2) * (b * c) + (a * b) * (l3 * c + c * l0);
}
// force += Re tr(i T_a W) for all leaves, with the insertions of the field (its borders filled).
template <class F> HD void clover_force(const CloverForce& a, int i) {
    const int mu = part_of_index<4>(a.g, i), parity = parity_of_index<F>(a, i);
    const Walk x = walk_from(coord_of(a.g, i, parity));
    Matrix<F> total = null_matrix<F>();
    Walk right = x;
    step(a.g, right, mu, 1);
    for (int nu = 0; nu < 4; ++nu) {
        if (nu == mu) continue;
        const int plane = mu < nu ? plane_of(mu, nu) : plane_of(nu, mu);
        const Matrix<F> l0 = matrix_at<6, F>(a.g, a.insertion, x, plane), l1 = matrix_at<6, F>(a.g, a.insertion, right, plane);
        for (int side = 0; side < 2; ++side) {
            Walk over = x, corner = right;
            step(a.g, over, nu, side == 0 ? 1 : -1);
            step(a.g, corner, nu, side == 0 ? 1 : -1);
            const Matrix<F> first = side == 0 ? link_at<F>(a.g, a.links, right, nu) : adjoint(link_at<F>(a.g, a.links, corner, nu));
            const Matrix<F> back = adjoint(link_at<F>(a.g, a.links, over, mu));
            const Matrix<F> last = side == 0 ? adjoint(link_at<F>(a.g, a.links, x, nu)) : link_at<F>(a.g, a.links, over, nu);
            const Matrix<F> sum = leaf_sum(first, back, last, l0, l1, matrix_at<6, F>(a.g, a.insertion, corner, plane),
                                           matrix_at<6, F>(a.g, a.insertion, over, plane));
            add_signed(total, (mu < nu) == (side == 0) ? 1 : -1, sum);
        }
    }
    F f[8];
    load<8, 4>(f, momentum_half<F>(a.force, a.g, parity), mu, i, a.g.half);
    add_projection(f, splat<F>(1), link_at<F>(a.g, a.links, x, mu) * total);
    store<8, 4>(momentum_half<F>(a.force, a.g, parity), mu, i, a.g.half, f);
}

// Sums over sites: 0: E = -sum_{mu<nu} tr F^2; 1: q = -tr(F_xy F_zt - F_xz F_yt + F_xt F_yz) / (4 pi^2),
// with the traceless F (Luscher, arXiv:1006.4518).
template <class F> HD void field_energy(const FieldEnergy& a, int i, Accumulator& sum) {
    const int parity = parity_of_index<F>(a, i);
    const Walk w = walk_from(coord_of(a.g, i, parity));
    Matrix<F> f[6];
    F energy = F{};
    for (int plane = 0; plane < 6; ++plane) {
        f[plane] = field_strength<F>(a.g, a.links, w, plane);
        const F third = splat<F>(1.0 / 3.0) * ((f[plane].e[0].im + f[plane].e[4].im) + f[plane].e[8].im);
        for (int k = 0; k < 9; k += 4) f[plane].e[k].im = f[plane].e[k].im - third;
        energy = energy - real_trace_of_product(f[plane], f[plane]);
    }
    F charge = real_trace_of_product(f[0], f[5]) - real_trace_of_product(f[1], f[4]);
    charge = charge + real_trace_of_product(f[3], f[2]);
    sum.add(0, energy);
    sum.add(1, splat<F>(-0.025330295910584442861) * charge);
}

#define CLOVER_KERNELS(SITE, SUM)                                   \
    SITE(clover, clover_build, CloverBuild, (clover_build<F>))       \
    SUM(clover, clover_invert, CloverInvert, 2, (clover_invert<F>))   \
    SITE(clover, insert_pair, InsertPair, (insert_pair<F>))         \
    SITE(clover, insert_inverse, InsertInverse, (insert_inverse<F>))   \
    SITE(clover, clover_force, CloverForce, (clover_force<F>))       \
    SUM(clover, field_energy, FieldEnergy, 2, (field_energy<F>))
