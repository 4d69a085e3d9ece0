/* A configuration from C: plaquette and checksum, a clover quark's M x = b and pion, measurements, links as an array.
 *
 *   cc examples/c/quark.c $(pkg-config --cflags --libs hmc) -lm -o quark && ./quark CFG COPY.ildg
 *
 * One JSON object: `make capi` compares its numbers with those of the program. */
#include <hmc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *QUARK =
    "[fermion.light]\n"
    "action = \"wilson-clover\"\n"
    "kappa = 0.12\n"
    "c_sw = 1.0\n"
    "[quark]\n"
    "fermion = \"light\"\n"
    "residual = 1e-12\n";

/* The same pion, by a text of `hmc measure`. */
static const char *MEASURE =
    "[fermion.light]\n"
    "action = \"wilson-clover\"\n"
    "kappa = 0.12\n"
    "c_sw = 1.0\n"
    "[measure.correlator.pion]\n"
    "fermion = \"light\"\n"
    "residual = 1e-12\n";

/* Ends the program if a function failed. */
static void check(int code) {
    if (code != HMC_OK) {
        fprintf(stderr, "error %d: %s\n", code, hmc_error());
        exit(1);
    }
}

static double *room(size_t reals) {
    double *memory = malloc(reals * sizeof(double));
    if (!memory)
        exit(1);
    return memory;
}

int main(int count, char **arguments) {
    if (count != 3) {
        fprintf(stderr, "usage: quark CFG COPY\n");
        return 2;
    }
    hmc_session *session;
    hmc_links *links, *copy;
    hmc_quark *quark;
    check(hmc_open("[parallel]\ndevice = \"cpu\"\n", &session));
    check(hmc_links_read(session, arguments[1], &links));

    size_t extents[4];
    double plaquette, action;
    uint64_t checksum;
    check(hmc_links_extents(links, extents));
    check(hmc_links_plaquette(links, &plaquette));
    check(hmc_links_checksum(links, &checksum));
    check(hmc_links_gauge(links, "[gauge]\naction = \"wilson\"\nbeta = 6.0\n", &action, NULL, 0));

    /* The links as an array, a configuration made of it, and a file in another format. */
    size_t sites = extents[0] * extents[1] * extents[2] * extents[3];
    double *u = room(72 * sites);
    check(hmc_links_get(links, u, 72 * sites));
    check(hmc_links_new(session, extents, u, 72 * sites, &copy));
    check(hmc_links_write(copy, arguments[2], NULL, 1));

    /* M x = b for b = 1 everywhere, and |b - M x| / |b|. */
    size_t components, slices;
    check(hmc_quark_new(links, QUARK, &quark));
    check(hmc_quark_shape(quark, &components, &slices));
    size_t reals = 2 * components * slices * sites;
    double *b = room(reals), *x = room(reals), *mx = room(reals);
    for (size_t n = 0; n < reals; n++)
        b[n] = n % 2 ? 0 : 1;
    hmc_solved solved;
    check(hmc_quark_solve(quark, b, x, reals, &solved));
    check(hmc_quark_apply(quark, 0, x, mx, reals));
    double rest = 0, all = 0;
    for (size_t n = 0; n < reals; n++) {
        rest += (b[n] - mx[n]) * (b[n] - mx[n]);
        all += b[n] * b[n];
    }

    /* The pion from the propagator: the sum over a time slice of |S|^2. */
    size_t origin[4] = {0, 0, 0, 0}, of_all = components * reals, in_time = reals / extents[3];
    double *s = room(of_all);
    check(hmc_quark_propagator(quark, origin, s, of_all, NULL));
    printf("{\"extents\":[%zu,%zu,%zu,%zu],\"plaquette\":%.17g,\"links_checksum\":\"%016llx\",\"action\":%.17g,"
           "\"residual\":%.3e,\"iterations\":%llu,\"pion\":[",
           extents[0], extents[1], extents[2], extents[3], plaquette, (unsigned long long)checksum, action,
           sqrt(rest / all), (unsigned long long)solved.iterations);
    for (size_t t = 0; t < extents[3]; t++) {
        double sum = 0;
        for (size_t column = 0; column < components; column++)
            for (size_t n = 0; n < in_time; n++) {
                double real = s[column * reals + t * in_time + n];
                sum += real * real;
            }
        printf("%s%.17g", t ? "," : "", sum);
    }

    /* The same measured by the library. */
    char *json;
    check(hmc_links_measure(links, MEASURE, &json));
    printf("],\"measured\":%s}\n", json);

    hmc_free_text(json);
    hmc_quark_free(quark);
    hmc_links_free(copy);
    hmc_links_free(links);
    hmc_close(session);
    free(s);
    free(mx);
    free(x);
    free(b);
    free(u);
    return 0;
}
