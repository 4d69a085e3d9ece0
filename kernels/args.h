// Arguments of the kernels. This file is their only definition: the build makes the Rust structs
// from it and checks sizes and offsets on both sides. Grammar: struct NAME { TYPE NAME; TYPE NAME[N]; };
// TYPE is Pointer, int, double or a struct above.
#pragma once
typedef void* Pointer;  // device memory

// A rank's box as its lanes see it: coordinates are those of one lane's box ("outer").
struct Geometry {
    int outer[4];         // extents of a lane's box
    int border[4];        // ghost layers kept around link fields: 0 where the direction is not cut
    int lanes[4];         // lanes in each direction
    int offset[4];        // global coordinates of the rank's first site
    int global[4];        // extents of the lattice
    int half;             // outer sites of one parity
    int half_bordered;    // the same with the borders of link fields
    Pointer permutation;  // int [mu][forward, backward][lane]: the neighbouring lane
};

// Wilson hopping term from parity 1 - `parity` to `parity`, with an epilogue (wilson.cuh).
struct HopArgs {
    Geometry g;
    Pointer out;
    Pointer input;
    Pointer x;            // epilogue: a spinor of parity `parity`
    Pointer clover;       // epilogue: packed blocks of parity `parity`
    Pointer links_out;    // links of parity `parity`
    Pointer links_in;     // links of parity 1 - `parity`
    Pointer ghost[8];     // half spinors [2 mu + (0 from forward, 1 from backward)]
    Pointer phases;       // reals [2 mu + (0 forward, 1 backward)][re, im][lane]
    Pointer sites;        // int list of outer sites, or null for all
    Pointer keep;         // reals [2 mu + (0 forward, 1 backward)][x_mu][lane]: 0 where a hop leaves its block
    int parity;
    int ghost_mask;       // bit mu: the direction is cut
    int phase_mask;       // bit 2 mu + (0, 1): this rank touches a phase there
    int epilogue;         // wilson.cuh
    int dagger;           // the adjoint
    int blocked;          // 1: without the hops that leave a block
    int fields;           // spinors: slices of a fifth dimension, times right-hand sides
    int slices;           // of the fifth dimension: of one field, which fields follow one behind the other
    int count;            // sites of this launch
    int keep_stride;
    double scale;
    double shift;
    double twist;
};

// A matrix on the fifth dimension, for each chirality (domain_wall.cuh).
struct WallArgs {
    Pointer out;
    Pointer input;
    Pointer x;            // added, times `shift`; or null
    Pointer table;        // reals [chirality][coefficient][slice]
    int half;             // outer sites of one parity
    int slices;
    int reversed;         // bit 0, 1: the upper, the lower chirality's order is against the slices
    int fields;           // of all slices
    double scale;
    double shift;
};

// The same of the hopping term's result (domain_wall.cuh).
struct WallHopArgs {
    HopArgs hop;          // its sites and input; its `out`, epilogue and what that takes are unused
    WallArgs wall;        // its `input` is unused
};

// What the neighbour needs of the face of a field, for its hop (wilson.cuh, staggered.cuh) or force.
struct FaceArgs {
    Geometry g;
    Pointer input;
    Pointer links;        // of the same parity as `input`; fat ones
    Pointer long_links;   // long ones
    Pointer ninth;
    Pointer wire;         // what leaves, edge lanes only
    Pointer ghost;        // own ghost zone: lanes whose neighbour is a lane of this rank
    int parity;           // of `input`
    int mu;
    int forward;          // 1: for the neighbour's forward hop, 0: for its backward hop
    int dagger;           // projectors of the adjoint
    int slices;           // as in HopArgs
    int pad;
};

// Lanes between a wire buffer and a ghost zone.
struct LaneArgs {
    Geometry g;
    Pointer wire;
    Pointer ghost;
    int mu;
    int forward;
    int reals;            // a site
    int sites;
};

// Borders of a bordered field: the slab of `layers` layers at one end of direction mu.
struct SlabArgs {
    Geometry g;
    Pointer field;        // both parities
    Pointer wire;
    int mu;
    int forward;          // 1: our first layers, for the border after the previous rank's last site
    int reals;            // a site and block
    int blocks;
    int layers;           // at most the border: the innermost of it
    int unpack;
};

// Links, momenta, forces.
struct LinkArgs {
    Geometry g;
    Pointer links;        // double, bordered
    Pointer momenta;      // double, 8 reals a link
    Pointer force;        // double, 8 reals a link
    Pointer paths;        // int [mu][path]: steps of four bits
    int counts[4];        // paths of each class: plaquette (space, time), rectangle, parallelogram
    double weights[4];
    double scale;
    double shift;
};

// Straight lines of links (line.cuh); a null pointer leaves a factor out.
struct LineArgs {
    Geometry g;
    Pointer links;        // double, bordered
    Pointer line;         // double, bordered: 1 matrix a site
    Pointer back;         // double, bordered: 1 matrix a site
    Pointer closing;      // double, bordered: 1 matrix a site
    Pointer out;          // double, bordered: 1 matrix a site
    int mu;
    int pad;
};

// Two propagators and the spin matrices between them (contraction.cuh): row a of a matrix holds i^phase[a] in column[a].
struct ContractionArgs {
    Pointer quark[12];    // double: a field for each component of the source
    Pointer antiquark[12];
    Pointer out;          // double, 2 reals a site
    int sink_column[4];
    int sink_phase[4];
    int source_column[4];
    int source_phase[4];
    int half;             // outer sites of one parity
    int pad;
};

// Sum of a density over the sites of one parity with one time (contraction.cuh).
struct TimeSliceArgs {
    Geometry g;
    Pointer density;      // double, 2 reals a site
    Pointer phases;       // double [x, y, z][coordinate in a lane's box][re, im][lane]
    Pointer mask;         // double [place of a lane in t][lane]: 1 where that is the lane's place, else 0
    int parity;
    int time;             // in a lane's box
    int lane_time;        // place in t of the lanes that are summed
    int sites;            // outer sites of one parity with one time
};

// Random fields: keyed by the seed; the stream is the global site.
struct RandomArgs {
    Geometry g;
    Pointer out;
    int key[8];
    int counter_low;      // first 64-byte block of (trajectory, purpose)
    int counter_high;
    int parity;           // of a spinor field
    int slice;            // of its fifth dimension
    int slices;
    int pad;
    double scale;
};

// The clover term and its force.
struct CloverArgs {
    Geometry g;
    Pointer links;        // double, bordered
    Pointer clover;       // double, both parities
    Pointer inverse;      // double, one parity
    Pointer insertion;    // double, bordered: 6 matrices a site
    Pointer force;        // double, 8 reals a link
    Pointer x;            // spinor
    Pointer y;            // spinor
    int parity;
    int pad;
    double diagonal;      // 4 + m0
    double scale;
};

// The force through one step of stout smearing.
struct StoutArgs {
    Geometry g;
    Pointer links;        // double, bordered: those before the step
    Pointer exponent;     // double, 8 reals a link: Q
    Pointer force;        // double, 8 reals a link
    Pointer insertion;    // double, bordered: 4 matrices a site
    int terms;            // of the series of Lambda
    int pad;
    double rho;
};

// Smeared links of staggered quarks, and the gradient through them (staples.cuh): fields of four
// matrices a site, but for staples, which have three.
struct StapleArgs {
    Geometry g;
    Pointer links;            // double, bordered: those that staples are made of
    Pointer middle;           // double, bordered: what stands in the middle of a path
    Pointer single;           // double, bordered: staples of `middle`
    Pointer twice;            // double, bordered: staples of those
    Pointer gradient;         // double, bordered
    Pointer gradient_single;  // double, bordered: staples of `gradient`
    Pointer gradient_twice;   // double, bordered: staples of those
    Pointer out;              // double, bordered; of gradient_force 8 reals a link
    int mu;
    int add;                  // 1: `out` is added to
    double one;               // coefficients of paths
    double three;
    double five;
    double seven;
    double lepage;
};

// Links projected to U(3) or SU(3), and the gradient through that (unitary.cuh).
struct UnitaryArgs {
    Geometry g;
    Pointer links;            // double, bordered: any matrices
    Pointer unitary;          // double, bordered: their unitary factors
    Pointer gradient;         // double, bordered
    int special;              // 1: SU(3)
    int pad;
    double least;             // singular values below are small
};

// Force of the hopping term on the links that leave sites of parity `parity`.
struct HopForceArgs {
    Geometry g;
    Pointer links;        // double, bordered
    Pointer force;
    Pointer x_here;       // spinors of parity `parity`
    Pointer y_here;
    Pointer x_there;      // spinors of the other parity
    Pointer y_there;
    Pointer ghost_x[4];   // half spinors from forward neighbours
    Pointer ghost_y[4];
    Pointer phases;       // as in HopArgs, double
    int parity;
    int ghost_mask;
    int phase_mask;
    int slices;           // of a fifth dimension, summed over
    double scale;
};

// Improved staggered operator from parity 1 - `parity` to `parity` (staggered.cuh).
struct StaggeredArgs {
    Geometry g;
    Pointer out;
    Pointer input;
    Pointer x;            // colour vectors of parity `parity`, or null
    Pointer fat_out;      // links of parity `parity`
    Pointer fat_in;       // links of parity 1 - `parity`
    Pointer long_out;
    Pointer long_in;
    Pointer ninth_out;    // the ninth real of long links of nine
    Pointer ninth_in;
    Pointer ghost[8];     // [2 mu + (0 from forward: 3 layers, 1 from backward: 3 layers and 1)]
    Pointer sites;        // int list of outer sites, or null for all
    int parity;
    int ghost_mask;       // bit mu: the direction is cut
    int fields;           // colour vectors, one behind the other
    int each;             // fields of a thread
    int count;            // sites of this launch
    int pad;
    double fat_scale;
    double long_scale;
    double shift;
};

// Links of a staggered operator from double, bordered storage.
struct StaggeredImportArgs {
    Geometry g;
    Pointer links;
    Pointer out;          // one parity
    Pointer ninth;
    Pointer phases;       // double [mu][passes of the boundary][re, im]
    int parity;
    int pad;
    double scale;
};

// Gradients of staggered pseudofermions on the links that leave sites of parity `parity`.
struct StaggeredForceArgs {
    Geometry g;
    Pointer fat;          // gradients: double, bordered, 4 matrices a site
    Pointer lng;
    Pointer one;
    Pointer here;         // colour vectors of parity `parity`, one behind the other
    Pointer there;        // those of the other parity
    Pointer ghost[4];     // three layers from forward neighbours
    Pointer weights;      // double [field]
    Pointer phases;       // double [mu][passes of the boundary][re, im]
    int parity;
    int ghost_mask;
    int fields;
    int pad;
    double fat_weight;
    double long_weight;
    double one_weight;
};

// Linear algebra on fields of one parity, and copies.
struct BlasArgs {
    Pointer x;
    Pointer y;
    Pointer z;
    Pointer w;
    Pointer v;
    int half;             // outer sites
    int fields;           // of the kernels on several fields: up to four
    double a;
    double b;
    double c;
    double d;
};

// Solutions, directions and residuals of conjugate gradients, these the same for all shifts of a matrix.
struct CgArgs {
    Pointer r[16];
    Pointer x[16];
    Pointer p[16];
    int half;             // outer sites
    int count;            // solutions of this launch
    double a[16];
    double b[16];
};

// Minimal residual steps in Schwarz blocks, each with its own step length (schwarz.cuh).
struct BlockArgs {
    Geometry g;
    Pointer x;            // spinors of parity `parity`
    Pointer y;
    Pointer z;
    Pointer products;     // double [site of a block][block][3]
    Pointer lengths;      // double [block][2]
    int block[4];         // extents of a block
    int blocks[4];        // blocks of this rank in each direction
    int parity;
    int pad;
};

// Links from double, bordered storage to an operator's own copy.
struct ImportArgs {
    Geometry g;
    Pointer links;
    Pointer out;          // one parity
    int parity;
    int pad;
};

// Sites in the order of files to and from a field.
struct TransposeArgs {
    Geometry g;
    Pointer field;        // one parity
    Pointer natural;      // double [site][block][reals] of the whole rank, x fastest
    int parity;
    int slice;            // of a fifth dimension
    int slices;
    int blocks;
    int reals;
    int bordered;
    int to_natural;
    int pad;
};
