"""Buffers and pickled objects through mpi4py, on two ranks."""

from array import array

from mpi4py import MPI

world = MPI.COMM_WORLD
other = 1 - world.rank
sent = array("i", range(100))
arrived = array("i", [0] * 100)

for _ in range(3):
    if world.rank == 0:
        world.Send([sent, 10, MPI.INT], dest=1)
    else:
        world.Recv(arrived, source=0)
requests = [world.Irecv(arrived, source=other), world.Isend([sent, 20, MPI.INT], dest=other)]
MPI.Request.Waitall(requests)
world.Bcast([sent, 30, MPI.INT], root=0)
for _ in range(4):
    world.Allreduce(MPI.IN_PLACE, [arrived, 5, MPI.INT], op=MPI.SUM)
half = world.Split(color=0, key=other)
half.Set_name("backwards")
half.Barrier()
half.Free()

if world.rank == 0:
    world.send({"loss": 0.5}, dest=1)
else:
    assert world.recv(source=0) == {"loss": 0.5}
