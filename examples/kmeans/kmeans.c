/* K-means over the ranks of an MPI job: every rank has points of its own, all ranks agree on the
 * centres.
 *
 * An iteration assigns each point to its nearest centre and adds up, over all ranks, the points and
 * their number for each centre; the quotients are the new centres. It ends when no point has
 * changed its centre.
 *
 *     kmeans [points per
 * rank] */
#include "../random_numbers.h"

#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { CLUSTERS = 8, DIMENSIONS = 16, MAX_ITERATIONS = 500 };

struct point {
    double x[DIMENSIONS];
};

struct clusters {
    struct point centre[CLUSTERS];
    int64_t points[CLUSTERS]; /* of all ranks */
};

/* Points around CLUSTERS places that are the same on all ranks; which points, is each rank's
 * own. */
static void make_points(struct point *points, int64_t count, int rank)
{
    uint64_t shared_state = 1, own_state = 1000 + (uint64_t)rank;
    struct point place[CLUSTERS];
    for (int k = 0; k < CLUSTERS; k++)
        for (int d = 0; d < DIMENSIONS; d++)
            place[k].x[d] = 4 * random_uniform(&shared_state);

    for (int64_t i = 0; i < count; i++) {
        int k = (int)(random_uniform(&own_state) * CLUSTERS);
        for (int d = 0; d < DIMENSIONS; d++)
            points[i].x[d] = place[k].x[d] + random_normal(&own_state);
    }
}

static int nearest_centre(const struct clusters *clusters, const struct point *point)
{
    int nearest = 0;
    double least = INFINITY;
    for (int k = 0; k < CLUSTERS; k++) {
        double square = 0;
        for (int d = 0; d < DIMENSIONS; d++) {
            double difference = point->x[d] - clusters->centre[k].x[d];
            square += difference * difference;
        }
        if (square < least) {
            least = square;
            nearest = k;
        }
    }
    return nearest;
}

/* Moves each point to its nearest centre and each centre to the middle of its points. Returns how
 * many points, of all ranks, have changed. */
static int64_t iterate(struct clusters *clusters, const struct point *points, int *centre_of,
                       int64_t count)
{
    struct clusters sums = {0};
    int64_t changed = 0;
    for (int64_t i = 0; i < count; i++) {
        int k = nearest_centre(clusters, &points[i]);
        changed += k != centre_of[i];
        centre_of[i] = k;
        sums.points[k]++;
        for (int d = 0; d < DIMENSIONS; d++)
            sums.centre[k].x[d] += points[i].x[d];
    }

    MPI_Allreduce(MPI_IN_PLACE, sums.centre, CLUSTERS * DIMENSIONS, MPI_DOUBLE, MPI_SUM,
                  MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, sums.points, CLUSTERS, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &changed, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);

    for (int k = 0; k < CLUSTERS; k++) {
        clusters->points[k] = sums.points[k];
        for (int d = 0; d < DIMENSIONS && sums.points[k] > 0; d++)
            clusters->centre[k].x[d] = sums.centre[k].x[d] / (double)sums.points[k];
    }
    return changed;
}

static void print_clusters(const struct clusters *clusters)
{
    for (int k = 0; k < CLUSTERS; k++) {
        printf("%9lld points around", (long long)clusters->points[k]);
        for (int d = 0; d < DIMENSIONS; d++)
            printf(" %5.2f", clusters->centre[k].x[d]);
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);

    int64_t count = argc > 1 ? atoll(argv[1]) : 200000;
    if (count < CLUSTERS) {
        fprintf(stderr, "kmeans: at least %d points, not %s\n", CLUSTERS, argv[1]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    struct point *points = malloc((size_t)count * sizeof *points);
    int *centre_of = malloc((size_t)count * sizeof *centre_of);
    if (!points || !centre_of) {
        fprintf(stderr, "kmeans: no memory for %lld points\n", (long long)count);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    make_points(points, count, rank);
    for (int64_t i = 0; i < count; i++)
        centre_of[i] = -1; /* none yet */

    struct clusters clusters = {0};
    for (int k = 0; k < CLUSTERS; k++)
        clusters.centre[k] = points[k];
    MPI_Bcast(clusters.centre, CLUSTERS * DIMENSIONS, MPI_DOUBLE, 0, MPI_COMM_WORLD);

    int64_t changed = 1;
    int iterations = 0;
    double start_s = MPI_Wtime();
    while (changed > 0 && iterations < MAX_ITERATIONS) {
        changed = iterate(&clusters, points, centre_of, count);
        iterations++;
    }

    if (rank == 0) {
        print_clusters(&clusters);
        printf("%s after %d iterations, %.2f s\n", changed > 0 ? "stopped" : "converged",
               iterations, MPI_Wtime() - start_s);
    }
    free(centre_of);
    free(points);
    MPI_Finalize();
    return 0;
}
