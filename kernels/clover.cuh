// The clover term A = diagonal + c_sw (i/2) sum_{mu<nu} sigma_{mu nu} F_{mu nu}, or diagonal exp(M), with M the second part
// over the diagonal; its inverse and log det, and the force through its leaves.
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
    unsigned path = (1 + mu) | (1 + nu) << 4 | (5 + mu) << 8 | (5 + nu) << 12;
    Matrix<F> q;
    NO_UNROLL for (int n = 0; n < 4; ++n) {
        const Matrix<F> leaf = product_of<4, F>(g, links, w, path);
        q = n == 0 ? leaf : q + leaf;
        path = path >> 4 | (path & 15) << 12;
    }
    return q;
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

template <class F, class V> HD auto clover_half(V* field, const Geometry& g, int parity) {
    return half_field<F>(field, parity, g.half, 72);
}
// A on both parities; `scale` is c_sw. Block: diagonal + tau_x H_x + tau_y H_y + tau_z H_z, H_k hermitian. Parts: tau_z;
// tau_x and tau_y, which share their elements.
template <> constexpr int RESIDENT<CloverBuild> = 3;
template <class F> HD void clover_build(const CloverBuild& a, int i) {
    const LinkSite site = link_site<2>(a.g, i);
    const Walk w = walk_from(site.c);
    void* out = clover_half<F>(a.clover, a.g, site.parity);
    F half = splat<F>(0.5 * a.scale), diagonal = splat<F>(a.diagonal);
    if (has_walls(a.g)) {
        half = half * has_quarks<F>(a.g, site.c);
        diagonal = by_distance<F>(a.g, site.c, a.wall, a.next, a.diagonal);
    }
    const int last = site.part == 0 ? 2 : 1;
    NO_UNROLL for (int pauli = site.part == 0 ? 2 : 0; pauli <= last; ++pauli) {
        const int planes[2] = {2 - pauli, 3 + pauli};
        Matrix<F> f[2];
        NO_UNROLL for (int n = 0; n < 2; ++n) {
            if (n == 1) f[0] = f[1];
            f[1] = field_strength<F>(a.g, a.links, w, n == 0 ? planes[0] : planes[1]);
        }
        UNROLL for (int chirality = 0; chirality < 2; ++chirality) {
            const bool plus = sigma_sign(planes[1], chirality) > 0;
            Matrix<F> h;
            UNROLL for (int e = 0; e < 9; ++e) {
                const Complex<F> one = add_phase<0>(zero<F>(), f[0].e[e]);
                const Complex<F> both = plus ? add_phase<0>(one, f[1].e[e]) : add_phase<2>(one, f[1].e[e]);
                h.e[e] = {-(half * both.im), half * both.re};
            }
            // reals `at` and the next of the block
            const auto put = [&](int at, F x, F y) {
                const F pair[2] = {x, y};
                store<2, 36>(out, 18 * chirality + at / 2, site.index, a.g.half, pair);
            };
            const auto place_of = [](int r, int c) { return 6 + r * (r - 1) + 2 * c; };
            if (pauli == 2) {
                put(0, diagonal + h.e[0].re, diagonal + h.e[4].re);
                put(2, diagonal + h.e[8].re, diagonal - h.e[0].re);
                put(4, diagonal - h.e[4].re, diagonal - h.e[8].re);
                UNROLL for (int r = 1; r < 3; ++r) UNROLL for (int c = 0; c < r; ++c) {
                    const Complex<F> v = h.e[3 * r + c];
                    put(place_of(r, c), v.re, v.im);
                    put(place_of(r + 3, c + 3), -v.re, -v.im);
                }
                continue;
            }
            UNROLL for (int r = 0; r < 3; ++r) UNROLL for (int c = 0; c < 3; ++c) {
                const int at = place_of(r + 3, c);
                Complex<F> v = h.e[3 * r + c];
                if (pauli == 1) {
                    Complex<F> x;
                    load_own<2, 36>(reinterpret_cast<F*>(&x), out, 18 * chirality + at / 2, site.index, a.g.half);
                    v = add_phase<1>(x, v);
                }
                put(at, v.re, v.im);
            }
        }
    }
}

// Hermitian 6x6 blocks as whole matrices.
template <class F> struct Square { Complex<F> e[6][6]; };
template <class F> HD Square<F> unpacked(const F* block, double scale) {
    const F s = splat<F>(scale);
    Square<F> m;
    for (int r = 0; r < 6; ++r) {
        m.e[r][r] = {s * block[r], F{}};
        for (int c = 0; c < r; ++c) {
            m.e[r][c] = {s * block[6 + r * (r - 1) + 2 * c], s * block[7 + r * (r - 1) + 2 * c]};
            m.e[c][r] = conj(m.e[r][c]);
        }
    }
    return m;
}
// What is hermitian but for rounding, of which the lower triangle is taken.
template <class F> HD void pack(F* block, const Square<F>& m, const F& s) {
    for (int r = 0; r < 6; ++r) {
        block[r] = s * m.e[r][r].re;
        for (int c = 0; c < r; ++c) {
            block[6 + r * (r - 1) + 2 * c] = s * m.e[r][c].re;
            block[7 + r * (r - 1) + 2 * c] = s * m.e[r][c].im;
        }
    }
}
// scale (sum + a b)
template <class F> HD Square<F> add_square_product(const Square<F>& sum, const Square<F>& a, const Square<F>& b, double scale) {
    const F s = splat<F>(scale);
    Square<F> r;
    NO_UNROLL for (int i = 0; i < 6; ++i) NO_UNROLL for (int j = 0; j < 6; ++j) {
        Complex<F> v = sum.e[i][j];
        for (int k = 0; k < 6; ++k) cmad(v, a.e[i][k], b.e[k][j]);
        r.e[i][j] = {s * v.re, s * v.im};
    }
    return r;
}
// sum + a b of blocks, where a and b commute.
template <class F> HD void multiply_blocks(F* out, F sum, const F* x, const F* y) {
    Square<F> diagonal;
    for (int r = 0; r < 6; ++r) for (int c = 0; c < 6; ++c) diagonal.e[r][c] = {r == c ? sum : F{}, F{}};
    pack(out, add_square_product(diagonal, unpacked(x, 1), unpacked(y, 1), 1), splat<F>(1));
}
template <class F> HD void clover_product(const CloverProduct& a, int i) {
    for (int chirality = 0; chirality < 2; ++chirality) {
        F x[36], y[36], out[36];
        load<36, 2>(x, a.x, chirality, i, a.g.half);
        load<36, 2>(y, a.y, chirality, i, a.g.half);
        multiply_blocks(out, F{}, x, y);
        store<36, 2>(a.out, chirality, i, a.g.half, out);
    }
}

// inverse = A^-1 on one parity, by A = L D L^dag, or (A^2 + square)^-1. Sum 0: log det A, or log det (A^2 + square) / 2; sum 1:
// number of pivots that are not positive.
template <class F> HD void clover_invert(const CloverInvert& a, int i, Accumulator& sum) {
    F product = splat<F>(1);
    double bad = 0;
    for (int chirality = 0; chirality < 2; ++chirality) {
        F block[36], d[6], inverse_d[6];
        load<36, 2>(block, clover_half<F>(a.clover, a.g, a.parity), chirality, i, a.g.half);
        if (a.square != 0) {
            F square[36];
            multiply_blocks(square, splat<F>(a.square), block, block);
            for (int k = 0; k < 36; ++k) block[k] = square[k];
        }
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
    sum.add(0, a.square != 0 ? splat<F>(0.5) * logarithm : logarithm);
    sum.add_one(1, bad);
}

// exp(M) by the Taylor series of exp(M / 2^SQUARINGS). Norms of M up to 2 give an error of 1e-17: one of A is at most
// 3 c_sw / (4 + m0). Its change along X by the same steps, differentiated.
constexpr int SQUARINGS = 3, DEGREE = 13;
template <class F, bool ALONG> struct Exponential {
    Square<F> e, g;
    HD Exponential(const Square<F>& m, const Square<F>& x) {
        for (int r = 0; r < 6; ++r) for (int c = 0; c < 6; ++c) {
            e.e[r][c] = {splat<F>(r == c ? 1 : 0), F{}};
            g.e[r][c] = zero<F>();
        }
        const Square<F> null = g, one = e;
        NO_UNROLL for (int k = DEGREE; k > 0; --k) {
            if (ALONG) g = add_square_product(add_square_product(null, x, e, 1), m, g, 1.0 / k);
            e = add_square_product(null, m, e, 1.0 / k);
            for (int r = 0; r < 6; ++r) e.e[r][r].re = e.e[r][r].re + one.e[r][r].re;
        }
        NO_UNROLL for (int n = 0; n < SQUARINGS; ++n) {
            if (ALONG) g = add_square_product(add_square_product(null, e, g, 1), g, e, 1);
            e = add_square_product(null, e, e, 1);
        }
    }
};
// Threads have a chirality of a site.
template <class F> HD void clover_exponential(const CloverExponential& a, int i) {
    const int chirality = i / a.g.half, site = i % a.g.half;
    F block[36];
    load<36, 2>(block, a.clover, chirality, site, a.g.half);
    const Square<F> m = unpacked(block, a.sign / (1 << SQUARINGS));
    F factor = splat<F>(a.factor);
    if (has_walls(a.g)) factor = by_distance<F>(a.g, coord_of(a.g, site, a.parity), 1, a.next, a.factor);
    pack(block, Exponential<F, false>(m, m).e, factor);
    store<36, 2>(a.clover, chirality, site, a.g.half, block);
}
template <class F> HD void pair_blocks(const PairBlocks& a, int i) {
    Complex<F> x[12], y[12];
    load_spinor(x, a.x, i, a.g.half);
    load_spinor(y, a.y, i, a.g.half);
    const F weight = splat<F>(a.weight), half = splat<F>(0.5 * a.weight);
    for (int chirality = 0; chirality < 2; ++chirality) {
        F block[36];
        load<36, 2>(block, a.blocks, chirality, i, a.g.half);
        const Complex<F> *u = x + 6 * chirality, *v = y + 6 * chirality;
        for (int r = 0; r < 6; ++r) {
            block[r] = mad(weight, mad(u[r].im, v[r].im, mad(u[r].re, v[r].re, F{})), block[r]);
            for (int c = 0; c < r; ++c) {
                Complex<F> sum = zero<F>();
                cmad_conj(sum, v[c], u[r]);
                cmad_conj(sum, u[c], v[r]);
                const int at = 6 + r * (r - 1) + 2 * c;
                block[at] = mad(half, sum.re, block[at]);
                block[at + 1] = mad(half, sum.im, block[at + 1]);
            }
        }
        store<36, 2>(a.blocks, chirality, i, a.g.half, block);
    }
}
template <class F> HD void exponential_gradient(const ExponentialGradient& a, int i) {
    const int chirality = i / a.g.half, site = i % a.g.half;
    constexpr double SCALE = 1.0 / (1 << SQUARINGS);
    F block[36];
    load<36, 2>(block, a.clover, chirality, site, a.g.half);
    const Square<F> m = unpacked(block, SCALE);
    load<36, 2>(block, a.blocks, chirality, site, a.g.half);
    F factor = splat<F>(1);
    if (has_walls(a.g)) factor = by_distance<F>(a.g, coord_of(a.g, site, a.parity), 1, a.next, 1);
    pack(block, Exponential<F, true>(m, unpacked(block, SCALE)).g, factor);
    store<36, 2>(a.blocks, chirality, site, a.g.half, block);
}

// The insertion L of each plane. The force through the leaves is Re tr(L dQ) with
// L = -i scale (T + T^dag) / 8, T_{beta alpha} = sum_ab sigma_ab P_{b beta, a alpha}, for P = X Y^dag
// or A^-1. p(chirality, b, a, beta, alpha) is an element of P.
template <int PAULI, class F, class P> HD Matrix<F> sigma_trace(int plane, const P& p) {
    Matrix<F> t;
    UNROLL for (int r = 0; r < 3; ++r) UNROLL for (int k = 0; k < 3; ++k) {
        Complex<F> v = zero<F>();
        UNROLL for (int chirality = 0; chirality < 2; ++chirality) {
            const bool plus = sigma_sign(plane, chirality) > 0;
            if constexpr (PAULI == 1) {
                const Complex<F> d = add_phase<2>(p(chirality, 0, 1, r, k), p(chirality, 1, 0, r, k));
                v = plus ? add_phase<1>(v, d) : add_phase<3>(v, d);
            } else {
                const Complex<F> d = PAULI == 0 ? add_phase<0>(p(chirality, 1, 0, r, k), p(chirality, 0, 1, r, k))
                                                : add_phase<2>(p(chirality, 0, 0, r, k), p(chirality, 1, 1, r, k));
                v = plus ? add_phase<0>(v, d) : add_phase<2>(v, d);
            }
        }
        t.e[3 * r + k] = v;
    }
    return t;
}
template <class F, class A, class P> HD void add_insertion(const A& a, int i, const P& p) {
    const int s = bordered_index_of(a.g, coord_of(a.g, i, a.parity));
    void* half = half_field<F>(a.insertion, a.parity, a.g.half_bordered, 108);
    const F scale = splat<F>(a.scale / 8);
    NO_UNROLL for (int plane = 0; plane < 6; ++plane) {
        Matrix<F> t;
        switch (pauli_of(plane)) {
            case 0: t = sigma_trace<0, F>(plane, p); break;
            case 1: t = sigma_trace<1, F>(plane, p); break;
            default: t = sigma_trace<2, F>(plane, p);
        }
        Matrix<F> l = load_matrix<18, 6, F>(half, plane, s, a.g.half_bordered);
        UNROLL for (int r = 0; r < 3; ++r) UNROLL for (int k = 0; k < 3; ++k) {
            const Complex<F> h = add_phase<0>(t.e[3 * r + k], conj(t.e[3 * k + r]));
            l.e[3 * r + k] = {mad(scale, h.im, l.e[3 * r + k].re), nmad(scale, h.re, l.e[3 * r + k].im)};
        }
        store_matrix<6>(half, plane, s, a.g.half_bordered, l);
    }
}
template <class F> HD void insert_pair(const InsertPair& a, int i) {
    for (int slice = 0; slice < a.slices; ++slice) {
        Complex<F> x[12], y[12];
        load_spinor(x, a.x, slice * a.g.half + i, a.slices * a.g.half);
        load_spinor(y, a.y, slice * a.g.half + i, a.slices * a.g.half);
        add_insertion<F>(a, i, [&](int chirality, int b, int s, int r, int k) {
            Complex<F> v = zero<F>();
            cmad_conj(v, y[6 * chirality + 3 * s + k], x[6 * chirality + 3 * b + r]);
            return v;
        });
    }
}
template <class F> HD void insert_inverse(const InsertInverse& a, int i) {
    const auto packed = [&](int chirality, int at) {  // reals `at` and the next
        Complex<F> v;
        load<2, 36>(reinterpret_cast<F*>(&v), a.inverse, 18 * chirality + at / 2, i, a.g.half);
        return v;
    };
    add_insertion<F>(a, i, [&](int chirality, int b, int s, int r, int k) {
        const int row = 3 * b + r, column = 3 * s + k, hi = row > column ? row : column, lo = row > column ? column : row;
        if (row == column) {
            const Complex<F> v = packed(chirality, row & ~1);
            return Complex<F>{row & 1 ? v.im : v.re, F{}};
        }
        const Complex<F> v = packed(chirality, 6 + hi * (hi - 1) + 2 * lo);
        return row > column ? v : conj(v);
    });
}

// One side of a link's leaves: the loop U a b c through the corners 0 (x), 1, 2, 3, with L inserted before the link
// that starts at each corner: (L1 a + a L2) (b c) + (a b) (L3 c + c L0). BACK: the side in -nu, where a is the adjoint
// of a link; else c is. b is one on both sides.
template <bool BACK, class F>
HD Matrix<F> leaf_sum(const CloverForce& a, const Walk& x, const Walk& right, int mu, int nu, int plane) {
    Walk over = x, corner = right;
    step(a.g, over, nu, BACK ? -1 : 1);
    step(a.g, corner, nu, BACK ? -1 : 1);
    const auto link_a = [&] { return link_at<F>(a.g, a.links, BACK ? corner : right, nu); };
    const auto link_b = [&] { return link_at<F>(a.g, a.links, over, mu); };
    const auto link_c = [&] { return link_at<F>(a.g, a.links, BACK ? over : x, nu); };
    const auto inserted = [&](const Walk& corner) { return matrix_at<6, F>(a.g, a.insertion, corner, plane); };
    // Links are loaded again rather than kept.
    Matrix<F> u = link_a();
    Matrix<F> left = multiply<false, BACK>(inserted(right), u);
    left = left + multiply<BACK, false>(u, inserted(corner));
    keep_loads_apart();
    left = left * multiply<true, !BACK>(link_b(), link_c());
    keep_loads_apart();
    u = link_c();
    Matrix<F> last = multiply<false, !BACK>(inserted(over), u);
    last = last + multiply<!BACK, false>(u, inserted(x));
    keep_loads_apart();
    return left + multiply<BACK, true>(link_a(), link_b()) * last;
}
// force += Re tr(i T_a W) for all leaves, with the insertions of the field (its borders filled).
template <class F> HD void clover_force(const CloverForce& a, int i) {
    const LinkSite site = link_site<4>(a.g, i);
    const int mu = site.part;
    const Walk x = walk_from(site.c);
    Matrix<F> total = null_matrix<F>();
    Walk right = x;
    step(a.g, right, mu, 1);
    NO_UNROLL for (int nu = 0; nu < 4; ++nu) {
        if (nu == mu) continue;
        const int plane = mu < nu ? plane_of(mu, nu) : plane_of(nu, mu);
        const Matrix<F> up = leaf_sum<false, F>(a, x, right, mu, nu, plane);
        total = mu < nu ? total + up : total - up;
        keep_loads_apart();
        const Matrix<F> down = leaf_sum<true, F>(a, x, right, mu, nu, plane);
        total = mu < nu ? total - down : total + down;
    }
    F f[8];
    void* force = momentum_half<F>(a.force, a.g, site.parity);
    load<8, 4>(f, force, mu, site.index, a.g.half);
    const F weight = is_fixed_below(a.g) ? is_free<F>(a.g, site.c, mu) : splat<F>(1);
    add_projection(f, weight, link_at<F>(a.g, a.links, x, mu) * total);
    store<8, 4>(force, mu, site.index, a.g.half, f);
}

// Sums over sites: 0: E = -sum_{mu<nu} tr F^2; 1: q = -tr(F_xy F_zt - F_xz F_yt + F_xt F_yz) / (4 pi^2),
// with the traceless F (Luscher, arXiv:1006.4518).
template <class F> HD void field_energy(const FieldEnergy& a, int i, Accumulator& sum) {
    const int parity = parity_of_index<F>(a, i);
    const Walk w = walk_from(coord_of(a.g, i, parity));
    F in;
    if (a.slice >= 0 && !on_slice(a.g, w.c, a.slice, in)) return;
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
    if (has_walls(a.g)) {
        const F inside = has_quarks<F>(a.g, w.c);
        energy = inside * energy;
        charge = inside * charge;
    }
    if (a.slice >= 0) {
        energy = in * energy;
        charge = in * charge;
    }
    sum.add(0, energy);
    sum.add(1, splat<F>(-0.025330295910584442861) * charge);
}

#define CLOVER_KERNELS(SITE, SUM)                                   \
    SITE(clover, clover_build, CloverBuild, (clover_build<F>))       \
    SUM(clover, clover_invert, CloverInvert, 2, (clover_invert<F>))   \
    SITE(clover, clover_product, CloverProduct, (clover_product<F>)) \
    SITE(clover, clover_exponential, CloverExponential, (clover_exponential<F>)) \
    SITE(clover, pair_blocks, PairBlocks, (pair_blocks<F>))         \
    SITE(clover, exponential_gradient, ExponentialGradient, (exponential_gradient<F>)) \
    SITE(clover, insert_pair, InsertPair, (insert_pair<F>))         \
    SITE(clover, insert_inverse, InsertInverse, (insert_inverse<F>))   \
    SITE(clover, clover_force, CloverForce, (clover_force<F>))       \
    SUM(clover, field_energy, FieldEnergy, 2, (field_energy<F>))
