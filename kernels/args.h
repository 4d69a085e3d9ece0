// Arguments of the kernels, and the constants that kernels and the program share. This file is their only definition:
// the build generates the Rust side from it, and checks sizes and offsets on both sides. Grammar, one item per line:
//
//   struct KIND;                     a kind of device memory
//   constexpr int NAME = PRODUCT;
//   enum NAME : int { A, B = 2 };
//   struct NAME { TYPE NAME; TYPE NAME[N]; };   TYPE is int, float, double, an enum or struct above, KIND* or const KIND*
//
// A kernel has the name of its struct (GaugeForce: gauge_force). If it is a template on a number, which is then a value
// of an enum below, the number follows (Axpy: axpy_24). A pointer is never null unless its comment begins with
// "optional". A comment that begins with "constant" marks an argument that a GPU's compiler may take as a constant of
// the kernel.
#pragma once

struct Matrices;  // 3x3 matrices in double, both parities, with borders: links, gradients, insertions
struct Links;     // an operator's own links of one parity, in its precision
struct Algebra;   // 8 doubles per link, both parities: momenta, forces
struct Fermions;  // spinors or colour vectors of one parity
struct Clover;    // packed clover blocks: 2 x 36 reals per site
struct Density;   // a complex number in double per site of one parity
struct Halo;      // data that cross ranks: wires and ghost zones
struct Sites;     // any field of one parity, real by real
struct Reals;     // a table in the kernel's precision
struct Doubles;   // a table in double
struct Ints;      // a table of int
struct Words;     // words of exact sums
struct Addresses; // addresses of memory
struct Flags;     // numbers that other ranks raise: [2 mu + (0 from forward, 1 from backward)][chunk]

constexpr int WORDS = 6;            // words of an exact sum: its bins, and the count of values outside them
constexpr int MAX_SUMS = 4;         // maximum number of a kernel's sums, and of fields in kernels for several fields
constexpr int CG_STEPS = 16;        // maximum number of steps in a launch of cg_steps, and of shifts in one of shift_steps
constexpr int SHIFT_GROUP = 6;      // maximum number of iterations whose steps shift_steps makes
constexpr int SHIFT_NUMBERS = 96;   // CG_STEPS SHIFT_GROUP
constexpr int FACE_CHUNK = 128;     // sites of a face with a flag of their own between GPUs
constexpr int PART = 32;            // sites of a Schwarz block in a partial sum
constexpr int TEAM_SITES = 16;      // sites per team of the fifth dimension
constexpr int MOST_SLICES = 48;     // slices of a fifth dimension: in double, a team of a GPU cannot share more
constexpr int WALL_COEFFICIENTS = 12 * MOST_SLICES;  // of two matrices on slices (domain_wall.cuh)
constexpr int TEAM_REALS = 25 * TEAM_SITES;  // reals that a team shares per slice: those of its sites, and on a GPU a gap, so that two slices of a warp lie in different banks

// Epilogues: scale D in | scale B D in | B x - scale D in | x - scale B D in | shift x - scale D in, where D is the hopping
// term and B are the given packed clover blocks, A or its inverse. The last three may add + i twist gamma_5 x, in the
// middle one of them before B is applied.
enum Epilogue : int { PLAIN, CLOVER, TWISTED, CLOVER_MINUS, MINUS_CLOVER, SHIFT };
// The hops that a hopping term makes: all | those within blocks | those that leave a block in one direction.
enum HopSet : int { EVERY, WITHIN, ACROSS };
// How time ends: not | on the first and on the last slice | on the first slice and the one after the last, with given links in
// space | open on the first slice, given on the one after the last. Quark fields are zero on walls.
enum TimeWalls : int { PERIODIC, OPEN, FIXED, OPEN_FIXED };
// Reals per site of a fermion field.
enum SiteReals : int { DIRAC = 24, COLOUR = 6 };
// Reals per link of SU(3): all, two rows, or eight.
enum LinkReals : int { LINK_18 = 18, LINK_12 = 12, LINK_8 = 8 };
// Reals per long link of staggered quarks: all, two rows and the determinant, or eight and the determinant's phase.
enum LongReals : int { LONG_18 = 18, LONG_14 = 14, LONG_9 = 9 };

// A rank's box in terms of its lanes: coordinates are those of one lane's box ("outer").
struct Geometry {
    int outer[4];             // extents of a lane's box
    int border[4];            // ghost layers around link fields: 0 in directions that are not cut
    int lanes[4];             // lanes in each direction
    int offset[4];            // global coordinates of the rank's first site
    int global[4];            // extents of the lattice
    int half;                 // outer sites of one parity
    int half_bordered;        // outer sites of one parity with the borders of link fields
    const Ints* permutation;  // [mu][forward, backward][lane]: the neighbouring lane
    const Ints* to_double;    // optional if fields in double have the same lanes, else half as many on boxes twice as long: for every lane of two sites there, one behind the other, the lane here
    const Ints* from_double;  // optional likewise: for every lane here, that there
    int double_direction;     // the direction in which those boxes are longer
    int walls;                // how time ends: PERIODIC ..
    const Doubles* given;     // optional: [lower, upper wall][x, y, z][row][re, im], the links in space of walls that are fixed
};

#include "args_fields.h"
#include "args_gauge.h"
#include "args_quarks.h"
#include "args_multigrid.h"
