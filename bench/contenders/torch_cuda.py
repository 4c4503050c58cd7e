# PyTorch's casts and per-token quantization on a GPU, eager and compiled, against its own copy of the same bytes.
# SPDX-License-Identifier: MIT
#
# torch_cuda.py [--quick] [--mib N] [--markdown FILE] [--json FILE]; the rows are named as those of cuda_bench, and both
# count the bytes that must be read and written, so that the two tables can be laid side by side.
# Exit code: 0 timed, 1 a failure, 2 usage, 77 no PyTorch or no CUDA device.
import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys

LARGEST = {"e4m3": 448.0, "e5m2": 57344.0}
CASTS = [
    ("float", "e4m3"),
    ("float", "e5m2"),
    ("float16", "e4m3"),
    ("bfloat16", "e4m3"),
    ("bfloat16", "e5m2"),
]
TOKENS = [("bfloat16", 2048), ("bfloat16", 4096), ("bfloat16", 16384), ("float", 4096)]
TURNS = 2  # arrays are taken in turn; each is far larger than any cache


def say(line):
    print(line, file=sys.stderr, flush=True)


def write_whole(path, text):
    with open(path + ".unfinished", "w") as file:
        file.write(text)
    os.replace(path + ".unfinished", path)


def driver():
    """As nvidia-smi names it, or in words that there is none."""
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown (no nvidia-smi)"


def rows(torch, moved):
    """By name: the bytes a call moves, and the ways to write it as functions of a turn's arrays."""
    kinds = {"float": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
    formats = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}

    def arrays(kind, fmt, cols):
        each = kinds[kind].itemsize + 1
        count = max(1, moved // each // cols)
        made = []
        for _ in range(TURNS):
            x = torch.randn(count, cols, device="cuda", dtype=kinds[kind])
            made.append((x, torch.empty(count, cols, device="cuda", dtype=formats[fmt])))
        return made, count * cols * each, count

    for kind, fmt in CASTS:
        most, to = LARGEST[fmt], formats[fmt]

        def cast(x, out):
            out.copy_(x)

        def clamp_and_cast(x, out, most=most):
            out.copy_(x.clamp(-most, most))

        made, moved_bytes, _ = arrays(kind, fmt, 4096)
        yield f"cuda/encode/{kind}/{fmt}", moved_bytes, made, {
            "x.to(), allocating": lambda x, out, to=to: x.to(to),
            "the cast": cast,
            "clamp, cast": clamp_and_cast,
        }
        del made
    for kind, cols in TOKENS:
        most = LARGEST["e4m3"]

        def per_token(x, out, most=most):
            descales = x.abs().amax(dim=-1, keepdim=True).float() / most
            out.copy_((x / descales).clamp(-most, most))
            return descales

        made, moved_bytes, count = arrays(kind, "e4m3", cols)
        yield f"cuda/quantize/{kind}/e4m3/per_token/{cols}", moved_bytes + 4 * count, made, {"": per_token}
        del made


def race(torch, ways, made, moved_bytes, rounds):
    """Medians of milliseconds by way, and of the copy's time over them, each within a round."""
    half = moved_bytes // 2
    here, there = (torch.ones(half, device="cuda", dtype=torch.uint8) for _ in range(2))
    calls = {**ways, "copy": lambda _: there.copy_(here)}
    taken = {way: [] for way in calls}
    for call in calls.values():
        for turn in range(2 * TURNS):
            call(turn)
    for i in range(rounds + 1):
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(len(calls) + 1)]
        marks[0].record()
        for mark, call in zip(marks[1:], calls.values()):
            call(i)
            mark.record()
        torch.cuda.synchronize()
        for way, begin, end in zip(calls, marks, marks[1:]):
            if i > 0:
                taken[way].append(begin.elapsed_time(end))
    found = {}
    for way in ways:
        of_copy = statistics.median(c / t for c, t in zip(taken["copy"], taken[way]))
        found[way] = {"ms": statistics.median(taken[way]), "of_copy": of_copy}
    return found


def compiled(torch, function, arguments):
    """None where torch.compile cannot."""
    try:
        torch._dynamo.reset()
        made = torch.compile(function, dynamic=False)
        made(*arguments)
        return made
    except Exception as error:
        say(f"torch.compile is left out: {type(error).__name__}: {str(error).strip().splitlines()[0]}")
        return None


def measure(torch, moved, rounds):
    results = []
    for name, moved_bytes, made, functions in rows(torch, moved):
        ways = {}
        for word, function in functions.items():
            ways[f"eager {word}".strip()] = lambda turn, f=function: f(*made[turn % TURNS])
            if word in ("", "clamp, cast"):
                faster = compiled(torch, function, made[0])
                if faster:
                    ways[f"compiled {word}".strip()] = lambda turn, f=faster: f(*made[turn % TURNS])
        for way, found in race(torch, ways, made, moved_bytes, rounds).items():
            results.append({"name": name, "way": way, "bytes": moved_bytes, **found})
            say(f"  {name:44} {way:28} {moved_bytes / found['ms'] / 1e6:8.0f} GB/s {100 * found['of_copy']:6.1f} %")
        made.clear()
    return results


def markdown(context, results):
    text = [
        f"{context['card']}, driver {context['driver']}, torch {context['torch']} with CUDA {context['cuda']}; "
        f"{context['mib']} MiB read and written a call; medians of {context['rounds']} rounds; {context['date']}.",
        "",
        "| PyTorch on the GPU | way | ms | GB/s | of the copy |",
        "|---|---|--:|--:|--:|",
    ]
    for r in results:
        text.append(
            f"| `{r['name']}` | {r['way']} | {r['ms']:.3f} | {r['bytes'] / r['ms'] / 1e6:.0f} | {100 * r['of_copy']:.1f} % |"
        )
    return "\n".join(text) + "\n"


def main():
    parser = argparse.ArgumentParser(prog="torch_cuda.py")
    parser.add_argument("--quick", action="store_true", help="few rounds: for a look, not for the record")
    parser.add_argument("--mib", type=int, default=4096, help="read and written a call, together")
    parser.add_argument("--markdown", help="also writes the table there")
    parser.add_argument("--json", help="also writes the results there")
    options = parser.parse_args()
    if not 1 <= options.mib <= 65536:
        parser.error(f"--mib {options.mib}: is no number from 1 to 65536")
    try:
        import torch
    except ImportError:
        say("torch_cuda.py: PyTorch is not installed: not timed")
        return 77
    if not torch.cuda.is_available():
        say("no CUDA device: PyTorch's casts on a GPU are not timed")
        return 77

    rounds = 5 if options.quick else 15
    results = measure(torch, options.mib << 20, rounds)
    context = {
        "card": torch.cuda.get_device_name(),
        "driver": driver(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "mib": options.mib,
        "rounds": rounds,
        "date": datetime.date.today().isoformat(),
    }
    text = markdown(context, results)
    if options.markdown:
        write_whole(options.markdown, text)
    if options.json:
        write_whole(options.json, json.dumps({"context": context, "results": results}, indent=1) + "\n")
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
