"""Times steps of PyTorch's DistributedDataParallel over Gloo, as benchmarks/gradients times those of Tutti.

usage: gradients_torch.py RANKS MODEL STEPS < SHAPES

SHAPES has the sizes of one parameter a line. Backward spins for 100 ms in all and makes gradients one by one, last
parameter first, each in proportion to its size. Buckets hold the gradients. Prints one JSON object.
"""

import json
import os
import sys
import time

import torch
import torch.distributed
import torch.multiprocessing

WARM_UPS = 10


class SpinFunction(torch.autograd.Function):
    @staticmethod
    def forward(context, chain, weight, gradient, seconds):
        context.made = gradient
        context.seconds = seconds
        return chain.clone()

    @staticmethod
    def backward(context, chain):
        due = time.perf_counter() + context.seconds
        while time.perf_counter() < due:
            pass
        return chain, context.made, None, None


class Network(torch.nn.Module):
    def __init__(self, shapes, rank):
        super().__init__()
        self.parameter_list = torch.nn.ParameterList(torch.nn.Parameter(torch.zeros(each)) for each in shapes)
        self.made = [torch.full_like(each, 1 + rank) for each in self.parameter_list]
        total = sum(each.numel() for each in self.parameter_list)
        self.seconds = [0.1 * each.numel() / total for each in self.parameter_list]

    def forward(self, chain):
        for weight, gradient, seconds in zip(self.parameter_list, self.made, self.seconds):
            chain = SpinFunction.apply(chain, weight, gradient, seconds)
        return chain.sum()


def measure(network, steps):
    times = []
    for _ in range(WARM_UPS + steps):
        network.zero_grad(set_to_none=True)
        torch.distributed.barrier()
        start = time.perf_counter()
        network(torch.ones(1, requires_grad=True)).backward()
        times.append(1000 * (time.perf_counter() - start))
    return sorted(times[WARM_UPS:])


def run(rank, ranks, port, model, shapes, steps):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks)
    network = Network(shapes, rank)
    together = measure(torch.nn.parallel.DistributedDataParallel(network, gradient_as_bucket_view=True), steps)
    mean = (ranks + 1) / 2
    assert all(bool((each.grad == mean).all()) for each in network.parameter_list)
    if rank == 0:
        result = {"peer": f"PyTorch {torch.__version__}", "model": model, "ranks": ranks, "tensors": len(shapes)}
        result["step_ms"] = round(together[steps // 2], 2)
        result["step_p90_ms"] = round(together[steps * 9 // 10], 2)
        result["beyond_ms"] = round(together[steps // 2] - 100, 2)
        print(json.dumps(result), flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    sizes = [tuple(int(size) for size in line.split()) for line in sys.stdin]
    count = int(sys.argv[1])
    torch.multiprocessing.spawn(
        run, (count, 20000 + os.getpid() % 10000, sys.argv[2], sizes, int(sys.argv[3])), nprocs=count
    )
