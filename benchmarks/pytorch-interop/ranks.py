"""A rank of Python's torch.distributed on Gloo: joins by env://, runs the lines of a plan, writes what they left.

usage: ranks.py PLAN DIRECTORY [--keep-going]

Needs nothing but torch. The lines, the data and the checksums are those of the Java side: Line.java, PeerData.java.
"""

import ctypes
import datetime
import faulthandler
import os
import platform
import sys
import time
import traceback
import warnings
import zlib

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

TIMEOUT = datetime.timedelta(seconds=40)
RING_TAG = 40
ANY_TAG = 50
COMPONENTS = {"complex64": torch.float32, "complex128": torch.float64}


def data(dtype, pattern, rank, count, seed):
    """Makes the input of a rank: a formula, so that every other rank can compute it."""
    complex_of = COMPONENTS.get(dtype)
    index = torch.arange(count * (2 if complex_of else 1), dtype=torch.int64)
    if pattern == "fraction":
        value = ((index * 7919 + rank * 104729 + seed * 31) % 2003 - 1001).to(torch.float64) / 7.0
    else:
        h = (index * 7 + rank * 13 + seed) % 11
        if dtype == "bool":
            value = h % 2
        elif pattern == "power":
            value = 1 + h % 2
        else:
            value = h if dtype == "uint8" else h - 5
    if dtype in ("float16", "bfloat16"):
        value = value.to(torch.float32)
    if complex_of:
        return torch.view_as_complex(value.to(complex_of).reshape(-1, 2))
    return value.to(getattr(torch, dtype))


def raw(tensor):
    """Returns the bytes of a tensor as they lie in memory."""
    tensor = tensor.detach().contiguous()
    size = tensor.numel() * tensor.element_size()
    return ctypes.string_at(tensor.data_ptr(), size) if size else b""


class Line:
    """One line of the plan: an operation, words by position, name=value options."""

    def __init__(self, text):
        self.text = text
        self.words = [word for word in text.split(" ") if "=" not in word]
        self.options = dict(word.split("=", 1) for word in text.split(" ") if "=" in word)
        self.op = self.words[0]

    def counts(self, at):
        return [int(part) for part in self.words[at].split(",")]

    def count(self, at):
        return int(self.words[at])


class Runner:
    """Runs one line in a group and collects what it leaves."""

    def __init__(self, line, group, members):
        self.line = line
        self.group = group
        self.members = members
        self.size = len(members)
        self.rank = members.index(dist.get_rank())
        self.root = int(line.options.get("root", 0))
        self.seed = int(line.options.get("seed", 0))
        self.left = []

    def run(self):
        getattr(self, self.line.op)()
        return b"".join(raw(tensor) for tensor in self.left)

    # What lines are made of

    @property
    def dtype(self):
        return self.line.words[1]

    def reduce_op(self):
        return getattr(dist.ReduceOp, self.line.words[2].upper())

    def made(self, count, pattern):
        if self.line.options.get("data") == "fraction":
            pattern = "fraction"
        return data(self.dtype, pattern, self.rank, count, self.seed)

    def to_reduce(self, count):
        return self.made(count, "power" if self.line.words[2] == "product" else "small")

    def to_move(self, count):
        return self.made(count, "small")

    def empty(self, count):
        return torch.zeros(count, dtype=getattr(torch, self.dtype))

    def parts(self, tensor, counts):
        return [part.clone() for part in torch.split(tensor, counts)]

    def all(self, count):
        return [self.empty(count) for _ in range(self.size)]

    def is_root(self):
        return self.rank == self.root

    def global_root(self):
        return self.members[self.root]

    # Reductions

    def allreduce(self):
        tensor = self.to_reduce(self.line.count(3))
        dist.all_reduce(tensor, self.reduce_op(), group=self.group)
        self.left = [tensor]

    def allreduce_coalesced(self):
        counts = self.line.counts(3)
        tensors = self.parts(self.to_reduce(sum(counts)), counts)
        with distributed_c10d._coalescing_manager(group=self.group):
            for tensor in tensors:
                dist.all_reduce(tensor, self.reduce_op(), group=self.group)
        self.left = tensors

    def allreduce_sparse(self):
        rows, columns, stored = (self.line.count(at) for at in (3, 4, 5))
        indices = torch.tensor([[(self.rank + 3 * i) % rows for i in range(stored)]], dtype=torch.int64)
        values = self.to_reduce(stored * columns).reshape(stored, columns)
        tensor = torch.sparse_coo_tensor(indices, values, (rows, columns))
        dist.all_reduce(tensor, self.reduce_op(), group=self.group)
        self.left = [tensor.to_dense()]

    def reduce(self):
        tensor = self.to_reduce(self.line.count(3))
        dist.reduce(tensor, self.global_root(), self.reduce_op(), group=self.group)
        self.left = [tensor] if self.is_root() else []

    def reduce_scatter(self):
        count = self.line.count(3)
        output = self.empty(count)
        inputs = self.parts(self.to_reduce(count * self.size), [count] * self.size)
        dist.reduce_scatter(output, inputs, self.reduce_op(), group=self.group)
        self.left = [output]

    def reduce_scatter_base(self):
        count = self.line.count(3)
        output = self.empty(count)
        dist.reduce_scatter_tensor(output, self.to_reduce(count * self.size), self.reduce_op(), group=self.group)
        self.left = [output]

    def reduce_scatter_tensor_coalesced(self):
        counts = self.line.counts(3)
        whole = [count * self.size for count in counts]
        inputs = self.parts(self.to_reduce(sum(whole)), whole)
        outputs = [self.empty(count) for count in counts]
        with distributed_c10d._coalescing_manager(group=self.group):
            for output, tensor in zip(outputs, inputs):
                dist.reduce_scatter_tensor(output, tensor, self.reduce_op(), group=self.group)
        self.left = outputs

    # Movements

    def broadcast(self):
        count = self.line.count(2)
        tensor = self.to_move(count) if self.is_root() else self.empty(count)
        dist.broadcast(tensor, self.global_root(), group=self.group)
        self.left = [tensor]

    def allgather(self):
        outputs = self.all(self.line.count(2))
        dist.all_gather(outputs, self.to_move(self.line.count(2)), group=self.group)
        self.left = outputs

    def allgather_base(self):
        count = self.line.count(2)
        output = self.empty(count * self.size)
        dist.all_gather_into_tensor(output, self.to_move(count), group=self.group)
        self.left = [output]

    def allgather_into_tensor_coalesced(self):
        counts = self.line.counts(2)
        inputs = self.parts(self.to_move(sum(counts)), counts)
        outputs = [self.empty(count * self.size) for count in counts]
        with distributed_c10d._coalescing_manager(group=self.group):
            for output, tensor in zip(outputs, inputs):
                dist.all_gather_into_tensor(output, tensor, group=self.group)
        self.left = outputs

    def allgather_coalesced(self):
        counts = self.line.counts(2)
        outputs = [[self.empty(count) for count in counts] for _ in range(self.size)]
        dist.all_gather_coalesced(outputs, self.parts(self.to_move(sum(counts)), counts), group=self.group)
        self.left = [tensor for of_rank in outputs for tensor in of_rank]

    def gather(self):
        outputs = self.all(self.line.count(2)) if self.is_root() else None
        dist.gather(self.to_move(self.line.count(2)), outputs, self.global_root(), group=self.group)
        self.left = outputs or []

    def scatter(self):
        count = self.line.count(2)
        output = self.empty(count)
        inputs = self.parts(self.to_move(count * self.size), [count] * self.size) if self.is_root() else None
        dist.scatter(output, inputs, self.global_root(), group=self.group)
        self.left = [output]

    def alltoall(self):
        count = self.line.count(2)
        outputs = self.all(count)
        inputs = self.parts(self.to_move(count * self.size), [count] * self.size)
        dist.all_to_all(outputs, inputs, group=self.group)
        self.left = outputs

    def alltoall_base(self):
        if "splits" in self.line.options:
            table = [[int(n) for n in row.split(",")] for row in self.line.options["splits"].split(";")]
            sent = table[self.rank]
            received = [row[self.rank] for row in table]
            output = self.empty(sum(received))
            dist.all_to_all_single(output, self.to_move(sum(sent)), received, sent, group=self.group)
        else:
            count = self.line.count(2) * self.size
            output = self.empty(count)
            dist.all_to_all_single(output, self.to_move(count), group=self.group)
        self.left = [output]

    def barrier(self):
        dist.barrier(group=self.group)

    def monitored_barrier(self):
        dist.monitored_barrier(group=self.group, timeout=datetime.timedelta(seconds=20))

    # Messages

    def exchange(self):
        for sender in range(self.size):
            for receiver in range(self.size):
                if sender == receiver:
                    continue
                if self.rank == sender:
                    mine = self.to_move(self.line.count(2))
                    dist.send(mine, self.members[receiver], group=self.group, tag=7 + sender)
                elif self.rank == receiver:
                    tensor = self.empty(self.line.count(2))
                    dist.recv(tensor, self.members[sender], group=self.group, tag=7 + sender)
                    self.left.append(tensor)

    def ring(self):
        after = self.members[(self.rank + 1) % self.size]
        before = self.members[(self.rank - 1) % self.size]
        tensor = self.empty(self.line.count(2))
        batch = [
            dist.P2POp(dist.isend, self.to_move(self.line.count(2)), after, group=self.group, tag=RING_TAG),
            dist.P2POp(dist.irecv, tensor, before, group=self.group, tag=RING_TAG),
        ]
        for work in dist.batch_isend_irecv(batch):
            work.wait()
        self.left = [tensor]

    def anysource(self):
        if not self.is_root():
            mine = self.to_move(self.line.count(2))
            dist.send(mine, self.global_root(), group=self.group, tag=ANY_TAG)
            return
        by_sender = {}
        for _ in range(self.size - 1):
            tensor = self.empty(self.line.count(2))
            sender = dist.recv(tensor, None, group=self.group, tag=ANY_TAG)
            by_sender[self.members.index(sender)] = tensor
        self.left = [by_sender[sender] for sender in sorted(by_sender)]


def run_all(lines, out, keep_going):
    """Runs the lines in order; returns whether every one ran."""
    groups = [None]
    members = [list(range(dist.get_world_size()))]
    good = True
    for number, line in enumerate(lines):
        at = int(line.options.get("group", 0))
        if dist.get_rank() not in members[at]:
            out.write(f"{number}\tOK\t-\n")
            continue
        try:
            left = b""
            if line.op == "newgroup":
                members.append(line.counts(1))
                groups.append(dist.new_group(line.counts(1), backend="gloo", timeout=TIMEOUT))
            else:
                left = Runner(line, groups[at], members[at]).run()
            out.write(f"{number}\tOK\t{zlib.crc32(left) & 0xFFFFFFFF:08x}\n")
        except Exception as error:
            good = False
            message = " ".join(f"{line.text}: {type(error).__name__}: {error}".split())
            out.write(f"{number}\tERROR\t{message[:400]}\n")
            print(f"line {number}, {line.text}:", flush=True)
            traceback.print_exc()
            if not keep_going:
                break
        out.flush()
    return good or keep_going


def main():
    # Stacks of all threads, while there still is somebody to read them.
    faulthandler.enable()
    faulthandler.dump_traceback_later(int(os.environ.get("INTEROP_LIMIT", "90")) - 3, exit=False)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    about = f"PyTorch {torch.__version__}, Python {platform.python_version()}"
    names = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "GLOO_", "TORCH")
    said = {name: value for name, value in sorted(os.environ.items()) if name.startswith(names)}
    print(f"{about}, {platform.platform()}: {said}", flush=True)
    with open(sys.argv[1], encoding="utf-8") as plan:
        lines = [Line(row.rstrip("\n").split("\t")[0]) for row in plan]
    started = time.monotonic()
    dist.init_process_group("gloo", init_method="env://", timeout=TIMEOUT)
    print(f"rank {dist.get_rank()}/{dist.get_world_size()} joined after {time.monotonic() - started:.2f} s", flush=True)
    with open(os.path.join(sys.argv[2], f"rank-{dist.get_rank()}.out"), "w", encoding="utf-8") as out:
        out.write(f"# {about}\n")
        good = run_all(lines, out, "--keep-going" in sys.argv)
        if good:
            out.write("DONE\n")
    if not good:
        # The others detect it by the closed connections.
        os._exit(1)
    dist.destroy_process_group()
    print(f"done after {time.monotonic() - started:.2f} s", flush=True)


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        sys.stdout.flush()
        os._exit(1)
