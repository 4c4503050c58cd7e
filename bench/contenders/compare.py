# Octet beside its peers in one process, on the same arrays and in turn: a table of nanoseconds an element and ratios.
# SPDX-License-Identifier: MIT
#
# Started by bench/peers, which makes the environment: compare.py --libraries FOLDER --results FOLDER [--quick]
import argparse
import datetime
import json
import os
import platform
import sys

import numpy as np

import c_ops
import exactness
from arrays import BYTES, STORED, Arrays, rounded
from clock import Clock

# What is compared: (operation, kind of values, format), and its line in the table.
OPERATIONS = [
    (("encode", "float", "e4m3"), "float to e4m3"),
    (("encode", "float", "e5m2"), "float to e5m2"),
    (("encode", "float16", "e4m3"), "float16 to e4m3"),
    (("encode", "bfloat16", "e4m3"), "bfloat16 to e4m3"),
    (("encode", "bfloat16", "e5m2"), "bfloat16 to e5m2"),
    (("decode", "float", "e4m3"), "e4m3 to float"),
    (("decode", "bfloat16", "e4m3"), "e4m3 to bfloat16"),
    (("decode", "float16", "e4m3"), "e4m3 to float16"),
    (("decode", "float", "e5m2"), "e5m2 to float"),
    (("amax", "float", "e4m3"), "amax of float"),
    (("amax", "bfloat16", "e4m3"), "amax of bfloat16"),
    (("per_token", "float", "e4m3"), "float to e4m3, descale per token"),
    (("per_token", "bfloat16", "e4m3"), "bfloat16 to e4m3, descale per token"),
    (("per_tensor", "float", "e4m3"), "float to e4m3, descale per tensor"),
]

# Bytes read and written. 16 MiB: in the last-level cache, and long enough that no Python call counts.
SIZES = [("L1", 1 << 14), ("L2", 1 << 20), ("16 MiB", 1 << 24), ("MEM", 1 << 30)]


def say(line):
    print(line, file=sys.stderr, flush=True)


def shape(op, kind, size):
    """Rows of 4096 values (fewer where the size has not so many)."""
    count = size // (BYTES[kind] + (op != "amax"))
    cols = 4096 if count >= 65536 else 512
    return max(1, count // cols), cols


def contenders(libraries, with_compile):
    """Octet, then the peers that are installed; a word about each that is not."""
    from ml_dtypes_ops import MlDtypes
    from torch_ops import Compiled, Eager, RawCast

    found = [c_ops.octet(libraries), Eager(), RawCast()]
    if with_compile:
        found.append(Compiled(say))
    found.append(MlDtypes())
    try:
        from mlx_ops import Mlx

        found.append(Mlx())
    except Exception as error:
        say(f"mlx is left out: {error}")
    cuda = c_ops.cuda_fp8(libraries)
    if cuda:
        found.append(cuda)
    else:
        say("cuda_fp8.h is left out: the CUDA toolkit's headers were not found")
    return found


def judge(all_contenders):
    """By (operation, contender): (mismatches, compared)."""
    octet, judged = all_contenders[0], {}
    for (op, kind, fmt), _ in OPERATIONS:
        if op in ("encode", "decode"):
            for c in all_contenders[1:]:
                found = exactness.mismatches(op, kind, fmt, octet, c)
                if found:
                    judged[(op, kind, fmt), c.name] = found
    return judged


def measure(operation, size, drawn, all_contenders, clock):
    """Nanoseconds an element, the ratio to Octet and the fastest way, by contender."""
    op, kind, fmt = operation
    rows, cols = shape(op, kind, size)
    a = Arrays(kind, fmt, rows, cols, drawn[kind])
    racing, ways = {}, {}
    for c in all_contenders:
        if op == "decode":
            a.codes[:] = np.resize(drawn["codes"], a.count)
        variants = c.variants(op, a)
        if variants:
            ways[c.name], racing[c.name] = clock.fastest(variants)
    medians, ratios = clock.race(racing, all_contenders[0].name)
    return {
        name: {"ns": 1e9 * medians[name] / a.count, "ratio": ratios[name], "way": ways[name]} for name in racing
    }


def overheads(octet, clock):
    """What a call costs from Python, in nanoseconds."""
    import torch

    one, other = torch.zeros(1), torch.zeros(1)
    x, y = np.zeros(1, np.float32), np.zeros(1, np.float32)
    calls = {
        "an empty C function by ctypes": octet.function("nothing", x, y, 0),
        "torch, copy_ of one element": lambda: other.copy_(one),
        "NumPy, copyto of one element": lambda: np.copyto(y, x),
    }
    return {name: 1e9 * t for name, t in clock.race(calls, next(iter(calls)))[0].items()}


def first_value(file, key):
    if not os.path.exists(file):
        return platform.machine()
    with open(file) as lines:
        return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(key)), "?")


def describe(all_contenders, libraries):
    import ctypes
    from importlib import metadata

    row = c_ops.octet(libraries).function("row", result=ctypes.c_char_p)().decode()
    versions = {}
    for package in ("torch", "ml_dtypes", "numpy", "mlx"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            pass
    return {
        "machine": first_value("/proc/cpuinfo", "model name"),
        "processors": os.cpu_count(),
        "row": row,
        "versions": versions,
        "python": platform.python_version(),
        "date": datetime.date.today().isoformat(),
        "load_average": os.getloadavg()[0],
        "nice": os.nice(0),
    }


def number(ns):
    return f"{ns:.3f}" if ns < 10 else f"{ns:.1f}"


def markdown(context, results, judged, calls, names):
    versions = ", ".join(f"{name} {version}" for name, version in context["versions"].items())
    text = [
        f"{context['machine']}, {context['processors']} processors, Octet's row {context['row']}; {versions}; "
        f"Python {context['python']}; one thread, its processor time; nice {context['nice']}; "
        f"load average {context['load_average']:.1f}; {context['date']}.",
        "",
    ]
    sizes = list(dict.fromkeys(r["size"] for r in results))
    for size in sizes:
        text.append(f"| {size}: ns an element (times Octet's) | " + " | ".join(names) + " |")
        text.append("|---" + "|--:" * len(names) + "|")
        for r in results:
            if r["size"] != size:
                continue
            cells = []
            for name in names:
                found = r["contenders"].get(name)
                if not found:
                    cells.append("")
                    continue
                wrong = judged.get((tuple(r["operation"]), name), (0, 0))[0]
                ratio = "" if name == names[0] else f" ({found['ratio']:.1f}){' *' if wrong else ''}"
                cells.append(number(found["ns"]) + ratio)
            text.append(f"| {r['name']} | " + " | ".join(cells) + " |")
        text.append("")
    wrong = [
        f"{name}, {dict((tuple(o), n) for o, n in OPERATIONS)[operation]}: {count} of {of}"
        for (operation, name), (count, of) in judged.items()
        if count
    ]
    text.append("`*` has other bytes than Octet, NaN aside: " + ("; ".join(wrong) if wrong else "none has") + ".")
    prices = "; ".join(f"{name} {ns:.0f} ns" for name, ns in calls.items())
    text += ["", f"What a call from Python costs, and the times above hold: {prices}.", ""]
    fastest = []
    for r in results:
        way = r["contenders"].get("torch", {}).get("way")
        if r["size"] == "MEM" and way:
            fastest.append(f"{r['name']}: {way}")
    if fastest:
        text.append("The fastest way of torch in MEM: " + "; ".join(fastest) + ".")
    return "\n".join(text) + "\n"


def write_whole(path, text):
    with open(path + ".unfinished", "w") as file:
        file.write(text)
    os.replace(path + ".unfinished", path)


def main():
    parser = argparse.ArgumentParser(prog="compare.py")
    parser.add_argument("--libraries", required=True)
    parser.add_argument("--results", required=True)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()

    everyone = contenders(options.libraries, with_compile=not options.quick)
    names = [c.name for c in everyone]
    say("comparing bytes ...")
    judged = judge(everyone)

    random = np.random.default_rng(1)
    normal = random.standard_normal(1 << 20, dtype=np.float32)
    drawn = {kind: rounded(normal, kind) for kind in STORED}
    drawn["codes"] = random.integers(0, 256, 1 << 20, dtype=np.uint8)
    rounds = 5 if options.quick else 15
    calls = overheads(everyone[0], Clock(1e-3, rounds, 1))
    results = []
    for size_name, size in SIZES:
        clock = Clock(batch=2e-3, rounds=rounds if size < 1 << 30 else rounds // 2, patience=1 if options.quick else 4)
        for operation, name in OPERATIONS:
            found = measure(operation, size, drawn, everyone, clock)
            results.append({"size": size_name, "operation": operation, "name": name, "contenders": found})
            say(
                f"  {size_name:6} {name:36} "
                + "  ".join(f"{c} {number(f['ns'])}" for c, f in found.items())
            )

    context = describe(everyone, options.libraries)
    text = markdown(context, results, judged, calls, names)
    exact = [
        {"operation": o, "contender": name, "mismatches": wrong, "compared": of}
        for (o, name), (wrong, of) in judged.items()
    ]
    report = {"context": context, "call_ns": calls, "bytes": exact, "results": results}
    write_whole(os.path.join(options.results, "peers.json"), json.dumps(report, indent=1) + "\n")
    write_whole(os.path.join(options.results, "peers.md"), text)
    print(text, end="")


if __name__ == "__main__":
    main()
