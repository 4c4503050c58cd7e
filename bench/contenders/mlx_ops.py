# MLX on the CPU: to_fp8 and from_fp8, E4M3 only. It works on arrays of its own, filled with the same values.
# SPDX-License-Identifier: MIT
import mlx.core as mx
import numpy as np

from arrays import STORED

KINDS = {"float": mx.float32, "float16": mx.float16, "bfloat16": mx.bfloat16}


class Mlx:
    name = "mlx"

    def __init__(self):
        mx.set_default_device(mx.cpu)
        mx.eval(mx.to_fp8(mx.array(np.ones(8, np.float32))))

    def encode(self, a):
        x = mx.array(a.values).view(KINDS[a.kind])
        return lambda: mx.eval(mx.to_fp8(x)), lambda: np.copyto(a.codes, np.array(mx.to_fp8(x)))

    def decode(self, a):
        codes, kind = mx.array(a.codes), KINDS[a.kind]
        bits = mx.float32 if a.kind == "float" else mx.uint16
        return (
            lambda: mx.eval(mx.from_fp8(codes, kind)),
            lambda: np.copyto(a.values, np.array(mx.from_fp8(codes, kind).view(bits)).astype(STORED[a.kind])),
        )

    def variants(self, op, a):
        return [("", getattr(self, op)(a)[0])] if hasattr(self, op) and a.fmt == "e4m3" else []

    def into_shared(self, op, a):
        """For the comparison of bytes: the same work, its result in the shared array."""
        return getattr(self, op)(a)[1] if hasattr(self, op) and a.fmt == "e4m3" else None
