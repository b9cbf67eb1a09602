"""Checks every file of a checkpoint that CheckpointPython.java saved, and writes files for it to read.

usage: checkpoint_python.py CHECKPOINT FOLDER

Needs safetensors, and torch or numpy: with numpy, files are written only with the types that numpy has.
"""

import json
import pathlib
import re
import sys

import safetensors

TYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64",
    "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64", "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
    "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz",
}  # fmt: skip
SIZES = {"bool": 1, "uint8": 1, "int8": 1, "bfloat16": 2, "complex64": 8}
MORE = ["uint16", "uint32", "uint64"]
try:
    import ctypes

    import torch
    from safetensors.torch import load_file, save_file

    def made(dtype, shape, data):
        if not data:
            return torch.empty(shape, dtype=getattr(torch, dtype))
        return torch.frombuffer(bytearray(data), dtype=getattr(torch, dtype)).reshape(shape)

    def raw(tensor):
        tensor = tensor.contiguous()
        size = tensor.numel() * tensor.element_size()
        return ctypes.string_at(tensor.data_ptr(), size) if size else b""

    LIBRARY, WRITABLE = "torch " + torch.__version__, [t for t in [*TYPES.values(), *MORE] if hasattr(torch, t)]
except ImportError:
    import numpy
    from safetensors.numpy import load_file, save_file

    def made(dtype, shape, data):
        return numpy.frombuffer(data, dtype=numpy.dtype(dtype)).reshape(shape)

    def raw(tensor):
        return tensor.tobytes()

    LIBRARY, WRITABLE = "numpy " + numpy.__version__, [t for t in [*TYPES.values(), *MORE] if hasattr(numpy, t) or t == "bool"]


def size(dtype):
    return SIZES.get(dtype) or (1 if dtype.startswith("float8") else int(dtype.strip("uintfloa")) // 8)


def data(name):
    """Returns what the name of a tensor says: type, shape, bytes."""
    dtype, shape, number = name.split("/")
    shape = [int(n) for n in shape.split("x")] if shape else []
    count = size(dtype)
    for n in shape:
        count *= n
    number = int(number)
    if dtype == "bool":
        return dtype, shape, bytes((i + number) % 2 for i in range(count))
    return dtype, shape, bytes((31 * i + 7 * number) % 256 for i in range(count))


def check(checkpoint):
    tensors, holders = 0, {}
    for path in sorted(checkpoint.glob("*.safetensors")):
        try:
            found = dict(safetensors.deserialize(path.read_bytes()))
        except safetensors.SafetensorError as e:
            assert path.name.startswith("newer-") and "FNUZ" in str(e), path.name
            print(f"{path.name} is left out: safetensors {safetensors.__version__} has no such types")
            continue
        for key, tensor in found.items():
            name, first, end = re.fullmatch(r"(.*?)(?:\[(\d+):(\d+)\])?", key).groups()
            dtype, shape, expected = data(name)
            if first is not None:
                first, end = int(first), int(end)
                shape, expected = [end - first], expected[first * size(dtype) : end * size(dtype)]
            got = TYPES[tensor["dtype"]], list(tensor["shape"]), bytes(tensor["data"])
            assert got == (dtype, shape, expected), (path.name, key, got[:2])
            holders.setdefault(name, []).append(path.name)
            tensors += 1
        if all(t["dtype"] in TYPES and TYPES[t["dtype"]] in WRITABLE for t in found.values()):
            loaded = load_file(path)
            assert loaded.keys() == found.keys(), path.name
            for key, tensor in loaded.items():
                assert raw(tensor) == bytes(found[key]["data"]), (path.name, key)
    index = json.loads((checkpoint / "model.safetensors.index.json").read_text())
    assert index["weight_map"] and all(holders[n] == [f] for n, f in index["weight_map"].items()), index
    print(f"Python read {tensors} tensors of {len(list(checkpoint.glob('*.safetensors')))} files that Java saved")


def write(folder):
    for dtype in WRITABLE:
        names = [f"{dtype}/{shape}/{i}" for i, shape in enumerate(["", "1", "0x3", "3x5", "2x1x4", "70001"])]
        save_file({n: made(*data(n)) for n in names}, folder / f"{dtype}.safetensors", {"format": "pt"})
    everything = [f"{dtype}/7x11/{i}" for i, dtype in enumerate(WRITABLE)]
    save_file({n: made(*data(n)) for n in everything}, folder / "all.safetensors")
    save_file({}, folder / "none.safetensors")
    print(f"Python wrote {len(WRITABLE)} types with safetensors {safetensors.__version__} and {LIBRARY}")


check(pathlib.Path(sys.argv[1]))
write(pathlib.Path(sys.argv[2]))
