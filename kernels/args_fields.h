// Arguments of kernels on any fields: linear algebra, random numbers, copies (grammar: args.h).
#pragma once

// Linear algebra on fields of one parity with `half` outer sites (blas.cuh).

// A number that a kernel takes: `value`, or, if there is a sum, which an earlier launch left on the device, a quotient with it.
// With `below` it is value / below[0], or value / (below[0] + weight below[1]) unless the weight is 0; with `above` it is
// above[0] / value.
struct Number {
    double value;
    double weight;
    const Doubles* above;     // optional
    const Doubles* below;     // optional
};
// The numbers of an iteration of BiCGstab: the values, or, if there are its sums, what follows from those.
struct BicgstabNumbers {
    double rho[2];            // of the iteration before; real and imaginary part, as below
    double alpha[2];
    double omega[2];
    double beta[2];
    const Doubles* dot;       // optional: (shadow, v), for alpha = rho / dot
    const Doubles* overlap;   // optional: (t, r) and |t|^2, for omega, their quotient
    const Doubles* next;      // optional: (shadow, r) after the step, for beta = next / rho (alpha / omega)
};

// y += a x
struct Axpy {
    Fermions* y;
    const Fermions* x;
    int half;
    double a;
};
// y = x + a y
struct Xpay {
    Fermions* y;
    const Fermions* x;
    int half;
    double a;
};
// y += (a + i b) x
struct Caxpy {
    Fermions* y;
    const Fermions* x;
    int half;
    double a;
    double b;
};
// y = a y
struct Scale {
    Fermions* y;
    int half;
    double a;
};
// Sum 0: |x|^2
struct Norm2 {
    const Fermions* x;
    int half;
};
// Sums 0, 1: |x|^2, |y|^2
struct TwoNorms {
    const Fermions* x;
    const Fermions* y;
    int half;
};
// Sums 0, 1: (x, y), antilinear in x
struct Dot {
    const Fermions* x;
    const Fermions* y;
    int half;
};
// Sum 0: Re (x, y)
struct RealDot {
    const Fermions* x;
    const Fermions* y;
    int half;
};
// y += a x; sum 0: |y|^2. If a is not finite, y stays and the sum is NaN.
struct AxpyNorm2 {
    Fermions* y;
    const Fermions* x;
    int half;
    Number a;
};
// y += (a + i b) x; sum 0: |y|^2
struct CaxpyNorm2 {
    Fermions* y;
    const Fermions* x;
    int half;
    double a;
    double b;
};
// y += (a + i b) x; sums 0, 1: (z, y)
struct CaxpyDot {
    Fermions* y;
    const Fermions* x;
    const Fermions* z;
    int half;
    double a;
    double b;
};
// Sums 0, 1: (x, y); sum 2: |x|^2
struct DotNorm2 {
    const Fermions* x;
    const Fermions* y;
    int half;
};
// The first half of a step of BiCGstab: y -= alpha z. If a number of this or of the two below is not finite, their fields stay
// and the sums are NaN.
struct BicgstabHalf {
    Fermions* y;              // the residual
    const Fermions* z;        // M times the direction
    int half;
    BicgstabNumbers numbers;
};
// The second half of a step of BiCGstab: x += alpha z + omega y, y -= omega w; sums 0, 1: (v, y), sum 2: |y|^2
struct BicgstabStep {
    Fermions* x;
    Fermions* y;              // the residual
    const Fermions* z;        // the direction
    const Fermions* w;        // M y
    const Fermions* v;        // the shadow residual
    int half;
    BicgstabNumbers numbers;
};
// The next direction of BiCGstab: y = x + beta (y - omega z)
struct BicgstabDirection {
    Fermions* y;
    const Fermions* x;
    const Fermions* z;
    int half;
    BicgstabNumbers numbers;
};
// A step of minimal residuals: y += a x, x -= a z
struct MrStep {
    Fermions* y;
    Fermions* x;
    const Fermions* z;
    int half;
    double length[2];         // a
    const Doubles* overlap;   // optional: (z, x) and |z|^2; then a is their quotient, or 0 if z is 0
};
// y += i a gamma_5 x
struct AddTwist {
    Fermions* y;
    const Fermions* x;
    int half;
    double a;
};
// y = x, x in double
struct FromDouble {
    Geometry g;
    Fermions* y;
    const Fermions* x;
    int half;
};
// y = x, y in double
struct ToDouble {
    Geometry g;
    Fermions* y;
    const Fermions* x;
    int half;
};
// y += x, y in double
struct AddToDouble {
    Geometry g;
    Fermions* y;
    const Fermions* x;
    int half;
};
// y = x, x in single and y in half
struct FromSingle {
    Fermions* y;
    const Fermions* x;
    int half;
};
// y += x, y in single and x in half
struct AddToSingle {
    Fermions* y;
    const Fermions* x;
    int half;
};
// y = x, x in double
struct CloverFromDouble {
    Geometry g;
    Clover* y;
    const Clover* x;
};
// Sum n: Re (x_n, y_n) for `fields` fields, one after the other in memory
struct FieldsDot {
    const Fermions* x;
    const Fermions* y;
    int half;
    int fields;
};
// y_n += a_n x_n
struct FieldsAxpy {
    Fermions* y;
    const Fermions* x;
    int half;
    int fields;
    double a[MAX_SUMS];
};
// y_n = x_n + a_n y_n
struct FieldsXpay {
    Fermions* y;
    const Fermions* x;
    int half;
    int fields;
    double a[MAX_SUMS];
};
// y_n += a_n x_n; sum n: |y_n|^2
struct FieldsAxpyNorm2 {
    Fermions* y;
    const Fermions* x;
    int half;
    int fields;
    double a[MAX_SUMS];
};
// Steps of conjugate gradients: x_n += a_n p_n, p_n = r_n + b_n p_n, unless one of the numbers is not finite. x_n are
// solutions; r_n may be the same for several n.
struct CgSteps {
    const Fermions* r[CG_STEPS];  // optional from `count` on, as are x and p
    Fermions* x[CG_STEPS];        // optional
    Fermions* p[CG_STEPS];        // optional
    int half;
    int count;
    Number a[CG_STEPS];
    Number b[CG_STEPS];
};

// Steps of several iterations with many shifts: for each m, x_n += a_nm p_n, p_n = r_m + b_nm p_n. x_n are solutions.
struct ShiftSteps {
    const Fermions* r[SHIFT_GROUP];  // optional from `residuals` on
    Fermions* x[CG_STEPS];           // optional from `count` on, as is p
    Fermions* p[CG_STEPS];           // optional
    int half;
    int residuals;
    int count;
    int steps[CG_STEPS];             // numbers of steps, at most `residuals`
    double a[SHIFT_NUMBERS];         // [n][m]
    double b[SHIFT_NUMBERS];
};
// y = x + a y; sum 0: |y|^2. If a is not finite, y stays and the sum is NaN.
struct XpayNorm2 {
    Fermions* y;
    const Fermions* x;
    int half;
    Number a;
};

// Random fields (random.cuh), keyed by the seed; the stream is the global site.
struct Stream {
    int key[8];
    int counter_low;          // first 64-byte block of (trajectory, purpose)
    int counter_high;
};
// p_a ~ N(0, 1)
struct RandomMomenta {
    Geometry g;
    Stream stream;
    Algebra* out;
};
// Each real is scale * N(0, 1), for one slice of the fifth dimension
struct RandomField {
    Geometry g;
    Stream stream;
    Fermions* out;
    int parity;
    int slice;
    int slices;
    double scale;
};
// Random links from the Haar measure
struct RandomLinks {
    Geometry g;
    Stream stream;
    Matrices* out;
};

// Borders of matrices (halo.cuh): the slab of `layers` layers at one end of direction mu.
struct Slab {
    Geometry g;
    int mu;
    int forward;              // 1: this rank's first layers, for the border after the previous rank's last site
    int reals;                // per site and block
    int blocks;
    int layers;               // at most the border; the innermost layers
    int sites;
};
// Packs the edge lanes of a slab into the wire
struct SlabPack {
    Slab slab;
    const Matrices* field;
    Halo* wire;
};
// Fills the border from the wire and from neighbouring lanes
struct SlabUnpack {
    Slab slab;
    Matrices* field;
    const Halo* wire;
};

// Sites of a field in file order (halo.cuh).
struct Order {
    Geometry g;
    int parity;
    int slice;                // slice of a fifth dimension
    int slices;
    int blocks;
    int reals;
    int bordered;
};
// natural = field
struct ToNatural {
    Order order;
    const Sites* field;
    Doubles* natural;         // [site][block][reals] of the whole rank, x fastest
};
// field = natural
struct FromNatural {
    Order order;
    Sites* field;
    const Doubles* natural;
};
// Copies links into an operator's own links
struct ImportLinks {
    Geometry g;
    const Matrices* links;
    Links* out;
    int parity;
};
// Copies an operator's own links from where they begin to where they end, on a CPU
struct GatherLinks {
    Geometry g;
    const Links* links;       // of parity 1 - `parity`
    Links* out;               // those that end at sites of parity `parity`
    int parity;
    int steps;                // sites from the begin of a link to its end
    int bytes;                // per link and outer site
};

// Raises a number in the memory of neighbours, when earlier work of this rank is done (ranks.cuh).
struct HaloSignal {
    Flags* flags[8];          // optional where nobody waits: all flags of the rank whose flags of this number are raised
    int number;
    int stride;               // chunks of a face that have flags
};
// An exchange of all ranks: of a sum, or of fields
struct RankRound {
    const Addresses* of_ranks;  // optional if it is one rank's alone: of each rank's memory for the others' words
    int rank;
    int ranks;
    int round;                // the number of this exchange among those of the same memory
};
// Adds the words that other ranks have, or takes the greatest
struct SumOverRanks {
    Words* words;             // of one rank's sums
    RankRound round;
    int greatest;             // the word of which the greatest is taken
};
// The faces of a field that are packed for the neighbours, by the ghost zone that they fill there: [2 mu + (0 from forward, 1 from backward)]
struct Outgoing {
    Halo* wire[8];            // optional where nothing travels: outgoing data, edge lanes only
    Halo* ghost[8];           // optional likewise: this rank's ghost zone, for lanes whose neighbour is a lane of this rank
    HaloSignal signal;        // raised chunk by chunk
    int fields;
    int chunk;                // the launch's first site of each face is a multiple of it: FACE_CHUNK if flags are raised, else 1
};
// Waits until neighbours have raised a number
struct HaloWait {
    const Flags* flags;       // optional: if null, nothing is waited for
    int number;
    int stride;               // chunks of a face that have flags
    int chunks[8];            // those that are raised
};
// The sites of a hop's launch, out of all in an order with those first that need no ghost zones
struct Places {
    const Ints* sites;        // optional: the order; if null, that of memory, from site `from` on and round to it
    HaloWait wait;            // before a site's part of a ghost zone is read
    Outgoing packs;           // what the launch packs for the neighbours before its own sites
    int packing;              // the chunks of that
    int from;
    int all;                  // sites of one parity
    int first;                // the first of this launch in the order
    int count;                // sites of this launch
};
// Merges lanes at the rank's edge from a wire into a ghost zone (faces.cuh).
struct FaceMerge {
    Geometry g;
    const Halo* wire;
    Halo* ghost;
    int mu;
    int forward;
    int reals;                // per site
    int sites;
};
// Fills ghost zones from wires in half precision, by face as in Outgoing (faces.cuh).
struct FaceUnpack {
    Geometry g;
    const Halo* wire[8];      // optional where nothing came: incoming data, edge lanes only
    Halo* ghost[8];           // optional likewise
    int fields;
    int blocks;               // per site
    int reals;                // of a block: 12 of a half spinor, 6 of a colour vector
};
