// All kernels, by family. SITE(family, name, arguments, expression) is one call a site;
// SUM(family, name, arguments, sums, expression) adds to sums over sites as well.
#pragma once
#include "blas.cuh"
#include "clover.cuh"
#include "force.cuh"
#include "gauge.cuh"
#include "halo.cuh"
#include "random.cuh"
#include "stout.cuh"
#include "wilson.cuh"

#define BOTH_PRECISIONS(SITE, SUM) BLAS_KERNELS(SITE, SUM) HALO_KERNELS(SITE, SUM) RANDOM_KERNELS(SITE, SUM) WILSON_KERNELS(SITE, SUM)
#define DOUBLE_ONLY(SITE, SUM) GAUGE_KERNELS(SITE, SUM) CLOVER_KERNELS(SITE, SUM) FORCE_KERNELS(SITE, SUM) STOUT_KERNELS(SITE, SUM)
