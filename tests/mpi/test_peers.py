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


def test_rank_0_receives_from_all_others_whoever_came_first(profile):
    run = profile("peers", 4)
    assert run.peers(0) == ring(0) | itself(0) | {
        Peer("MPI_Recv", "received", 1, 1, 4),
        Peer("MPI_Recv", "received", 2, 1, 8),
        Peer("MPI_Recv", "received", 3, 1, 12),
        Peer("MPI_Irecv", "received", 1, 1, 44),
        Peer("MPI_Irecv", "received", 2, 1, 48),
        Peer("MPI_Irecv", "received", 3, 1, 52),
        Peer("MPI_Send_init", "sent", 1, 2, 56),
    }


def test_rank_1_sends_to_rank_0_and_receives_from_it_within_their_pair(profile):
    run = profile("peers", 4)
    assert run.peers(1) == ring(1) | itself(1) | {
        Peer("MPI_Send", "sent", 0, 1, 4),
        Peer("MPI_Isend", "sent", 0, 1, 44),
        Peer("MPI_Mrecv", "received", 0, 2, 56),
    }


def test_rank_2_starts_a_persistent_send_twice_within_its_pair(profile):
    run = profile("peers", 4)
    assert run.peers(2) == ring(2) | itself(2) | {
        Peer("MPI_Send", "sent", 0, 1, 8),
        Peer("MPI_Isend", "sent", 0, 1, 48),
        Peer("MPI_Send_init", "sent", 3, 2, 56),
    }


def test_rank_3_receives_from_rank_2_within_their_pair(profile):
    run = profile("peers", 4)
    assert run.peers(3) == ring(3) | itself(3) | {
        Peer("MPI_Send", "sent", 0, 1, 12),
        Peer("MPI_Isend", "sent", 0, 1, 52),
        Peer("MPI_Mrecv", "received", 2, 2, 56),
    }


def test_bytes_sent_are_bytes_received_between_any_two_ranks(profile):
    run = profile("peers", 4)
    total = "SELECT peer, SUM(bytes) FROM peer WHERE direction = :direction GROUP BY peer"
    sent = {(a, b): bytes for a in range(4) for b, bytes in run.query(a, total, direction="sent")}
    received = {
        (a, b): bytes for b in range(4) for a, bytes in run.query(b, total, direction="received")
    }
    assert sent == received


def test_collectives_have_no_peers(profile):
    run = profile("collectives", 4)
    assert run.peers(0) == set()
