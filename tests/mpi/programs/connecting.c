/* Two ranks connect in every way that MPI has: through a port, through a socket and, if MPI has
 * sessions, from their groups. Each time they exchange a message on the resulting
 * inter-communicator. */
#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mpi_4.h"

#include "check.h"

static int rank;

static void exchange_and_part(MPI_Comm inter, int disconnects)
{
    int sent = rank, received = -1;
    MPI_Sendrecv(&sent, 1, MPI_INT, 0, 0, &received, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE);
    CHECK(received == 1 - rank);
    if (disconnects)
        MPI_Comm_disconnect(&inter);
    else
        MPI_Comm_free(&inter);
}

static void through_a_port(void)
{
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm inter;
    if (rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Send(port, sizeof port, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
        MPI_Close_port(port);
    } else {
        MPI_Recv(port, sizeof port, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
    }
    exchange_and_part(inter, 1);
}

static int socket_between_us(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    int one = socket(AF_INET, SOCK_STREAM, 0), accepted;
    if (rank == 1) {
        MPI_Recv(&address, sizeof address, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(connect(one, (struct sockaddr *)&address, sizeof address) == 0);
        return one;
    }
    CHECK(bind(one, (struct sockaddr *)&address, sizeof address) == 0 && listen(one, 1) == 0);
    CHECK(getsockname(one, (struct sockaddr *)&address, &bytes) == 0);
    MPI_Send(&address, sizeof address, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    CHECK((accepted = accept(one, NULL, NULL)) >= 0);
    close(one);
    return accepted;
}

static void through_a_socket(void)
{
    MPI_Comm inter;
    int socket = socket_between_us();
    CHECK(MPI_Comm_join(socket, &inter) == MPI_SUCCESS && inter != MPI_COMM_NULL);
    exchange_and_part(inter, 1);
    close(socket);
}

static void from_groups(void)
{
#if HAS_MPI_4
    MPI_Comm inter;
    MPI_Group world, local, remote;
    int other = 1 - rank;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &rank, &local);
    MPI_Group_incl(world, 1, &other, &remote);
    for (int i = 0; i < 2; i++) {
        MPI_Intercomm_create_from_groups(local, 0, remote, 0, i ? "second" : "first", MPI_INFO_NULL,
                                         MPI_ERRORS_ARE_FATAL, &inter);
        exchange_and_part(inter, 0);
    }
    MPI_Group_free(&world);
    MPI_Group_free(&local);
    MPI_Group_free(&remote);
#endif
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc > 1) {
        through_a_port();
        through_a_socket();
    } else
        from_groups();
    MPI_Finalize();
    return 0;
}
