// Rows of the quantizers, by who shares a scale and where it comes from, and of the way back.
// SPDX-License-Identifier: MIT
#include "matrices.cuh"
#include "octet/cuda/quantize.cuh"
#include "octet/recipes.hpp"

namespace cuda_bench {
namespace {

using octet::bfloat16;
using octet::descale;
using octet::e4m3;
using octet::e5m2;
using octet::e8m0;
using octet::float16;
using octet::per_block;
using octet::per_channel;
using octet::per_tensor;
using octet::per_token;
using octet::scale_rule;

constexpr std::size_t wide = 4096;  // columns

// The kernel finds the descale of each group and quantizes it.
template <class T, class F = e4m3, class Descale = descale, class Granularity>
contest found(arena& a, std::size_t cols, const Granularity& granularity, const scale_rule& rule = scale_rule()) {
  const matrices<T, F, Descale, Granularity> m(a, cols, granularity);
  a.draw(m.x);
  return m.against_copy(a, [=](std::size_t turn, cudaStream_t stream) {
    return octet::cuda::quantize_into(m.values(turn), granularity, rule, m.coded(turn), m.descales[turn], stream);
  });
}

// The same, the descales in the blocks that the tensor cores of the next generation want.
template <class T>
contest mx_swizzled(arena& a) {
  const per_block<1, 32> granularity;
  const matrices<T, e4m3, e8m0, per_block<1, 32>> m(a, wide, granularity);
  a.draw(m.x);
  const turns<e8m0> descales = a.room<e8m0>((m.rows + 127) / 128 * 128 * (wide / 32));
  return m.against_copy(a, [=](std::size_t turn, cudaStream_t stream) {
    return octet::cuda::quantize_into(m.values(turn), granularity, octet::recipes::mx(), m.coded(turn),
                                      octet::cuda::swizzled_128x4(descales[turn], wide / 32), stream);
  });
}

// The amaxes come first, into memory of the caller's.
template <class T, class Granularity>
contest found_before(arena& a, const Granularity& granularity, std::size_t reads) {
  const matrices<T, e4m3, descale, Granularity> m(a, wide, granularity, reads);
  a.draw(m.x);
  const turns<float> amax = a.room<float>(m.count);
  return m.against_copy(a, [=](std::size_t turn, cudaStream_t stream) {
    return octet::cuda::quantize_into(m.values(turn), granularity, scale_rule(), m.coded(turn), m.descales[turn],
                                      amax[turn], stream);
  });
}

template <class T, class Granularity>
contest given(arena& a) {
  const Granularity granularity;
  const matrices<T, e4m3, descale, Granularity> m(a, wide, granularity);
  a.draw(m.x);
  a.draw(m.descales);
  return m.against_copy(a, [=](std::size_t turn, cudaStream_t stream) {
    const descale* const known = m.descales[turn];
    return octet::cuda::quantize_into(m.values(turn), granularity, known, m.coded(turn), octet::scaling::divide,
                                      stream);
  });
}

template <class T, class Descale = descale, class Granularity>
contest back(arena& a, const Granularity& granularity) {
  const matrices<T, e4m3, Descale, Granularity> m(a, wide, granularity);
  a.draw(m.codes);
  a.draw(m.descales);
  return m.against_copy(a, [=](std::size_t turn, cudaStream_t stream) {
    const Descale* const known = m.descales[turn];
    return octet::cuda::dequantize_into(m.coded(turn), granularity, known, m.values(turn), stream);
  });
}

template <class T, class F = e4m3>
row tokens(const char* name, std::size_t cols) {
  const bool usual = cols >= 2048 && cols <= 16384;
  return {std::string("cuda/quantize/") + name + "/per_token/" + std::to_string(cols), usual ? 0.9 : 0.8,
          [=](arena& a) { return found<T, F>(a, cols, per_token{}); }};
}

}  // namespace

void add_quantizers(std::vector<row>& rows) {
  const row all[] = {
      tokens<bfloat16>("bfloat16/e4m3", 128),
      tokens<bfloat16>("bfloat16/e4m3", 512),
      tokens<bfloat16>("bfloat16/e4m3", 2048),
      tokens<bfloat16>("bfloat16/e4m3", 4096),
      tokens<bfloat16>("bfloat16/e4m3", 8192),
      tokens<bfloat16>("bfloat16/e4m3", 16384),
      tokens<bfloat16>("bfloat16/e4m3", 65536),
      tokens<float>("float/e4m3", 2048),
      tokens<float>("float/e4m3", 4096),
      tokens<float>("float/e4m3", 16384),
      tokens<float16>("float16/e4m3", 4096),
      tokens<bfloat16, e5m2>("bfloat16/e5m2", 4096),
      {"cuda/quantize/bfloat16/e4m3/per_tensor/dynamic", 0.85,
       [](arena& a) { return found_before<bfloat16>(a, per_tensor{}, 2); }},
      {"cuda/quantize/float/e4m3/per_tensor/dynamic", 0.85,
       [](arena& a) { return found_before<float>(a, per_tensor{}, 2); }},
      {"cuda/quantize/float16/e4m3/per_tensor/dynamic", 0.85,
       [](arena& a) { return found_before<float16>(a, per_tensor{}, 2); }},
      {"cuda/quantize/bfloat16/e4m3/per_tensor/static", 0, given<bfloat16, per_tensor>},
      {"cuda/quantize/float/e4m3/per_tensor/static", 0, given<float, per_tensor>},
      {"cuda/quantize/bfloat16/e4m3/per_channel_0", 0,
       [](arena& a) { return found_before<bfloat16>(a, per_channel(0), 1); }},
      {"cuda/quantize/bfloat16/e4m3/per_channel_1", 0,
       [](arena& a) { return found_before<bfloat16>(a, per_channel(1), 2); }},
      {"cuda/quantize/bfloat16/e4m3/1x128", 0, [](arena& a) { return found<bfloat16>(a, wide, per_block<1, 128>()); }},
      {"cuda/quantize/float/e4m3/1x128", 0, [](arena& a) { return found<float>(a, wide, per_block<1, 128>()); }},
      {"cuda/quantize/bfloat16/e4m3/1x128/static", 0, given<bfloat16, per_block<1, 128>>},
      {"cuda/quantize/bfloat16/e4m3/128x128", 0,
       [](arena& a) { return found<bfloat16>(a, wide, per_block<128, 128>()); }},
      {"cuda/quantize/float/e4m3/128x128", 0, [](arena& a) { return found<float>(a, wide, per_block<128, 128>()); }},
      {"cuda/quantize/bfloat16/e4m3/1x32_mx", 0,
       [](arena& a) { return found<bfloat16, e4m3, e8m0>(a, wide, per_block<1, 32>(), octet::recipes::mx()); }},
      {"cuda/quantize/bfloat16/e4m3/1x32_mx/swizzled", 0, mx_swizzled<bfloat16>},
      {"cuda/dequantize/e4m3/bfloat16/per_tensor", 0.9, [](arena& a) { return back<bfloat16>(a, per_tensor{}); }},
      {"cuda/dequantize/e4m3/float/per_tensor", 0.9, [](arena& a) { return back<float>(a, per_tensor{}); }},
      {"cuda/dequantize/e4m3/bfloat16/per_token", 0.9, [](arena& a) { return back<bfloat16>(a, per_token{}); }},
      {"cuda/dequantize/e4m3/float/per_token", 0.9, [](arena& a) { return back<float>(a, per_token{}); }},
      {"cuda/dequantize/e4m3/bfloat16/per_channel_1", 0.9, [](arena& a) { return back<bfloat16>(a, per_channel(1)); }},
      {"cuda/dequantize/e4m3/bfloat16/1x128", 0.9, [](arena& a) { return back<bfloat16>(a, per_block<1, 128>()); }},
      {"cuda/dequantize/e4m3/bfloat16/128x128", 0.9, [](arena& a) { return back<bfloat16>(a, per_block<128, 128>()); }},
      {"cuda/dequantize/e4m3/bfloat16/1x32_mx", 0.9,
       [](arena& a) { return back<bfloat16, e8m0>(a, per_block<1, 32>()); }},
  };
  rows.insert(rows.end(), std::begin(all), std::end(all));
}

}  // namespace cuda_bench
