#!/usr/bin/env python3
"""Times all-reduce of sparse CUDA and host tensors in a Gloo group of PyTorch, as one rank of the environment.

usage: sparse_peers.py ENTRIES...

Prints the median time of a call whose result is on the device, in microseconds; tensors and number of calls are those of GpuSparseTimes of backend-cuda.
"""
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist

PLACES = 1_000_000
ROW = 64


def median(tensor, entries):
    count = 60 if entries <= 10_000 else 20 if entries <= 100_000 else 5
    times = []
    for i in range(count + count // 4 + 2):
        own = tensor.clone()  # the sum takes its place
        dist.barrier()
        torch.cuda.synchronize()
        start = time.perf_counter()
        dist.all_reduce(own)
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times[-count:])


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("gloo")
    for entries in map(int, sys.argv[1:]):
        generator = torch.Generator().manual_seed(dist.get_rank())
        indices = torch.randint(PLACES, (1, entries), generator=generator)
        tensor = torch.sparse_coo_tensor(indices, torch.ones(entries, ROW), (PLACES, ROW))
        on_device = median(tensor.cuda(), entries)
        on_host = median(tensor, entries)
        if dist.get_rank() == 0:
            print(f"pytorch {entries} entries: cuda {on_device:.1f} us, cpu {on_host:.1f} us", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
