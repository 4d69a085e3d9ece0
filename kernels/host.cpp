// The kernels for one instruction set, lane count and precision as a table of functions. Compiled with HMC_LANES,
// HMC_REGISTER (bytes of a SIMD register), HMC_REAL, HMC_DOUBLE or HMC_HALF, and HMC_TABLE (the table's name). With
// HMC_EMULATION, the kernels run as on a GPU.
#include <cstddef>
#include <sched.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

// Everything has internal linkage, since objects for other instruction sets use the same names.
namespace {
#include "kernels.cuh"
#if ON_GPU
using F = HMC_REAL;
#else
using F = typename lanes_of<HMC_REAL, HMC_LANES>::type;
#endif

void raise_all(const Geometry& g, const Outgoing& a, int begin, int end) {
    if (a.chunk == 1) return;
    for (int block = begin / FACE_CHUNK; block * FACE_CHUNK < end; ++block)
        for (int thread = 0; thread <= 8; ++thread) raise_packed(g, a, block, thread);
}
// What an emulated GPU does before the sites or teams from `begin` on: the first of a launch of hops come after what it packs.
template <class A> void before_blocks(const A& a, int begin) {
    if constexpr (GPU && !same<decltype(hop_of(a)), NoHop>) {
        const auto& hop = hop_of(a);
        const int packed = begin == 0 ? hop.places.packing * FACE_CHUNK : 0;
        for (int i = 0; i < packed; ++i) pack_site<F>(hop, i);
        raise_all(hop.g, hop.places.packs, 0, packed);
    }
}
// What an emulated GPU does when the blocks of sites begin..end are done.
template <class A> void after_blocks(const A&, int, int) {}
void after_blocks(const WilsonFace& a, int begin, int end) { raise_all(a.g, a.faces, begin, end); }
void after_blocks(const StaggeredFace& a, int begin, int end) { raise_all(a.g, a.faces, begin, end); }
void after_blocks(const LinkFace& a, int begin, int end) { raise_all(a.g, a.faces, begin, end); }
void after_blocks(const StaggeredLinkFace& a, int begin, int end) { raise_all(a.g, a.faces, begin, end); }

#define SITE(FAMILY, NAME, ARGS, EXPRESSION)                                          \
    void run_##NAME(const void* args, int begin, int end, long long*) {               \
        const ARGS a = *static_cast<const ARGS*>(args);                               \
        before_blocks(a, begin);                                                      \
        for (int s = begin; s < end; ++s) EXPRESSION(a, s);                           \
        if constexpr (GPU) after_blocks(a, begin, end);                               \
    }
#define SUM(FAMILY, NAME, ARGS, COUNT, EXPRESSION)                                    \
    void run_##NAME(const void* args, int begin, int end, long long* words) {         \
        const ARGS a = *static_cast<const ARGS*>(args);                               \
        Accumulator sum;                                                              \
        sum.clear();                                                                  \
        for (int s = begin; s < end;) {                                               \
            const int stop = end - s > CARRY_SITES ? s + CARRY_SITES : end;           \
            for (; s < stop; ++s) EXPRESSION(a, s, sum);                              \
            sum.carry();                                                              \
        }                                                                             \
        for (int k = 0; k < COUNT * WORDS; ++k) words[k] = sum.total(k / WORDS, k % WORDS); \
        words[COUNT * WORDS] = sum.max;                                               \
    }
#define TEAM(FAMILY, NAME, ARGS, WORK)                                                \
    void run_##NAME(const void* args, int begin, int end, long long* shared) {        \
        const ARGS a = *static_cast<const ARGS*>(args);                               \
        before_blocks(a, begin);                                                      \
        for (int team = begin; team < end; ++team) run_phases(WORK, a, team, reinterpret_cast<F*>(shared)); \
    }
ALL_KERNELS(SITE, SUM, TEAM)
#undef SITE
#undef SUM
#undef TEAM

struct Entry {
    const char* family;
    const char* name;
    const char* args;
    const char* expression;
    unsigned long args_size;
    long long sums;  // -1: a kernel without sums, -2: a kernel of teams
    void (*run)(const void*, int, int, long long*);
};
#define SITE(FAMILY, NAME, ARGS, EXPRESSION) {#FAMILY, #NAME, #ARGS, #EXPRESSION, sizeof(ARGS), -1, run_##NAME},
#define SUM(FAMILY, NAME, ARGS, COUNT, EXPRESSION) {#FAMILY, #NAME, #ARGS, #EXPRESSION, sizeof(ARGS), COUNT, run_##NAME},
#define TEAM(FAMILY, NAME, ARGS, WORK) {#FAMILY, #NAME, #ARGS, #WORK, sizeof(ARGS), -2, run_##NAME},
}  // namespace

extern "C" const Entry HMC_TABLE[] = {
    ALL_KERNELS(SITE, SUM, TEAM)
    {nullptr, nullptr, nullptr, nullptr, 0, 0, nullptr}};
#include "args_check.h"
