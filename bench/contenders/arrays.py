# The arrays that every contender gets: values, codes, descales, aligned to a cache line and shared without copies.
# SPDX-License-Identifier: MIT
import numpy as np

LARGEST = {"e4m3": 448.0, "e5m2": 57344.0}
BYTES = {"float": 4, "float16": 2, "bfloat16": 2}
STORED = {"float": np.float32, "float16": np.uint16, "bfloat16": np.uint16}  # 16-bit floats as their bits


def lines(count, dtype):
    """An array that begins at a cache line, touched. (NumPy asks for huge pages where it is large.)"""
    size = int(count) * np.dtype(dtype).itemsize
    memory = np.ones(size + 64, np.uint8)
    begin = -memory.ctypes.data % 64
    return memory[begin : begin + size].view(dtype)


def rounded(x, kind):
    """Floats as a kind's bits (float: as they are), rounded to nearest even; for finite values and infinities."""
    if kind == "float":
        return x
    if kind == "float16":
        with np.errstate(over="ignore"):
            return x.astype(np.float16).view(np.uint16)
    bits = x.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def as_float32(bits, kind):
    if kind == "float":
        return bits
    if kind == "float16":
        return bits.view(np.float16).astype(np.float32)
    return (bits.astype(np.uint32) << 16).view(np.float32)


def is_nan(bits, kind):
    return np.isnan(as_float32(bits, kind))


class Arrays:
    """values: rows * cols of `kind`, out of `drawn` repeated. codes: as many bytes. descales: one a row."""

    def __init__(self, kind, fmt, rows, cols, drawn):
        self.kind, self.fmt, self.rows, self.cols, self.count = kind, fmt, rows, cols, rows * cols
        self.values = lines(self.count, STORED[kind])
        self.codes = lines(self.count, np.uint8)
        self.descales = lines(rows, np.float32)
        self.values[:] = np.resize(drawn, self.count)
