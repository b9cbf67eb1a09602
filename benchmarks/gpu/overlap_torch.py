#!/usr/bin/env python3
"""Times the steps that GpuOverlap times, with PyTorch's DistributedDataParallel over NCCL.

usage: torchrun --nproc-per-node N overlap_torch.py OUTPUT.jsonl [--layers N] [--size N] [--sweep] [--alone]

Square linear layers without bias, autocast to bfloat16, batches as large as the layers, random data, a fixed gradient of
the outputs, no optimizer. Series of 20 steps between two CUDA events; milliseconds per step of the slowest rank; the median
of five series and their range, after two that do not count. --alone times only steps without DDP. --sweep tries other sizes
of buckets, gradients in buckets, streams of high priority and multiprocessors left out by cuBLAS. How many channels NCCL
takes is set before a process begins, with NCCL_MAX_CTAS. NVLink multicast stays off.
"""
import argparse
import contextlib
import itertools
import json
import os
import statistics

os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
os.environ.setdefault("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

SERIES = int(os.environ.get("OVERLAP_SERIES", "5"))
UNCOUNTED = 2
STEPS = int(os.environ.get("OVERLAP_STEPS", "20"))
LEFT_OUT = 16


class Benchmark:
    def __init__(self, arguments):
        self.arguments = arguments
        self.rank = dist.get_rank()
        self.device = torch.device("cuda", self.rank % torch.cuda.device_count())
        torch.cuda.set_device(self.device)
        torch.manual_seed(self.rank)
        size = arguments.size
        self.inputs = torch.randn(size, size, device=self.device, dtype=torch.bfloat16)
        self.gradient = (torch.randn(size, size, device=self.device) / size**0.5).bfloat16()

    def model(self):
        size = self.arguments.size
        layers = [torch.nn.Linear(size, size, bias=False, device=self.device) for _ in range(self.arguments.layers)]
        for layer in layers:
            torch.nn.init.normal_(layer.weight, std=size**-0.5)
        return torch.nn.Sequential(*layers)

    def step(self, model, keeps):
        model.zero_grad(set_to_none=not keeps)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            outputs = model(self.inputs)
        outputs.backward(self.gradient)

    def time(self, call):
        start = torch.cuda.Event(enable_timing=True)
        stop = torch.cuda.Event(enable_timing=True)
        times = []
        for _ in range(UNCOUNTED + SERIES):
            torch.cuda.synchronize()
            dist.barrier()
            torch.cuda.synchronize()
            start.record()
            for _ in range(STEPS):
                call()
            stop.record()
            torch.cuda.synchronize()
            slowest = torch.tensor([start.elapsed_time(stop) / STEPS], device=self.device)
            dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
            times.append(slowest.item())
        return sorted(times[UNCOUNTED:])

    def write(self, what, times, **more):
        if self.rank == 0:
            line = {"peer": "torch", "what": what, "ranks": dist.get_world_size(), "gpus": torch.cuda.device_count()}
            line |= {"layers": self.arguments.layers, "size": self.arguments.size, **more}
            line |= {"ctas": os.environ.get("NCCL_MAX_CTAS", "default"), "ms": round(statistics.median(times), 3)}
            line |= {"least_ms": round(times[0], 3), "most_ms": round(times[-1], 3), "torch": torch.__version__}
            print(json.dumps(line), flush=True)
            with open(self.arguments.output, "a") as file:
                file.write(json.dumps(line) + "\n")

    def alone(self):
        model = self.model()
        self.write("alone", self.time(lambda: self.step(model, True)))

    def reductions(self):
        size = self.arguments.size
        gradients = [torch.zeros(size, size, device=self.device) for _ in range(self.arguments.layers)]

        def reduce():
            for gradient in gradients:
                dist.all_reduce(gradient, op=dist.ReduceOp.AVG)

        self.write("reductions", self.time(reduce))

    def ddp(self, what, compresses=False, group=None, left_out=0, **options):
        with carve_out(left_out):
            model = DistributedDataParallel(self.model(), device_ids=[self.device.index], process_group=group, **options)
            if compresses:
                model.register_comm_hook(group, default_hooks.bf16_compress_hook)
            times = self.time(lambda: self.step(model, False))
        settings = {"bucket_mib": options.get("bucket_cap_mb", 25), "views": options.get("gradient_as_bucket_view", False)}
        self.write(what, times, high_priority=group is not None, left_out=left_out, **settings)

    def run(self):
        self.alone()
        if self.arguments.alone:
            return
        self.reductions()
        if "NCCL_MAX_CTAS" not in os.environ:
            self.ddp("ddp")
            self.ddp("ddp-bf16", compresses=True)
        if self.arguments.sweep:
            options = dist.ProcessGroupNCCL.Options(is_high_priority_stream=True)
            urgent = dist.new_group(backend="nccl", pg_options=options)
            for mib, views, group, left in itertools.product(
                [25, 64, 128, 256], [False, True], [None, urgent], [0, LEFT_OUT]
            ):
                chosen = {"bucket_cap_mb": mib, "gradient_as_bucket_view": views, "group": group, "left_out": left}
                self.ddp("ddp-sweep", **chosen)


@contextlib.contextmanager
def carve_out(count):
    """Leaves multiprocessors out of cuBLAS's kernels, as far as they heed that."""
    if count:
        torch._C._set_sm_carveout_experimental(count)
    try:
        yield
    finally:
        if count:
            torch._C._set_sm_carveout_experimental(None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--alone", action="store_true")
    arguments = parser.parse_args()
    device = int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count()
    dist.init_process_group("nccl", device_id=torch.device("cuda", device))
    Benchmark(arguments).run()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
