// The type F: the scalar of a GPU thread, or the SIMD vector of a CPU core. Site kernels are templates on F. W =
// lane<F>::W lanes work on W sites with equal outer coordinates.
#pragma once
#include "platform.cuh"

template <class F> HD F absolute(F x) { return larger(x, -x); }

// Whether two types are the same; a pointer cast that keeps const.
template <class A, class B> constexpr bool same = false;
template <class A> constexpr bool same<A, A> = true;
template <class R> HD R* pointer_like(void* p) { return (R*)p; }
template <class R> HD const R* pointer_like(const void* p) { return (const R*)p; }
