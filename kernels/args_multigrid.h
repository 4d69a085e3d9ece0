// Arguments of aggregation multigrid (multigrid.cuh, coarse.cuh, coarse_gcr.cuh; grammar: args.h). Tables are in single precision, since a
// preconditioner needs no more; vectors and links to neighbours, which take most memory, are kept in 16 bits.
//
// Fields in the order of aggregates:  [aggregate][chirality][field][re, im][parity][spin, colour][site], `reals` numbers
//                                     per parity.
//                                     Of places: [place within][row of the chirality] instead.
// Coarse fields:                      [place][re, im][row], where the row is chirality and vector; places are those of
//                                     this rank's aggregates, even ones first. Of several systems, which are solved
//                                     together: [parity][system][place of the parity] instead of [place].
// Coarse matrices:                    [place][which][column][re, im][row].
// Ghosts:                             [ghost][system][re, im][row] are what other ranks' places next to this rank's have,
//                                     of one parity; their numbers in a table of neighbours follow those of places.
#pragma once

constexpr int COLUMNS = 16;       // partial sums over an aggregate, and over the rows of a coarse field
constexpr int TILE = 4;           // vectors that a thread of restrict_parts serves, and fields of one of coarse_dots
constexpr int ROUND_THREADS = 128;  // threads of round_vectors
constexpr int COARSE_LINKS = 9;   // matrices per place: local, forward in x, y, z, t, backward
constexpr int HOP_ROWS = 4;       // neighbouring rows of a column that a GPU's thread of coarse_hop loads at once
constexpr int HOP_SHARES = 4;     // threads of coarse_hop that share the columns of a link
constexpr int POSTS = 16;         // fields that ranks may have given each other before all have met again
constexpr int S_STEPS = 4;        // the maximum number of steps of the coarse GCR between sums
constexpr int MOST_FIELDS = 72;   // the maximum number of its directions, and a few
constexpr int PIECES = 32;        // pieces of a coarse field in a product
constexpr int SUMMANDS = 8;       // partial sums per piece and column
constexpr int BLOCK_THREADS = 256;  // threads of coarse_block
constexpr int BLOCK_PARTS = 10;   // its sums over some of the directions

// The part of a step of the coarse GCR.
enum Pass : int { ONLY_ONE = 0, FIRST_OF_TWO = 1, SECOND_OF_TWO = 2 };
// Fields that are restricted or prolonged at once, and coarse systems that are solved at once.
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
};
// The vectors of P, of which one form is there
struct Vectors {
    const Reals* single;      // optional
    const Ints* rounded;      // optional: [aggregate][chirality][vector][parity][spin, colour][site], re in the lower half
    const Reals* scales;      // optional: of the rounded ones, [aggregate][chirality][vector]
    int count;
    int reals;
};
// Rounds the vectors, which become what they are then
struct RoundVectors {
    Reals* v;
    Ints* rounded;
    Reals* scales;
    int reals;
};
// Partial sums of (v_n, x) over aggregates, for the first `used` vectors v
struct RestrictParts {
    Vectors v;
    const Reals* x;
    Reals* parts;             // [aggregate][chirality][n][field][re, im][COLUMNS]
    int used;
    int fields;               // fields of `x`
    int field;                // the first one
    int first;                // the first number of a field in an aggregate, and how many
    int count;
};
// Their sums, times a number per chirality
struct RestrictSum {
    Vectors v;
    const Reals* parts;
    Reals* out;
    const Ints* places;       // of this rank's aggregates in `out`
    int used;
    int columns;              // fields
    int place_stride;
    int column_stride;
    double upper;
    double lower;
};
// out = sum_n v_n c_n + base out, where c is times a number per chirality
struct Prolong {
    Vectors v;
    const Reals* c;
    const Ints* places;
    int column_stride;        // reals from a field of `c` to the next
    Reals* out;
    int used;
    int fields;               // fields of `out`
    int field;                // the first one
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
    const Reals* ghosts;      // optional where the direction is not cut: forward links of ghosts behind, [parity][ghost of the face]
    int rows;
    int half;                 // places of a parity
    int mu;
    int first;                // the face's first ghost, and its ghosts of a parity
    int face;
};
// out = local link + i gamma_5 (odd T + all), where T is P_o^dag P_o
struct CoarseTwist {
    const Reals* links;
    const Reals* t;           // optional: one matrix per place
    Reals* out;
    int rows;
    double odd;
    double all;
};
// Step `pivot` of an inversion by Gauss and Jordan
struct CoarseEliminate {
    const Reals* a;
    Reals* out;
    int rows;
    int pivot;
};
// out = B link for a link to neighbours
struct CoarseMultiply {
    const Reals* b;           // one matrix per place
    const Reals* links;
    Reals* out;               // COARSE_LINKS - 1 matrices per place
    int rows;
    int which;                // the link, from 0
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
    int places;               // of the parity
    int half;                 // places for which fields have room, of each parity
};
// What a hop gets of other ranks
struct CoarseGhosts {
    const Reals* ghosts;      // optional: where there are none, or ranks post
    RankRound from;           // without addresses if ranks do not post, otherwise the round in which they did
    int all;                  // ghosts of a parity
};
// What other ranks get
struct CoarseGift {
    const Ints* leaves;       // optional if nothing is given: [place][8], by the face that it fills there: its number as a ghost, or -1
    const Ints* ranks;        // optional likewise: [ghost]: the rank whose it is
    Reals* packed;            // optional: where ranks post
    RankRound to;             // without addresses if ranks do not post
};
// out = x + scale sum of the eight links times neighbours, on places of one parity, for one or four systems
struct CoarseHop {
    const Ints* links;        // [place][COARSE_LINKS - 1][column][row], as of coarse_round
    const Reals* scales;      // [place][COARSE_LINKS - 1][column]
    const Ints* neighbours;
    const Reals* input;
    CoarseGhosts ghosts;
    const Reals* x;           // optional
    Reals* out;
    CoarseGift gift;
    int rows;                 // constant
    double scale;
    int half;                 // places of a parity
    int systems;              // for which fields have room, as below
};
// Some of the coarse operator's links times x: those that stay in an aggregate of places, or one forward that leaves it
struct CoarsePart {
    const Reals* links;       // COARSE_LINKS matrices per place
    const Ints* neighbours;
    const Ints* leaving;      // [place], bit n: whether link n + 1 leaves the aggregate
    const Reals* x;           // on all places
    const Reals* ghosts;      // optional where there are none: those of the other parity
    Reals* out;
    int rows;
    int half;
    int parity;
    int part;                 // 0: those that stay; 1 and more: that link
};
// A coarse field, into the order of the aggregates of its places
struct GatherPlaces {
    const Ints* members;      // [aggregate][place within]
    const Reals* x;
    Reals* out;
    int places;               // per aggregate
    int rows;
    int skip;                 // x begins with this place; it is zero before
    int fields;               // fields of `out`
    int field;
};
// The reverse
struct ScatterPlaces {
    const Ints* members;
    const Reals* x;
    Reals* out;               // begins with place `skip`
    int places;
    int rows;
    int skip;
    int fields;               // fields of `x`
    int field;
};
// Gives other ranks what places have
struct CoarsePost {
    const Reals* input;
    CoarseGift gift;
    int rows;
    int places;
    int half;
    int now;                  // systems
    int systems;
    int ghosts;
};
// |x|^2 of each system
struct CoarseNorm {
    const Reals* x;
    int rows;
    int places;
    int half;
};
// Partial sums of products of the fields z_j of some steps and a residual with themselves and the z before
struct CoarseDots {
    const Reals* z;           // `before` fields, then those of the steps
    const Reals* r;
    const Doubles* squares;   // [system][MOST_FIELDS]: |z_v|^2 of directions before
    const Doubles* norms;     // [system]: |r|^2 after the last step
    Doubles* parts;           // [system][PIECES][f][x][re, im]
    Number first[MAX_SUMS];   // |r|^2 of each system where the solve begins
    int begins;               // whether it begins now
    int before;
    int steps;
    int rows;                 // constant
    int places;               // of the parity
    int half;
    int systems;
};
// totals = sums of the pieces
struct CoarseTotals {
    const Doubles* parts;     // [system][PIECES][number]
    Doubles* totals;          // [system][number]
    int numbers;
};
// From these, a direction for each step, and the step along all
struct CoarseBlock {
    const Doubles* parts;     // [system][piece][f][x][re, im]
    Doubles* squares;         // |z_v|^2 of all directions
    Doubles* norms;           // |r|^2 after the step
    Reals* coefficients;      // [system][MOST_FIELDS][direction, then step][re, im]
    RankRound round;           // of ranks whose parts are added here
    int pieces;
    int before;
    int steps;
    int systems;
    Pass pass;
};
// p_j = sum over n of u_nj A^n r + sum over v of b_vj p_v for the directions of some steps, z_j in the same way, then
// x += sum of y_j p_j and r -= sum of y_j z_j over all directions
struct CoarseAdvance {
    Reals* x;
    Reals* r;
    Reals* p;
    Reals* z;                 // from `before` on, A r, A^2 r, ... before
    const Reals* coefficients;
    int before;
    int steps;
    Pass pass;
    int begins;               // x is zero
    int places;
    int half;
    int systems;
    int rows;                 // no constant: a kernel with constants is timed in several shapes, and this one changes what it reads
};
