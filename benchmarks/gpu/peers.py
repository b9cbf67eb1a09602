#!/usr/bin/env python3
"""Times all-reduce (bf16, sum) of PyTorch on this machine's GPUs: NCCL, and the one-shot and two-shot of symmetric memory.

usage: torchrun --nproc-per-node N peers.py OUTPUT.jsonl [--most BYTES]

Eager: calls back to back between two CUDA events. Graph: 20 calls captured in a CUDA graph, per call. Microseconds, the
slowest rank of each series, the median of five series, after two that do not count; up to 64 KiB each is called 10 000 times
before. NVLink multicast stays off.
"""
import argparse
import json
import os
import statistics

os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
os.environ.setdefault("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric

SERIES = 5
UNCOUNTED = 2
WARM_BYTES = 64 << 10
WARM_CALLS = 10_000
CAPTURED = 20
MIB = 1 << 20
SIZES = [1 << 10, 4 << 10, 16 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, MIB, 2 * MIB, 4 * MIB, 8 * MIB, 16 * MIB]
LARGE = [64 * MIB, 256 * MIB, 1 << 30]
SYMMETRIC_MOST = 256 * MIB
ONE_SHOT_MOST = 16 * MIB
GRAPH_MOST = 16 * MIB


class Clock:
    """Times series of calls on all ranks."""

    def __init__(self, device):
        self.start = torch.cuda.Event(enable_timing=True)
        self.stop = torch.cuda.Event(enable_timing=True)
        self.device = device

    def micros(self, call, repeats, warm_up=3):
        for _ in range(warm_up):
            call()
        times = []
        for _ in range(UNCOUNTED + SERIES):
            torch.cuda.synchronize()
            dist.barrier()
            torch.cuda.synchronize()
            self.start.record()
            for _ in range(repeats):
                call()
            self.stop.record()
            torch.cuda.synchronize()
            slowest = torch.tensor([self.start.elapsed_time(self.stop) * 1e3 / repeats], device=self.device)
            dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
            times.append(slowest.item())
        return statistics.median(times[UNCOUNTED:])

    def graph_micros(self, call, repeats):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                call()
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(CAPTURED):
                call()
        return self.micros(graph.replay, repeats) / CAPTURED


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("output")
    parser.add_argument("--most", type=int, default=1 << 30)
    options = parser.parse_args()
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(rank)
    device = torch.device("cuda", rank)
    dist.init_process_group("nccl", device_id=device)
    group = dist.group.WORLD.group_name
    clock = Clock(device)
    sizes = [s for s in SIZES + LARGE if s <= options.most]
    plain = torch.ones(max(sizes) // 2, dtype=torch.bfloat16, device=device)
    shared = symmetric.empty(min(SYMMETRIC_MOST, max(sizes)) // 2, dtype=torch.bfloat16, device=device)
    symmetric.rendezvous(shared, group)
    shared.fill_(1)
    file = open(options.output, "a") if rank == 0 else None
    versions = {"torch": torch.__version__, "nccl": ".".join(map(str, torch.cuda.nccl.version()))}
    for bytes_ in sizes:
        calls = 200 if bytes_ <= MIB else 40 if bytes_ <= 64 * MIB else 8
        replays = 10 if bytes_ <= MIB else 3
        warm_up = WARM_CALLS if bytes_ <= WARM_BYTES else 3
        view = plain[: bytes_ // 2].fill_(1)
        peers = {"nccl": lambda: dist.all_reduce(view)}
        if bytes_ <= SYMMETRIC_MOST:
            own = shared[: bytes_ // 2]
            if bytes_ <= ONE_SHOT_MOST:
                peers["one_shot"] = lambda: torch.ops.symm_mem.one_shot_all_reduce(own, "sum", group)
            peers["two_shot"] = lambda: torch.ops.symm_mem.two_shot_all_reduce_(own, "sum", group)
        for name, call in peers.items():
            row = {"peer": name, "ranks": size, "bytes": bytes_, "eager_us": round(clock.micros(call, calls, warm_up), 2)}
            if bytes_ <= GRAPH_MOST:
                row["graph_us"] = round(clock.graph_micros(call, replays), 2)
            if file:
                print(json.dumps(row | versions), file=file, flush=True)
    dist.barrier()
    torch.cuda.synchronize()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
