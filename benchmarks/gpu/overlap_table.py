#!/usr/bin/env python3
"""Prints what benchmarks/gpu/overlap measured: milliseconds per step, and how many of them communication adds.

usage: overlap_table.py OVERLAP.jsonl

Of several rounds, the median is taken. "exposed" is the step less the step alone, of the same peer.
"""
import json
import statistics
import sys

NAMES = ["backend", "lanes", "copies", "piece", "bucket_mib", "views", "high_priority", "left_out", "ctas"]


def main():
    rows = {}
    for line in open(sys.argv[1]):
        record = json.loads(line)
        settings = tuple(f"{name}={record[name]}" for name in NAMES if name in record)
        key = (record["peer"], record["what"], settings)
        rows.setdefault(key, []).append(record)
    alone = {}
    for (peer, what, _), records in rows.items():
        if what in ("alone", "alone-graph"):
            alone.setdefault((peer, what), []).extend(each["ms"] for each in records)
    print("| peer | what | ms per step | range | exposed ms | settings |")
    print("|---|---|---|---|---|---|")
    for (peer, what, settings), records in sorted(rows.items()):
        median = statistics.median(each["ms"] for each in records)
        least = min(each["least_ms"] for each in records)
        most = max(each["most_ms"] for each in records)
        base = alone.get((peer, "alone-graph" if what == "graph" else "alone"))
        hidden = what.startswith("alone") or what.endswith("reductions") or base is None
        exposed = "" if hidden else f"{median - statistics.median(base):.2f}"
        print(f"| {peer} | {what} | {median:.2f} | {least:.2f}–{most:.2f} | {exposed} | {' '.join(settings)} |")
    both = [alone.get((peer, "alone")) for peer in ("tutti", "torch")]
    if all(both):
        ratio = statistics.median(both[0]) / statistics.median(both[1])
        print(f"\nThe step alone takes {ratio:.3f} of PyTorch's; comparisons hold if that is 0.97 to 1.03.")


if __name__ == "__main__":
    main()
