# ml_dtypes, the fp8 types of NumPy, JAX and TensorFlow: casts by NumPy, with np.clip for saturation.
# SPDX-License-Identifier: MIT
import ml_dtypes
import numpy as np

from arrays import LARGEST

KINDS = {"float": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
np.seterr(invalid="ignore")  # NaN is no news

FORMATS = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


class MlDtypes:
    name = "ml_dtypes"

    def encode(self, a):
        x, out = a.values.view(KINDS[a.kind]), a.codes.view(FORMATS[a.fmt])
        most, kept = x.dtype.type(LARGEST[a.fmt]), np.empty(a.count, x.dtype)

        def call():
            np.clip(x, -most, most, out=kept)
            np.copyto(out, kept, casting="unsafe")

        return call

    def decode(self, a):
        x, codes = a.values.view(KINDS[a.kind]), a.codes.view(FORMATS[a.fmt])
        return lambda: np.copyto(x, codes, casting="unsafe")

    def variants(self, op, a):
        return [("", getattr(self, op)(a))] if hasattr(self, op) else []
