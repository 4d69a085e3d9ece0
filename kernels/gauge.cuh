// Gauge loops: action, force, drift, and projection of links to SU(3). Links are double, with borders.
//
// Loops are data: a path has up to 8 steps of four bits, (1 + mu + 4 backward), the first step lowest. Path tables are
// made in src/operator/loops.rs.
#pragma once
#include "su3.cuh"
#include "sum.cuh"

// A place on a walk from a site: coordinates, and how often the walk left the lane's box.
struct Walk { Coord c; int turns[4]; };

HD Walk walk_from(const Coord& c) { return {c, {0, 0, 0, 0}}; }
// Directions are compared: an index that is known only at run time would put the walk into a GPU's memory.
HD void step(const Geometry& g, Walk& w, int mu, int by) {
    UNROLL for (int nu = 0; nu < 4; ++nu) {
        if (nu != mu) continue;
        int x = w.c.x[nu] + by;
        if (g.border[nu] == 0) {
            if (x >= g.outer[nu]) x -= g.outer[nu], w.turns[nu] += 1;
            if (x < 0) x += g.outer[nu], w.turns[nu] -= 1;
        }
        w.c.x[nu] = x;
    }
}
template <class F> HD void turn(const Geometry& g, const Walk& w, Matrix<F>& u) {
    if constexpr (lane<F>::W > 1)
        for (int mu = 0; mu < 4; ++mu)
            for (int n = w.turns[mu]; n != 0; n += n > 0 ? -1 : 1) {
                const int* table = permutation(g, mu, n > 0, lane<F>::W);
                for (int k = 0; k < 9; ++k) u.e[k] = {permute(u.e[k].re, table), permute(u.e[k].im, table)};
            }
}
// Block `block` of a bordered field of NB matrices per site.
template <int NB, class F> HD Matrix<F> matrix_at(const Geometry& g, const void* field, const Walk& w, int block) {
    const void* half = half_field<F>(field, parity_of(w.c), g.half_bordered, 18 * NB);
    Matrix<F> u = load_matrix<18, NB, F>(half, block, bordered_index_of(g, w.c), g.half_bordered);
    turn(g, w, u);
    return u;
}
// In lane l the diagonal matrix of three numbers, or zero without them.
template <class F> HD void set_diagonal(Matrix<F>& u, int l, const double* numbers) {
    UNROLL for (int k = 0; k < 9; ++k) {
        const double* z = k % 4 == 0 && numbers ? numbers + 2 * (k / 4) : nullptr;
        set(u.e[k].re, l, real_of<F>(z ? z[0] : 0));
        set(u.e[k].im, l, real_of<F>(z ? z[1] : 0));
    }
}
// A link of a walk that may have left the lattice through a fixed wall: those in time are zero there, and those in space
// within the upper wall, which no field holds, are `given`, or zero without such a table.
template <class F> HD void end_at_walls(const Geometry& g, const void* given, const Walk& w, int mu, Matrix<F>& u) {
    const int last = top(g);
    for (int l = 0; l < lane<F>::W; ++l) {
        const int t = slice_of(g, w.c, l) + w.turns[3] * outer(g, 3);
        const bool is_given = mu < 3 && t == last && given;
        if (mu == 3 ? t >= 0 && t < last : t != last) continue;
        set_diagonal(u, l, is_given ? (const double*)given + 18 + 6 * mu : nullptr);
    }
}
template <class F> HD Matrix<F> link_at(const Geometry& g, const void* links, const Walk& w, int mu) {
    Matrix<F> u = matrix_at<4, F>(g, links, w, mu);
    if (is_fixed_above(g)) end_at_walls(g, g.given, w, mu, u);
    return u;
}
// The link in double that starts at a site, for kernels in a lower precision.
template <class D> HD Matrix<D> double_link_at(const Geometry& g, const void* links, const Coord& c, int mu) {
    if constexpr (two_registers<D>) {
        if (halves_doubles<D>(g)) {
            using V = decltype(D::lo);
            const DoubleSites there(g, c, true);
            Matrix<D> u;
            const void* half = half_field<V>(links, parity_of(c), there.half_bordered, 72);
            load_halves<18, 4>(reinterpret_cast<D*>(u.e), half, mu, there.at, (const int*)g.from_double);
            return u;
        }
    }
    return link_at<D>(g, links, walk_from(c), mu);
}
// p times the link of one step of a path; moves w.
template <class F> HD Matrix<F> along(const Geometry& g, const void* links, Walk& w, const Matrix<F>& p, int code) {
    const int mu = (code - 1) & 3;
    if (code <= 4) {
        const Matrix<F> r = p * link_at<F>(g, links, w, mu);
        step(g, w, mu, 1);
        return r;
    }
    step(g, w, mu, -1);
    return multiply<false, true>(p, link_at<F>(g, links, w, mu));
}
template <class F> HD Matrix<F> along_path(const Geometry& g, const void* links, Walk w, Matrix<F> p, unsigned path) {
    for (; path; path >>= 4) p = along(g, links, w, p, path & 15);
    return p;
}
template <class F> HD Matrix<F> path_product(const Geometry& g, const void* links, Walk w, unsigned path) {
    const int code = path & 15, mu = (code - 1) & 3;
    if (code > 4) step(g, w, mu, -1);
    Matrix<F> first = link_at<F>(g, links, w, mu);
    if (code > 4) first = adjoint(first);
    else step(g, w, mu, 1);
    return along_path(g, links, w, first, path >> 4);
}
// The link of a path's step; moves w. A backward step means its adjoint.
template <class F> HD Matrix<F> link_of_step(const Geometry& g, const void* links, Walk& w, unsigned code, bool back) {
    const int mu = (code - 1) & 3;
    if (back) step(g, w, mu, -1);
    const Matrix<F> u = link_at<F>(g, links, w, mu);
    if (!back) step(g, w, mu, 1);
    return u;
}
// The product of a path of N > 1 steps.
template <int N, class F> HD Matrix<F> product_of(const Geometry& g, const void* links, Walk w, unsigned path) {
    if constexpr (!GPU) return path_product<F>(g, links, w, path);
    const auto back = [path](int n) { return (path >> (4 * n) & 15) > 4; };
    const auto link = [&](int n) { return link_of_step<F>(g, links, w, path >> (4 * n), back(n)); };
    Matrix<F> p = link(0), u = link(1);
    if (back(0)) p = adjoint(p);
    UNROLL for (int n = 1; n < N; ++n) {
        if (n > 1) u = link(n);
        if (back(n)) p = multiply<false, true>(p, u);
        else p = p * u;
    }
    return p;
}

// Kernels on both parities; the first `half` outer sites are even.
template <class F, class A> HD int parity_of_index(const A& a, int& i) {
    const int parity = i >= a.g.half;
    i -= parity * a.g.half;
    return parity;
}
// A site of either parity, and one of several parts of its work.
struct LinkSite {
    Coord c;
    int parity, index, part;
};
// Of a kernel with PARTS indices per site on both parities. The threads of a warp have one part, and those of the warps
// beside it the others of the same sites, whose links they share. A GPU goes through both parities of 2 x 2 x 2 rows of
// sites, which share links too.
template <int PARTS> HD LinkSite link_site(const Geometry& g, int i) {
    constexpr int GROUP = GPU ? WARP : 1;
    const int first = i / (GROUP * PARTS) * GROUP, rest = 2 * g.half - first, sites = rest < GROUP ? rest : GROUP;
    const int within = i - first * PARTS;
    LinkSite s;
    s.part = within / sites;
    i = first + within % sites;
    if (GPU && ((g.outer[1] | g.outer[2] | g.outer[3]) & 1) == 0) {
        const int half_x = g.outer[0] >> 1;
        const int x = 2 * (i % half_x);
        i /= half_x;
        s.parity = i & 1;
        for (int mu = 1; mu < 4; ++mu) s.c.x[mu] = i >> mu & 1;
        i >>= 4;
        s.c.x[1] += 2 * (i % (g.outer[1] >> 1));
        i /= g.outer[1] >> 1;
        s.c.x[2] += 2 * (i % (g.outer[2] >> 1));
        s.c.x[3] += 2 * (i / (g.outer[2] >> 1));
        s.c.x[0] = x + ((s.c.x[1] + s.c.x[2] + s.c.x[3] + s.parity) & 1);
        s.index = index_of(g, s.c);
    } else {
        s.parity = i >= g.half;
        s.index = i - s.parity * g.half;
        s.c = coord_of(g, s.index, s.parity);
    }
    return s;
}

// The number of steps in time of a path, forward and backward.
HD int steps_in_time(unsigned path) {
    int n = 0;
    for (; path; path >>= 4) n += ((path - 1) & 3) == 3;
    return n;
}
// The lowest slice of a path, seen from its start.
HD int lowest_slice(unsigned path) {
    int t = 0, lowest = 0;
    for (; path; path >>= 4) {
        if (((path - 1) & 3) == 3) t += (path & 15) > 4 ? -1 : 1;
        lowest = t < lowest ? t : lowest;
    }
    return lowest;
}
// What loops of the action count between walls, by the class of a path from a site c, or from one `ahead` slices after it.
template <class F, class A> HD F loop_weight(const A& a, const Coord& c, int ahead, int n, unsigned path, int steps) {
    const int last = top(a.g), first = ahead + lowest_slice(path);
    const bool twice = n == 3;
    const int reach = steps / (twice ? 4 : 2);
    return by_slice<F>(a.g, c, [&](int t) -> double {
        const int lower = t + first, upper = lower + reach;
        if (lower < 0 || upper > last) return 0;
        if (twice) return reach == 0 ? 0 : lower == 0 ? a.twice[0] : upper == last ? a.twice[1] : 0;
        if (reach == 0) return lower == 0 ? a.within[0] : lower == last ? a.within[1] : 1;
        if (n == 1) return (lower == 0 ? a.beside[0] : 1) * (upper == last ? a.beside[1] : 1);
        return 1;
    });
}
// Those of mean traces: within a wall half.
template <class F> HD F trace_weight(const Geometry& g, const Coord& c, unsigned path) {
    const int last = top(g), reach = steps_in_time(path) / 2;
    return by_slice<F>(g, c, [=](int t) { return reach == 0 ? (t == 0 || t == last ? 0.5 : 1) : t + reach <= last ? 1 : 0; });
}
// Sum n: over sites, the sum of Re tr / 3 over the closed paths of class n that start there; of loops within a wall half.
template <class F> HD void loop_traces(const LoopTraces& a, int i, int parity, Accumulator& sum) {
    const Walk w = walk_from(coord_of(a.g, i, parity));
    F in;
    if (a.slice >= 0 && !on_slice(a.g, w.c, a.slice, in)) return;
    const int* path = (const int*)a.paths;
    for (int n = 0; n < 4; ++n) {
        F s = F{};
        for (int k = 0; k < a.counts[n]; ++k, ++path) {
            F trace = real_trace(path_product<F>(a.g, a.links, w, *path));
            if (has_walls(a.g)) trace = trace * trace_weight<F>(a.g, w.c, *path);
            s = s + trace;
        }
        if (a.slice >= 0) s = in * s;
        sum.add(n, s * splat<F>(1.0 / 3.0));
    }
}
// Sum 0: the action, sum_n weight_n sum over paths (1 - Re tr / 3).
template <class F> HD void gauge_action(const GaugeAction& a, int i, int parity, Accumulator& sum) {
    const Walk w = walk_from(coord_of(a.g, i, parity));
    const int* path = (const int*)a.paths;
    F action = F{};
    for (int n = 0; n < 4; ++n) {
        F s = F{};
        for (int k = 0; k < a.counts[n]; ++k, ++path) {
            F loop = splat<F>(1) - splat<F>(1.0 / 3.0) * real_trace(path_product<F>(a.g, a.links, w, *path));
            if (has_walls(a.g)) loop = loop * loop_weight<F>(a, w.c, 0, n, *path, steps_in_time(*path));
            s = s + loop;
        }
        action = mad(splat<F>(a.weights[n]), s, action);
    }
    sum.add(0, action);
}
template <class F, class V> HD auto momentum_half(V* field, const Geometry& g, int parity) {
    return half_field<F>(field, parity, g.half, 32);
}
// force += scale dS, with S = sum_n weight_n sum of loops (1 - Re tr / 3). The paths of direction mu close the loops
// that start with U_mu(x).
template <> constexpr int RESIDENT<GaugeForce> = 3;
template <class F> HD void gauge_force(const GaugeForce& a, int i) {
    const LinkSite x = link_site<4>(a.g, i);
    const int mu = x.part;
    const int* path = (const int*)a.paths + mu * (a.counts[0] + a.counts[1] + a.counts[2] + a.counts[3]);
    Walk there = walk_from(x.c);
    const Matrix<F> u = link_at<F>(a.g, a.links, there, mu);
    step(a.g, there, mu, 1);
    F f[8];
    void* force = momentum_half<F>(a.force, a.g, x.parity);
    load<8, 4>(f, force, mu, x.index, a.g.half);
    for (int n = 0; n < 4; ++n) {
        Matrix<F> staple = null_matrix<F>();
        if (a.counts[n] == 0) continue;
        for (int k = 0; k < a.counts[n]; ++k, ++path) {
            F count = splat<F>(1);
            if (has_walls(a.g)) {
                count = loop_weight<F>(a, x.c, mu == 3, n + 1, *path, steps_in_time(*path) + (mu == 3));
                // Most plaquettes twice around.
                if (!in_any_lane(count)) continue;
            }
            Matrix<F> one = n == 0 ? product_of<3, F>(a.g, a.links, there, *path)
                            : is_fixed_above(a.g) && n == 2 ? product_of<7, F>(a.g, a.links, there, *path)
                                                            : product_of<5, F>(a.g, a.links, there, *path);
            if (has_walls(a.g)) one = scaled(count, one);
            staple = staple + one;
        }
        F weight = splat<F>(-a.scale * a.weights[n] / 3);
        if (has_walls(a.g) && mu < 3) {
            const int last = top(a.g);
            const double within = is_fixed_below(a.g) ? 0 : a.wall_links;
            weight = weight * by_slice<F>(a.g, x.c, [=](int t) { return t == 0 || t == last ? within : 1; });
        }
        add_projection(f, weight, u * staple);
    }
    store<8, 4>(force, mu, x.index, a.g.half, f);
}
// U <- exp(i scale P) U
template <class F> HD void drift(const Drift& a, int i, int parity) {
    const Walk w = walk_from(coord_of(a.g, i, parity));
    void* half = half_field<F>(a.links, parity, a.g.half_bordered, 72);
    const int s = bordered_index_of(a.g, w.c);
    for (int mu = 0; mu < 4; ++mu) {
        F p[8];
        load<8, 4>(p, momentum_half<F>(a.momenta, a.g, parity), mu, i, a.g.half);
        UNROLL for (int k = 0; k < 8; ++k) p[k] = splat<F>(a.scale) * p[k];
        const Matrix<F> u = load_matrix<18, 4, F>(half, mu, s, a.g.half_bordered);
        store_matrix<4>(half, mu, s, a.g.half_bordered, exponential(hermitian(p)) * u);
    }
}
// P <- shift P + scale F; sum 0: |F|^2, maximum: |F| of any link, |F|^2 = 2 tr F^2 = sum_a F_a^2.
template <class F> HD void kick(const Kick& a, int i, int parity, Accumulator& sum) {
    F norm = F{};
    for (int mu = 0; mu < 4; ++mu) {
        F p[8], f[8], square = F{};
        load<8, 4>(p, momentum_half<F>(a.momenta, a.g, parity), mu, i, a.g.half);
        load<8, 4>(f, momentum_half<F>(a.force, a.g, parity), mu, i, a.g.half);
        UNROLL for (int k = 0; k < 8; ++k) {
            square = mad(f[k], f[k], square);
            p[k] = mad(splat<F>(a.scale), f[k], splat<F>(a.shift) * p[k]);
        }
        store<8, 4>(momentum_half<F>(a.momenta, a.g, parity), mu, i, a.g.half, p);
        norm = norm + square;
        sum.raise(root(square));
    }
    sum.add(0, norm);
}
// Sum 0: sum_a p_a^2 / 2, maximum: |p| of any link.
template <class F> HD void kinetic(const Kinetic& a, int i, int parity, Accumulator& sum) {
    F s = F{};
    for (int mu = 0; mu < 4; ++mu) {
        F p[8], square = F{};
        load<8, 4>(p, momentum_half<F>(a.momenta, a.g, parity), mu, i, a.g.half);
        UNROLL for (int k = 0; k < 8; ++k) {
            s = mad(p[k], p[k], s);
            square = mad(p[k], p[k], square);
        }
        sum.raise(root(square));
    }
    sum.add(0, splat<F>(0.5) * s);
}
// Maximum: the greatest change of any matrix element of links that leave the lattice, which are zero, and of those within a
// fixed lower wall, which are given.
template <class F> HD void end_links(const EndLinks& a, int i, int parity, Accumulator& sum) {
    const Coord c = coord_of(a.g, i, parity);
    void* half = half_field<F>(a.links, parity, a.g.half_bordered, 72);
    const int s = bordered_index_of(a.g, c);
    const double* given = (const double*)a.g.given;
    for (int mu = 0; mu < 4; ++mu) {
        Matrix<F> u = load_matrix<18, 4, F>(half, mu, s, a.g.half_bordered), before = u;
        for (int l = 0; l < lane<F>::W; ++l)
            if (get(is_free<F>(a.g, c, mu), l) == 0) set_diagonal(u, l, mu < 3 ? given + 6 * mu : nullptr);
        const Matrix<F> d = u - before;
        for (int k = 0; k < 9; ++k) sum.raise(root(mad(d.e[k].re, d.e[k].re, mad(d.e[k].im, d.e[k].im, F{}))));
        store_matrix<4>(half, mu, s, a.g.half_bordered, u);
    }
}
// Maximum: the greatest |(U U^dag - 1)_ij| or |third row - conj(row 0 x row 1)|; reunitarise also projects links back
// to SU(3).
template <class F, class A> HD void unitarity(const A& a, int i, int parity, Accumulator& sum) {
    const Walk w = walk_from(coord_of(a.g, i, parity));
    for (int mu = 0; mu < 4; ++mu) {
        Matrix<F> u = link_at<F>(a.g, a.links, w, mu), special = u, null = null_matrix<F>();
        // A link that leaves the lattice is zero.
        if (has_walls(a.g)) null = scaled(splat<F>(1) - is_link<F>(a.g, w.c, mu), unit<F>());
        const Matrix<F> d = multiply<false, true>(u, u) + null - unit<F>();
        third_row(special);
        const Matrix<F> t = u - special;
        for (int k = 0; k < 9; ++k) {
            sum.raise(root(mad(d.e[k].re, d.e[k].re, mad(d.e[k].im, d.e[k].im, F{}))));
            sum.raise(root(mad(t.e[k].re, t.e[k].re, mad(t.e[k].im, t.e[k].im, F{}))));
        }
        if constexpr (same<A, Reunitarise>) {
            u = u + null;
            reunitarise(u);
            u = u - null;
            store_matrix<4>(half_field<F>(a.links, parity, a.g.half_bordered, 72), mu, bordered_index_of(a.g, w.c),
                            a.g.half_bordered, u);
        }
    }
}
// Maximum: the greatest |U - V| of any matrix element.
template <class F> HD void link_distance(const LinkDistance& a, int i, int parity, Accumulator& sum) {
    const Walk w = walk_from(coord_of(a.g, i, parity));
    for (int mu = 0; mu < 4; ++mu) {
        const Matrix<F> d = link_at<F>(a.g, a.links, w, mu) - link_at<F>(a.g, a.other, w, mu);
        for (int k = 0; k < 9; ++k) sum.raise(root(mad(d.e[k].re, d.e[k].re, mad(d.e[k].im, d.e[k].im, F{}))));
    }
}
#define BOTH(NAME)                                                                         \
    template <class F, class A> HD void both_##NAME(const A& a, int i) {                   \
        const int parity = parity_of_index<F>(a, i);                                       \
        NAME<F>(a, i, parity);                                                             \
    }
#define BOTH_SUM(NAME)                                                                     \
    template <class F, class A> HD void both_##NAME(const A& a, int i, Accumulator& sum) { \
        const int parity = parity_of_index<F>(a, i);                                       \
        NAME<F>(a, i, parity, sum);                                                        \
    }
BOTH(drift)
BOTH_SUM(loop_traces)
BOTH_SUM(gauge_action)
BOTH_SUM(kick)
BOTH_SUM(kinetic)
BOTH_SUM(end_links)
BOTH_SUM(unitarity)
BOTH_SUM(link_distance)

#define GAUGE_KERNELS(SITE, SUM)                                      \
    SITE(gauge, gauge_force, GaugeForce, (gauge_force<F>))              \
    SITE(gauge, drift, Drift, (both_drift<F>))                     \
    SUM(gauge, loop_traces, LoopTraces, 4, (both_loop_traces<F>))       \
    SUM(gauge, gauge_action, GaugeAction, 1, (both_gauge_action<F>))     \
    SUM(gauge, kick, Kick, 1, (both_kick<F>))                     \
    SUM(gauge, kinetic, Kinetic, 1, (both_kinetic<F>))               \
    SUM(gauge, end_links, EndLinks, 1, (both_end_links<F>))           \
    SUM(gauge, unitarity, Unitarity, 1, (both_unitarity<F>))          \
    SUM(gauge, reunitarise, Reunitarise, 1, (both_unitarity<F>))      \
    SUM(gauge, link_distance, LinkDistance, 1, (both_link_distance<F>))
