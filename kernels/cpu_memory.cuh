// The memory of fields on a CPU (site.cuh): [site][block][real], vectors of all lanes.
#pragma once

template <int N, int NB, class F> HD void load_plain(F* r, const void* field, int block, int site, int) {
    const F* p = (const F*)field + ((long)site * NB + block) * N;
    for (int k = 0; k < N; ++k) r[k] = p[k];
}
template <int N, int NB, class F> HD void load_ghost(F* r, const void* field, int block, int site, int stride) {
    load_plain<N, NB>(r, field, block, site, stride);
}
template <int N, int NB, class F> HD void load_own(F* r, const void* field, int block, int site, int stride) {
    load_plain<N, NB>(r, field, block, site, stride);
}
template <int N, int NB, class F> HD void store_plain(void* field, int block, int site, int, const F* r) {
    F* p = (F*)field + ((long)site * NB + block) * N;
    for (int k = 0; k < N; ++k) p[k] = r[k];
}
template <class F> HD unsigned long place(int blocks, int reals, int block, int real, int site, int, int l) {
    return (((unsigned long)site * blocks + block) * reals + real) * lane<F>::W + l;
}

template <int N, class F> HD void load_shorts(F* r, const void* from) {
    constexpr int W = lane<F>::W;
    const short* p = (const short*)from;
    for (int k = 0; k < N; ++k) {
        if constexpr (W == 1) {
            r[k] = p[k];
        } else {
            typename vector_of<short, W>::type v;
            __builtin_memcpy(&v, p + k * W, sizeof v);
            r[k] = __builtin_convertvector(v, F);
        }
    }
}
template <int N, class F> HD void store_shorts(void* to, const F* r) {
    constexpr int W = lane<F>::W;
    short* p = (short*)to;
    for (int k = 0; k < N; ++k) {
        const F t = r[k] + splat<F>(ROUND);
        if constexpr (W == 1) {
            int bits;
            __builtin_memcpy(&bits, &t, 4);
            p[k] = short(bits);
        } else {
            typename vector_of<int, W>::type bits;
            __builtin_memcpy(&bits, &t, sizeof bits);
            const auto v = __builtin_convertvector(bits, typename vector_of<short COMMA W>::type);
            __builtin_memcpy(p + k * W, &v, sizeof v);
        }
    }
}
template <int N, int NB, class F> HD void load_shorts(F* r, const void* field, int block, int site, int) {
    load_shorts<N>(r, (const char*)field + ((long)site * NB + block) * short_bytes<N, F>());
}
template <int N, int NB, class F> HD void store_shorts(void* field, int block, int site, int, const F* r) {
    store_shorts<N>((char*)field + ((long)site * NB + block) * short_bytes<N, F>(), r);
}

template <int N, int NB, class F> HD void load_unit_half(F* r, const void* field, int block, int site, int stride) {
    load_shorts<N, NB>(r, field, block, site, stride);
    for (int k = 0; k < N; ++k) r[k] = splat<F>(1 / STEPS) * r[k];
}
template <int N, int NB, class F> HD F load_unscaled_half(F* r, const void* field, int block, int site, int) {
    const char* from = (const char*)field + ((long)site * NB + block) * half_bytes<N, F>();
    load_shorts<N>(r, from);
    F norm;
    __builtin_memcpy(&norm, from + short_bytes<N, F>(), sizeof norm);
    return splat<F>(1 / STEPS) * norm;
}
template <int N, int NB, class F> HD void store_half(void* field, int block, int site, int, const F* q, F norm) {
    char* to = (char*)field + ((long)site * NB + block) * half_bytes<N, F>();
    store_shorts<N>(to, q);
    __builtin_memcpy(to + short_bytes<N, F>(), &norm, sizeof norm);
}
// The greatest |r|; NaN if any is not finite, since an integer could not hold it.
template <int N, class F> HD F greatest(const F* r) {
    F norm = F{}, poison = F{};
    for (int k = 0; k < N; ++k) {
        norm = larger(absolute(r[k]), norm);
        poison = mad(F{}, r[k], poison);
    }
    return norm + poison;
}

template <class F> HD F load_ninth(const void* field, int mu, int site, int) {
    const long at = 4L * site + mu;
    F r;
    if constexpr (is_half<F>()) {
        load_shorts<1>(&r, (const char*)field + at * short_bytes<1, F>());
        return splat<F>(1 / STEPS) * r;
    }
    r = ((const F*)field)[at];
    return r;
}
template <class F> HD void store_ninth(void* field, int mu, int site, int, F r) {
    const long at = 4L * site + mu;
    if constexpr (is_half<F>()) {
        const F q = splat<F>(STEPS) * r;
        store_shorts<1>((char*)field + at * short_bytes<1, F>(), &q);
    } else {
        ((F*)field)[at] = r;
    }
}
