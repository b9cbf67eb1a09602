#!/usr/bin/env python3
"""Prints the medians of the rounds in a file of benchmarks/gpu/run as a Markdown table.

usage: table.py FILE.jsonl [LINK_GBPS]; LINK_GBPS: what the links of a GPU carry in each direction, for the last column;
352 is what was measured on H200s with NVSwitch when each pushes to its three peers.
"""
import json
import statistics
import sys


def main():
    times, algorithms, ranks = {}, {}, 0
    for line in open(sys.argv[1]):
        row = json.loads(line)
        if "cost" in row:
            print(line.strip())
            continue
        ranks = row["ranks"]
        name = row["peer"] + (" " + row["memory"] if "memory" in row else "")
        algorithms.setdefault(row["bytes"], row.get("algorithm", ""))
        for mode in ("graph", "eager"):
            if mode + "_us" in row:
                times.setdefault((row["bytes"], name, mode), []).append(row[mode + "_us"])
    median = {key: statistics.median(values) for key, values in times.items()}
    link = float(sys.argv[2]) if len(sys.argv) > 2 else 352
    names = ["tutti ordinary", "tutti symmetric", "nccl", "one_shot", "two_shot"]
    print("| bytes | algorithm | " + " | ".join(names) + " | ours / best peer, graph, eager | of the link's rate |")
    print("|" + "---|" * (len(names) + 4))

    def cell(size, name):
        both = [median.get((size, name, mode)) for mode in ("graph", "eager")]
        return " / ".join("–" if value is None else f"{value:.2f}" for value in both)

    for size in sorted({key[0] for key in median}):
        ratios = []
        for mode in ("graph", "eager"):
            ours = [median[key] for key in median if key[0] == size and key[2] == mode and key[1].startswith("tutti")]
            peers = [median[key] for key in median if key[0] == size and key[2] == mode and not key[1].startswith("tutti")]
            ratios.append(f"{min(ours) / min(peers):.2f}" if ours and peers else "–")
        ours = min(value for key, value in median.items() if key[0] == size and key[1].startswith("tutti"))
        rate = 2 * (ranks - 1) / ranks * size / ours / 1e3 / link
        cells = " | ".join(cell(size, name) for name in names)
        print(f"| {size} | {algorithms[size].lower()} | {cells} | {', '.join(ratios)} | {rate:.0%} |")


if __name__ == "__main__":
    main()
