# PyTorch on the CPU: saturating casts and dynamic quantization, eager and compiled, each way an expert might write it.
# SPDX-License-Identifier: MIT
import signal

import torch

from arrays import LARGEST

KINDS = {"float": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
FORMATS = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
PIECE = 1 << 16  # elements; intermediate results of so many stay in the second-level cache

torch.set_num_threads(1)


def tensors(a):
    return (
        torch.from_numpy(a.values).view(KINDS[a.kind]),
        torch.from_numpy(a.codes).view(FORMATS[a.fmt]),
        torch.from_numpy(a.descales),
    )


def saturates(a):
    """Whether the cast alone does; that of E4M3 does so in newer versions, and needs no clamp then."""
    kind, fmt = KINDS[a.kind], FORMATS[a.fmt]
    beyond = torch.tensor([1e30, float("inf"), 2 * LARGEST[a.fmt]] * 32).to(kind)
    return bool((beyond.to(fmt).float() == LARGEST[a.fmt]).all())


def in_pieces(step, count, size):
    """Calls step(begin, end) for pieces; a whole array that is one piece has no loop."""
    pieces = [(i, min(i + size, count)) for i in range(0, count, size)]

    def call():
        for begin, end in pieces:
            step(begin, end)

    return call


class Eager:
    name = "torch"

    def encode(self, a):
        x, out, _ = tensors(a)
        most, kept = LARGEST[a.fmt], torch.empty(a.count, dtype=x.dtype)
        if saturates(a):
            yield "the cast alone", lambda: out.copy_(x)
        yield "out.copy_(x.clamp())", lambda: out.copy_(x.clamp(-most, most))
        yield "clamp(out=), copy_", lambda: out.copy_(torch.clamp(x, -most, most, out=kept))
        if a.count > PIECE:
            short = kept[:PIECE]
            yield "in pieces of 65536", in_pieces(
                lambda b, e: out[b:e].copy_(torch.clamp(x[b:e], -most, most, out=short[: e - b])), a.count, PIECE
            )

    def decode(self, a):
        x, codes, _ = tensors(a)
        yield "out.copy_(codes)", lambda: x.copy_(codes)

        # torch's own decoder of E4M3 is one value at a time; a table of the 256 values is faster.
        table = torch.arange(256, dtype=torch.uint8).view(codes.dtype).to(x.dtype)
        bytes, size = codes.view(torch.uint8), min(a.count, PIECE)
        index = torch.empty(size, dtype=torch.int32)

        def look_up(b, e):
            torch.index_select(table, 0, index[: e - b].copy_(bytes[b:e]), out=x[b:e])

        yield "index_select of a table", in_pieces(look_up, a.count, size)

    def amax(self, a):
        x, _, _ = tensors(a)
        infinity = float("inf")
        yield "abs().amax()", lambda: float(x.abs().amax())
        yield "vector_norm(inf)", lambda: float(torch.linalg.vector_norm(x, infinity))

        def ends():
            least, most = torch.aminmax(x)
            return max(-float(least), float(most))

        yield "aminmax", ends

    # Both quantizers with descale = amax / 448, and x / descale or x * (1 / descale). `clamp_` costs a pass and changes
    # no byte here but NaN's; a way without it takes part too.
    def quantize(self, a, rows_at_once, shared):
        x, out, descales = (t.view(a.rows, -1) for t in tensors(a))
        most, infinity = LARGEST[a.fmt], float("inf")
        kept = torch.empty(rows_at_once, a.cols)

        def norm(t):
            return torch.linalg.vector_norm(t, infinity, dim=-1, keepdim=True, dtype=torch.float32)

        def abs_amax(t):
            return t.abs().amax(dim=-1, keepdim=True).float()

        def ends(t):
            least, largest = torch.aminmax(t, dim=-1, keepdim=True)
            return torch.maximum(-least, largest).float()

        whole = x.view(1, -1)
        for name, amax in (("vector_norm", norm), ("abs().amax()", abs_amax), ("aminmax", ends)):
            for clamped in (True, False):
                for divides in (True, False):

                    def step(b, e, amax=amax, clamped=clamped, divides=divides, scale=None):
                        if scale is None:
                            scale = torch.div(amax(x[b:e]), most, out=descales[b:e])
                        t = kept[: e - b]
                        torch.div(x[b:e], scale, out=t) if divides else torch.mul(x[b:e], 1 / scale, out=t)
                        out[b:e].copy_(t.clamp_(-most, most) if clamped else t)

                    def tensor(step=step, amax=amax):
                        scale = torch.div(amax(whole), most, out=descales[:1])
                        in_pieces(lambda b, e: step(b, e, scale=scale), a.rows, rows_at_once)()

                    way = f"{name}, {'/' if divides else '*'}{', clamp' if clamped else ''}"
                    if rows_at_once < a.rows:
                        way += f", {rows_at_once} rows at a time"
                    yield way, tensor if shared else in_pieces(step, a.rows, rows_at_once)

    def in_both_sizes(self, a, shared):
        """The whole matrix at once, and few rows at a time; of a large one only the latter, which is then faster."""
        rows = min(a.rows, max(1, PIECE // a.cols))
        yield from self.quantize(a, rows, shared)
        if rows < a.rows and a.count < 64 * PIECE:
            yield from self.quantize(a, a.rows, shared)

    def per_token(self, a):
        return self.in_both_sizes(a, shared=False)

    def per_tensor(self, a):
        return self.in_both_sizes(a, shared=True)

    def variants(self, op, a):
        return list(getattr(self, op)(a))


class RawCast:
    """The cast alone. Where it does not saturate it is no peer of the saturating encode, only a mark."""

    name = "torch, raw cast"

    def variants(self, op, a):
        if op != "encode":
            return []
        x, out, _ = tensors(a)
        return [("out.copy_(x)", lambda: out.copy_(x))]


class TooLong(Exception):
    pass


class Compiled:
    """torch.compile. What it cannot compile in time is left out, with a word to `say`."""

    name = "torch.compile"

    def __init__(self, say, limit=120):
        self.say, self.limit, self.broken = say, limit, False

    def encode(self, a):
        x, out, _ = tensors(a)
        most = LARGEST[a.fmt]
        if saturates(a):
            return (lambda x, out: out.copy_(x)), (x, out)
        return (lambda x, out: out.copy_(x.clamp(-most, most))), (x, out)

    def decode(self, a):
        x, codes, _ = tensors(a)
        return (lambda codes, x: x.copy_(codes)), (codes, x)

    def amax(self, a):
        x, _, _ = tensors(a)
        return (lambda x: x.abs().amax()), (x,)

    def per_token(self, a):
        x, out, descales = (t.view(a.rows, -1) for t in tensors(a))
        most = LARGEST[a.fmt]

        def step(x, out, descales):
            descales.copy_(x.abs().amax(dim=-1, keepdim=True).float() / most)
            out.copy_((x / descales).clamp(-most, most))

        return step, (x, out, descales)

    def per_tensor(self, a):
        x, out, descales = tensors(a)
        most = LARGEST[a.fmt]

        def step(x, out, descales):
            descale = x.abs().amax().float() / most
            descales.copy_(descale)
            out.copy_((x.float() / descale).clamp(-most, most))

        return step, (x, out, descales[:1])

    def variants(self, op, a):
        if self.broken:
            return []

        def stop(*_):
            raise TooLong(f"took longer than {self.limit} s")

        before = signal.signal(signal.SIGALRM, stop)
        signal.alarm(self.limit)
        try:
            torch._dynamo.reset()
            function, arguments = getattr(self, op)(a)
            compiled = torch.compile(function, dynamic=False)
            compiled(*arguments)
        except Exception as error:  # whatever its compiler could not do
            self.broken = True
            self.say(f"torch.compile is left out: {type(error).__name__}: {str(error).strip().splitlines()[0]}")
            return []
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)
        if op == "amax":
            return [("", lambda: float(compiled(*arguments)))]
        return [("", lambda: compiled(*arguments))]
