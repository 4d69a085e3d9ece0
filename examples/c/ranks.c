/* A configuration on the ranks of a program with MPI of its own: each has its box.
 *
 *   mpicc examples/c/ranks.c $(pkg-config --cflags --libs hmc) -o ranks && mpirun -n 2 ./ranks CFG COPY.ildg
 *
 * One JSON object, by the first rank. */
#include <hmc.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int code) {
    if (code != HMC_OK) {
        fprintf(stderr, "error %d: %s\n", code, hmc_error());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

int main(int count, char **arguments) {
    int threads, rank;
    MPI_Init_thread(&count, &arguments, MPI_THREAD_SERIALIZED, &threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (count != 3)
        MPI_Abort(MPI_COMM_WORLD, 2);

    MPI_Comm comm = MPI_COMM_WORLD;
    hmc_session *session;
    hmc_links *links, *copy;
    size_t extents[4], local[4], offset[4];
    check(hmc_open_mpi("[parallel]\ndevice = \"cpu\"\n", &comm, &session));
    check(hmc_links_read(session, arguments[1], &links));
    check(hmc_links_extents(links, extents));
    check(hmc_box(session, extents, local, offset));

    /* This rank's links, a configuration made of them by all ranks, and a file written by all. */
    size_t reals = 72 * local[0] * local[1] * local[2] * local[3];
    double *u = malloc(reals * sizeof(double)), plaquette;
    if (!u)
        MPI_Abort(MPI_COMM_WORLD, 1);
    uint64_t checksum;
    char *json;
    check(hmc_links_get(links, u, reals));
    check(hmc_links_new(session, extents, u, reals, &copy));
    check(hmc_links_plaquette(copy, &plaquette));
    check(hmc_links_checksum(copy, &checksum));
    check(hmc_links_write(copy, arguments[2], NULL, 1));
    check(hmc_links_measure(links,
                            "[fermion.light]\naction = \"hisq\"\n"
                            "[measure.correlator.pion]\nfermion = \"light\"\nmass = 0.2\n",
                            &json));
    if (rank == 0)
        printf("{\"local\":[%zu,%zu,%zu,%zu],\"plaquette\":%.17g,\"links_checksum\":\"%016llx\",\"measured\":%s}\n",
               local[0], local[1], local[2], local[3], plaquette, (unsigned long long)checksum, json);
    hmc_free_text(json);
    hmc_links_free(copy);
    hmc_links_free(links);
    hmc_close(session);
    free(u);
    MPI_Finalize();
    return 0;
}
