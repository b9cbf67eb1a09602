#!/usr/bin/env python3
"""Times all-reduce (float32, sum) of CUDA and of host tensors in a Gloo group of PyTorch, as one rank of the environment.

usage: gloo_peers.py BYTES...

Prints the median time of a call whose result is on the device, in microseconds; as often as GpuGlooTimes of backend-cuda.
"""
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist


def median(tensor):
    size = tensor.numel() * tensor.element_size()
    count = 2000 if size <= 1 << 16 else 200 if size <= 1 << 22 else 20

    def call():
        dist.all_reduce(tensor)
        torch.cuda.synchronize()

    for _ in range(count // 4 + 3):
        call()
    dist.barrier()
    times = []
    for _ in range(count):
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times)


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("gloo")
    for size in map(int, sys.argv[1:]):
        host = torch.zeros(size // 4)
        on_device = median(host.cuda())
        on_host = median(host)
        if dist.get_rank() == 0:
            print(f"pytorch {size} bytes: cuda {on_device:.1f} us, cpu {on_host:.1f} us", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
