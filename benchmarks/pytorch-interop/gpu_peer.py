"""A rank of a job on GPUs whose other ranks may be Tutti's; the same as GpuPeer.java.

python3 gpu_peer.py BACKEND [lazy] [sums] [messages] [groups] [exchanges] [uneven] [sparse] [empty] [host] [loss] [record];
with lazy, NCCL connects in the first operation; the other words say what to do after the sums or, with sums among them, in which
order. With host, sums of host tensors come between sums on the device. With loss, the rank of PyTorch kills itself during messages.
With record, all ranks but rank 1 begin a sum; then each writes its flight record to PREFIX + rank and ends, where PREFIX is the
variable TUTTI_FLIGHT_RECORD_DUMP. TUTTI_INIT_METHOD says where the ranks meet.
"""

import os
import signal
import sys

import torch
import torch.distributed as dist

COUNT = 1_000_003
backend, wanted = sys.argv[1], sys.argv[2:]
local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
device = torch.device("cuda", local)


def filled(count, value):
    return torch.full((count,), value, dtype=torch.int32, device=device)


def require_filled(tensor, value):
    assert torch.equal(tensor, torch.full_like(tensor, value)), (tensor, value)


def say(what):
    torch.cuda.synchronize()
    print(f"Python rank {rank} of {size}: {what}", flush=True)


def sums():
    few = torch.tensor([rank + 1.0, 10.0 * (rank + 1)], device=device)
    dist.all_reduce(few)
    total = size * (size + 1) // 2
    assert few.tolist() == [total, 10 * total], few

    base = torch.arange(COUNT, dtype=torch.int32, device=device) % 1000
    large = base * (rank + 1)
    dist.all_reduce(large)
    assert torch.equal(large, base * total)

    root = torch.tensor([7 if rank == 1 else 0], device=device)
    dist.broadcast(root, 1)
    assert root.item() == 7

    ranks = torch.zeros(size, device=device)
    dist.all_gather_into_tensor(ranks, torch.tensor([float(rank)], device=device))
    assert ranks.tolist() == list(range(size)), ranks
    dist.barrier()
    say(f"sums exact {few[0].item()}")


def ring(own, to, got, source):
    if rank == 0:
        dist.send(own, to)
        dist.recv(got, source)
    else:
        dist.recv(got, source)
        dist.send(own, to)


def messages():
    after, before = (rank + 1) % size, (rank + size - 1) % size
    own, got, total = filled(COUNT, rank), filled(COUNT, -1), filled(1, rank)
    ring(own, after, got, before)
    require_filled(got, before)
    dist.all_reduce(total)
    ring(own, before, got, after)
    require_filled(got, after)
    require_filled(total, size * (size - 1) // 2)
    below, above = filled(COUNT, -1), filled(7, -1)
    for work in dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, own, after),
            dist.P2POp(dist.isend, filled(7, rank), before),
            dist.P2POp(dist.irecv, below, before),
            dist.P2POp(dist.irecv, above, after),
        ]
    ):
        work.wait()
    dist.all_reduce(total)
    require_filled(below, before)
    require_filled(above, after)
    require_filled(total, size * size * (size - 1) // 2)
    say("messages exact")


def groups():
    for ranks in [list(range(size)), [0, size - 1], list(range(0, size, 2)), [1]]:
        group = dist.new_group(ranks)
        if rank not in ranks:
            continue
        tensor = filled(COUNT, rank + 1)
        dist.all_reduce(tensor, group=group)
        require_filled(tensor, sum(r + 1 for r in ranks))
        if len(ranks) > 1 and rank == ranks[0]:
            dist.send(filled(COUNT, 5), ranks[-1], group=group)
        elif len(ranks) > 1 and rank == ranks[-1]:
            dist.recv(tensor, ranks[0], group=group)
            require_filled(tensor, 5)
    dist.barrier()
    say("groups exact")


def exchanges():
    total = size * (size - 1) // 2
    one, all_ones = filled(COUNT, rank), [filled(COUNT, -1) for _ in range(size)]
    dist.reduce(one, 1)
    if rank == 1:
        require_filled(one, total)
    one = filled(COUNT, rank)
    dist.all_gather(all_ones, one)
    for r in range(size):
        require_filled(all_ones[r], r)
    dist.gather(one, all_ones if rank == 1 else None, 1)
    if rank == 1:
        for r in range(size):
            require_filled(all_ones[r], r)
    dist.scatter(one, [filled(COUNT, 40 + r) for r in range(size)] if rank == 1 else None, 1)
    require_filled(one, 40 + rank)
    dist.reduce_scatter(one, [filled(COUNT, 10 * r + rank) for r in range(size)])
    require_filled(one, 10 * rank * size + total)
    flat = torch.cat([filled(COUNT, 10 * r + rank) for r in range(size)])
    dist.reduce_scatter_tensor(one, flat)
    require_filled(one, 10 * rank * size + total)
    swapped = torch.empty_like(flat)
    dist.all_to_all_single(swapped, flat)
    for r in range(size):
        require_filled(swapped[r * COUNT : (r + 1) * COUNT], 10 * rank + r)
    most = filled(COUNT, rank)
    dist.all_reduce(most, op=dist.ReduceOp.MAX)
    require_filled(most, size - 1)
    say("exchanges exact")


def uneven():
    rows = [0 if r == 1 else COUNT - 1001 * r for r in range(size)]
    got = [filled(count, -1) for count in rows]
    dist.all_gather(got, filled(rows[rank], rank))
    for r in range(size):
        require_filled(got[r], r)
    own = filled(rows[rank], -1)
    dist.reduce_scatter(own, [filled(rows[r], 10 * r + rank) for r in range(size)])
    require_filled(own, 10 * rank * size + size * (size - 1) // 2)
    dist.reduce_scatter(own, [filled(rows[r], 10 * r + rank) for r in range(size)], op=dist.ReduceOp.MAX)
    require_filled(own, 10 * rank + size - 1)
    say("uneven parts exact")


def sparse():
    places, row = 1000, 3
    dense = torch.zeros(places, row)
    for r in range(size):
        entries = torch.arange(5000 + 1000 * r)
        indices = (entries * 7919 + 131 * r) % places
        values = ((entries[:, None] + torch.arange(row) + r) % 5).float()
        dense.index_add_(0, indices, values)
        if r == rank:
            own = torch.sparse_coo_tensor(indices[None, :], values, (places, row), device=device)
    dist.all_reduce(own)
    assert torch.equal(own.to_dense().cpu(), dense)
    say("sparse sum exact")


def empty():
    after, before = (rank + 1) % size, (rank + size - 1) % size
    none, got = filled(0, 0), filled(1, -1)
    ring(none, after, filled(0, 0), before)
    ring(filled(1, rank), after, got, before)
    require_filled(got, before)
    sent, received = [0] * size, [0] * size
    sent[after], received[before] = 1, 1
    dist.all_to_all_single(got, filled(1, 10 + rank), received, sent)
    require_filled(got, 10 + before)
    parts = [filled(1 if r == before else 0, -1) for r in range(size)]
    dist.all_to_all(parts, [filled(1 if r == after else 0, 30 + rank) for r in range(size)])
    require_filled(parts[before], 30 + before)
    dist.gather(none, [filled(0, 0) for _ in range(size)] if rank == 0 else None, 0)
    dist.scatter(none, [filled(0, 0) for _ in range(size)] if rank == 0 else None, 0)
    ring(filled(1, 20 + rank), after, got, before)
    require_filled(got, 20 + before)
    dist.all_reduce(none)
    total = filled(1, rank)
    dist.all_reduce(total)
    require_filled(total, size * (size - 1) // 2)
    say("empty ones exact")


def host():
    total = size * (size + 1) // 2
    for round in range(10):
        on_host, on_device = torch.full((7,), rank + 1), filled(7, rank + 1)
        dist.all_reduce(on_host)
        dist.all_reduce(on_device)
        require_filled(on_host, total)
        require_filled(on_device, total)
    say("host and device sums exact")


def record():
    if rank != 1:
        dist.all_reduce(filled(1, 1), async_op=True)
    with open(os.environ["TUTTI_FLIGHT_RECORD_DUMP"] + str(rank), "wb") as file:
        file.write(torch._C._distributed_c10d._dump_nccl_trace())
    print(f"Python rank {rank} of {size}: recorded", flush=True)
    os._exit(0)


def loss():
    after, before = (rank + 1) % size, (rank + size - 1) % size
    own, got = filled(COUNT, rank), filled(COUNT, -1)
    for _ in range(20):
        ring(own, after, got, before)
        require_filled(got, before)
    say("is about to be killed")
    if rank == 0:
        dist.isend(own, after)
    else:
        dist.irecv(got, before)
    os.kill(os.getpid(), signal.SIGKILL)


options = {"device_id": device} if "nccl" in backend and "lazy" not in wanted else {}
dist.init_process_group(
    backend,
    init_method=os.environ.get("TUTTI_INIT_METHOD"),
    rank=int(os.environ["RANK"]),
    world_size=int(os.environ["WORLD_SIZE"]),
    **options,
)
rank, size = dist.get_rank(), dist.get_world_size()
tasks = {t.__name__: t for t in [sums, messages, groups, exchanges, uneven, sparse, empty, host, loss, record]}
for what in wanted if "sums" in wanted else ["sums", *wanted]:
    if what != "lazy":
        tasks[what]()
dist.destroy_process_group()
