// Arguments of kernels on links: loops, the clover term, smearing (grammar: args.h).
#pragma once

// Gauge loops (gauge.cuh). Paths: int [mu][path] or int [path], with four bits per step. `counts` are the numbers of
// paths per class: plaquette (space, time), rectangle, parallelogram; between fixed walls the last are plaquettes, twice around.

// Sum n: the closed paths of class n
struct LoopTraces {
    Geometry g;
    const Matrices* links;
    const Ints* paths;
    int counts[4];
    int slice;                // those that start on this slice; -1: all
};
// Sum 0: the action
struct GaugeAction {
    Geometry g;
    const Matrices* links;
    const Ints* paths;
    int counts[4];
    double weights[4];
    double within[2];         // weight of loops within a lower and an upper wall
    double beside[2];         // of plaquettes that touch them
    double twice[2];          // of those that go twice around
};
// force += scale dS
struct GaugeForce {
    Geometry g;
    const Matrices* links;
    Algebra* force;
    const Ints* paths;
    int counts[4];
    double weights[4];
    double within[2];         // weight of loops within a lower and an upper wall
    double beside[2];         // of plaquettes that touch them
    double twice[2];          // of those that go twice around
    double wall_links;        // factor of the force on links within an open wall
    double scale;
};
// U <- exp(i scale P) U
struct Drift {
    Geometry g;
    Matrices* links;
    const Algebra* momenta;
    double scale;
};
// P <- shift P + scale F; sum 0: |F|^2, maximum: |F| of any link
struct Kick {
    Geometry g;
    Algebra* momenta;
    const Algebra* force;
    double scale;
    double shift;
};
// Sum 0: sum_a p_a^2 / 2
struct Kinetic {
    Geometry g;
    const Algebra* momenta;
};
// Gives links at walls what they must be. Maximum: the greatest change of any matrix element
struct EndLinks {
    Geometry g;
    Matrices* links;
};
// Maximum: deviation of links from SU(3)
struct Unitarity {
    Geometry g;
    const Matrices* links;
};
// As Unitarity, and projects the links back
struct Reunitarise {
    Geometry g;
    Matrices* links;
};
// Maximum: |U - V| of any matrix element
struct LinkDistance {
    Geometry g;
    const Matrices* links;
    const Matrices* other;
};
// Maximum: |re| or |im| of any matrix element
struct GreatestReal {
    Geometry g;               // constant
    const Matrices* links;
};

// Straight lines of links (line.cuh), one matrix per site.

// out = U_mu(x) line(x + mu) back(x)^dag, without absent factors; sums 0, 1: tr out / 3, or with `closing` tr closing
// out^dag / 3, real and imaginary part
struct ExtendLine {
    Geometry g;
    const Matrices* links;    // optional if there is a line
    const Matrices* line;     // optional if there are links
    const Matrices* back;     // optional
    const Matrices* closing;  // optional
    Matrices* out;
    int mu;
};

// The clover term and its force (clover.cuh).

// A on both parities
struct CloverBuild {
    Geometry g;
    const Matrices* links;
    Clover* clover;           // both parities
    double diagonal;          // 4 + m0
    double wall;              // in place of A on a wall
    double next[2];           // in place of 4 + m0 beside a lower and an upper one
    double scale;             // c_sw
};
// inverse = A^-1, or (A^2 + square)^-1; sum 0: log det A, or log det (A^2 + square) / 2; sum 1: number of pivots that are not positive
struct CloverInvert {
    Geometry g;
    const Clover* clover;     // both parities
    Clover* inverse;
    int parity;
    double square;            // 0: A^-1
};
// out = x y: commuting blocks on one parity
struct CloverProduct {
    Geometry g;
    Clover* out;
    const Clover* x;
    const Clover* y;
};
// block <- factor exp(sign block) on one parity
struct CloverExponential {
    Geometry g;
    Clover* clover;           // of the parity
    int parity;
    double sign;
    double factor;
    double next[2];           // the factor beside a lower and an upper wall; on one it is 1
};
// blocks += weight (X Y^dag + Y X^dag) / 2
struct PairBlocks {
    Geometry g;
    Clover* blocks;           // of one parity
    const Fermions* x;
    const Fermions* y;
    double weight;
};
// P <- int_0^1 ds exp((1 - s) M) P exp(s M)
struct ExponentialGradient {
    Geometry g;
    Clover* blocks;           // P on one parity
    const Clover* clover;     // M there
    int parity;
    double next[2];           // a factor beside a lower and an upper wall
};
// insertion += insertion of X Y^dag
struct InsertPair {
    Geometry g;
    Matrices* insertion;      // 6 matrices per site
    const Fermions* x;
    const Fermions* y;
    int parity;
    int slices;               // of the fields, which are summed over
    double scale;
};
// insertion += insertion of A^-1
struct InsertInverse {
    Geometry g;
    Matrices* insertion;      // 6 matrices per site
    const Clover* inverse;
    int parity;
    double scale;
};
// force += force of all leaves
struct CloverForce {
    Geometry g;
    const Matrices* links;
    const Matrices* insertion;  // 6 matrices per site, borders filled
    Algebra* force;
};
// Sums 0, 1: E, topological charge
struct FieldEnergy {
    Geometry g;
    const Matrices* links;
    int slice;                // those of this slice; -1: all
};

// The force through one step of stout smearing (stout.cuh).

// Replaces the force by its direct part; insertion = 2 i rho Lambda
struct StoutInsertion {
    Geometry g;
    const Algebra* exponent;  // Q
    Algebra* force;
    Matrices* insertion;      // 4 matrices per site
    int terms;                // terms of the series of Lambda
    double rho;
};
// force += part that comes through Q
struct StoutForce {
    Geometry g;
    const Matrices* links;    // links before the step
    const Matrices* insertion;
    Algebra* force;
};

// An element of su(3) per link as a hermitian matrix (flow.cuh)
struct AlgebraMatrices {
    Geometry g;
    Matrices* out;
    const Algebra* algebra;
};
// force_mu += scale D_mu D_mu^* force_mu
struct ZeuthenForce {
    Geometry g;
    const Matrices* links;
    const Matrices* matrices; // of the force
    Algebra* force;
    double scale;
};

// Smeared links of staggered quarks, and the gradient through them (staples.cuh): fields of four matrices per site,
// except staples, which have three.
struct PathWeights {
    double one;
    double three;
    double five;
    double seven;
    double lepage;
};
// single = S_nu middle
struct StapleSingle {
    Geometry g;
    const Matrices* links;    // links of the sides of staples
    const Matrices* middle;   // the middle of the paths
    Matrices* single;
    int mu;
};
// twice = D_nu middle
struct StapleTwice {
    Geometry g;
    const Matrices* links;
    const Matrices* single;
    Matrices* twice;
    int mu;
};
// out = F middle
struct StapleSum {
    Geometry g;
    const Matrices* links;
    const Matrices* middle;
    const Matrices* single;
    const Matrices* twice;
    Matrices* out;
    int mu;
    int add;                  // 1: add to `out`
    PathWeights weights;
};
// out += gradient through the sides of all paths
struct StapleSides {
    Geometry g;
    const Matrices* links;
    const Matrices* middle;
    const Matrices* single;
    const Matrices* twice;
    const Matrices* gradient;
    const Matrices* gradient_single;
    const Matrices* gradient_twice;
    Matrices* out;
    int mu;
    PathWeights weights;
};
// out = U_mu(x) U_mu(x+mu) U_mu(x+2mu)
struct LongLinks {
    Geometry g;
    const Matrices* links;
    Matrices* out;
};
// out += gradient through long links
struct LongGradient {
    Geometry g;
    const Matrices* links;
    const Matrices* gradient;
    Matrices* out;
};
// out = x + scale y
struct BlendLinks {
    Geometry g;
    const Matrices* x;
    const Matrices* y;
    Matrices* out;
    double scale;
};
// force_a += Re tr(i T_a U G^dag)
struct GradientForce {
    Geometry g;
    const Matrices* links;
    const Matrices* gradient;
    Algebra* force;
};

// Links projected to U(3) or SU(3), and the gradient through the projection (unitary.cuh).

// Sum 0: number of links with a small singular value
struct UnitaryFactor {
    Geometry g;
    const Matrices* links;    // any matrices
    Matrices* unitary;        // their unitary factors
    int special;              // 1: SU(3)
    double least;             // limit for small singular values
};
// Transforms the gradient with respect to the factors into that with respect to the matrices, in place
struct UnitaryGradient {
    Geometry g;
    const Matrices* links;
    const Matrices* unitary;
    Matrices* gradient;
    int special;
    double least;
};
