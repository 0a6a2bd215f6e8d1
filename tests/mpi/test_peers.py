"""Who talks to whom, in world ranks: every row that programs/peers.c must leave, and no other."""

from .harness import Peer


def ring(rank):
    """Exchanges of a rank on the communicator that counts backwards."""
    before, after = (rank - 1) % 4, (rank + 1) % 4
    return {
        Peer("MPI_Sendrecv", "sent", before, 1, 20),
        Peer("MPI_Sendrecv", "received", after, 1, 20),
        Peer("MPI_Sendrecv_replace", "sent", before, 1, 24),
        Peer("MPI_Sendrecv_replace", "received", after, 1, 24),
    }


def itself(rank):
    return {Peer("MPI_Ssend", "sent", rank, 1, 36), Peer("MPI_Irecv", "received", rank, 1, 36)}


PAIRS = {
    0: {
        Peer("MPI_Recv", "received", 1, 1, 4),
        Peer("MPI_Recv", "received", 2, 1, 8),
        Peer("MPI_Recv", "received", 3, 1, 12),
        Peer("MPI_Irecv", "received", 1, 1, 44),
        Peer("MPI_Irecv", "received", 2, 1, 48),
        Peer("MPI_Irecv", "received", 3, 1, 52),
        Peer("MPI_Send_init", "sent", 1, 2, 56),
    },
    1: {
        Peer("MPI_Send", "sent", 0, 1, 4),
        Peer("MPI_Isend", "sent", 0, 1, 44),
        Peer("MPI_Mrecv", "received", 0, 2, 56),
    },
    2: {
        Peer("MPI_Send", "sent", 0, 1, 8),
        Peer("MPI_Isend", "sent", 0, 1, 48),
        Peer("MPI_Send_init", "sent", 3, 2, 56),
    },
    3: {
        Peer("MPI_Send", "sent", 0, 1, 12),
        Peer("MPI_Isend", "sent", 0, 1, 52),
        Peer("MPI_Mrecv", "received", 2, 2, 56),
    },
}


def test_every_message_is_counted_with_the_world_rank_of_its_partner(profile):
    run = profile("peers", 4)
    assert {rank: run.peers(rank) for rank in PAIRS} == {
        rank: ring(rank) | itself(rank) | messages for rank, messages in PAIRS.items()
    }


def test_collectives_have_no_peers(profile):
    run = profile("collectives", 4)
    assert run.peers(0) == set()
