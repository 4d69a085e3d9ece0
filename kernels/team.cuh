// Work of a team of threads that share memory. It is divided into phases; a phase begins when all threads of the team
// have finished the phase before. The type T of the work has PHASES, threads(args), and phase<P>(args, team, thread,
// shared).
#pragma once
#include "lane.cuh"

template <int P = 0, class T, class A, class F> HD void run_phases(T work, const A& a, int team, F* shared) {
    if constexpr (P < T::PHASES) {
        if constexpr (THREADS_AT_ONCE) {
            if (P > 0) wait_for_team();
            T::template phase<P>(a, team, thread_of_team(), shared);
        } else {
            for (int thread = 0; thread < T::threads(a); ++thread) T::template phase<P>(a, team, thread, shared);
        }
        run_phases<P + 1>(work, a, team, shared);
    }
}
