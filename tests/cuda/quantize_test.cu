// The device's quantizers against plain arithmetic on the host: the same codes and the same descales.
// SPDX-License-Identifier: MIT
#include "octet/cuda/quantize.cuh"
#include "tensors.hpp"

namespace {

namespace gpu = octet::cuda;
using octet::descale;
using octet::descale_form;
using octet::matrix_view;
using octet::scale_rule;
using octet::scaling;
using tensors::shape;

template <class Granularity>
constexpr bool needs_amax =
    std::is_same_v<Granularity, octet::per_tensor> || std::is_same_v<Granularity, octet::per_channel>;

// Differences between device and host, with descales found by the rule.
template <class F, class T, class Granularity>
std::size_t found(const shape& s, const Granularity& granularity, const scale_rule& rule) {
  tensors::pair<F, T> m(s);
  const std::size_t count = octet::descale_count(granularity, s.rows, s.cols);
  tensors::both<descale> descales(count, descale(3));
  tensors::quantize(m.in_host(), granularity, rule, m.out_host(), descales.host.data());
  if constexpr (needs_amax<Granularity>) {
    tensors::both<float> amax(count, 5.0f);
    if (gpu::quantize_into(m.in(), granularity, rule, m.out(), descales.device.data(), amax.device.data()) !=
        cudaSuccess)
      return 1;
  } else {
    if (gpu::quantize_into(m.in(), granularity, rule, m.out(), descales.device.data()) != cudaSuccess) return 1;
  }
  return m.codes.differences() + descales.differences();
}

// With descales that are given, there and back.
template <class F, class T, class Granularity>
std::size_t given(const shape& s, const Granularity& granularity, float least, scaling how) {
  tensors::pair<F, T> m(s);
  const std::size_t count = octet::descale_count(granularity, s.rows, s.cols);
  std::vector<descale> known;
  for (std::size_t i = 0; i < count; ++i) known.push_back(descale(least * (1 + static_cast<float>(i % 7) * 0.3f)));
  const tensors::both<descale> descales(known);
  const descale* const there = descales.device.data();
  tensors::quantize(m.in_host(), granularity, descales.host.data(), m.out_host(), how);
  if (gpu::quantize_into(m.in(), granularity, there, m.out(), how) != cudaSuccess) return 1;
  const std::size_t wrong = m.codes.differences();

  tensors::both<T> back(s.rows * s.in_stride + 8, T(0.0f));
  tensors::dequantize(m.out_host(), granularity, descales.host.data(),
                      matrix_view(back.host.data() + s.first, s.rows, s.cols, s.in_stride));
  if (gpu::dequantize_into(m.out(), granularity, there,
                           matrix_view(back.device.data() + s.first, s.rows, s.cols, s.in_stride)) != cudaSuccess)
    return wrong + 1;
  return wrong + back.differences();
}

template <class F, class T, class Granularity>
std::size_t every_rule(const shape& s, const Granularity& granularity) {
  std::size_t wrong = 0;
  for (const descale_form form : {descale_form::float32, descale_form::e8m0_up, descale_form::e8m0_floor})
    for (const scaling how : {scaling::divide, scaling::multiply, scaling::scale_first})
      wrong += found<F, T>(s, granularity, scale_rule(form, how));
  scale_rule rule;
  rule.on_nonfinite = octet::nonfinite::propagate;
  rule.margin = 1;
  wrong += found<F, T>(s, granularity, rule);
  for (const float least : {1.0f, 0.00683594f, 0x1p-130f, 0x1p120f})
    for (const scaling how : {scaling::divide, scaling::multiply}) wrong += given<F, T>(s, granularity, least, how);
  return wrong;
}

template <class F, class T>
void every_shape() {
  for (const shape& s : tensors::shapes) {
    CAPTURE(s.rows);
    CAPTURE(s.cols);
    CHECK(every_rule<F, T>(s, octet::per_token{}) == 0);
    CHECK(every_rule<F, T>(s, octet::per_tensor{}) == 0);
    CHECK(every_rule<F, T>(s, octet::per_channel{0}) == 0);
    CHECK(every_rule<F, T>(s, octet::per_channel{1}) == 0);
    CHECK(every_rule<F, T>(s, octet::per_block<1, 32>{}) == 0);
    CHECK(every_rule<F, T>(s, octet::per_block<1, 128>{}) == 0);
    CHECK(every_rule<F, T>(s, octet::per_block<128, 128>{}) == 0);
    CHECK(every_rule<F, T>(s, octet::per_block<3, 16>{1, 5}) == 0);
    CHECK(every_rule<F, T>(s, octet::per_block<128, 128>{100, 64}) == 0);
  }
}

// MX: the descales row by row and in blocks of 128 x 4, as E8M0 bytes or as floats.
template <class Descale, class T>
std::size_t microscaled(const shape& s, bool swizzled) {
  tensors::pair<octet::e4m3, T> m(s);
  const octet::per_block<1, 32> granularity;
  const scale_rule rule(descale_form::e8m0_up);
  const std::size_t cols = (s.cols + 31) / 32, count = s.rows * cols, all_cols = (cols + 3) / 4 * 4;
  std::vector<descale> descales(count);
  tensors::quantize(m.in_host(), granularity, rule, m.out_host(), descales.data());
  const auto stored = [](float d) { return octet::cuda::detail::stored_as<Descale>(descale(d)); };
  tensors::both<Descale> codes(swizzled ? (s.rows + 127) / 128 * 128 * all_cols : count, stored(8));
  Descale nothing;
  std::memset(static_cast<void*>(&nothing), 0, sizeof nothing);
  if (swizzled) codes.host.assign(codes.host.size(), nothing);
  for (std::size_t r = 0; r < s.rows; ++r)
    for (std::size_t c = 0; c < cols; ++c) {
      const std::size_t block = r / 128 * (all_cols / 4) + c / 4, inside = r % 32 * 16 + r % 128 / 32 * 4 + c % 4;
      codes.host[swizzled ? 512 * block + inside : r * cols + c] = stored(descales[r * cols + c].value());
    }
  Descale* const to = codes.device.data();
  const cudaError_t error = swizzled
                                ? gpu::quantize_into(m.in(), granularity, rule, m.out(), gpu::swizzled_128x4(to, cols))
                                : gpu::quantize_into(m.in(), granularity, rule, m.out(), to);
  return (error != cudaSuccess ? 1 : 0) + m.codes.differences() + codes.differences();
}

}  // namespace

TEST_CASE("The device quantizes floats to E4M3 as the host does") { every_shape<octet::e4m3, float>(); }
TEST_CASE("The device quantizes bfloat16s to E4M3 as the host does") { every_shape<octet::e4m3, octet::bfloat16>(); }
TEST_CASE("The device quantizes halves to E5M2 as the host does") { every_shape<octet::e5m2, octet::float16>(); }

TEST_CASE("MX descales are E8M0 codes, row by row or swizzled, with zeros in what is left of a block") {
  for (const shape& s : tensors::shapes)
    for (const bool swizzled : {false, true}) {
      CHECK(microscaled<octet::e8m0, float>(s, swizzled) == 0);
      CHECK(microscaled<octet::e8m0, octet::bfloat16>(s, swizzled) == 0);
      CHECK(microscaled<descale, float>(s, swizzled) == 0);
    }
}

namespace {

// All codes, there and back by the fast road, against plain arithmetic.
template <class F, class T>
std::size_t wrong_values(float d) {
  std::vector<F> codes;
  for (unsigned i = 0; i < 256; ++i)
    codes.push_back(F::from_bits(static_cast<std::uint8_t>(i & (F::width < 8 ? (1u << F::width) - 1 : 255u))));
  const device::buffer<F> from(codes);
  const tensors::both<descale> descales(1, descale(d));
  tensors::both<T> to(256, T(0.0f));
  tensors::dequantize(matrix_view(codes.data(), 1, 256), octet::per_tensor{}, descales.host.data(),
                      matrix_view(to.host.data(), 1, 256));
  if (gpu::dequantize_into(matrix_view(from.data(), 1, 256), octet::per_tensor{}, descales.device.data(),
                           matrix_view(to.device.data(), 1, 256)) != cudaSuccess)
    return 1;
  return to.differences();
}

}  // namespace

TEST_CASE_TEMPLATE("Every code is dequantized as it should be, to every kind of float", F, octet::e4m3, octet::e5m2,
                   octet::p3109_p3, octet::p3109_p4, octet::e4m3fnuz, octet::e2m1) {
  for (const float d : {1.0f, 0.3f, 0x1p-50f, 0x1.8p-51f, 0x1p-120f, 0x1.5p120f}) {
    CAPTURE(d);
    CHECK(wrong_values<F, float>(d) == 0);
    CHECK(wrong_values<F, octet::float16>(d) == 0);
    CHECK(wrong_values<F, octet::bfloat16>(d) == 0);
    CHECK(wrong_values<F, octet::float16_of<6, 9>>(d) == 0);
  }
}

TEST_CASE("A 16-bit float of another layout is quantized too") {
  using dlfloat = octet::float16_of<6, 9>;
  for (const shape& s : {shape{5, 300, 304, 320, 0}, shape{3, 255, 256, 256, 1}}) {
    CHECK(found<octet::e4m3, dlfloat>(s, octet::per_token{}, scale_rule()) == 0);
    CHECK(found<octet::e5m2, dlfloat>(s, octet::per_tensor{}, scale_rule()) == 0);
  }
}

TEST_CASE("Descales of 1 x 128 lie column by column where a product wants them so") {
  const shape s{7, 300, 304, 304, 0};
  tensors::pair<octet::e4m3, float> m(s);
  const octet::per_block<1, 128> granularity;
  std::vector<descale> rows(21);
  tensors::quantize(m.in_host(), granularity, scale_rule(), m.out_host(), rows.data());
  tensors::both<descale> columns(24, descale(3));
  for (std::size_t i = 0; i < 7; ++i)
    for (std::size_t j = 0; j < 3; ++j) columns.host[j * 8 + i] = rows[i * 3 + j];
  const auto view = gpu::column_major(columns.device.data(), 7);
  CHECK(gpu::quantize_into(m.in(), granularity, scale_rule(), m.out(), view) == cudaSuccess);
  CHECK(m.codes.differences() == 0);
  CHECK(columns.differences() == 0);
}

TEST_CASE("A dynamic scale of a tensor is found in the stream, and captured in a graph it is found anew") {
  const shape s{33, 128, 128, 128, 0};
  tensors::pair<octet::e4m3, float> m(s);
  tensors::both<descale> d(1, descale(3));
  tensors::both<float> amax(1, 0.0f);
  cudaStream_t stream;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  CHECK(gpu::quantize_into(m.in(), octet::per_tensor{}, scale_rule(), m.out(), d.device.data(), amax.device.data(),
                           stream) == cudaSuccess);
  cudaGraph_t graph;
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  cudaGraphExec_t ready;
  REQUIRE(cudaGraphInstantiate(&ready, graph, 0) == cudaSuccess);
  for (const float factor : {1.0f, 0.001f}) {  // a smaller amax than before is found too
    for (float& x : m.values.host) x *= factor;
    m.values.to_device();
    REQUIRE(cudaGraphLaunch(ready, stream) == cudaSuccess);
    REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
    tensors::quantize(m.in_host(), octet::per_tensor{}, scale_rule(), m.out_host(), d.host.data());
    amax.host[0] = 0;
    for (const float x : m.values.host)
      if (std::isfinite(x)) amax.host[0] = std::fmax(amax.host[0], std::fabs(x));
    CHECK(m.codes.differences() + d.differences() + amax.differences() == 0);
  }
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

TEST_CASE("What cannot be quantized is refused, and nothing is written") {
  const shape s{4, 16, 16, 16, 0};
  tensors::pair<octet::e4m3, float> m(s);
  tensors::both<descale> d(4, descale(3));
  tensors::both<float> amax(4, 5.0f);
  const auto in = m.in();
  const auto out = m.out();
  descale* const to = d.device.data();
  const octet::per_token tokens;
  const scale_rule rule;
  using floats = matrix_view<const float>;
  using codes = matrix_view<octet::e4m3>;
  const auto refused = [](cudaError_t error) { return error == cudaErrorInvalidValue; };
  CHECK(gpu::quantize_into(floats(nullptr, 0, 16), tokens, rule, codes(out.data, 0, 16), to) == cudaSuccess);
  CHECK(refused(gpu::quantize_into(floats(nullptr, 4, 16), tokens, rule, out, to)));
  CHECK(refused(gpu::quantize_into(floats(in.data, 4, 16, 15), tokens, rule, out, to)));
  CHECK(refused(gpu::quantize_into(in, tokens, rule, codes(out.data, 4, 16, 15), to)));
  CHECK(refused(gpu::quantize_into(in, tokens, rule, codes(out.data, 3, 16), to)));
  CHECK(refused(gpu::quantize_into(floats(in.data, std::size_t{1} << 62, 16), tokens, rule,
                                   codes(out.data, std::size_t{1} << 62, 16), to)));
  CHECK(refused(gpu::quantize_into(in, tokens, static_cast<const descale*>(nullptr), out)));
  CHECK(refused(gpu::quantize_into(in, octet::per_channel{2}, rule, out, to, amax.device.data())));
  CHECK(refused(gpu::quantize_into(in, octet::per_tensor{}, rule, out, to, static_cast<float*>(nullptr))));
  auto* const over_input = reinterpret_cast<octet::e4m3*>(m.values.device.data());
  CHECK(refused(gpu::quantize_into(in, tokens, rule, codes(over_input, 4, 16), to)));
  auto* const inside = reinterpret_cast<descale*>(m.values.device.data());
  CHECK(refused(gpu::quantize_into(in, tokens, rule, out, inside)));
  CHECK(refused(gpu::quantize_into(in, tokens, rule, out, reinterpret_cast<descale*>(out.data))));
  CHECK(refused(gpu::quantize_into(in, octet::per_tensor{}, rule, out, to, reinterpret_cast<float*>(to))));
  CHECK(refused(gpu::quantize_into(in, octet::per_tensor{}, rule, out, to, m.values.device.data() + 3)));
  CHECK(refused(gpu::quantize_into(in, octet::per_tensor{}, rule, out, to, reinterpret_cast<float*>(out.data))));
  // The last of these descales lies where the codes begin.
  auto* const before = reinterpret_cast<descale*>(out.data) - 60;
  CHECK(refused(gpu::quantize_into(in, tokens, rule, out, gpu::descale_view<descale>(before, 20, 1))));
  auto* const odd = reinterpret_cast<descale*>(reinterpret_cast<char*>(to) + 2);
  CHECK(gpu::quantize_into(in, tokens, rule, out, odd) == cudaErrorMisalignedAddress);
  // Strides of descales, and rules, that don't fit.
  octet::e8m0* const bytes = reinterpret_cast<octet::e8m0*>(to);
  CHECK(refused(gpu::quantize_into(in, octet::per_block<1, 1>{}, rule, out, gpu::row_major(to, 15))));
  CHECK(refused(gpu::quantize_into(in, octet::per_block<1, 1>{}, rule, out, gpu::column_major(to, 0))));
  const scale_rule power(descale_form::e8m0_up);
  CHECK(refused(gpu::quantize_into(in, octet::per_block<1, 1>{}, power, out, gpu::swizzled_128x4(bytes, 12))));
  CHECK(refused(gpu::quantize_into(in, tokens, rule, out, bytes)));
  scale_rule wrong;
  wrong.margin = 2000;
  CHECK(refused(gpu::quantize_into(in, tokens, wrong, out, to)));
  wrong = scale_rule();
  wrong.cap = std::numeric_limits<float>::quiet_NaN();
  CHECK(refused(gpu::quantize_into(in, octet::per_tensor{}, wrong, out, to, amax.device.data())));
  wrong = scale_rule();
  wrong.zero = -1;
  CHECK(refused(gpu::quantize_into(in, tokens, wrong, out, to)));
  scale_rule rejecting;
  rejecting.on_nonfinite = octet::nonfinite::reject;
  CHECK(gpu::quantize_into(in, tokens, rejecting, out, to) == cudaErrorNotSupported);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(m.codes.differences() + d.differences() + amax.differences() == 0);
}
