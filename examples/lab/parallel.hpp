// Work shared among threads in slices that do not depend on how many there are, so that results do not either.
// SPDX-License-Identifier: MIT
#pragma once

#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cstddef>

namespace lab {

// While it lives, at most so many threads work; 0: one a processor.
class thread_limit {
 public:
  explicit thread_limit(std::size_t threads)
      : control_(tbb::global_control::max_allowed_parallelism,
                 threads != 0 ? threads : static_cast<std::size_t>(tbb::info::default_concurrency())) {}

 private:
  tbb::global_control control_;
};

// body(i) for every i below `count`.
template <class Body>
void for_each_index(std::size_t count, const Body& body) {
  if (count == 1)
    body(std::size_t{0});
  else
    tbb::parallel_for(std::size_t{0}, count, body);
}

// body(first, last) for every slice of `size` of the numbers below `count`; the last slice may be short.
template <class Body>
void for_each_slice(std::size_t count, std::size_t size, const Body& body) {
  for_each_index((count + size - 1) / size, [&](std::size_t i) { body(i * size, std::min(count, (i + 1) * size)); });
}

}  // namespace lab
