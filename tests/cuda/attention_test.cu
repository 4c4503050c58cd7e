// The toy transformer's decode attention against attention in double over what the cache holds, at odd contexts.
// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstdint>

#include "cuda/toy/attention.cuh"
#include "device.hpp"

namespace {

using toy::bf16;

struct sizes {
  int batch, kv_heads, group, head_dim, longest;
};

// Numbers in (-2, 2) that bfloat16 and half hold, the same in every run.
class numbers {
  std::uint32_t state_ = 12345;

 public:
  float next() {
    state_ = state_ * 1664525u + 1013904223u;
    return static_cast<float>(static_cast<int>(state_ >> 24) - 128) / 64;
  }
};

float value_of(octet::e4m3 x) { return static_cast<float>(x); }
float value_of(bf16 x) { return __bfloat162float(x); }
void set(octet::e4m3& x, float value) { x = octet::encode<octet::e4m3>(value); }
void set(bf16& x, float value) { x = __float2bfloat16(value); }

// The largest difference from double, where sequence b has lengths[b] keys; slots that hold none hold NaN.
template <class T>
double largest_error(const sizes& s, const std::vector<int>& lengths, int keys_a_split) {
  const int heads = s.kv_heads * s.group, pages = (s.longest + toy::page_size - 1) / toy::page_size;
  const std::size_t row = std::size_t(s.kv_heads) * s.head_dim;
  numbers draw;
  std::vector<int> table;
  for (int b = 0; b < s.batch; ++b)
    for (int page = 0; page < pages; ++page) table.push_back(page * s.batch + (b + page) % s.batch);
  T nan;
  set(nan, NAN);
  std::vector<T> keys(std::size_t(s.batch) * pages * toy::page_size * row, nan), values = keys;
  const auto at = [&](int b, int key, int head, int i) {
    const int slot = table[std::size_t(b) * pages + key / toy::page_size] * toy::page_size + key % toy::page_size;
    return slot * row + std::size_t(head) * s.head_dim + i;
  };
  for (int b = 0; b < s.batch; ++b)
    for (int key = 0; key < lengths[b]; ++key)
      for (std::size_t i = 0; i < row; ++i) {
        set(keys[at(b, key, 0, static_cast<int>(i))], draw.next());
        set(values[at(b, key, 0, static_cast<int>(i))], draw.next());
      }
  std::vector<bf16> queries(std::size_t(s.batch) * heads * s.head_dim);
  for (bf16& q : queries) q = __float2bfloat16(draw.next());
  std::vector<octet::descale> descales;
  for (int head = 0; head < s.kv_heads; ++head) descales.push_back(octet::descale(0.5f + 0.25f * head));
  const bool scaled = sizeof(T) == 1;

  const int splits = (s.longest + keys_a_split - 1) / keys_a_split;
  device::buffer<T> k(keys), v(values);
  device::buffer<bf16> q(queries), out(queries.size());
  device::buffer<int> tables(table), counts(lengths);
  device::buffer<octet::descale> d(descales);
  device::buffer<float> sums(queries.size() * splits);
  device::buffer<float2> share(std::size_t(s.batch) * heads * splits);
  const toy::decode_attention<T> step{q.data(),
                                      std::size_t(heads) * s.head_dim,
                                      {k.data(), toy::page_size * row, row, scaled ? d.data() : nullptr},
                                      {v.data(), toy::page_size * row, row, scaled ? d.data() : nullptr},
                                      tables.data(),
                                      counts.data(),
                                      pages,
                                      s.batch,
                                      s.kv_heads,
                                      s.group,
                                      s.head_dim,
                                      out.data()};
  REQUIRE(toy::attend(step, {sums.data(), share.data(), splits, keys_a_split}, nullptr) == cudaSuccess);
  const std::vector<bf16> found = out.values();

  double worst = 0;
  for (int b = 0; b < s.batch; ++b)
    for (int head = 0; head < heads; ++head) {
      const int kv = head / s.group;
      const double descale = scaled ? descales[kv].value() : 1;
      const bf16* const query = &queries[(std::size_t(b) * heads + head) * s.head_dim];
      std::vector<double> weight(lengths[b]);
      double total = 0;
      for (int key = 0; key < lengths[b]; ++key) {
        double dot = 0;
        for (int i = 0; i < s.head_dim; ++i)
          dot += double(value_of(query[i])) * double(value_of(keys[at(b, key, kv, i)])) * descale;
        total += weight[key] = std::exp(dot / std::sqrt(double(s.head_dim)));
      }
      for (int i = 0; i < s.head_dim; ++i) {
        double expected = 0;
        for (int key = 0; key < lengths[b]; ++key)
          expected += weight[key] / total * double(value_of(values[at(b, key, kv, i)])) * descale;
        const double got = value_of(found[(std::size_t(b) * heads + head) * s.head_dim + i]);
        worst = std::isnan(got) ? INFINITY : std::fmax(worst, std::fabs(got - expected));
      }
    }
  return worst;
}

template <class T>
double largest_error() {
  double worst = 0;
  for (const int length : {1, 2, 15, 16, 17, 31, 32, 33, 100})
    worst = std::fmax(worst, largest_error<T>({1, 1, 4, 64, length}, {length}, 64));
  for (const int group : {1, 2, 3, 7, 8, 9, 16})
    worst = std::fmax(worst, largest_error<T>({2, 2, group, 64, 40}, {40, 7}, 32));
  worst = std::fmax(worst, largest_error<T>({3, 2, 4, 128, 400}, {100, 1, 400}, 64));
  worst = std::fmax(worst, largest_error<T>({2, 1, 8, 128, 300}, {299, 300}, 32));
  return worst;
}

}  // namespace

// Results are below 4 and rounded to bfloat16, 2^-8 of that; probabilities to half, 2^-11, or bfloat16, 2^-9.
TEST_CASE("Decode attention over E4M3 is attention, at any context and group") {
  CHECK(largest_error<octet::e4m3>() <= 0.01);
}

TEST_CASE("Decode attention over bfloat16 is attention, at any context and group") {
  CHECK(largest_error<bf16>() <= 0.01);
}

TEST_CASE("A context is split into multiples of 32 keys that cover it, as many as fill the GPU") {
  for (const int longest : {1, 31, 32, 127, 128, 129, 8192, 100001})
    for (const int pairs : {1, 6, 256, 5000}) {
      const toy::split_results split = toy::split_context(longest, pairs, 132);
      CHECK(split.keys_a_split % 32 == 0);
      CHECK(split.splits * split.keys_a_split >= longest);
      CHECK((split.splits - 1) * split.keys_a_split < longest);
      CHECK(split.splits * pairs <= 2 * 132 * 16 + pairs);
    }
}

TEST_CASE("Heads of another size are refused") {
  toy::decode_attention<bf16> step{};
  step.head_dim = 96;
  CHECK(toy::attend(step, {}, nullptr) == cudaErrorInvalidValue);
}
