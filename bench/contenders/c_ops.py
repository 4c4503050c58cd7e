# Contenders behind a C interface: Octet (octet.cpp) and NVIDIA's cuda_fp8.h on the host (cuda_fp8.cpp).
# SPDX-License-Identifier: MIT
import ctypes
import os


class Library:
    def __init__(self, name, file):
        self.name = name
        self.library = ctypes.CDLL(file)

    def function(self, name, *arguments, result=None):
        """A call without arguments, or nothing where the library has no such function. Pointers and sizes are made C
        values here, once."""
        if not hasattr(self.library, name):
            return None
        function = getattr(self.library, name)
        function.restype = result
        values = [
            ctypes.c_size_t(a) if isinstance(a, int) else ctypes.c_void_p(a.ctypes.data) for a in arguments
        ]
        function.argtypes = [type(v) for v in values]
        return lambda: function(*values)

    def encode(self, a):
        return self.function(f"encode_{a.kind}_{a.fmt}", a.values, a.codes, a.count)

    def decode(self, a):
        return self.function(f"decode_{a.fmt}_{a.kind}", a.codes, a.values, a.count)

    def amax(self, a):
        return self.function(f"amax_{a.kind}", a.values, a.count, result=ctypes.c_float)

    def per_tensor(self, a):
        return self.function(f"quantize_{a.kind}_per_tensor", a.values, a.codes, a.descales, a.rows, a.cols)

    def per_token(self, a):
        return self.function(f"quantize_{a.kind}_per_token", a.values, a.codes, a.descales, a.rows, a.cols)

    def variants(self, op, a):
        call = getattr(self, op)(a)
        return [("", call)] if call else []


def octet(folder):
    return Library("Octet", os.path.join(folder, "liboctet_contender.so"))


def cuda_fp8(folder):
    file = os.path.join(folder, "libcuda_fp8_contender.so")
    return Library("cuda_fp8.h, host", file) if os.path.exists(file) else None
