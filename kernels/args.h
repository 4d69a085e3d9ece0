// Arguments of the kernels, and the numbers that kernels and the program share. This file is their only definition: the
// build makes the Rust side from it and checks sizes and offsets on both sides. Grammar, one item a line:
//
//   struct KIND;                     a kind of device memory
//   constexpr int NAME = PRODUCT;
//   enum NAME : int { A, B = 2 };
//   struct NAME { TYPE NAME; TYPE NAME[N]; };   TYPE is int, double, an enum or struct above, KIND* or const KIND*
//
// A kernel has the name of its struct (GaugeForce: gauge_force), with a number behind it if it is a template on one
// (Axpy: axpy_24), which is a value of an enum below. A pointer is never null unless its comment begins with "optional".
// A comment that begins with "constant" marks what a GPU's compiler may take as a constant of the kernel.
#pragma once

struct Matrices;  // 3x3 matrices in double, both parities, with borders: links, gradients, insertions
struct Links;     // an operator's own links of one parity, in its precision
struct Algebra;   // 8 doubles a link, both parities: momenta, forces
struct Fermions;  // spinors or colour vectors of one parity
struct Clover;    // packed clover blocks: 2 x 36 reals a site
struct Density;   // a complex number in double on each site of one parity
struct Halo;      // what crosses ranks: wires and ghost zones
struct Sites;     // any field of one parity, real by real
struct Reals;     // a table in the kernel's precision
struct Doubles;   // a table in double
struct Ints;      // a table of int

constexpr int WORDS = 6;            // words of an exact sum: its bins, and the count of what they do not hold
constexpr int MAX_SUMS = 4;         // sums of a kernel; fields of the kernels on several
constexpr int CG_STEPS = 16;        // steps of a launch of cg_steps
constexpr int PART = 32;            // sites of a Schwarz block that are summed first
constexpr int TEAM_SITES = 16;      // sites of a team of the fifth dimension
constexpr int TEAM_REALS = 25 * TEAM_SITES;  // what it shares for each slice: its sites' reals, and on a GPU a gap, so that two slices of a warp lie in different banks

// What is done with the hopping term: scale D in | scale C D in | C x - scale D in | x - scale C D in | shift x - scale D in,
// where C is the packed clover field given: A or its inverse. The last three may have a twisted mass: + i twist gamma_5 x,
// in the middle one to the sum that C multiplies.
enum Epilogue : int { PLAIN, CLOVER, CLOVER_MINUS, MINUS_CLOVER, SHIFT };
// Reals of a site of a fermion field.
enum SiteReals : int { DIRAC = 24, COLOUR = 6 };
// Reals of a link of SU(3): all, two rows, or eight.
enum LinkReals : int { LINK_18 = 18, LINK_12 = 12, LINK_8 = 8 };
// Reals of a long link of staggered quarks: all, two rows and the determinant, or eight and the determinant's phase.
enum LongReals : int { LONG_18 = 18, LONG_14 = 14, LONG_9 = 9 };

// A rank's box as its lanes see it: coordinates are those of one lane's box ("outer").
struct Geometry {
    int outer[4];             // extents of a lane's box
    int border[4];            // ghost layers kept around link fields: 0 where the direction is not cut
    int lanes[4];             // lanes in each direction
    int offset[4];            // global coordinates of the rank's first site
    int global[4];            // extents of the lattice
    int half;                 // outer sites of one parity
    int half_bordered;        // the same with the borders of link fields
    const Ints* permutation;  // [mu][forward, backward][lane]: the neighbouring lane
};

#include "args_fields.h"
#include "args_gauge.h"
#include "args_quarks.h"
