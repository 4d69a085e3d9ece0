// Arguments of the operators of quarks, and of their forces (grammar: args.h).
#pragma once

// Wilson hopping term D from parity 1 - `parity` to `parity` (wilson.cuh).
struct Hopping {
    Geometry g;               // constant
    const Fermions* input;
    const Links* links_out;   // links of parity `parity`
    const Links* links_in;    // links that end at sites of parity `parity`: by the sites where they begin, on a CPU where they end
    const Halo* ghost[8];     // optional if no direction is cut: half spinors [2 mu + (0 from forward, 1 from backward)]
    const Halo* ghost_links[4];  // optional likewise: whole links that end here and begin on the rank before
    const Reals* phases;      // [2 mu + (0 forward, 1 backward)][re, im][lane]
    Places places;            // outer sites
    const Reals* keep;        // optional for all hops: [2 mu + (0 forward, 1 backward)][x_mu][lane], 1 or 0: whether to make the hop
    int parity;
    int ghost_mask;           // bit mu is set if the direction is cut
    int phase_mask;           // bit 2 mu + (0, 1) is set if this rank has a phase there
    int dagger;               // constant: 1 for the adjoint
    HopSet hops;              // constant
    int fields;               // constant: number of spinors: slices of a fifth dimension times right-hand sides
    int slices;               // constant: slices of the fifth dimension of one field; fields follow each other in memory
    int keep_stride;
};
// The hopping term with an epilogue
struct WilsonHop {
    Hopping hop;
    Fermions* out;
    Fermions* also;           // optional, for MINUS_CLOVER: the clover blocks times what `out` becomes
    const Fermions* x;        // optional: field of parity `parity`
    const Clover* clover;     // optional: packed blocks of parity `parity`
    const Clover* term;       // optional, for TWISTED: A, where `clover` has (A^2 + twist^2)^-1
    Epilogue epilogue;        // constant
    double scale;
    double shift;
    double twist;
};
// Hops of a doublet of two masses (doublet.cuh): with x, out = (A + X) x - scale D input, else out = scale (A - X) B D input
struct DoubletHop {
    Hopping hop;
    Fermions* out;
    const Fermions* x;        // optional
    const Clover* clover;     // optional with x or without a term: B = (A^2 - X^2)^-1
    const Clover* term;       // optional without a term: A
    double diagonal;          // A without a term
    double mubar;
    double epsbar;
    double scale;
};
// out = scale (A - X) B input for such a doublet on one parity
struct DoubletInverse {
    Geometry g;
    Fermions* out;
    const Fermions* input;
    const Clover* clover;     // optional without a term
    const Clover* term;       // optional likewise
    double diagonal;
    double mubar;
    double epsbar;
    double scale;
};
// Packs the half spinors of faces for the neighbours
struct WilsonFace {
    Geometry g;               // constant
    const Fermions* input;
    Outgoing faces;
    int parity;               // parity of `input`
    int dagger;               // 1 for projectors of the adjoint
    int slices;
};
// Packs an operator's own links that begin in the last layer for the next rank, as whole matrices
struct LinkFace {
    Geometry g;
    const Links* links;
    Outgoing faces;
    int parity;               // of the sites where they begin
};
// out = B x on one parity, where B are clover blocks
struct CloverApply {
    Geometry g;               // constant
    Fermions* out;
    const Clover* clover;
    const Fermions* x;
};
// Force of the hopping term on the links that start at sites of parity `parity` (force.cuh)
struct HopForce {
    Geometry g;
    const Matrices* links;
    Algebra* force;
    const Fermions* x_here;   // on parity `parity`
    const Fermions* y_here;
    const Fermions* x_there;  // on the other parity
    const Fermions* y_there;
    const Halo* ghost_x[4];   // optional if a direction is not cut: half spinors from forward neighbours
    const Halo* ghost_y[4];   // optional, as ghost_x
    const Reals* phases;      // as in Hopping
    int parity;
    int ghost_mask;
    int phase_mask;
    int slices;               // slices of a fifth dimension, which are summed over
    double scale;
};

// The fifth dimension of domain-wall quarks (domain_wall.cuh): out = scale T (..) + shift x, with one matrix T per
// chirality.
struct Wall {
    Fermions* out;
    const Fermions* x;        // optional
    const Doubles* table;     // optional in single and half precision: [chirality][coefficient][slice]
    float coefficients[WALL_COEFFICIENTS];  // the same in these, which a GPU reads without a load
    int half;                 // outer sites of one parity
    int slices;               // constant
    int reversed;             // constant: bit 0, 1: the order of the upper, lower chirality is opposite to the slices
    int fields;               // number of fields with all slices
    double scale;
    double shift;
};
// T input
struct SliceMatrix {
    Wall wall;
    const Fermions* input;
};
// T D input
struct SliceMatrixOfHops {
    Wall wall;
    Hopping hop;
};
// out = sum_s c_s input_s
struct SliceSum {
    Fermions* out;
    const Fermions* input;
    const Reals* table;       // [chirality][slice]
    int half;
    int slices;
};
// out_s = c_s input
struct SliceSpread {
    Fermions* out;
    const Fermions* input;
    const Reals* table;       // [chirality][slice]
    int half;
    int slices;
};
// out_s = scale gamma_5 input_{N_s - 1 - s}
struct SliceReflect {
    Fermions* out;
    const Fermions* input;
    int half;
    int slices;
    double scale;
};

// Improved staggered operator from parity 1 - `parity` to `parity` (staggered.cuh).
struct StaggeredHop {
    Geometry g;               // constant
    Fermions* out;
    const Fermions* input;
    const Fermions* x;        // optional: field of parity `parity`
    const Links* fat_out;     // links of parity `parity`
    const Links* fat_in;      // as links_in of Hopping
    const Links* long_out;
    const Links* long_in;
    const Links* ninth_out;   // optional unless long links have nine reals: the ninth
    const Links* ninth_in;    // optional, as ninth_out
    const Halo* ghost[8];     // optional if no direction is cut: three layers of vectors [2 mu + (0 from forward, 1 from backward)]
    const Halo* ghost_fat[4]; // optional likewise: as ghost_links of Hopping
    const Halo* ghost_long[4];  // optional likewise: three layers
    Places places;            // outer sites
    int parity;
    int ghost_mask;           // bit mu is set if the direction is cut
    int fields;               // constant: number of colour vectors, one after the other in memory
    int each;                 // constant: fields per thread
    double fat_scale;
    double long_scale;
    double shift;
};
// Packs faces for the neighbours: three layers of vectors
struct StaggeredFace {
    Geometry g;               // constant
    const Fermions* input;
    Outgoing faces;
    int parity;
};
// As LinkFace for an operator's own fat links, or for its long ones
struct StaggeredLinkFace {
    Geometry g;
    const Links* links;
    const Links* ninth;       // optional unless links have nine reals
    Outgoing faces;
    int parity;
    int layers;               // 1, or 3 of long links
};
// Fills an operator's own fat links
struct ImportFat {
    Geometry g;               // constant
    const Matrices* links;
    Links* out;
    const Doubles* phases;    // [mu][crossings of the boundary][re, im]
    int parity;
    double scale;
};
// Fills an operator's own long links
struct ImportLong {
    Geometry g;               // constant
    const Matrices* links;
    Links* out;
    Links* ninth;             // optional unless links have nine reals
    const Doubles* phases;
    int parity;
};
// Gradients of staggered pseudofermions with respect to links that start at sites of parity `parity`
struct StaggeredForce {
    Geometry g;               // constant
    Matrices* fat;            // gradients: 4 matrices per site
    Matrices* lng;
    Matrices* one;            // optional: not if one_weight is 0
    const Fermions* here;     // on parity `parity`, one after the other in memory
    const Fermions* there;    // on the other parity
    const Halo* ghost[4];     // optional if a direction is not cut: three layers from forward neighbours
    const Doubles* weights;   // [field]
    const Doubles* phases;    // as in ImportFat
    int parity;
    int ghost_mask;
    int fields;
    double fat_weight;
    double long_weight;
    double one_weight;
};

// Minimal-residual steps in Schwarz blocks, each with its own step length (schwarz.cuh).
struct BlockGrid {
    int block[4];             // extents of a block
    int blocks[4];            // number of this rank's blocks in each direction
};
// Re (y, x), Im (y, x), |y|^2 for every site
struct BlockProducts {
    Geometry g;
    BlockGrid grid;
    const Fermions* x;
    const Fermions* y;
    Doubles* products;        // [site of a block][block][3]
    int parity;
};
// Partial sums of each block, in place
struct BlockPart {
    BlockGrid grid;
    Doubles* products;
};
// (y, x) / |y|^2 for every block
struct BlockLength {
    BlockGrid grid;
    const Doubles* products;
    Doubles* lengths;         // [block][2]
};
// z += length x, x -= length y
struct BlockStep {
    Geometry g;
    BlockGrid grid;
    Fermions* x;
    const Fermions* y;
    Fermions* z;
    const Doubles* lengths;
    int parity;
};

// Contractions of propagators (contraction.cuh): one field per component of the source.

// A product of gamma matrices: row a has the entry i^phase[a] in column[a]
struct SpinMatrix {
    int column[4];
    int phase[4];
};
// out = tr[sink S source T^dag]
struct ContractSpinors {
    const Fermions* quark[12];      // S
    const Fermions* antiquark[12];  // T
    Density* out;
    SpinMatrix sink;
    SpinMatrix source;
    int half;                       // outer sites of one parity
};
// out = tr[S T^dag]
struct ContractColours {
    const Fermions* quark[3];
    const Fermions* antiquark[3];
    Density* out;
    int half;                       // outer sites of one parity
};
// Sums 0, 1: a density times phases over the sites of one time slice
struct TimeSliceSum {
    Geometry g;
    const Density* density;
    const Doubles* phases;          // [x, y, z][coordinate in a lane's box][re, im][lane]
    const Doubles* mask;            // [position of a lane in t][lane]: 1 if this is the lane's position, else 0
    int parity;
    int time;                       // time in a lane's box
    int lane_time;                  // position in t of the lanes to sum
    int sites;                      // outer sites per parity and time slice
};
