"""Kills ranks of jobs of Tutti and of torchelastic, and times how long it takes until the ranks reduce again.

usage: elastic_torch.py TURNS KILLS SEED TUTTI JAVA CLASS_PATH
       elastic_torch.py rank

The second form is a rank under torchrun. Each rank prints "IN PID GROUP SIZE NANOS BEGAN" after its first all-reduce in
a group. Both times are of CLOCK_MONOTONIC, which is the same for all processes of a host.
"""

import importlib.util
import os
import platform
import queue
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

BEGAN = time.monotonic_ns()
RANKS = 4
PATIENCE = 60
LINE = re.compile(r"IN (\d+) (\S+) (\d+) (\d+) (\d+)\s*$")


def rank():
    import torch
    import torch.distributed

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    size = torch.distributed.get_world_size()
    step = 0
    while True:
        total = torch.tensor([torch.distributed.get_rank() + 1.0, 0.0])
        torch.distributed.all_reduce(total)
        assert total[0] == size * (size + 1) / 2
        if step == 0:
            line = f"IN {os.getpid()} all {size} {time.monotonic_ns()} {BEGAN}\n"
            os.write(1, line.encode())
        step += 1
        time.sleep(0.001)


class Job:
    """A launcher with its ranks."""

    def __init__(self, command, environment, errors):
        self.errors = errors
        self.lines = queue.Queue()
        self.launcher = subprocess.Popen(
            command, env=environment, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
        )
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.launcher.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def await_all(self, left):
        """Waits until 4 ranks are in one group.

        Returns when the last of those left had reduced in its next group (None if one of them ended), when the last of
        all had, and how long the newest rank took from its main to that.
        """
        first = {}
        latest = {}
        deadline = time.monotonic() + PATIENCE
        while True:
            line = self.lines.get(timeout=max(deadline - time.monotonic(), 0.001))
            if line is None:
                raise RuntimeError("the launcher ended")
            found = LINE.search(line)
            if not found:
                continue
            pid, group, size, now, began = found.groups()
            first.setdefault(int(pid), int(now))
            latest[int(pid)] = (group, int(size), int(now), int(began))
            together = [each for each in latest.items() if each[1][:2] == (group, RANKS)]
            if len(together) == RANKS:
                pids = {each[0] for each in together}
                end = max(each[1][2] for each in together)
                begun = max(each[1][3] for each in together)
                of_left = max(first[each] for each in left) if left and left <= pids else None
                return pids, of_left, end, end - begun

    def end(self):
        self.launcher.send_signal(signal.SIGTERM)
        try:
            self.launcher.wait(30)
        except subprocess.TimeoutExpired:
            self.launcher.kill()


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def sides(tutti, java, class_path):
    program = [java, "--enable-native-access=ALL-UNNAMED", "-cp", class_path, "ElasticRank"]
    run = [tutti, "run", "--nproc", str(RANKS), "--max-restarts", "100"]
    yield "Tutti, elastic, shared memory", lambda: [*run, "--elastic", "--", *program, "elastic"], {}
    yield "Tutti, elastic, TCP", lambda: [*run, "--elastic", "--", *program, "elastic"], {
        "TUTTI_GLOO_SHARED_BYTES": "0"
    }
    yield "Tutti, all ranks restarted", lambda: [*run, "--", *program, "plain"], {}
    if importlib.util.find_spec("torch") is None:
        print(f"{sys.executable} has no torch: nothing of torchelastic", file=sys.stderr)
        return
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "1", "--nproc-per-node", str(RANKS)]
    torchrun += ["--max-restarts", "100", "--rdzv-backend", "c10d", "--local-addr", "127.0.0.1"]
    # Gloo listens where the host's name leads to, else: on some machines nowhere.
    yield (
        "torchelastic, all ranks restarted",
        lambda: [*torchrun, "--rdzv-endpoint", f"127.0.0.1:{free_port()}", __file__, "rank"],
        {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"},
    )


def turn(name, command, environment, kills, chance, times):
    with tempfile.TemporaryFile(mode="w+") as errors:
        job = Job(command, {**os.environ, **environment}, errors)
        try:
            pids, _, _, _ = job.await_all(set())
            for _ in range(kills):
                time.sleep(chance.random() * 0.3)
                killed = chance.choice(sorted(pids))
                now = time.monotonic_ns()
                os.kill(killed, signal.SIGKILL)
                pids, of_left, of_all, of_newest = job.await_all(pids - {killed})
                if of_left is not None:
                    times.setdefault((name, "left"), []).append((of_left - now) / 1e6)
                times.setdefault((name, "all"), []).append((of_all - now) / 1e6)
                times.setdefault((name, "newest"), []).append(of_newest / 1e6)
        except (queue.Empty, RuntimeError) as problem:
            errors.seek(0)
            print(errors.read()[-6000:], file=sys.stderr)
            if isinstance(problem, queue.Empty) and name.startswith("torch"):
                # The rest of the turn is lost; this kill counts as the least it can have taken.
                times.setdefault((name, "all"), []).append(PATIENCE * 1e3)
                times.setdefault((name, "given up"), []).append(PATIENCE * 1e3)
                return
            sys.exit(f"{name}: {problem or f'no all-reduce of all for {PATIENCE} s'}")
        finally:
            job.end()


def text(values):
    if not values:
        return "–"
    return f"{statistics.median(values):.0f} ({min(values):.0f}–{max(values):.0f})"


def main(turns, kills, seed, *of_tutti):
    chance = random.Random(int(seed))
    times = {}
    all_sides = list(sides(*of_tutti))
    for _ in range(int(turns)):
        for name, command, environment in all_sides:
            print(name, file=sys.stderr)
            turn(name, command(), environment, int(kills), chance, times)
    torch = [name for name, _, _ in all_sides if name.startswith("torch")]
    if torch:
        import torch as library

        print(f"PyTorch {library.__version__}, Python {platform.python_version()}")
    print(f"{os.cpu_count()} processors, {int(turns) * int(kills)} kills of each; milliseconds: median (range)\n")
    print("| job of 4 ranks | kill to an all-reduce of the 3 left | kill to one of 4 | main of a new rank to that | times as fast |")
    print("|---|---|---|---|---|")
    for name, _, _ in all_sides:
        rows = [text(times.get((name, what))) for what in ("left", "all", "newest")]
        if torch:
            reached = times.get((name, "left"), times[name, "all"])
            ratio = statistics.median(times[torch[0], "all"]) / statistics.median(reached)
            rows.append(f"{ratio:.1f}")
        else:
            rows.append("–")
        print(f"| {name} | {' | '.join(rows)} |")
    for name in torch:
        lost = len(times.get((name, "given up"), []))
        print(f"\n{lost} of {len(times[name, 'all'])} kills of {name}: no all-reduce for {PATIENCE} s, counted as that")


if __name__ == "__main__":
    if sys.argv[1:] == ["rank"]:
        rank()
    else:
        main(*sys.argv[1:])
