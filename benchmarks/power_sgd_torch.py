"""Takes steps of PyTorch's PowerSGD hook and compares them with those that PowerSgdSteps wrote.

usage: power_sgd_torch.py FILE RANKS STEPS APPROXIMATION_RANK

Both have the same gradients and the same first factors. Prints the largest difference of an element; ends with an
error if it is above 1e-5.
"""

import os
import struct
import sys

# Where there is a GPU, the hook waits for it, also for gradients of the host.
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import torch
import torch.distributed
import torch.multiprocessing
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

SHAPES = [(60, 40), (50,), (30, 5, 7)]
PLAIN_STEPS = 2
MOST = 1e-5


def number(step, rank, parameter, index):
    mixed = ((step * 31 + rank) * 31 + parameter) * 65537 + index
    for _ in range(2):
        mixed = (mixed * 1103515245 + 12345) & 0x7FFFFFFF
    return (mixed >> 11) / 1048576 - 0.5


def numbers(step, rank, parameter):
    shape = SHAPES[parameter]
    count = torch.Size(shape).numel()
    return torch.tensor([number(step, rank, parameter, i) for i in range(count)], dtype=torch.float32).reshape(shape)


class Weights(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = torch.nn.ParameterList(torch.nn.Parameter(torch.zeros(shape)) for shape in SHAPES)

    def forward(self, gradients):
        return sum((weight * gradient).sum() for weight, gradient in zip(self.weights, gradients))


def first_factor(*shape, **_):
    """Stands in for torch.randn, by which the hook makes the first Q, of columns by approximation rank."""
    columns, rank = shape[-2:]
    parameter = {40: 0, 35: 2}[columns]
    factor = [[number(900, k, parameter, j) for k in range(rank)] for j in range(columns)]
    return torch.tensor(factor, dtype=torch.float32).reshape(shape)


def run(process, path, ranks, steps, approximation, port):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=process, world_size=ranks)
    model = torch.nn.parallel.DistributedDataParallel(Weights())
    state = powerSGD_hook.PowerSGDState(
        None, matrix_approximation_rank=approximation, start_powerSGD_iter=PLAIN_STEPS, batch_tensors_with_same_shape=False
    )
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    torch.randn = first_factor
    with open(path, "rb") as file:
        content = file.read()
    expected = struct.iter_unpack(">f", content)
    largest = 0.0
    approximated = 0
    for step in range(steps):
        model.zero_grad(set_to_none=True)
        given = [numbers(step, process, parameter) for parameter in range(len(SHAPES))]
        model(given).backward()
        for parameter, weight in enumerate(model.module.weights):
            theirs = weight.grad.flatten().tolist()
            largest = max(largest, *(abs(value - next(expected)[0]) for value in theirs))
            mean = sum(numbers(step, each, parameter) for each in range(ranks)) / ranks
            approximated += float((weight.grad - mean).abs().max()) > 0.01
    assert len(content) == 4 * steps * sum(torch.Size(shape).numel() for shape in SHAPES)
    assert approximated >= 2 * (steps - PLAIN_STEPS), "the matrices were not approximated"
    if process == 0:
        print(
            f"PyTorch {torch.__version__}, {ranks} ranks, {steps} steps, approximation rank {approximation}: "
            f"largest difference {largest:.2e}"
        )
        assert largest <= MOST
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    count = int(sys.argv[2])
    arguments = (sys.argv[1], count, int(sys.argv[3]), int(sys.argv[4]), 20000 + os.getpid() % 10000)
    torch.multiprocessing.spawn(run, arguments, nprocs=count)
