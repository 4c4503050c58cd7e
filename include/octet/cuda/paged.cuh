// Keys and values in FP8: new tokens are quantized into the slots of a paged cache, with their descales.
// SPDX-License-Identifier: MIT
#pragma once

#include "quantize.cuh"

namespace octet {
inline namespace v0 {
namespace cuda {

// The keys, or the values, of a layer: [pages, page_size, heads, head_dim] codes in the caller's memory. Slot s is place
// s % page_size of page s / page_size; its heads lie side by side. Strides in codes.
template <class F>
struct paged_cache {
  F* codes;
  std::size_t pages, page_size, heads, head_dim, slot_stride, page_stride;

  // Without gaps. Where keys and values share a page, or heads are padded, set the strides afterwards.
  OCTET_INLINE constexpr paged_cache(F* p, std::size_t page_count, std::size_t slots_a_page, std::size_t head_count,
                                     std::size_t dim)
      : codes(p),
        pages(page_count),
        page_size(slots_a_page),
        heads(head_count),
        head_dim(dim),
        slot_stride(head_count * dim),
        page_stride(slots_a_page * slot_stride) {}

  OCTET_INLINE constexpr std::size_t slots() const { return pages * page_size; }
  OCTET_INLINE constexpr F* slot(std::size_t s) const {
    return codes + s / page_size * page_stride + s % page_size * slot_stride;
  }
};

// One descale a head, the same for every token: [heads].
struct per_head {
  std::size_t head_dim;
  OCTET_INLINE explicit constexpr per_head(std::size_t dim) : head_dim(dim) {}
  OCTET_INLINE constexpr tiling tiles(std::size_t rows, std::size_t) const {
    return {{rows != 0 ? rows : 1, 0}, {head_dim != 0 ? head_dim : 1, 0}};
  }
  OCTET_INLINE constexpr per_head from_row(std::size_t) const { return *this; }
};

namespace detail {

// Codes go to the slots of a cache; a slot that it does not have takes none.
template <class F>
struct slot_rows {
  paged_cache<F> cache;
  const std::int64_t* slots;
  OCTET_INLINE F* row(std::size_t r) const {
    const auto s = static_cast<std::size_t>(slots[r]);  // a negative one is beyond the last
    return s < cache.slots() ? cache.slot(s) : nullptr;
  }
  OCTET_INLINE std::size_t descale_row(std::size_t i) const { return static_cast<std::size_t>(slots[i]); }
};

template <class T, class F, class Descale>
OCTET_LOCAL cudaError_t check(const matrix_view<T>& x, const std::int64_t* slots, const paged_cache<F>& cache,
                              Descale* descales, std::size_t count) {
  constexpr std::size_t most = static_cast<std::size_t>(-1) / 64;
  if (cache.head_dim == 0 || cache.heads > most / cache.head_dim) return cudaErrorInvalidValue;
  const std::size_t width = cache.heads * cache.head_dim;
  const matrix_view<F> page(cache.codes, cache.page_size, width, cache.slot_stride);
  const matrix_view<F> all(cache.codes, cache.pages, checked_extent(page), cache.page_stride);
  if (x.cols != width || page.empty() || all.empty()) return cudaErrorInvalidValue;
  const std::size_t in_n = checked_extent(x), out_n = checked_extent(all);
  if (const cudaError_t error = check(slots, x.rows, cache.codes, out_n); error != cudaSuccess) return error;
  if (const cudaError_t error = check(x.data, in_n, cache.codes, out_n); error != cudaSuccess) return error;
  if (const cudaError_t error = check(descales, count, cache.codes, out_n); error != cudaSuccess) return error;
  if (std::is_const_v<Descale>) return cudaSuccess;
  if (const cudaError_t error = check(slots, x.rows, descales, count); error != cudaSuccess) return error;
  return check(x.data, in_n, descales, count);
}

OCTET_HOST_INLINE bool is_of_cache(const per_tensor&, std::size_t) { return true; }
OCTET_HOST_INLINE bool is_of_cache(const per_head& g, std::size_t head_dim) { return g.head_dim == head_dim; }

template <class T, class F>
OCTET_HOST_INLINE bool takes_slices(const matrix_view<T>& x, const paged_cache<F>& cache, const tiling& t) {
  return is_wide(x) && is_multiple(cache.codes, 16) && cache.slot_stride % 16 == 0 && cache.page_stride % 16 == 0 &&
         cuts_between_slices<values_a_thread>(t.cols, x.cols);
}

}  // namespace detail

// In both: x: [tokens, heads * head_dim], keys or values; slots: [tokens], in device memory, where each token goes, and no
// two to the same place; a token with a negative slot (padding), or one beyond the last, is left out. Codes as
// cuda::quantize_into writes them. (A kernel of yours reads them by paged_cache::slot.)

// Descales given: per_tensor{}, one for all, or per_head{head_dim}, one a head.
template <class F, class T, class Granularity>
OCTET_LOCAL cudaError_t append_into(matrix_view<T> x, const std::int64_t* slots, const paged_cache<F>& cache,
                                    const Granularity& granularity, const descale* descales,
                                    scaling how = scaling::divide, cudaStream_t stream = nullptr) {
  static_assert(std::is_same_v<Granularity, per_tensor> || std::is_same_v<Granularity, per_head>,
                "a cache with given descales has one, or one a head");
  using Value = std::remove_const_t<T>;
  detail::require_types<F, Value, descale>();
  if (x.empty()) return cudaSuccess;
  if (!detail::is_of_cache(granularity, cache.head_dim)) return cudaErrorInvalidValue;
  const tiling t = granularity.tiles(x.rows, x.cols);
  const std::size_t count = t.cols.count(x.cols);
  if (const cudaError_t error = detail::check(x, slots, cache, descales, count); error != cudaSuccess) return error;
  const matrix_view<const Value> from(x);
  const detail::given_scales<descale> scales{row_major(descales, count), how};
  using Rows = detail::slot_rows<F>;
  constexpr int many = detail::values_a_thread;
  if (detail::takes_slices(from, cache, t))
    return detail::launch(detail::quantize_slices_kernel<many, F, Value, detail::given_scales<descale>, Rows>,
                          x.rows * ((x.cols + many - 1) / many), stream, from, t, scales, Rows{cache, slots});
  return detail::launch(detail::quantize_slices_kernel<1, F, Value, detail::given_scales<descale>, Rows>,
                        x.rows * x.cols, stream, from, t, scales, Rows{cache, slots});
}

// Descales found by the rule, one for each head of each token, which lie beside the cache: [pages * page_size, heads].
template <class F, class T>
OCTET_LOCAL cudaError_t append_into(matrix_view<T> x, const std::int64_t* slots, const paged_cache<F>& cache,
                                    const scale_rule& rule, descale* descales, cudaStream_t stream = nullptr) {
  using Value = std::remove_const_t<T>;
  detail::require_types<F, Value, descale>();
  if (x.empty()) return cudaSuccess;
  if (const cudaError_t error = detail::check<descale>(rule); error != cudaSuccess) return error;
  const tiling t{{1, 0}, {cache.head_dim != 0 ? cache.head_dim : 1, 0}};
  const std::size_t count = cache.slots() * cache.heads;
  if (const cudaError_t error = detail::check(x, slots, cache, descales, count); error != cudaSuccess) return error;
  const matrix_view<const Value> from(x);
  return detail::launch_tiles<F, 0>(from, t, rule, detail::slot_rows<F>{cache, slots},
                                    detail::takes_slices(from, cache, t), row_major(descales, cache.heads), stream);
}

}  // namespace cuda
}  // namespace v0
}  // namespace octet
