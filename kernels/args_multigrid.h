// Arguments of aggregation multigrid (multigrid.cuh; grammar: args.h). Tables are in single precision, since a preconditioner
// needs no more; links to neighbours, which take most memory, are kept in half.
//
// Fields in the order of aggregates:  [aggregate][chirality][field][re, im][parity][spin, colour][site], `reals` numbers
//                                     per parity.
// Coarse fields:                      [place][re, im][row], where the row is chirality and vector; places are those of
//                                     the whole lattice's aggregates, even ones first.
// Coarse matrices:                    [place][which][column][re, im][row].
#pragma once

constexpr int COLUMNS = 16;       // partial sums over an aggregate, or over a coarse field
constexpr int PIECES = 64;        // pieces of a coarse field in a product
constexpr int TILE = 4;           // vectors that a thread of restrict_parts serves
constexpr int COARSE_LINKS = 9;   // matrices per place: local, forward in x, y, z, t, backward

// Fields that restrict_parts takes at once.
enum Together : int { ONE_FIELD = 1, FOUR_FIELDS = 4 };

// A spinor of one parity, into the order of aggregates
struct ToAggregates {
    Geometry g;               // constant
    BlockGrid grid;
    const Fermions* x;
    Reals* out;
    int parity;
    int fields;               // fields of `out`
    int field;
};
// The reverse
struct FromAggregates {
    Geometry g;               // constant
    BlockGrid grid;
    Fermions* out;
    const Reals* x;
    int parity;
    int fields;
    int field;
    int chirality;            // 0 or 1: the other one becomes zero; -1: both
};
// Partial sums of (v_n, x) over aggregates, for the first `used` of `vectors` vectors v
struct RestrictParts {
    const Reals* v;
    const Reals* x;
    Reals* parts;             // [aggregate][chirality][n][field][re, im][COLUMNS]
    int vectors;
    int used;
    int fields;               // fields of `x`
    int field;                // the first one
    int reals;
    int first;                // the first number of a field in an aggregate, and how many
    int count;
};
// Their sums, times a number per chirality
struct RestrictSum {
    const Reals* parts;
    Reals* out;
    const Ints* places;       // of this rank's aggregates in `out`
    int vectors;
    int used;
    int columns;              // fields
    int place_stride;
    int column_stride;
    double upper;
    double lower;
};
// out = sum_n v_n c_n + base out, where c is times a number per chirality
struct Prolong {
    const Reals* v;
    const Reals* c;
    const Ints* places;
    Reals* out;
    int vectors;
    int used;
    int fields;               // fields of `out`
    int field;
    int reals;
    int first;
    int count;
    double base;
    double upper;
    double lower;
};
// v_n of every aggregate and chirality, divided by the root of the real part of c_n
struct NormaliseVector {
    Reals* v;
    const Reals* c;
    int vectors;
    int n;
    int reals;
};

// Backward coarse links from forward ones: gamma_5 A^dag gamma_5 = A
struct CoarseBackward {
    Reals* links;             // COARSE_LINKS matrices per place
    const Ints* neighbours;   // [place][COARSE_LINKS]: itself, forward in x, y, z, t, backward; numbers among places of a parity
    int rows;
    int half;                 // places of a parity
};
// out = local link + i twist gamma_5 T
struct CoarseTwist {
    const Reals* links;
    const Reals* t;           // optional: one matrix per place
    Reals* out;
    int rows;
    double twist;
};
// Step `pivot` of an inversion by Gauss and Jordan
struct CoarseEliminate {
    const Reals* a;
    Reals* out;
    int rows;
    int pivot;
};
// out = B link for the eight links to neighbours
struct CoarseMultiply {
    const Reals* b;           // one matrix per place
    const Reals* links;
    Reals* out;               // COARSE_LINKS - 1 matrices per place
    int rows;
};
// Rounds columns of matrices to 16-bit integers times a number
struct CoarseRound {
    const Reals* matrices;
    Ints* out;                // [column][row]: the real part in the lower half
    Reals* scales;            // [column]
    int rows;
};
// out = A input with a matrix per place
struct CoarseLocal {
    const Reals* matrices;
    const Reals* input;
    Reals* out;
    int rows;
};
// out = x + scale sum of the eight links times neighbours, on places of one parity
struct CoarseHop {
    const Ints* links;        // [place][COARSE_LINKS - 1][column][row], as of coarse_round
    const Reals* scales;      // [place][COARSE_LINKS - 1][column]
    const Ints* neighbours;
    const Reals* input;
    const Reals* x;           // optional
    Reals* out;
    int rows;
    double scale;
};
// Partial sums of (f_v, x)
struct CoarseDots {
    const Reals* f;           // fields one after the other
    const Reals* x;
    Reals* parts;             // [v][PIECES][re, im][COLUMNS]
    int rows;
    int places;               // of one field
};
// Sums over pieces
struct CoarseFold {
    const Reals* parts;
    Doubles* out;             // [v][re, im][COLUMNS]
};
// b_v = (f_v, x) / |f_v|^2
struct CoarseProjections {
    const Doubles* dots;      // as of coarse_fold
    const Doubles* squares;   // |f_v|^2
    Doubles* out;             // [v][re, im]
};
// With f = z, r and x = z: the length of a step, a = (z, r) / |z|^2, then |z|^2 of this step, and |r|^2 after it
struct CoarseLength {
    const Doubles* dots;
    Doubles* length;
    Doubles* squares;         // of all steps
    Doubles* residual;
    int step;
};
// out = |x|^2
struct CoarseNorm {
    const Doubles* dots;
    Doubles* out;
};
// y_step -= sum over v < step of b_v y_v, for two sets of fields
struct CoarseOrthogonalise {
    Reals* p;
    Reals* z;
    const Doubles* b;
    int step;
    int length;               // reals of a field
    int rows;
};
// x = sum over v < count of b_v p_v, r -= sum of b_v z_v, and p_out = r
struct CoarseProject {
    Reals* x;
    Reals* r;
    Reals* p_out;
    const Reals* p;
    const Reals* z;
    const Doubles* b;
    int count;
    int length;               // reals of a field
    int rows;
};
// x += a p, r_out = r - a z, and p_out = r_out
struct CoarseStep {
    Reals* x;
    const Reals* p;
    const Reals* z;
    const Reals* r;
    Reals* r_out;
    Reals* p_out;
    const Doubles* length;
    int rows;
};
