// Rows of the kernels that also move: transposed copies, and new tokens into a paged cache.
// SPDX-License-Identifier: MIT
#include "matrices.cuh"
#include "octet/cuda/paged.cuh"
#include "octet/cuda/transpose.cuh"
#include "octet/recipes.hpp"

namespace cuda_bench {
namespace {

using octet::bfloat16;
using octet::descale;
using octet::e4m3;
using octet::per_block;
using octet::per_tensor;
using octet::scale_rule;

constexpr std::size_t wide = 4096;  // columns

// A descale for 128 rows of a column, found on the way.
template <class T>
contest transposed(arena& a) {
  const per_block<1, 128> granularity;
  const matrices<T, e4m3, descale, per_block<128, 1>> m(a, wide, per_block<128, 1>());
  a.draw(m.x);
  return m.against_copy(a, [=](std::size_t turn, cudaStream_t stream) {
    return octet::cuda::quantize_transposed_into(m.values(turn), granularity, scale_rule(), m.transposed(turn),
                                                 m.descales[turn], stream);
  });
}
template <class T>
contest transposed_given(arena& a) {
  const matrices<T, e4m3, descale, per_tensor> m(a, wide, per_tensor{});
  a.draw(m.x);
  a.draw(m.descales);
  return m.against_copy(a, [=](std::size_t turn, cudaStream_t stream) {
    const descale* const known = m.descales[turn];
    return octet::cuda::quantize_transposed_into(m.values(turn), per_tensor{}, known, m.transposed(turn),
                                                 octet::scaling::divide, stream);
  });
}

// Both copies from one reading.
template <class T, class Descale, class Granularity>
struct copies {
  matrices<T, e4m3, Descale, Granularity> m;
  turns<e4m3> transposed;
  turns<Descale> descales;  // of the transpose

  copies(arena& a, const Granularity& granularity) : m(a, wide, granularity, 1, 2) {
    a.draw(m.x);
    transposed = a.room<e4m3>(m.rows * m.cols);
    descales = a.room<Descale>(octet::descale_count(granularity, m.cols, m.rows));
  }
  octet::matrix_view<e4m3> turned(std::size_t turn) const { return {transposed[turn], m.cols, m.rows}; }
};
template <class T, class Descale, std::size_t C>
contest both_found(arena& a, const scale_rule& rule) {
  const per_block<1, C> granularity;
  const copies<T, Descale, per_block<1, C>> to(a, granularity);
  return to.m.against_copy(a, [=](std::size_t turn, cudaStream_t stream) {
    return octet::cuda::quantize_with_transpose_into(to.m.values(turn), granularity, rule, to.m.coded(turn),
                                                     to.m.descales[turn], to.turned(turn), to.descales[turn], stream);
  });
}
template <class T>
contest both_given(arena& a) {
  const copies<T, descale, per_tensor> to(a, per_tensor{});
  a.draw(to.m.descales);
  return to.m.against_copy(a, [=](std::size_t turn, cudaStream_t stream) {
    const descale* const known = to.m.descales[turn];
    return octet::cuda::quantize_with_transpose_into(to.m.values(turn), per_tensor{}, known, to.m.coded(turn), known,
                                                     to.turned(turn), octet::scaling::divide, stream);
  });
}

// Keys of a prefill, 8 heads of 128, into pages of 16 tokens that lie in no order.
constexpr std::size_t heads = 8, head_dim = 128, page_size = 16;

// Pages of neighbours lie far apart: the even ones from the first on, the odd ones from the last on.
__global__ void scatter(std::int64_t* slots, std::size_t tokens) {
  const std::size_t token = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::size_t page = token / page_size, pages = tokens / page_size;
  const std::size_t place = page % 2 == 0 ? page / 2 : pages - 1 - page / 2;
  if (token < tokens) slots[token] = static_cast<std::int64_t>(place * page_size + token % page_size);
}

template <class T, class Granularity>
struct appended {
  matrices<T, e4m3, descale, Granularity> m;
  std::size_t pages;
  std::int64_t* slots;

  appended(arena& a, const Granularity& granularity) : m(a, heads * head_dim, granularity) {
    m.rows = m.rows < page_size ? page_size : m.rows / page_size * page_size;
    pages = m.rows / page_size;
    a.draw(m.x);
    slots = a.shared<std::int64_t>(m.rows);
    scatter<<<static_cast<unsigned>((m.rows + 255) / 256), 256, 0, a.stream()>>>(slots, m.rows);
    require(cudaGetLastError(), "the slots");
    m.bytes += static_cast<double>(m.rows * sizeof(std::int64_t));
  }
  octet::cuda::paged_cache<e4m3> cache(std::size_t turn) const {
    return {m.codes[turn], pages, page_size, heads, head_dim};
  }
};

template <class T>
contest append_given(arena& a) {
  const octet::cuda::per_head granularity(head_dim);
  const appended<T, octet::cuda::per_head> to(a, granularity);
  a.draw(to.m.descales);
  return to.m.against_copy(a, [=](std::size_t turn, cudaStream_t stream) {
    return octet::cuda::append_into(to.m.values(turn), to.slots, to.cache(turn), granularity, to.m.descales[turn],
                                    octet::scaling::divide, stream);
  });
}
template <class T>
contest append_found(arena& a) {
  const appended<T, per_block<1, head_dim>> to(a, per_block<1, head_dim>());
  return to.m.against_copy(a, [=](std::size_t turn, cudaStream_t stream) {
    return octet::cuda::append_into(to.m.values(turn), to.slots, to.cache(turn), scale_rule(), to.m.descales[turn],
                                    stream);
  });
}

}  // namespace

void add_layouts(std::vector<row>& rows) {
  const row all[] = {
      {"cuda/quantize_transposed/bfloat16/e4m3/1x128", 0, transposed<bfloat16>},
      {"cuda/quantize_transposed/float/e4m3/1x128", 0, transposed<float>},
      {"cuda/quantize_transposed/bfloat16/e4m3/per_tensor/static", 0, transposed_given<bfloat16>},
      {"cuda/quantize_with_transpose/bfloat16/e4m3/1x128", 0,
       [](arena& a) { return both_found<bfloat16, descale, 128>(a, scale_rule()); }},
      {"cuda/quantize_with_transpose/bfloat16/e4m3/1x32_mx", 0,
       [](arena& a) { return both_found<bfloat16, octet::e8m0, 32>(a, octet::recipes::mx()); }},
      {"cuda/quantize_with_transpose/bfloat16/e4m3/per_tensor/static", 0, both_given<bfloat16>},
      {"cuda/append/bfloat16/e4m3/per_head", 0, append_given<bfloat16>},
      {"cuda/append/bfloat16/e4m3/per_token_and_head", 0, append_found<bfloat16>},
  };
  rows.insert(rows.end(), std::begin(all), std::end(all));
}

}  // namespace cuda_bench
