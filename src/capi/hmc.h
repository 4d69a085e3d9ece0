/* The interface of hmc to C. Made of src/capi by tests/suite/capi/header.rs; docs/c.md tells more.
 *
 * Functions return a code; hmc_error() says why one failed. Null pointers and wrong numbers of reals are refused.
 * Arguments are never written unless said. Sites are [t][z][y][x], x fastest; complex numbers are [re, im]; mu = x, y, z, t.
 *
 * Any thread may call. Calls of one session take turns; a quark serves one call at a time, and what is freed is in no use.
 * Functions use the threads of [parallel].
 *
 * hmc_open() never calls MPI. hmc_open_mpi() takes a communicator of a program that has called MPI_Init_thread(). */
#ifndef HMC_H
#define HMC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Done. */
#define HMC_OK 0

/* A file, the device or the ranks failed. */
#define HMC_FAILED 1

/* An argument or a text is wrong. Nothing was done. */
#define HMC_REFUSED 2

/* A solver did not reach its residual. */
#define HMC_NOT_CONVERGED 3

/* A fault of the library. The session, and all that was made with it, refuses further work. */
#define HMC_FAULT 4

/* The message of the last function that failed on this thread; empty if none has. It is valid until the next one fails. */
const char *hmc_error(void);

/* The version of the library, such as "0.2.0". */
const char *hmc_version(void);

/* Threads, device and ranks. */
typedef struct hmc_session hmc_session;

/* Opens a session of this process alone.
 *
 * `machine`: a TOML text with `[parallel]`, of which `device`, `threads` and `lanes` count; null for the defaults. */
int hmc_open(const char *machine, hmc_session **session);

/* Opens a session on the ranks of a communicator, collectively, as are all calls of what is made with it.
 *
 * `comm`: the address of an MPI_Comm. The caller has started MPI with MPI_THREAD_SERIALIZED or more, closes the session
 * on all ranks before MPI_Finalize, and frees all that was made with it. */
int hmc_open_mpi(const char *machine, const void *comm, hmc_session **session);

/* Closes a session. What was made with it stays valid until it is freed itself. Null is allowed. */
void hmc_close(hmc_session *session);

/* The lines, each with its end, that warn of what was odd in texts and files since the last call; often empty. */
int hmc_warnings(const hmc_session *session, char **text);

/* Frees a text that a function gave. Null is allowed. */
void hmc_free_text(char *text);

/* The box that this rank has of a lattice: its extents and the coordinates of its first site. Alone it is the lattice. */
int hmc_box(const hmc_session *session, const size_t *extents, size_t *local, size_t *offset);

/* A configuration. */
typedef struct hmc_links hmc_links;

/* Reads a configuration of any format, found by its content, and verifies it. */
int hmc_links_read(const hmc_session *session, const char *path, hmc_links **links);

/* Makes a configuration of the caller's links, which are copied and must be in SU(3) to 1e-4.
 *
 * `reals` is 72 times the sites of this rank's box: `[t][z][y][x][mu][row][column][re, im]`. */
int hmc_links_new(const hmc_session *session, const size_t *extents, const double *u, size_t reals, hmc_links **links);

/* Writes a configuration and reads it back.
 *
 * `format`: "hdf5", "ildg", "nersc", "milc" or "openqcd"; null: by the ending of `path`, .h5, .ildg, .nersc, .milc or
 * .openqcd. What is there is replaced only if `overwrite` is not 0. */
int hmc_links_write(const hmc_links *links, const char *path, const char *format, int overwrite);

/* The extents of the lattice, x to t. */
int hmc_links_extents(const hmc_links *links, size_t *extents);

/* Copies the links of this rank's box to the caller, in the order of `hmc_links_new`. */
int hmc_links_get(const hmc_links *links, double *u, size_t reals);

/* The mean over sites and planes of Re tr P / 3. */
int hmc_links_plaquette(const hmc_links *links, double *plaquette);

/* A number that depends on all bits of the links and on nothing else: `links_checksum` of `hmc info`. */
int hmc_links_checksum(const hmc_links *links, uint64_t *checksum);

/* What is known of the configuration, as a JSON object: for a file that of `hmc info --json`. */
int hmc_links_info(const hmc_links *links, char **json);

/* The gauge action, and its force unless `force` is null.
 *
 * `toml`: a text with `[gauge]`. `reals` is 32 times the sites of this rank's box, for F_a: `[t][z][y][x][mu][a]`, a = 1 to 8. */
int hmc_links_gauge(const hmc_links *links, const char *toml, double *action, double *force, size_t reals);

/* Measures, and gives a JSON object: a line of `hmc measure --json` without `file`.
 *
 * `toml`: a text as `hmc measure` takes it, with `[measure]` and, for quarks, `[fermion.NAME]`. */
int hmc_links_measure(const hmc_links *links, const char *toml, char **json);

/* Frees a configuration. Quarks on it stay valid. Null is allowed. */
void hmc_links_free(hmc_links *links);

/* A quark on the links of a configuration. */
typedef struct hmc_quark hmc_quark;

/* What a solve took: sums over right-hand sides, but for the residual. */
typedef struct hmc_solved {
    /* The greatest residual of the systems that were solved, in double precision. */
    double residual;
    /* Wall time. */
    double seconds;
    /* Iterations. */
    uint64_t iterations;
    /* How often a precision or a method failed, and a higher one or another took over. */
    uint64_t fallbacks;
} hmc_solved;

/* Makes a quark on links, which are copied.
 *
 * `toml`: a text with `[fermion.NAME]` as in an input, and `[quark]` with `fermion = "NAME"`, `residual`, and `mass`,
 * `twisted_mass` or `naik_epsilon` where a measurement sets them. */
int hmc_quark_new(const hmc_links *links, const char *toml, hmc_quark **quark);

/* The shape of the fields: complex numbers per site, 12 or 3, and slices of the fields on which M acts, 1 but for
 * domain-wall quarks. */
int hmc_quark_shape(const hmc_quark *quark, size_t *components, size_t *slices);

/* out = M x, or M^dag x if `dagger` is not 0. `out` may be `x`.
 *
 * `reals` is 2 `components` `slices` times the sites of this rank's box: `[slice][t][z][y][x][spin][colour][re, im]`. */
int hmc_quark_apply(hmc_quark *quark, int dagger, const double *x, double *out, size_t reals);

/* Solves M x = b, for one or several right-hand sides one behind the other. `x` may be `b`, `solved` may be null.
 *
 * `reals` is that of `hmc_quark_apply` times the number of right-hand sides. */
int hmc_quark_solve(hmc_quark *quark, const double *b, double *x, size_t reals, hmc_solved *solved);

/* As `hmc_quark_solve` for fields without slices: with domain-wall quarks the quark from wall to wall.
 *
 * `reals` is 2 `components` times the sites of this rank's box, times the number of right-hand sides. */
int hmc_quark_propagate(hmc_quark *quark, const double *b, double *x, size_t reals, hmc_solved *solved);

/* The propagator from a point, its coordinates x to t: `[component][t][z][y][x][spin][colour][re, im]`, where the first
 * index is 3 spin + colour of the source. `solved` may be null.
 *
 * `reals` is 2 `components`^2 times the sites of this rank's box. */
int hmc_quark_propagator(hmc_quark *quark, const size_t *source, double *out, size_t reals, hmc_solved *solved);

/* Frees a quark. Null is allowed. */
void hmc_quark_free(hmc_quark *quark);

#ifdef __cplusplus
}
#endif

#endif
