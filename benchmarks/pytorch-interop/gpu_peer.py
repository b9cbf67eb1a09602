"""Is a rank of a job on GPUs whose other ranks may be of Tutti: the same as GpuPeer.java."""

import os
import sys

import torch
import torch.distributed as dist

backend = sys.argv[1]
local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
device = torch.device("cuda", local)
if backend == "nccl":
    dist.init_process_group(backend, device_id=device)
else:
    dist.init_process_group(backend)
rank, size = dist.get_rank(), dist.get_world_size()
few = torch.tensor([rank + 1.0, 10.0 * (rank + 1)], device=device)
dist.all_reduce(few)
total = size * (size + 1) // 2
assert few.tolist() == [total, 10 * total], few

count = 1_000_003
base = torch.arange(count, dtype=torch.int32, device=device) % 1000
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
torch.cuda.synchronize()
print(f"Python rank {rank} of {size}: sums exact {few[0].item()}", flush=True)
dist.destroy_process_group()
