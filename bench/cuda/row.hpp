// What is measured on a GPU: a row is a name, a goal, and two works that race, the second of which is the mark.
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "arena.cuh"

namespace cuda_bench {

// Starts one run on the stream, on the arrays of that turn: turns go round, so that no cache holds them.
using launch = std::function<cudaError_t(std::size_t turn, cudaStream_t)>;

struct contest {
  std::string shape;  // in words
  double bytes;       // that it must read and write
  double operations;  // multiplications and additions of a product; 0: none
  launch work, mark;  // what is measured, and what it is measured against
  std::string mark_name = "the copy";
};

// goal: the speed as a share of the mark's that is wanted; 0: none.
struct row {
  std::string name;
  double goal;
  std::function<contest(arena&)> prepare;
};

// What this GPU or library does not do; the row is left out, and nothing has failed.
struct unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The rows of each file.
void add_conversions(std::vector<row>& rows);
void add_quantizers(std::vector<row>& rows);
void add_layouts(std::vector<row>& rows);
void add_attention(std::vector<row>& rows);
void add_products(std::vector<row>& rows);  // none where the program was built without cuBLASLt

}  // namespace cuda_bench
