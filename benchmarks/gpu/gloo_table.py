#!/usr/bin/env python3
"""Prints the medians of the rounds of benchmarks/gpu/gloo or sparse as a Markdown table.

usage: gloo_table.py FILE UNIT_OF_SIZES; a line of it: WHO SIZE MICROS_OF_A_CUDA_TENSOR MICROS_OF_A_HOST_TENSOR
"""
import statistics
import sys


def main():
    times = {}
    for line in open(sys.argv[1]):
        who, size, on_device, on_host = line.split()
        times.setdefault((int(size), who, "cuda"), []).append(float(on_device))
        times.setdefault((int(size), who, "cpu"), []).append(float(on_host))
    median = {key: statistics.median(values) for key, values in times.items()}

    def cell(size, who, kind):
        values = times[size, who, kind]
        return f"{median[size, who, kind]:.1f} ({min(values):.1f}–{max(values):.1f})"

    columns = [("pytorch", "cuda"), ("pytorch", "cpu"), ("tutti", "cuda"), ("host", "cuda"), ("host", "cpu")]
    print(f"| {sys.argv[2]} | PyTorch, CUDA tensor | PyTorch, host tensor | Tutti, CUDA tensor | by the host | Tutti, host tensor | PyTorch / Tutti | / by the host |")
    print("|---|---|---|---|---|---|---|---|")
    for size in sorted({key[0] for key in median}):
        cells = " | ".join(cell(size, *column) for column in columns)
        ratios = [median[size, "pytorch", "cuda"] / median[size, who, "cuda"] for who in ("tutti", "host")]
        print(f"| {size} | {cells} | {ratios[0]:.1f} | {ratios[1]:.1f} |")


if __name__ == "__main__":
    main()
