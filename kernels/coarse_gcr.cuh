// GCR for the coarse operator. It takes up to S_STEPS steps between sums (Hoemmen, UCB/EECS-2010-37): from a residual r it makes
// the products A r, A^2 r, ..., then all their sums at once, and from these the directions p_j, with A p_j orthogonal to each
// other and to those before, and the step along all directions. Squares of what is left of A p_j follow from the same sums, so
// little of it is lost in rounding: then a single step is made in two passes, of which the first one only takes from A r what
// earlier directions have.
#pragma once
#include "coarse.cuh"

// The square of a residual's norm: of the scale of all sums that follow.
template <class F, int N> HD void coarse_norm(const CoarseNorm& a, int i, Accumulator& sum) {
    const SystemPlace at(i, 2 * a.rows / lane<F>::W, a.places, a.half, a.rows);
    const F x = vector_at<F>(a.x, at.field + at.inside * lane<F>::W);
    UNROLL for (int n = 0; n < N; ++n)
        if (n == at.system) sum.add(n, widen(x * x));
}

// The products (f_v, x_j) of the fields z_v, of which those after `before` are the x_j, and of the residual, which is both
// the last f and the last x. Summands are rounded to multiples of a power of two, so that all sums are exact, and depend on
// neither lanes nor ranks.
constexpr int PRODUCTS = S_STEPS + 1;
template <class A> HD int fields_of(const A& a) { return a.before + a.steps + 1; }
// Whether there is an x of this number: there may be fewer steps.
template <class A> HD bool has_product(const A& a, int j) { return j < a.steps || j == S_STEPS; }
// About the square of the norm of the residual before the steps.
HD double square_of_residual(const CoarseDots& a, int system) {
    const double first = number_of(a.first[system]);
    return a.begins ? first : larger(((const double*)a.norms)[system], 1e-8 * first);
}
// x + m - m is x rounded to multiples of 2^-36 of the product of two norms with these squares. A sum of such may be 2^16
// times that product: the norms of powers of A are guessed.
HD double rounding_of(double square, double other) {
    const auto exponent = [](double x) { return (int)(bits_of(x) >> 52 & 2047) - 1023; };
    int e = (exponent(square) + exponent(other)) / 2 - 35;
    e = e < -900 ? -900 : e > 900 ? 900 : e;
    return double_of((i64)(1023 + 52 + e) << 52 | 1ll << 51);
}

// A team has a tile of f and a piece of the lattice, for one system.
template <class F> struct CoarseProducts {
    using R = real_of<F>;
    using D = wide_of<F>;
    static constexpr int PHASES = 3, W = lane<F>::W, CHUNKS = COLUMNS / W, SUMMED = SUMMANDS * COLUMNS;
    static constexpr int NUMBERS = TILE * PRODUCTS * 2;
    HD static int threads(const CoarseDots&) { return SUMMANDS * CHUNKS; }
    // Where a summand of a number is shared; a GPU's threads read and write different banks.
    HD static int at(int number, int summand) {
        if constexpr (GPU) return summand * (NUMBERS + 1) + number;
        else return number * SUMMED + summand;
    }
    // One summand of the products with the `STEPS` fields x and the residual.
    template <int STEPS>
    HD static void add_up(const CoarseDots& a, int system, int first, int begin, int column, int summand, double* sums) {
        const int rows = rows_of(a), all = fields_of(a);
        const i64 own = (i64)a.half * 2 * rows, length = a.systems * own;
        const R *z = (const R*)a.z + system * own, *r = (const R*)a.r + system * own;
        const double residual = square_of_residual(a, system), *squares = (const double*)a.squares + system * MOST_FIELDS;
        const R *f[TILE], *x[STEPS + 1];
        D magic[TILE];
        UNROLL for (int t = 0; t < TILE; ++t) {
            const int v = first + t;
            f[t] = v < all - 1 ? z + v * length : r;
            magic[t] = splat<D>(rounding_of(v < a.before ? squares[v] : residual, residual));
        }
        UNROLL for (int j = 0; j <= STEPS; ++j) x[j] = j < STEPS ? z + (a.before + j) * length : r;
        D re[TILE][STEPS + 1], im[TILE][STEPS + 1];
        UNROLL for (int t = 0; t < TILE; ++t) UNROLL for (int j = 0; j <= STEPS; ++j) re[t][j] = im[t][j] = D{};
        for (int n = begin; n < a.places; n += PIECES * SUMMANDS) {
            const i64 place = (i64)n * 2 * rows + column;
            UNROLL for (int t = 0; t < TILE; ++t) {
                F sre[STEPS + 1], sim[STEPS + 1];
                UNROLL for (int j = 0; j <= STEPS; ++j) sre[j] = sim[j] = F{};
                for (int k = 0; k < rows; k += COLUMNS) {
                    const F fre = vector_at<F>(f[t], place + k), fim = vector_at<F>(f[t], place + k + rows);
                    UNROLL for (int j = 0; j <= STEPS; ++j) {
                        const F xre = vector_at<F>(x[j], place + k), xim = vector_at<F>(x[j], place + k + rows);
                        sre[j] = mad(fim, xim, mad(fre, xre, sre[j]));
                        sim[j] = nmad(fim, xre, mad(fre, xim, sim[j]));
                    }
                }
                UNROLL for (int j = 0; j <= STEPS; ++j) {
                    re[t][j] = re[t][j] + (widen(sre[j]) + magic[t] - magic[t]);
                    im[t][j] = im[t][j] + (widen(sim[j]) + magic[t] - magic[t]);
                }
            }
        }
        UNROLL for (int t = 0; t < TILE; ++t) UNROLL for (int j = 0; j <= STEPS; ++j) {
            const int number = (t * PRODUCTS + (j < STEPS ? j : S_STEPS)) * 2;
            for (int l = 0; l < W; ++l) {
                sums[at(number, summand * COLUMNS + column + l)] = get(re[t][j], l);
                sums[at(number + 1, summand * COLUMNS + column + l)] = get(im[t][j], l);
            }
        }
    }
    template <int PHASE> HD static void phase(const CoarseDots& a, int team, int thread, F* shared) {
        const int all = fields_of(a), tiles = (all + TILE - 1) / TILE;
        const int piece = team % PIECES, first = team / PIECES % tiles * TILE, system = team / (PIECES * tiles);
        double* sums = (double*)shared;
        if (PHASE == 0) {
            const int summand = thread / CHUNKS, column = thread % CHUNKS * W;
            if (a.steps == S_STEPS) add_up<S_STEPS>(a, system, first, piece * SUMMANDS + summand, column, summand, sums);
            else if (a.steps == 1) add_up<1>(a, system, first, piece * SUMMANDS + summand, column, summand, sums);
            else add_up<0>(a, system, first, piece * SUMMANDS + summand, column, summand, sums);
        }
        if (PHASE == 1) {
            for (int k = thread; k < NUMBERS * SUMMANDS; k += threads(a)) {
                const int number = k % NUMBERS, summand = k / NUMBERS * COLUMNS;
                if (!has_product(a, number / 2 % PRODUCTS)) continue;
                double sum = 0;
                UNROLL for (int n = 0; n < COLUMNS; ++n) sum = sum + sums[at(number, summand + n)];
                sums[at(number, summand)] = sum;
            }
        }
        if (PHASE == 2) {
            for (int k = thread; k < NUMBERS; k += threads(a)) {
                const int f = first + k / (2 * PRODUCTS);
                if (f >= all || !has_product(a, k / 2 % PRODUCTS)) continue;
                double sum = 0;
                UNROLL for (int n = 0; n < SUMMANDS; ++n) sum = sum + sums[at(k, n * COLUMNS)];
                ((double*)a.parts)[(((i64)system * PIECES + piece) * all + f) * 2 * PRODUCTS + k % (2 * PRODUCTS)] = sum;
            }
        }
    }
};

// The sum of a number's pieces; they are exact, so their order does not matter.
template <class F> HD void coarse_totals(const CoarseTotals& a, int i) {
    const double* from = (const double*)a.parts + (i64)(i / a.numbers) * PIECES * a.numbers + i % a.numbers;
    double sum = 0;
    UNROLL_8 for (int piece = 0; piece < PIECES; ++piece) sum = sum + from[(i64)piece * a.numbers];
    ((double*)a.totals)[i] = sum;
}

HD ComplexNumber complex_at(const double* p, int n) { return {p[2 * n], p[2 * n + 1]}; }
HD void put_complex(double* p, int n, ComplexNumber c) {
    p[2 * n] = c.re;
    p[2 * n + 1] = c.im;
}
// c + factor a^* b, c + factor a b
HD ComplexNumber add_conjugate(ComplexNumber c, double factor, ComplexNumber a, ComplexNumber b) {
    const double re = factor * a.re, im = factor * a.im;
    return {mad(im, b.im, mad(re, b.re, c.re)), nmad(im, b.re, mad(re, b.im, c.im))};
}
HD ComplexNumber add_product(ComplexNumber c, double factor, ComplexNumber a, ComplexNumber b) {
    const double re = factor * a.re, im = factor * a.im;
    return {nmad(im, b.im, mad(re, b.re, c.re)), mad(im, b.re, mad(re, b.im, c.im))};
}
HD double inverse_or_zero(double x) { return x > 0 ? 1 / x : 0; }

// A team has a system: from the products, its directions and the step along them.
template <class F> struct CoarseDirections {
    using R = real_of<F>;
    static constexpr int PHASES = 5, PAIRS = PRODUCTS * PRODUCTS;
    // A direction whose product keeps less than this of its square is left out: directions after it would be less and less
    // orthogonal.
    static constexpr double LEAST = 1e-4;
    HD static int threads(const CoarseBlock&) { return BLOCK_THREADS; }
    template <int PHASE> HD static void phase(const CoarseBlock& a, int system, int thread, F* shared) {
        const int k = a.before, steps = a.steps, all = fields_of(a);
        double* c = (double*)shared;                       // [f][x]
        double* parts = c + 2 * MOST_FIELDS * PRODUCTS;    // [part][pair]
        double* m = parts + 2 * BLOCK_PARTS * PAIRS;       // [x][x]: products without what earlier directions have
        double* u = m + 2 * PAIRS;                         // [x][direction], then the step
        double* squares = (double*)a.squares + system * MOST_FIELDS;
        if (PHASE == 0) {
            const double* from = (const double*)a.parts + (i64)system * a.pieces * all * 2 * PRODUCTS;
            for (int n = thread; n < all * 2 * PRODUCTS; n += BLOCK_THREADS) {
                if (!has_product(a, n / 2 % PRODUCTS)) continue;
                double sum = 0;
                UNROLL_8 for (int piece = 0; piece < a.pieces; ++piece) sum = sum + from[(i64)piece * all * 2 * PRODUCTS + n];
                if constexpr (GPU) {
                    if (a.round.of_ranks) {
                        double others = sum;
                        constexpr int WORDS_OF_ONE = 2 * MOST_FIELDS * PRODUCTS;
                        exchange_word((u64)bits_of(sum), system * WORDS_OF_ONE + n, a.systems * WORDS_OF_ONE, a.round,
                                      [&](u64 word) { others = others + double_of((i64)word); });
                        sum = others;
                    }
                }
                c[n] = sum;
            }
        }
        if (PHASE == 1 && thread < BLOCK_PARTS * PAIRS) {
            const int i = thread % PAIRS / PRODUCTS, j = thread % PRODUCTS;
            if (!has_product(a, i) || !has_product(a, j)) return;
            ComplexNumber sum = {0, 0};
            for (int v = thread / PAIRS; v < k; v += BLOCK_PARTS)
                sum = add_conjugate(sum, inverse_or_zero(squares[v]), complex_at(c, v * PRODUCTS + i), complex_at(c, v * PRODUCTS + j));
            put_complex(parts, thread, sum);
        }
        if (PHASE == 2 && thread < PAIRS) {
            put_complex(u, thread, {0, 0});
            const int i = thread / PRODUCTS;
            if (!has_product(a, i) || !has_product(a, thread % PRODUCTS)) return;
            ComplexNumber sum = complex_at(parts, thread);
            for (int n = 1; n < BLOCK_PARTS; ++n) {
                const ComplexNumber more = complex_at(parts, n * PAIRS + thread);
                sum = {sum.re + more.re, sum.im + more.im};
            }
            const int row = i < S_STEPS ? k + i : all - 1;
            const ComplexNumber own = complex_at(c, row * PRODUCTS + thread % PRODUCTS);
            put_complex(m, thread, {own.re - sum.re, own.im - sum.im});
        }
        if (PHASE == 3 && thread == 0) {
            double left = m[2 * (PAIRS - 1)];
            for (int j = 0; j < steps; ++j) {
                // Column j of u: the power j of the residual, without directions of this block.
                ComplexNumber own[S_STEPS];
                UNROLL for (int n = 0; n < S_STEPS; ++n) own[n] = {n == j ? 1.0 : 0.0, 0};
                double square = m[2 * (j * PRODUCTS + j)];
                for (int i = 0; i < j; ++i) {
                    const double before = squares[k + i];
                    if (!(before > 0)) continue;
                    ComplexNumber overlap = {0, 0};
                    for (int n = 0; n <= i; ++n)
                        overlap = add_conjugate(overlap, 1, complex_at(u, n * PRODUCTS + i), complex_at(m, n * PRODUCTS + j));
                    const double factor = 1 / before;
                    square = square - factor * mad(overlap.re, overlap.re, overlap.im * overlap.im);
                    UNROLL for (int n = 0; n < S_STEPS; ++n)
                        if (n <= i) own[n] = add_product(own[n], -factor, overlap, complex_at(u, n * PRODUCTS + i));
                }
                const bool kept = a.pass == FIRST_OF_TWO || square > LEAST * c[2 * ((k + j) * PRODUCTS + j)];
                squares[k + j] = kept ? square : 0;
                ComplexNumber step = {0, 0};
                UNROLL for (int n = 0; n < S_STEPS; ++n) {
                    const ComplexNumber one = {kept ? own[n].re : 0, kept ? own[n].im : 0};
                    put_complex(u, n * PRODUCTS + j, one);
                    if (n <= j) step = add_conjugate(step, 1, one, complex_at(m, n * PRODUCTS + S_STEPS));
                }
                const double factor = a.pass == FIRST_OF_TWO ? 0 : inverse_or_zero(squares[k + j]);
                left = left - factor * mad(step.re, step.re, step.im * step.im);
                put_complex(u, j * PRODUCTS + S_STEPS, {factor * step.re, factor * step.im});
            }
            ((double*)a.norms)[system] = left;
        }
        if (PHASE == 4) {
            R* out = (R*)a.coefficients + system * MOST_FIELDS * 2 * PRODUCTS;
            for (int n = thread; n < (k + steps) * PRODUCTS; n += BLOCK_THREADS) {
                const int v = n / PRODUCTS, j = n % PRODUCTS;
                ComplexNumber own = {0, 0};
                if (v >= k) {
                    own = complex_at(u, (v - k) * PRODUCTS + j);
                } else {
                    const double factor = inverse_or_zero(squares[v]);
                    if (j == S_STEPS) own = add_product(own, a.pass == FIRST_OF_TWO ? 0 : factor, complex_at(c, n), {1, 0});
                    else for (int i = 0; i < steps; ++i)
                        own = add_product(own, -factor, complex_at(c, v * PRODUCTS + i), complex_at(u, i * PRODUCTS + j));
                }
                out[2 * n] = R(own.re);
                out[2 * n + 1] = R(own.im);
            }
        }
    }
};

// (re, im) += c y
template <class F> HD void add_multiple(F& re, F& im, const real_of<F>* c, F yre, F yim) {
    const F cre = splat<F>(c[0]), cim = splat<F>(c[1]);
    re = nmad(cim, yim, mad(cre, yre, re));
    im = mad(cim, yre, mad(cre, yim, im));
}
template <class F> struct CoarseNumber { F re, im; };
template <class F> HD CoarseNumber<F> coarse_number(const void* p, i64 at, int rows) {
    return {vector_at<F>(p, at), vector_at<F>(p, at + rows)};
}
template <class F> HD void put_coarse(void* p, i64 at, int rows, CoarseNumber<F> x) {
    put_vector(p, at, x.re);
    put_vector(p, at + rows, x.im);
}
template <class F> HD void coarse_advance(const CoarseAdvance& a, int i) {
    using R = real_of<F>;
    constexpr int W = lane<F>::W;
    const int rows = a.rows, k = a.before;
    const SystemPlace here(i, rows / W, a.places, a.half, rows);
    const i64 at = here.field + here.inside * W, length = (i64)a.systems * a.half * 2 * rows;
    const R *c = (const R*)a.coefficients + here.system * MOST_FIELDS * 2 * PRODUCTS, *own = c + k * 2 * PRODUCTS;
    CoarseNumber<F> x = {F{}, F{}}, r = coarse_number<F>(a.r, at, rows), p[S_STEPS], z[S_STEPS];
    if (!a.begins) x = coarse_number<F>(a.x, at, rows);
    UNROLL for (int j = 0; j < S_STEPS; ++j) p[j] = z[j] = {F{}, F{}};
    CoarseNumber<F> power = r;
    if (a.pass == SECOND_OF_TWO) power = coarse_number<F>(a.p, k * length + at, rows);
    UNROLL for (int n = 0; n < S_STEPS; ++n) {
        if (n >= a.steps) continue;
        const CoarseNumber<F> next = coarse_number<F>(a.z, (k + n) * length + at, rows);
        UNROLL for (int j = n; j < S_STEPS; ++j) {
            const R* b = own + 2 * (n * PRODUCTS + j);
            add_multiple(p[j].re, p[j].im, b, power.re, power.im);
            add_multiple(z[j].re, z[j].im, b, next.re, next.im);
        }
        power = next;
    }
    UNROLL_4 for (int v = 0; v < k; ++v) {
        const CoarseNumber<F> pv = coarse_number<F>(a.p, v * length + at, rows), zv = coarse_number<F>(a.z, v * length + at, rows);
        const R* b = c + v * 2 * PRODUCTS;
        UNROLL for (int j = 0; j < S_STEPS; ++j) {
            add_multiple(p[j].re, p[j].im, b + 2 * j, pv.re, pv.im);
            add_multiple(z[j].re, z[j].im, b + 2 * j, zv.re, zv.im);
        }
        const R back[2] = {-b[2 * S_STEPS], -b[2 * S_STEPS + 1]};
        add_multiple(x.re, x.im, b + 2 * S_STEPS, pv.re, pv.im);
        add_multiple(r.re, r.im, back, zv.re, zv.im);
    }
    UNROLL for (int j = 0; j < S_STEPS; ++j) {
        if (j >= a.steps) continue;
        const R *step = own + 2 * (j * PRODUCTS + S_STEPS), back[2] = {-step[0], -step[1]};
        add_multiple(x.re, x.im, step, p[j].re, p[j].im);
        add_multiple(r.re, r.im, back, z[j].re, z[j].im);
        put_coarse(a.p, (k + j) * length + at, rows, p[j]);
        put_coarse(a.z, (k + j) * length + at, rows, z[j]);
    }
    put_coarse(a.x, at, rows, x);
    put_coarse(a.r, at, rows, r);
}

#define COARSE_GCR_KERNELS(SITE, SUM, TEAM)                               \
    SITE(coarse_gcr, coarse_totals, CoarseTotals, (coarse_totals<F>))     \
    SUM(coarse_gcr, coarse_norm_1, CoarseNorm, 1, (coarse_norm<F, 1>))    \
    SUM(coarse_gcr, coarse_norm_4, CoarseNorm, 4, (coarse_norm<F, 4>))    \
    TEAM(coarse_gcr, coarse_dots, CoarseDots, (CoarseProducts<F>{}))      \
    TEAM(coarse_gcr, coarse_block, CoarseBlock, (CoarseDirections<F>{}))  \
    SITE(coarse_gcr, coarse_advance, CoarseAdvance, (coarse_advance<F>))
