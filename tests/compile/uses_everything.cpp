// A translation unit that calls every public function over several formats, for the tests of what a compiler makes of them.
// SPDX-License-Identifier: MIT
#include <sstream>

#include "octet/octet.hpp"

#ifndef UNIT
#define UNIT unit
#endif

namespace {

// Everything the library says, folded into one number; it must not depend on how this unit was compiled.
std::uint32_t sum;

void fold(std::uint64_t x) { sum = (sum ^ static_cast<std::uint32_t>(x ^ (x >> 32))) * 16777619u; }
void fold(float x) { fold(std::uint64_t{octet::bit_cast<std::uint32_t>(x)}); }
void fold(double x) { fold(octet::bit_cast<std::uint64_t>(x)); }
template <int E, int M>
void fold(octet::float16_of<E, M> x) {
  fold(std::uint64_t{x.bits()});
}
template <int E, int M, octet::encoding X, int Bias>
void fold(octet::fp8<E, M, X, Bias> x) {
  fold(std::uint64_t{x.bits()});
}

constexpr octet::overflow overflows[] = {octet::overflow::saturate, octet::overflow::nonfinite};
constexpr octet::rounding roundings[] = {octet::rounding::nearest_even, octet::rounding::nearest_away,
                                         octet::rounding::toward_zero, octet::rounding::upward,
                                         octet::rounding::downward};

constexpr std::size_t count = 37;  // no multiple of any vector

template <class T>
T value(std::size_t i) {
  const auto x = static_cast<float>((static_cast<int>(i * 7919 % 2003) - 1001) * (i % 3 == 0   ? 1
                                                                                  : i % 3 == 1 ? 128
                                                                                               : 4096)) /
                 8192;
  return static_cast<T>(x);
}

template <class F, class T>
void use_values() {
  T values[count], back[count];
  F codes[count];
  for (std::size_t i = 0; i < count; ++i) values[i] = value<T>(i);
  for (auto o : overflows) {
    for (auto r : roundings) {
      octet::encode(values, codes, count, o, r);
      for (F q : codes) fold(q);
      fold(octet::encode<F>(values[3], o, r));
    }
    fold(octet::encode_stochastic<F>(values[5], 0x9E3779B9u, o));
    octet::encode_stochastic(values, codes, count, 7, 1, o);
    for (F q : codes) fold(q);
    octet::encode(values, codes, o);
    octet::encode(values, codes, o, octet::rounding::upward);
    octet::encode_stochastic(values, codes, 7, 2, o);
    octet::encode(values, codes, count, o);
    octet::decode(codes, back);
    octet::decode(codes, back, count);
    for (T x : back) fold(x);
    fold(octet::decode<T>(codes[7]));
  }
  fold(octet::amax(values));
  fold(octet::amax(values, count, octet::nonfinite::ignore));
}

template <class F>
void use_format() {
  use_values<F, float>();
  for (int i = 0; i < 256; ++i) {
    const F q = F::from_bits(static_cast<std::uint8_t>(i)), one(1);
    fold(std::uint64_t{isnan(q)} | std::uint64_t{isinf(q)} << 1 | std::uint64_t{isfinite(q)} << 2 |
         std::uint64_t{signbit(q)} << 3);
    fold(std::uint64_t{q == one} | std::uint64_t{q != one} << 1 | std::uint64_t{q < one} << 2 |
         std::uint64_t{q > one} << 3 | std::uint64_t{q <= one} << 4 | std::uint64_t{q >= one} << 5);
    fold(abs(q));
    fold(nextafter(q, one));
    if constexpr (F::is_signed) fold(-q);
    fold(static_cast<std::uint64_t>(static_cast<long long>(q)));
    fold(static_cast<float>(q));
    fold(static_cast<double>(static_cast<long double>(q)));
    fold(octet::e5m2(q));
    fold(std::uint64_t{std::hash<F>{}(q)});
  }
  fold(F(3));
  fold(F(2.5L));
  fold(F(~0ull));
  using limits = std::numeric_limits<F>;
  const F ends[] = {limits::min(),       limits::max(),         limits::lowest(),
                    limits::epsilon(),   limits::denorm_min(),  limits::infinity(),
                    limits::quiet_NaN(), limits::round_error(), limits::signaling_NaN()};
  for (F q : ends) fold(q);
  unsigned char bytes[2] = {1, 2};
  const void* constant = bytes;
  fold(octet::as_codes<F>(static_cast<void*>(bytes))[1]);
  fold(octet::as_codes<F>(constant)[0]);
  F two[2];
  octet::unpack(bytes, two, 1);
  octet::pack(two, bytes, 1);
  fold(std::uint64_t{octet::packed_size<F>(5)});
}

template <class F>
void use_arithmetic() {
  const F a(1.25f), b(-0.75f), c(2);
  F d = a;
  d += b;
  d -= c;
  d *= a;
  d /= c;
  fold(a + b), fold(a - b), fold(a * b), fold(a / b), fold(d);
  fold(sqrt(a)), fold(exp(b)), fold(log(a)), fold(tanh(b)), fold(floor(b)), fold(ceil(b)), fold(trunc(a));
  fold(fma(a, b, c)), fold(fmin(a, b)), fold(fmax(a, b));
}

void fold(const octet::statistics& s) {
  for (std::size_t n : {s.count, s.not_finite, s.clipped, s.flushed, s.poisoned}) fold(std::uint64_t{n});
  fold(s.mean_relative_error());
  fold(static_cast<float>(s.snr_db()));
}

template <class F, class T, class Granularity>
void use_granularity(const Granularity& granularity) {
  constexpr std::size_t rows = 5, cols = 41, stride = 43;
  T values[rows * stride], back[rows * stride];
  for (std::size_t i = 0; i < rows * stride; ++i) values[i] = value<T>(i);
  const octet::matrix_view<const T> in(values, rows, cols, stride);
  const octet::matrix_view<T> out(back, rows, cols, stride);

  auto q = octet::quantize<F>(in, granularity);
  constexpr octet::scaling ways[] = {octet::scaling::divide, octet::scaling::multiply, octet::scaling::scale_first};
  for (octet::scaling how : ways) {
    octet::scale_rule rule;
    rule.on_the_way_in = how;
    fold(std::uint64_t{octet::quantize_into(in, granularity, rule, q.codes(), q.descales())});
    if (how != octet::scaling::scale_first) octet::quantize_into(in, granularity, q.descales(), q.codes(), how);
    fold(octet::measure(in, q.view(), how));
  }
  fold(octet::measure(in, octet::as_quantized(q.codes(), q.descales(), q.granularity())).snr_db());
  float memory[1] = {};
  octet::as_descales(memory)[0] = octet::descale(0.5f);
  fold(double{octet::as_floats(octet::as_descales(memory, 1))[0]});
  octet::statistics parts = octet::measure(in.row_range(0, 2), q.view().row_range(0, 2));
  parts += octet::measure(in.row_range(2, 3), q.view().row_range(2, 3));
  fold(parts);
  octet::quantized<F, Granularity> moved(static_cast<octet::quantized<F, Granularity>&&>(q));
  q = static_cast<octet::quantized<F, Granularity>&&>(moved);
  fold(std::uint64_t{q.not_finite()});
  for (std::size_t i = 0; i < octet::descale_count(granularity, rows, cols); ++i) fold(q.descales()[i].value());
  octet::dequantize_into(q.view(), out);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < cols; ++c) fold(out.row(r)[c]);
  fold(octet::descale_bytes(granularity, rows, cols));
}

template <class F, class T>
void use_quantize() {
  use_granularity<F, T>(octet::per_tensor{});
  for (int axis : {0, 1}) use_granularity<F, T>(octet::per_channel{axis});
  use_granularity<F, T>(octet::per_token{});
  use_granularity<F, T>(octet::per_block<1, 16>{0, 5});
}

// Small integers and a descale that is a power of two: every sum is exact, in whatever order.
template <class F, class T>
void use_products() {
  constexpr std::size_t rows = 3, cols = 71, most = 8;
  F codes[rows * cols];
  T x[most * cols];
  octet::descale descales[rows * cols];
  float y[most * rows];
  for (std::size_t i = 0; i < rows * cols; ++i) codes[i] = F(static_cast<int>(i * 7919 % 9) - 4);
  for (std::size_t i = 0; i < most * cols; ++i) x[i] = T(static_cast<float>(static_cast<int>(i * 7919 % 17) - 8));
  for (std::size_t i = 0; i < rows * cols; ++i) descales[i] = octet::descale(i % 2 == 0 ? 0.5f : 2.0f);
  const octet::matrix_view<const F> w(codes, rows, cols);
  for (std::size_t m = 1; m <= most; ++m) {
    const octet::matrix_view<const T> in(x, m, cols);
    const octet::matrix_view<float> out(y, m, rows);
    octet::gemv(octet::as_quantized(w, descales, octet::per_token{}), in, out);
    for (std::size_t i = 0; i < m * rows; ++i) fold(y[i]);
    octet::gemv(octet::as_quantized(w, descales, octet::per_channel{1}), in, out);
    for (std::size_t i = 0; i < m * rows; ++i) fold(y[i]);
  }
  octet::quantized<F, octet::per_tensor> owned(rows, cols, {});
  for (std::size_t i = 0; i < rows * cols; ++i) owned.codes().data[i] = codes[i];
  owned.descales()[0] = octet::descale(0.25f);
  octet::gemv(owned, octet::matrix_view<const T>(x, 1, cols), octet::matrix_view<float>(y, 1, rows));
  for (std::size_t i = 0; i < rows; ++i) fold(y[i]);
  fold(octet::dot(codes, x, cols));
  float sums[cols] = {};
  octet::axpy(0.5f, codes, sums, cols);
  for (float added : sums) fold(added);
}

void use_scales() {
  namespace recipes = octet::recipes;
  const octet::scale_rule rules[] = {recipes::transformer_engine(),
                                     recipes::transformer_engine_block(),
                                     recipes::vllm_tensor(),
                                     recipes::vllm_token(),
                                     recipes::vllm_group(),
                                     recipes::compressed_tensors(),
                                     recipes::deepseek(),
                                     recipes::deepgemm(),
                                     recipes::torchao_training(),
                                     recipes::mx(),
                                     recipes::mx_rceil()};
  for (const octet::scale_rule& rule : rules) {
    for (float amax : {0.0f, 3e-6f, 1.0f, 1000.0f}) {
      const octet::group_scale s = octet::scale_of<octet::e4m3>(amax, rule);
      fold(s.stored.value());
      fold(double{s.multiplier.value()});
      fold(reciprocal(reciprocal(s.stored)).value());
    }
  }
  const float numbers[] = {0.5f, 3};
  fold(octet::as_descales(numbers, 2)[1].value());
  fold(octet::as_scales(numbers, 2)[0].value());
}

void use_footprint() {
  const octet::kv_shape shape{32, 8, 128, 8192, 32};
  fold(octet::kv_code_bytes(shape));
  constexpr octet::kv_layout layouts[] = {octet::kv_layout::per_tensor, octet::kv_layout::per_head,
                                          octet::kv_layout::per_channel, octet::kv_layout::per_token_head};
  for (auto layout : layouts) fold(octet::kv_descale_bytes(shape, layout));
  fold(octet::code_bytes<octet::e2m1>(3, 5));
}

void use_text() {
  std::ostringstream stream;
  stream << octet::e4m3(1.75f) << octet::to_string(octet::e5m2(-3));
  for (char c : stream.str()) fold(static_cast<std::uint64_t>(c));
}

// Every row that runs here says the same, so machines with other rows have the same sum.
void use_rows() {
  const std::uint32_t before = sum;
  std::uint32_t all = 0;
  for (std::size_t row = 0; row < octet::simd::row_count; ++row) {
    if (!octet::simd::row_runs_here(row)) continue;
    octet::simd::pick_row(row);
    sum = before;
    fold(std::uint64_t{octet::simd::row_name(row) != nullptr});
    use_quantize<octet::e4m3, float>();
    use_products<octet::e4m3, float>();
    all |= sum;
  }
  octet::simd::pick_row(octet::simd::row_count);
  sum = all;
}

void use_errors() {
  struct refused {};
  const auto before = octet::set_error_handler([](const char*) { throw refused{}; });
  try {
    fold(octet::amax(static_cast<const float*>(nullptr), 1));
  } catch (const refused&) {
    fold(std::uint64_t{1});
  }
  octet::set_error_handler(before);
}

}  // namespace

unsigned UNIT();

unsigned UNIT() {
  sum = 2166136261u;
  use_format<octet::e4m3>();
  use_format<octet::e5m2>();
  use_format<octet::e4m3fnuz>();
  use_format<octet::p3109_p3>();
  use_format<octet::e2m1>();
  use_format<octet::e8m0>();
  use_values<octet::e4m3, double>();
  use_values<octet::e4m3, octet::float16>();
  use_values<octet::e5m2, octet::bfloat16>();
  use_arithmetic<octet::e4m3>();
  use_arithmetic<octet::e5m2fnuz>();
  use_quantize<octet::e4m3, float>();
  use_granularity<octet::e5m2, octet::bfloat16>(octet::per_token{});
  use_granularity<octet::e2m1, octet::float16>(octet::per_channel{1});
  use_products<octet::e5m2, octet::bfloat16>();
  use_products<octet::p3109_p4, octet::float16>();
  use_scales();
  use_footprint();
  use_text();
  use_rows();
  use_errors();
  return sum;
}
