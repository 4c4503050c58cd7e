// A paged cache against plain arithmetic: every slot, every code, every descale, and what is not written to.
// SPDX-License-Identifier: MIT
#include "octet/cuda/paged.cuh"
#include "tensors.hpp"

namespace {

namespace gpu = octet::cuda;
using octet::descale;
using octet::e4m3;
using octet::matrix_view;

struct layout {
  std::size_t tokens, heads, head_dim, page_size, padding, page_padding;  // codes between slots, and between pages
};
constexpr layout layouts[] = {{1, 1, 1, 1, 0, 0},    {5, 8, 128, 16, 0, 0}, {33, 2, 64, 16, 0, 16},
                              {7, 3, 80, 4, 16, 0},  {19, 2, 96, 8, 32, 0}, {6, 4, 20, 3, 0, 0},
                              {4, 2, 128, 16, 1, 0}, {3, 1, 576, 64, 0, 0}, {9, 2, 128, 4, 0, 8}};

// Tokens in slots that are all over the pages, the third of them left out.
template <class T>
struct trial {
  layout l;
  std::size_t width, pages;
  tensors::shape s;
  tensors::both<T> x;
  std::vector<std::int64_t> places;
  device::buffer<std::int64_t> slots;
  tensors::both<e4m3> codes;

  explicit trial(const layout& its)
      : l(its),
        width(l.heads * l.head_dim),
        pages((2 * l.tokens + l.page_size) / l.page_size),
        s{l.tokens, width, width, width, 0},
        x(tensors::values<T>(s)),
        places(its_places()),
        slots(places),
        codes(pages * page_stride(), e4m3::from_bits(0x2A)) {}
  std::size_t page_stride() const { return l.page_size * (width + l.padding) + l.page_padding; }
  std::vector<std::int64_t> its_places() const {
    std::vector<std::int64_t> p;
    for (std::size_t i = 0; i < l.tokens; ++i)
      p.push_back(i == 2 ? -1 : static_cast<std::int64_t>((i % 2 == 0 ? 2 * l.tokens - i : i)));
    return p;
  }
  gpu::paged_cache<e4m3> cache() {
    gpu::paged_cache<e4m3> c(codes.device.data(), pages, l.page_size, l.heads, l.head_dim);
    c.slot_stride = width + l.padding;
    c.page_stride = page_stride();
    return c;
  }
  matrix_view<const T> in() { return {x.device.data(), l.tokens, width}; }
  // One head of one token, on the host: its values, and where its codes belong.
  template <class Visitor>
  void each(Visitor visit) {
    for (std::size_t i = 0; i < l.tokens; ++i)
      for (std::size_t h = 0; h < l.heads; ++h)
        if (places[i] >= 0) {
          const auto slot = static_cast<std::size_t>(places[i]);
          visit(matrix_view<const T>(x.host.data() + i * width + h * l.head_dim, 1, l.head_dim),
                matrix_view<e4m3>(codes.host.data() + slot / l.page_size * page_stride() +
                                      slot % l.page_size * (width + l.padding) + h * l.head_dim,
                                  1, l.head_dim),
                slot, h);
        }
  }
};

template <class T>
std::size_t found(const layout& l) {
  trial<T> m(l);
  octet::scale_rule rule;
  rule.floor = 448e-6f;
  tensors::both<descale> descales(m.pages * l.page_size * l.heads, descale(3));
  m.each([&](matrix_view<const T> x, matrix_view<e4m3> codes, std::size_t slot, std::size_t h) {
    tensors::quantize(x, octet::per_tensor{}, rule, codes, &descales.host[slot * l.heads + h]);
  });
  if (gpu::append_into(m.in(), m.slots.data(), m.cache(), rule, descales.device.data()) != cudaSuccess) return 1;
  return m.codes.differences() + descales.differences();
}

template <class T>
std::size_t given(const layout& l, bool by_head) {
  trial<T> m(l);
  std::vector<descale> known;
  for (std::size_t h = 0; h < l.heads; ++h) known.push_back(descale(0.01f * static_cast<float>(h + 1)));
  const tensors::both<descale> descales(known);
  m.each([&](matrix_view<const T> x, matrix_view<e4m3> codes, std::size_t, std::size_t h) {
    tensors::quantize(x, octet::per_tensor{}, &descales.host[by_head ? h : 0], codes);
  });
  const descale* const there = descales.device.data();
  const cudaError_t error = by_head
                                ? gpu::append_into(m.in(), m.slots.data(), m.cache(), gpu::per_head{l.head_dim}, there)
                                : gpu::append_into(m.in(), m.slots.data(), m.cache(), octet::per_tensor{}, there);
  return (error != cudaSuccess ? 1 : 0) + m.codes.differences();
}

template <class T>
void every_layout() {
  for (const layout& l : layouts) {
    CAPTURE(l.head_dim);
    CHECK(found<T>(l) == 0);
    CHECK(given<T>(l, false) == 0);
    CHECK(given<T>(l, true) == 0);
  }
}

}  // namespace

TEST_CASE("Tokens are quantized into their slots, a descale for each head, and nothing beside") {
  every_layout<octet::bfloat16>();
  every_layout<float>();
}

TEST_CASE("A cache that does not fit is refused") {
  trial<float> m({4, 2, 16, 4, 0, 0});
  device::buffer<descale> d(64);
  const octet::scale_rule rule;
  const auto append = [&](gpu::paged_cache<e4m3> cache) {
    return gpu::append_into(m.in(), m.slots.data(), cache, rule, d.data());
  };
  CHECK(append(m.cache()) == cudaSuccess);
  gpu::paged_cache<e4m3> cache = m.cache();
  cache.heads = 3;
  CHECK(append(cache) == cudaErrorInvalidValue);
  cache = m.cache();
  cache.heads = (std::size_t{1} << 60) + 2;  // times 16 it is 32 again
  CHECK(append(cache) == cudaErrorInvalidValue);
  cache = m.cache();
  cache.slot_stride = 31;
  CHECK(append(cache) == cudaErrorInvalidValue);
  cache = m.cache();
  cache.page_size = 0;
  CHECK(append(cache) == cudaErrorInvalidValue);
  const descale* const given = d.data();
  CHECK(gpu::append_into(m.in(), m.slots.data(), m.cache(), gpu::per_head{8}, given) == cudaErrorInvalidValue);
  CHECK(gpu::append_into(m.in(), m.slots.data(), m.cache(), gpu::per_head{0}, given) == cudaErrorInvalidValue);
  cache = m.cache();
  cache.page_stride = 4 * 32 - 1;
  CHECK(append(cache) == cudaErrorInvalidValue);
  cache.page_stride = static_cast<std::size_t>(-1);
  CHECK(append(cache) == cudaErrorInvalidValue);
  cache = m.cache();
  cache.codes = nullptr;
  CHECK(append(cache) == cudaErrorInvalidValue);
  CHECK(gpu::append_into(m.in(), nullptr, m.cache(), rule, d.data()) == cudaErrorInvalidValue);
}
