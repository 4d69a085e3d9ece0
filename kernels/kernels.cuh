// All kernels, by family. SITE(family, name, arguments, expression) is called once per site. SUM(family, name,
// arguments, sums, expression) also adds to sums over sites. TEAM(family, name, arguments, work) is called for teams of
// threads (team.cuh).
#pragma once
#include "blas.cuh"
#include "clover.cuh"
#include "coarse.cuh"
#include "coarse_gcr.cuh"
#include "contraction.cuh"
#include "domain_wall.cuh"
#include "doublet.cuh"
#include "faces.cuh"
#include "flow.cuh"
#include "force.cuh"
#include "gauge.cuh"
#include "halo.cuh"
#include "line.cuh"
#include "multigrid.cuh"
#include "random.cuh"
#include "ranks.cuh"
#include "schwarz.cuh"
#include "staggered.cuh"
#include "staples.cuh"
#include "stout.cuh"
#include "unitary.cuh"
#include "wilson.cuh"

#define EVERY_PRECISION(SITE, SUM, TEAM) BLAS_KERNELS(SITE, SUM) DOMAIN_WALL_KERNELS(SITE, SUM, TEAM) DOUBLET_KERNELS(SITE, SUM, TEAM) FACES_KERNELS(SITE, SUM) IMPORT_KERNELS(SITE, SUM) MULTIGRID_FIELD_KERNELS(SITE, SUM) SCHWARZ_KERNELS(SITE, SUM) STAGGERED_KERNELS(SITE, SUM) WILSON_KERNELS(SITE, SUM)
#define FLOATING(SITE, SUM) HALO_KERNELS(SITE, SUM) RANDOM_KERNELS(SITE, SUM)
#define DOUBLE_ONLY(SITE, SUM) GAUGE_KERNELS(SITE, SUM) RANKS_DOUBLE_KERNELS(SITE, SUM) HALO_DOUBLE_KERNELS(SITE, SUM) RANDOM_DOUBLE_KERNELS(SITE, SUM) CLOVER_KERNELS(SITE, SUM) FORCE_KERNELS(SITE, SUM) STOUT_KERNELS(SITE, SUM) FLOW_KERNELS(SITE, SUM) \
    DOMAIN_WALL_DOUBLE_KERNELS(SITE, SUM) DOUBLET_DOUBLE_KERNELS(SITE, SUM) STAGGERED_DOUBLE_KERNELS(SITE, SUM) STAPLE_KERNELS(SITE, SUM) UNITARY_KERNELS(SITE, SUM) \
    CONTRACTION_KERNELS(SITE, SUM) LINE_KERNELS(SITE, SUM)
#define HALF_ONLY(SITE, SUM, TEAM) HALF_BLAS_KERNELS(SITE, SUM) HALF_FACES_KERNELS(SITE, SUM) MULTIGRID_KERNELS(SITE, SUM, TEAM) COARSE_KERNELS(SITE, SUM, TEAM) COARSE_GCR_KERNELS(SITE, SUM, TEAM)

// The kernels of this precision: HMC_DOUBLE, HMC_HALF or neither.
#if defined HMC_DOUBLE
#define ALL_KERNELS(SITE, SUM, TEAM) EVERY_PRECISION(SITE, SUM, TEAM) FLOATING(SITE, SUM) DOUBLE_ONLY(SITE, SUM)
#elif defined HMC_HALF
#define ALL_KERNELS(SITE, SUM, TEAM) EVERY_PRECISION(SITE, SUM, TEAM) HALF_ONLY(SITE, SUM, TEAM)
#else
#define ALL_KERNELS(SITE, SUM, TEAM) EVERY_PRECISION(SITE, SUM, TEAM) FLOATING(SITE, SUM)
#endif
