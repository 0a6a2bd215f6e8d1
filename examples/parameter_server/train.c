/* Training with the parameters on one rank: the root sends them to all, all send it their
 * gradients, it makes the step.
 *
 * A step broadcasts each layer's parameters from the root, passes a batch of the rank's own forward
 * and back, and adds up each layer's gradients at the root. Exits 1 unless the loss fell and all
 * ranks have the root's parameters in the end.
 *
 *     train [epochs [batches an
 * epoch]] */
#include "../random_numbers.h"

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 3, BATCH = 32, WIDEST = 128, ROOT = 0 };
static const int width[LAYERS + 1] = {32, 128, 64, 8};
static const double learning_rate = 0.2;

/* A dense layer: one row of weights for each input, and a last one of biases. */
struct layer {
    int inputs, outputs, parameters;
    double *weights, *gradient;
    double values[BATCH][WIDEST]; /* what came out of it */
};

struct batch {
    double inputs[BATCH][WIDEST], targets[BATCH][WIDEST];
};

static double *allocate(int count)
{
    double *numbers = calloc((size_t)count, sizeof *numbers);
    if (!numbers) {
        fprintf(stderr, "train: no memory for %d numbers\n", count);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return numbers;
}

static void make_network(struct layer *network, uint64_t *random)
{
    for (int l = 0; l < LAYERS; l++) {
        struct layer *layer = &network[l];
        layer->inputs = width[l];
        layer->outputs = width[l + 1];
        layer->parameters = (layer->inputs + 1) * layer->outputs;
        layer->weights = allocate(layer->parameters);
        layer->gradient = allocate(layer->parameters);
        for (int i = 0; i < layer->parameters; i++)
            layer->weights[i] = random_normal(random) / sqrt(layer->inputs);
    }
}

/* A target is made of three of the inputs: a sum with a product. */
static void draw_batch(struct batch *batch, uint64_t *random)
{
    for (int b = 0; b < BATCH; b++) {
        for (int i = 0; i < width[0]; i++)
            batch->inputs[b][i] = random_normal(random);
        for (int o = 0; o < width[LAYERS]; o++)
            batch->targets[b][o] = tanh(batch->inputs[b][4 * o] +
                                        batch->inputs[b][4 * o + 1] * batch->inputs[b][4 * o + 2]);
    }
}

static void pass_forward(struct layer *layer, double (*inputs)[WIDEST])
{
    for (int b = 0; b < BATCH; b++) {
        double *values = layer->values[b];
        memcpy(values, &layer->weights[layer->inputs * layer->outputs],
               (size_t)layer->outputs * sizeof *values);
        for (int i = 0; i < layer->inputs; i++)
            for (int o = 0; o < layer->outputs; o++)
                values[o] += inputs[b][i] * layer->weights[i * layer->outputs + o];
        for (int o = 0; o < layer->outputs; o++)
            values[o] = tanh(values[o]);
    }
}

/* From the gradient of what came out of a layer (taken over) to that of its parameters and that of
 * its inputs. */
static void pass_back(struct layer *layer, double (*inputs)[WIDEST], double (*of_values)[WIDEST],
                      double (*of_inputs)[WIDEST])
{
    memset(layer->gradient, 0, (size_t)layer->parameters * sizeof *layer->gradient);
    for (int b = 0; b < BATCH; b++) {
        for (int o = 0; o < layer->outputs; o++) {
            of_values[b][o] *= 1 - layer->values[b][o] * layer->values[b][o];
            layer->gradient[layer->inputs * layer->outputs + o] += of_values[b][o];
        }
        for (int i = 0; i < layer->inputs; i++) {
            of_inputs[b][i] = 0;
            for (int o = 0; o < layer->outputs; o++) {
                layer->gradient[i * layer->outputs + o] += inputs[b][i] * of_values[b][o];
                of_inputs[b][i] += of_values[b][o] * layer->weights[i * layer->outputs + o];
            }
        }
    }
}

/* Returns the loss, the squared error of an example, and leaves the gradients in the layers. */
static double pass(struct layer *network, struct batch *batch)
{
    static double gradients[LAYERS + 1][BATCH][WIDEST];
    for (int l = 0; l < LAYERS; l++)
        pass_forward(&network[l], l == 0 ? batch->inputs : network[l - 1].values);

    double loss = 0;
    for (int b = 0; b < BATCH; b++)
        for (int o = 0; o < width[LAYERS]; o++) {
            double difference = network[LAYERS - 1].values[b][o] - batch->targets[b][o];
            gradients[LAYERS][b][o] = 2 * difference / BATCH;
            loss += difference * difference / BATCH;
        }

    for (int l = LAYERS - 1; l >= 0; l--)
        pass_back(&network[l], l == 0 ? batch->inputs : network[l - 1].values, gradients[l + 1],
                  gradients[l]);
    return loss;
}

static void broadcast_parameters(struct layer *network)
{
    for (int l = 0; l < LAYERS; l++)
        MPI_Bcast(network[l].weights, network[l].parameters, MPI_DOUBLE, ROOT, MPI_COMM_WORLD);
}

/* The last layer first, for its gradients are ready first. */
static void reduce_gradients(struct layer *network, int rank)
{
    for (int l = LAYERS - 1; l >= 0; l--) {
        double *gradient = network[l].gradient;
        MPI_Reduce(rank == ROOT ? MPI_IN_PLACE : gradient, gradient, network[l].parameters,
                   MPI_DOUBLE, MPI_SUM, ROOT, MPI_COMM_WORLD);
    }
}

static void make_step(struct layer *network, int ranks)
{
    for (int l = 0; l < LAYERS; l++)
        for (int i = 0; i < network[l].parameters; i++)
            network[l].weights[i] -= learning_rate / ranks * network[l].gradient[i];
}

/* Mean over all steps of an epoch and all ranks; known at the root. */
static double train_epoch(struct layer *network, int batches, uint64_t *random, int rank, int ranks)
{
    static struct batch batch;
    double loss = 0, all_losses = 0;
    for (int step = 0; step < batches; step++) {
        broadcast_parameters(network);
        draw_batch(&batch, random);
        loss += pass(network, &batch) / batches;
        reduce_gradients(network, rank);
        if (rank == ROOT)
            make_step(network, ranks);
    }
    MPI_Reduce(&loss, &all_losses, 1, MPI_DOUBLE, MPI_SUM, ROOT, MPI_COMM_WORLD);
    return all_losses / ranks;
}

/* Whether all ranks have the root's parameters, by their sum; known at the root. */
static int are_equal(struct layer *network, int ranks)
{
    double sum = 0, *sums = allocate(ranks);
    for (int l = 0; l < LAYERS; l++)
        for (int i = 0; i < network[l].parameters; i++)
            sum += network[l].weights[i];
    MPI_Gather(&sum, 1, MPI_DOUBLE, sums, 1, MPI_DOUBLE, ROOT, MPI_COMM_WORLD);
    int equal = 1;
    for (int rank = 0; rank < ranks; rank++)
        equal = equal && sums[rank] == sum;
    free(sums);
    return equal;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int epochs = argc > 1 ? atoi(argv[1]) : 10, batches = argc > 2 ? atoi(argv[2]) : 50;

    uint64_t random = 1000 + (uint64_t)rank; /* each rank's own: only the root's network counts */
    static struct layer network[LAYERS];
    make_network(network, &random);

    double first_loss = 0, loss = 0;
    for (int epoch = 1; epoch <= epochs; epoch++) {
        loss = train_epoch(network, batches, &random, rank, ranks);
        if (epoch == 1)
            first_loss = loss;
        if (rank == ROOT)
            printf("epoch %2d: loss %.3f\n", epoch, loss);
    }
    broadcast_parameters(network);
    int failed = 0;
    if (!are_equal(network, ranks) && rank == ROOT)
        failed = printf("train: the ranks' parameters differ\n");
    if (loss >= first_loss && rank == ROOT)
        failed = printf("train: the loss did not fall\n");

    for (int l = 0; l < LAYERS; l++) {
        free(network[l].weights);
        free(network[l].gradient);
    }
    MPI_Finalize();
    return failed ? 1 : 0;
}
