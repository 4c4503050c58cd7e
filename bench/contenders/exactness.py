# Whether a contender has Octet's bytes: over every 16-bit input or 2^22 floats, and over every code.
# SPDX-License-Identifier: MIT
import numpy as np

from arrays import STORED, Arrays, is_nan


def inputs(kind, seed=1):
    """Every value of a 16-bit type; of float, 2^22 random words and then 2^16 that lie on and beside E4M3's ties."""
    if kind != "float":
        return np.arange(1 << 16, dtype=np.uint16)
    random = np.random.default_rng(seed)
    words = random.integers(0, 1 << 32, 1 << 22, dtype=np.uint32)
    words[: 1 << 21] = words[: 1 << 21] & 0x87FFFFFF | 0x38000000  # half of them within E4M3's range
    ties = (np.arange(1 << 16, dtype=np.uint32) << 16) + random.integers(-1, 2, 1 << 16).astype(np.uint32)
    return np.concatenate([words, ties]).view(np.float32)


def encoded(kind, fmt):
    x = inputs(kind)
    return Arrays(kind, fmt, 1, x.size, x), ~is_nan(x, kind)


def decoded(kind, fmt):
    a = Arrays(kind, fmt, 1, 1 << 12, np.zeros(1, STORED[kind]))
    a.codes[:] = np.resize(np.arange(256, dtype=np.uint8), a.count)
    nan = (a.codes & 0x7F) >= (0x7F if fmt == "e4m3" else 0x7D)
    return a, ~nan


def mismatches(op, kind, fmt, octet, contender):
    """(how many differ from Octet, of how many), NaN aside; nothing where the contender lacks the conversion."""
    a, kept = (encoded if op == "encode" else decoded)(kind, fmt)
    result = a.codes if op == "encode" else a.values
    octet.variants(op, a)[0][1]()
    expected = result.view(np.uint8 if op == "encode" else STORED[kind]).copy()
    call = contender.into_shared(op, a) if hasattr(contender, "into_shared") else None
    if call is None:
        ways = contender.variants(op, a)
        if not ways:
            return None
        call = ways[0][1]
    result[:] = 0
    call()
    width = np.uint8 if op == "encode" else (np.uint32 if kind == "float" else np.uint16)
    return int(np.count_nonzero((result.view(width) != expected.view(width)) & kept)), int(kept.sum())
