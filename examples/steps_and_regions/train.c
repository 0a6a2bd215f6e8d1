/* Two epochs of training without the network: each step works, averages a gradient of 1 MiB, and at
 * the end of an epoch all ranks evaluate. Which of that the time in MPI belongs to, only the
 * program knows: it says so. */
#include <mpi.h>
#include <stdlib.h>

#include <commprof.h>

enum { EPOCHS = 2, STEPS = 20, PARAMETERS = 1 << 18 };

static float *gradient;

static void forward_and_backward(void)
{
    for (int repeat = 0; repeat < 4; repeat++)
        for (int i = 0; i < PARAMETERS; i++)
            gradient[i] = gradient[i] * 0.5f + 1.0f;
}

static void step(void)
{
    commprof_step();
    forward_and_backward();
    commprof_region_begin("average gradients");
    MPI_Allreduce(MPI_IN_PLACE, gradient, PARAMETERS, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    commprof_region_end();
}

static void evaluate(void)
{
    double loss = gradient[0], losses;
    commprof_region_begin("evaluate");
    MPI_Allreduce(&loss, &losses, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    commprof_region_end();
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    gradient = calloc(PARAMETERS, sizeof *gradient);
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        commprof_region_begin("epoch");
        for (int i = 0; i < STEPS; i++)
            step();
        evaluate();
        commprof_region_end();
    }
    free(gradient);
    MPI_Finalize();
    return 0;
}
