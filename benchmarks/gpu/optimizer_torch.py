#!/usr/bin/env python3
"""Times steps of PyTorch's fused AdamW on one GPU, as GpuOptimizerTimes does.

usage: optimizer_torch.py LAYERS SIZE

Prints JSON lines: milliseconds of device time, the median of five series of 20 steps and their range, after two series that
do not count, and the bytes that must be read and written in each second.
"""
import json
import statistics
import sys

import torch

layers, size = int(sys.argv[1]), int(sys.argv[2])
elements = layers * size * size


def measure(what, bytes_per_element, step):
    times = []
    for _ in range(7):
        start = torch.cuda.Event(enable_timing=True)
        stop = torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(20):
            step()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop) / 20)
    times = sorted(times[2:])
    median = statistics.median(times)
    print(json.dumps({
        "peer": f"PyTorch {torch.__version__}",
        "what": what,
        "elements": elements,
        "ms": round(median, 3),
        "least_ms": round(times[0], 3),
        "most_ms": round(times[-1], 3),
        "gb_per_s": round(elements * bytes_per_element / median / 1e6),
    }))


source = torch.ones(elements, device="cuda")
target = torch.empty_like(source)
measure("copy", 8, lambda: target.copy_(source))
parameters = [torch.ones(size, size, device="cuda") for _ in range(layers)]
for parameter in parameters:
    parameter.grad = torch.zeros_like(parameter)
measure("adamw", 28, torch.optim.AdamW(parameters, lr=1e-4, fused=True).step)
