// Codes and values depend neither on flush-to-zero nor on rounding modes nor on -ffast-math (this file is built twice).
// SPDX-License-Identifier: MIT
#include <cfenv>
#include <cstring>
#include <vector>

#include "catch.hpp"
#include "formats.hpp"
#include "octet/gemv.hpp"
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace {

using octet::bit_cast;
using octet::overflow;
using octet::rounding;

// -- Environments ----------------------------------------------------------------------------------------------

struct environment {
  const char* name;
  int direction;  // for std::fesetround
  bool flush;     // subnormal results and operands are taken for zero
};

constexpr environment environments[] = {
    {"to nearest", FE_TONEAREST, false},   {"to nearest, flushing", FE_TONEAREST, true},
#ifdef FE_UPWARD
    {"upward", FE_UPWARD, false},          {"upward, flushing", FE_UPWARD, true},
#endif
#ifdef FE_DOWNWARD
    {"downward", FE_DOWNWARD, false},      {"downward, flushing", FE_DOWNWARD, true},
#endif
#ifdef FE_TOWARDZERO
    {"toward zero", FE_TOWARDZERO, false}, {"toward zero, flushing", FE_TOWARDZERO, true},
#endif
};

// Sets it, and what was there before when it goes.
class in_environment {
 public:
  explicit in_environment(const environment& e) {
    std::fegetenv(&before);
    ready = std::fesetround(e.direction) == 0;
#if defined(__SSE__)
    control = _mm_getcsr();
    constexpr unsigned flush_to_zero = 0x8000, denormals_are_zeros = 0x0040;
    _mm_setcsr(e.flush ? control | flush_to_zero | denormals_are_zeros
                       : control & ~(flush_to_zero | denormals_are_zeros));
#elif defined(__aarch64__)
    asm volatile("mrs %0, fpcr" : "=r"(control));
    constexpr std::uint64_t flush = 1u << 24;
    asm volatile("msr fpcr, %0" : : "r"(e.flush ? control | flush : control & ~flush));
#else
    ready = ready && !e.flush;
#endif
  }
  ~in_environment() {
#if defined(__SSE__)
    _mm_setcsr(control);
#elif defined(__aarch64__)
    asm volatile("msr fpcr, %0" : : "r"(control));
#endif
    std::fesetenv(&before);
  }
  in_environment(const in_environment&) = delete;
  in_environment& operator=(const in_environment&) = delete;
  bool ready = false;  // this machine has it

 private:
  std::fenv_t before;
#if defined(__SSE__)
  unsigned control;
#elif defined(__aarch64__)
  std::uint64_t control;
#endif
};

// Runs what gives a number in every environment (or in those that round to nearest) and expects that number.
template <class Run>
void expect_everywhere(const char* what, std::uint64_t wanted, Run&& run, bool in_every_direction = true) {
  for (const environment& e : environments) {
    if (!in_every_direction && e.direction != FE_TONEAREST) continue;
    std::uint64_t got = 0;
    bool ready = false;
    {
      const in_environment here(e);
      ready = here.ready;
      if (ready) got = run();
    }
    INFO(what << ", " << e.name);
    if (ready) CHECK(got == wanted);
  }
}

class digest {
 public:
  void add(std::uint64_t word) {
    state = (state ^ word) * 0x9E3779B97F4A7C15u;
    state ^= state >> 32;
  }
  std::uint64_t state = 0x243F6A8885A308D3;
};

// -- Inputs, made by integers ----------------------------------------------------------------------------------

constexpr std::size_t count = 1 << 16;

// Evenly over all bit patterns, subnormals, infinities and NaNs among them; every fourth around the values of the
// formats.
template <class T>
const std::vector<T>& sample() {
  using S = octet::float_traits<T>;
  using bits = typename S::bits_type;
  static const std::vector<T> values = [] {
    std::vector<T> result(count);
    oracle::random random(51);
    for (std::size_t i = 0; i < count; ++i) {
      constexpr int width = 8 * sizeof(T);
      bits b = static_cast<bits>(static_cast<bits>(i) << (width - 16));
      if (width > 16) b = static_cast<bits>(b | random() >> (80 - width));
      if (width > 16 && i % 4 == 3) {
        const std::uint64_t any = random();
        const std::uint64_t exponent = static_cast<std::uint64_t>(S::bias) - 20 + any % 40;
        const std::uint64_t tie = (any >> 8 & 31) << (S::mantissa_bits < 5 ? 0 : S::mantissa_bits - 5);
        b = static_cast<bits>((b & S::sign_mask) | ((exponent << S::mantissa_bits) + tie + (any >> 16) % 3 - 1));
      }
      result[i] = S::from_bits(b);
    }
    return result;
  }();
  return values;
}

// -- What is compared ------------------------------------------------------------------------------------------

template <class F>
struct by_octet {
  template <class T>
  unsigned encode(T x, overflow o, rounding r) const {
    return octet::encode<F>(x, o, r).bits();
  }
  template <class T>
  unsigned encode_stochastic(T x, std::uint32_t random, overflow o) const {
    return octet::encode_stochastic<F>(x, random, o).bits();
  }
};

// Codes of the whole sample in every mode and by chance.
template <class T, class By>
std::uint64_t digest_one_by_one(const By& by) {
  digest d;
  for (const overflow o : overflows) {
    for (const rounding r : roundings)
      for (const T x : sample<T>()) d.add(by.encode(x, o, r));
    std::uint32_t draw = 12345;
    for (const T x : sample<T>()) d.add(by.encode_stochastic(x, draw = draw * 1664525 + 1013904223, o));
  }
  return d.state;
}

// Codes of the whole sample in the default mode.
template <class T, class By>
std::uint64_t digest_default(const By& by, rounding r) {
  digest d;
  for (const overflow o : overflows)
    for (const T x : sample<T>()) d.add(by.encode(x, o, r));
  return d.state;
}

template <class F, class T>
std::uint64_t digest_in_bulk() {
  static std::vector<F> codes(count);
  digest d;
  for (const overflow o : overflows) {
    octet::encode(sample<T>().data(), codes.data(), count, o);
    for (const F q : codes) d.add(q.bits());
  }
  return d.state;
}

// Every code to every type of float, one by one and in bulk.
template <class F>
std::uint64_t digest_decoded() {
  digest d;
  F codes[1 << F::width];
  for (unsigned i = 0; i < 1u << F::width; ++i) codes[i] = F::from_bits(static_cast<std::uint8_t>(i));
  const auto add = [&](auto zero) {
    using T = decltype(zero);
    T values[1 << F::width];
    octet::decode(codes, values);
    for (unsigned i = 0; i < 1u << F::width; ++i) {
      d.add(octet::float_traits<T>::to_bits(octet::decode<T>(codes[i])));
      d.add(octet::float_traits<T>::to_bits(values[i]));
    }
  };
  add(0.0f), add(0.0), add(octet::float16()), add(octet::bfloat16());
  for (const F q : codes) d.add(static_cast<std::uint64_t>(octet::decode<long long>(q)));
  return d.state;
}

// Long doubles and long integers, which become doubles on the way.
template <class F>
std::uint64_t digest_of_long_types() {
  static const std::vector<long double> reals = [] {
    std::vector<long double> result;
    for (const double x : sample<double>())
      if ((bit_cast<std::uint64_t>(x) & octet::float_traits<double>::infinity) != octet::float_traits<double>::infinity)
        result.push_back(static_cast<long double>(x) * (1 + 0x1p-60L));
    return result;
  }();
  digest d;
  for (const rounding r : roundings) {
    for (const long double x : reals) d.add(octet::encode<F>(x, overflow::nonfinite, r).bits());
    for (std::size_t i = 0; i < count; ++i) {
      const auto wide = static_cast<long long>(bit_cast<std::uint64_t>(sample<double>()[i]));
      d.add(octet::encode<F>(wide, overflow::nonfinite, r).bits());
      d.add(octet::encode<F>(static_cast<unsigned long long>(wide) >> (i % 64), overflow::nonfinite, r).bits());
    }
  }
  return d.state;
}

std::uint64_t digest_arithmetic() {
  digest d;
  const std::vector<float>& x = sample<float>();
  for (std::size_t i = 0; i < count; ++i) {
    const float a = x[i], b = x[(i * 40503 + 7) % count];
    d.add(bit_cast<std::uint32_t>(octet::exact::product(a, b)));
    // A quotient below 2^-126 is only promised to within a unit, so its low bits stay out.
    const std::uint32_t quotient = bit_cast<std::uint32_t>(octet::exact::quotient(a, b));
    d.add((quotient & 0x7FFFFFFFu) < 0x00800000u ? 0 : quotient);
    d.add(bit_cast<std::uint64_t>(octet::exact::widen(a)));
    d.add(bit_cast<std::uint32_t>(octet::exact::narrow<float>(sample<double>()[i])));
    d.add(octet::bfloat16(sample<double>()[i]).bits());
    d.add(octet::float16(a).bits());
    d.add(bit_cast<std::uint32_t>(static_cast<float>(octet::float16::from_bits(static_cast<std::uint16_t>(i)))));
  }
  return d.state;
}

std::uint64_t digest_amax() {
  digest d;
  for (std::size_t i = 0; i + 64 <= count; i += 64) {
    for (const octet::nonfinite policy : {octet::nonfinite::propagate, octet::nonfinite::ignore}) {
      d.add(bit_cast<std::uint32_t>(octet::amax(sample<float>().data() + i, 64, policy)));
      d.add(bit_cast<std::uint64_t>(octet::amax(sample<double>().data() + i, 64, policy)));
      d.add(bit_cast<std::uint32_t>(octet::amax(sample<octet::float16>().data() + i, 64, policy)));
      d.add(bit_cast<std::uint32_t>(octet::amax(sample<octet::bfloat16>().data() + i, 64, policy)));
    }
  }
  return d.state;
}

// What the kernels in use make of the whole sample with scales of many sizes, in runs of odd lengths.
template <class F, class T, class Add>
void with_scales(const Add& add) {
  constexpr std::size_t run = 1117;
  static std::vector<octet::descale> descales;
  static std::vector<octet::scale> multipliers;
  if (descales.empty())
    for (std::size_t i = 0; i < run; ++i) {
      const auto any = static_cast<std::uint32_t>(i * 2654435761u);
      // Every eleventh at the end of those whose products with all codes are normal.
      const std::uint32_t least = static_cast<std::uint32_t>(F::mantissa_bits - F::least_exponent) + any % 2;
      const std::uint32_t exponent = i % 11 == 10 ? least : i % 251 == 250 ? any % 240 : 107 + any % 40;
      descales.push_back(octet::descale(bit_cast<float>(exponent << 23 | (any >> 9 & (i % 3 == 0 ? 0x7F8000u : ~0u)))));
      multipliers.push_back(octet::scale_of(descales.back(), octet::scaling::divide).multiplier);
    }
  for (std::size_t i = 0; i + run <= count; i += run) {
    const octet::scaling how = i % 2 == 0 ? octet::scaling::divide : octet::scaling::multiply;
    const octet::group_scale s = octet::scale_of(descales[i / run], how);
    add(sample<T>().data() + i, run, s, octet::simd::group_scales{descales.data(), multipliers.data(), s.divides});
  }
}

template <class F, class T>
void add_scaled(digest& d) {
  const octet::simd::scaled_conversion<F, T>& kernels = octet::simd::scales<F, T>();
  with_scales<F, T>([&](const T* x, std::size_t n, octet::group_scale s, octet::simd::group_scales each) {
    static std::vector<F> codes(n), codes_each(n);
    static std::vector<T> values(n), values_each(n);
    kernels.quantize(x, codes.data(), n, s, false);
    kernels.quantize_each(x, codes_each.data(), n, each);
    kernels.dequantize(codes_each.data(), values.data(), n, s.stored, false);
    kernels.dequantize_each(codes.data(), values_each.data(), n, each.stored);
    octet::simd::row_losses losses;
    kernels.measure(x, codes.data(), n, 5, s, losses);
    for (std::size_t i = 0; i < n; ++i) {
      d.add(codes[i].bits() | static_cast<std::uint64_t>(codes_each[i].bits()) << 8);
      d.add(octet::float_traits<T>::to_bits(values[i]));
      d.add(octet::float_traits<T>::to_bits(values_each[i]));
    }
    for (const std::size_t c : {losses.not_finite, losses.clipped, losses.flushed, losses.poisoned, losses.compared})
      d.add(c);
  });
}
template <class F, class T>
void add_losses(digest& d) {
  const octet::simd::scaled_conversion<F, T>& kernels = octet::simd::scales<F, T>();
  with_scales<F, T>([&](const T* x, std::size_t n, octet::group_scale s, octet::simd::group_scales) {
    static std::vector<F> codes(n);
    kernels.quantize(x, codes.data(), n, s, false);
    octet::simd::row_losses losses;
    kernels.measure(x, codes.data(), n, 5, s, losses);
    for (std::size_t lane = 0; lane < 8; ++lane) {
      d.add(bit_cast<std::uint64_t>(losses.signal[lane]));
      d.add(bit_cast<std::uint64_t>(losses.error[lane]));
      d.add(bit_cast<std::uint64_t>(losses.relative[lane]));
    }
  });
}

std::uint64_t digest_scaled() {
  digest d;
  add_scaled<octet::e4m3, float>(d);
  add_scaled<octet::e4m3, octet::float16>(d);
  add_scaled<octet::e4m3, octet::bfloat16>(d);
  add_scaled<octet::e5m2, octet::float16>(d);
  add_scaled<octet::e4m3fnuz, float>(d);
  add_scaled<octet::p3109_p3, octet::bfloat16>(d);
  add_scaled<octet::e2m1, float>(d);
  return d.state;
}
std::uint64_t digest_losses() {
  digest d;
  add_losses<octet::e4m3, float>(d);
  add_losses<octet::e5m2, octet::float16>(d);
  add_losses<octet::e4m3, octet::bfloat16>(d);
  return d.state;
}

// The codes of the oracle, and what else came out to nearest and without flushing where other tests compare it with
// the machine's own arithmetic. A row: from float, double, half and bfloat16; decoded; long types.
struct recorded_row {
  std::uint64_t from_float, from_double, from_half, from_bfloat16, decoded, long_types;
};
constexpr recorded_row recorded[] = {
    {0xE685F84A728B4945, 0xE638DA1F271935ED, 0xA3FCD199F292ABE3, 0x277165C997030F95, 0x24EAFBC0CC24B512,
     0x4DDED555E9119044},
    {0xB0E061E996DD329A, 0xD08F8A223643B8E8, 0xE8A21E5B608C82A1, 0x4B39EE93FD7883E4, 0x22BD5D23C80C73FF,
     0x0E20C33FDAA5169A},
    {0x9A756A1A9877E117, 0x524484FC66A3FE51, 0x4BF383547C99F286, 0x080AD49626A3142E, 0xBC46F21D895885A5,
     0x3297BFFCB4820C9A},
    {0xCF898996F88EB8F6, 0xC41A3DE97F27CF72, 0x4CA1DCE705BCE14D, 0x326AE59DD24D75B3, 0x8B17D02DB983F087,
     0x350CE69285773023},
    {0xDFB5D3B11C27BC1A, 0xC70EF2A998A7C1FD, 0xAB85A79C3EDFCEBD, 0x9FB77BE7B5A2CD41, 0x3DBC51C501CE3E1D,
     0x1BADA3DB6770ACE8},
    {0x497858E3A09AA928, 0x28A26CFCBFBC7A34, 0x0831DFF461BD459C, 0x134DAFD11F5113CE, 0xF58176CCAC52FADC,
     0x14D2C838B46E316D},
    {0x3F411C19922B288C, 0x260ACEE1517370F7, 0x49BC57C5C0278BAA, 0xD1B5AA1FB2ACAD81, 0x22A0C0EB9465570F,
     0xC534AA5B07B3765E},
    {0x04F907FA7DEBF175, 0x9F1962C3F54C72B4, 0xA55F2BE899DB6B21, 0x327D54BDC6A1E334, 0xA6D471FBA4C51278,
     0xECFF65FE74281077},
    {0xE8F2C41156CF2EB0, 0x2ECC395EEFBA2265, 0x1A171B1C92DF85FB, 0x1FEB5C162EA641C1, 0x4BBBEBF1D227F377,
     0x44BBB64EDAE7140C},
    {0x7EE5DB30E2EB909C, 0xC313F9D3E2CAFBD2, 0xDD85CD596F00E4A4, 0xDD3128DA1BF29AA3, 0x98A16EA660A36839,
     0xF59C8B9F1176AE54},
    {0x5281E07CAC38E0C0, 0x5634A167FECA27E4, 0xAF618C58CA257CAF, 0xB6860392D64BA10A, 0x9C6C94ECEFAB00FA,
     0x12A9D7F82229CF94},
    {0x0048DA9B0C498860, 0x9EFC0A85350160A9, 0xDC32AB3083B3F20D, 0x417899AB31C3ED7B, 0x0D4D7C789C8BF36C,
     0xB4D29D91CE0A8D4F},
    {0x77E948B88A630F48, 0xF7A0D2A778C33600, 0x4D801CE7D1D44848, 0xE6A6604993468D91, 0x80A5744FFE54C2CD,
     0xCF2ACD13DC50C16D},
};
constexpr std::uint64_t recorded_arithmetic = 0xCC9180B9ECFC254A, recorded_amax = 0x2E1029FE758C78C2;
constexpr std::uint64_t recorded_scaled = 0x3B66A7D990B5BC1C, recorded_losses = 0x35CED040916F4B31;

const recorded_row& row_of(const oracle::table& table) {
  std::size_t i = 0;
  while (&oracle::of(i) != &table) ++i;
  return recorded[i];
}

#if !defined(__FAST_MATH__)
struct by_oracle {
  const oracle::table& table;
  template <class T>
  static auto number(T x) {
    if constexpr (std::is_same_v<T, double>)
      return x;
    else
      return static_cast<float>(x);
  }
  template <class T>
  unsigned encode(T x, overflow o, rounding r) const {
    return table.encode(number(x), oracle_mode(r), o == overflow::saturate);
  }
  template <class T>
  unsigned encode_stochastic(T x, std::uint32_t random, overflow o) const {
    return table.encode_stochastic(number(x), random, o == overflow::saturate);
  }
};
#endif

}  // namespace

#if !defined(__FAST_MATH__)
TEST_CASE("the recorded digests are those of the oracle") {
  for_each_kernel_format([](auto, const oracle::table& table) {
    const by_oracle by{table};
    INFO(table.about.name);
    CHECK(digest_one_by_one<float>(by) == row_of(table).from_float);
    CHECK(digest_one_by_one<double>(by) == row_of(table).from_double);
    CHECK(digest_one_by_one<octet::float16>(by) == row_of(table).from_half);
    CHECK(digest_one_by_one<octet::bfloat16>(by) == row_of(table).from_bfloat16);
  });
}
#endif

TEST_CASE("codes one by one are the same in every environment") {
  for_each_kernel_format([](auto tag, const oracle::table& table) {
    using F = typename decltype(tag)::type;
    const by_octet<F> by{};
    const recorded_row& row = row_of(table);
    INFO(table.about.name);
    expect_everywhere("float", row.from_float, [&] { return digest_one_by_one<float>(by); });
    expect_everywhere("double", row.from_double, [&] { return digest_one_by_one<double>(by); });
    expect_everywhere("half", row.from_half, [&] { return digest_one_by_one<octet::float16>(by); });
    expect_everywhere("bfloat16", row.from_bfloat16, [&] { return digest_one_by_one<octet::bfloat16>(by); });
    if (std::numeric_limits<long double>::digits >= 64)
      expect_everywhere("long types", row.long_types, &digest_of_long_types<F>);
  });
}

TEST_CASE("codes in bulk are the same in every environment, on every row that runs here") {
  for (std::size_t i = 0; i < octet::simd::row_count; ++i) {
    if (!octet::simd::row_runs_here(i)) continue;
    octet::simd::pick_row(i);
    for_each_kernel_format([&](auto tag, const oracle::table& table) {
      using F = typename decltype(tag)::type;
      const by_octet<F> by{};
      INFO(table.about.name << ", row " << octet::simd::row_name(i));
      expect_everywhere("float", digest_default<float>(by, F::default_rounding), &digest_in_bulk<F, float>);
      expect_everywhere("double", digest_default<double>(by, F::default_rounding), &digest_in_bulk<F, double>);
      expect_everywhere("half", digest_default<octet::float16>(by, F::default_rounding),
                        &digest_in_bulk<F, octet::float16>);
      expect_everywhere("bfloat16", digest_default<octet::bfloat16>(by, F::default_rounding),
                        &digest_in_bulk<F, octet::bfloat16>);
    });
    expect_everywhere("amax", recorded_amax, &digest_amax);
  }
  octet::simd::pick_row(octet::simd::row_count);
}

TEST_CASE(
    "scaled codes and values are the same in every environment, on every row, and sums where it rounds to nearest") {
  for (std::size_t i = 0; i < octet::simd::row_count; ++i) {
    if (!octet::simd::row_runs_here(i)) continue;
    octet::simd::pick_row(i);
    INFO("row " << octet::simd::row_name(i));
    expect_everywhere("scaled", recorded_scaled, &digest_scaled);
    expect_everywhere("losses", recorded_losses, &digest_losses, false);
  }
  octet::simd::pick_row(octet::simd::row_count);
}

TEST_CASE("decoded values are the same in every environment") {
  for_each_kernel_format([](auto tag, const oracle::table& table) {
    using F = typename decltype(tag)::type;
    INFO(table.about.name);
    expect_everywhere("decode", row_of(table).decoded, &digest_decoded<F>);
  });
}

// Every finite code alone in a sum, so that nothing is rounded, and NaN where it should be.
template <class F>
std::uint64_t wrong_products() {
  constexpr std::size_t cols = 131, columns = 2, codes_count = 256;
  static std::vector<F> codes(codes_count * cols, F::from_bits(0));
  static std::vector<float> x(columns * cols, 4.0f), y(columns * codes_count), sums(cols);
  const octet::descale half(0.5f);
  std::uint64_t wrong = 0;
  for (std::size_t c = 0; c < cols; c += 13) {
    for (std::size_t r = 0; r < codes_count; ++r) codes[r * cols + c] = F::from_bits(static_cast<std::uint8_t>(r));
    octet::gemv(
        octet::as_quantized(octet::matrix_view<const F>(codes.data(), codes_count, cols), &half, octet::per_tensor{}),
        octet::matrix_view<const float>(x.data(), columns, cols),
        octet::matrix_view<float>(y.data(), columns, codes_count));
    for (std::size_t r = 0; r < codes_count; ++r) {
      const F q = codes[r * cols + c];
      std::memset(sums.data(), 0, cols * sizeof(float));
      octet::axpy(2.0f, codes.data() + r * cols, sums.data(), cols);
      // Twice the value: its exponent field is one more, since every value is a normal float.
      const std::uint32_t bits = octet::detail::decode_bits(q);
      const std::uint32_t wanted = isnan(q) || isinf(q) || (bits << 1) == 0 ? bits : bits + 0x00800000;
      for (const float got :
           {y[r], y[codes_count + r], octet::dot(codes.data() + r * cols, x.data(), cols) / 2, sums[c]}) {
        const auto found = octet::bit_cast<std::uint32_t>(got);
        wrong += isnan(q) ? (found & 0x7FFFFFFF) <= 0x7F800000 : (wanted << 1) == 0 ? found << 1 != 0 : found != wanted;
      }
      codes[r * cols + c] = F::from_bits(0);
    }
  }
  return wrong;
}

TEST_CASE("codes are multiplied as what they are in every environment, on every row that runs here") {
  for (std::size_t row = 0; row < octet::simd::row_count; ++row) {
    if (!octet::simd::row_runs_here(row)) continue;
    octet::simd::pick_row(row);
    INFO(octet::simd::row_name(row));
    for_each_kernel_format([](auto tag, const oracle::table& table) {
      using F = typename decltype(tag)::type;
      if constexpr (F::is_signed) expect_everywhere(table.about.name, 0, &wrong_products<F>);
    });
  }
  octet::simd::pick_row(octet::simd::row_count);
}

TEST_CASE("widening, narrowing, products and quotients are the same in every environment") {
  expect_everywhere("arithmetic", recorded_arithmetic, &digest_arithmetic);
}

TEST_CASE("one NaN among numbers is seen in every lane, whatever the flags") {
  std::vector<float> values(133);
  std::vector<octet::e4m3> codes(values.size());
  std::size_t wrong = 0;
  for (const std::uint32_t nan : {0x7F800001u, 0x7FC00000u, 0xFFFFFFFFu, 0xFF800001u}) {
    for (std::size_t lane = 0; lane < values.size(); ++lane) {
      for (float& x : values) x = 2;
      std::memcpy(&values[lane], &nan, sizeof nan);
      for (const overflow o : overflows) {
        octet::encode(values, codes, o);
        for (std::size_t i = 0; i < codes.size(); ++i) {
          wrong += codes[i].bits() != (i == lane ? 0x7F : 0x40);
          wrong += octet::encode<octet::e4m3>(values[i], o).bits() != (i == lane ? 0x7F : 0x40);
          wrong += isnan(codes[i]) != (i == lane);
        }
      }
      const std::uint32_t largest = bit_cast<std::uint32_t>(octet::amax(values)) & 0x7FFFFFFFu;
      wrong += largest <= 0x7F800000u;
      wrong += bit_cast<std::uint32_t>(octet::amax(values, octet::nonfinite::ignore)) != 0x40000000u;
    }
  }
  CHECK(wrong == 0);
}

#if !defined(__FAST_MATH__)
TEST_CASE("prints the digests", "[.record]") {
  for_each_kernel_format([](auto tag, const oracle::table& table) {
    using F = typename decltype(tag)::type;
    const by_oracle by{table};
    std::printf("    {0x%016llX, 0x%016llX, 0x%016llX, 0x%016llX, 0x%016llX, 0x%016llX},\n",
                static_cast<unsigned long long>(digest_one_by_one<float>(by)),
                static_cast<unsigned long long>(digest_one_by_one<double>(by)),
                static_cast<unsigned long long>(digest_one_by_one<octet::float16>(by)),
                static_cast<unsigned long long>(digest_one_by_one<octet::bfloat16>(by)),
                static_cast<unsigned long long>(digest_decoded<F>()),
                static_cast<unsigned long long>(digest_of_long_types<F>()));
  });
  std::printf("constexpr std::uint64_t recorded_arithmetic = 0x%016llX, recorded_amax = 0x%016llX;\n",
              static_cast<unsigned long long>(digest_arithmetic()), static_cast<unsigned long long>(digest_amax()));
  octet::simd::pick_row(octet::simd::row_count - 1);
  std::printf("constexpr std::uint64_t recorded_scaled = 0x%016llX, recorded_losses = 0x%016llX;\n",
              static_cast<unsigned long long>(digest_scaled()), static_cast<unsigned long long>(digest_losses()));
  octet::simd::pick_row(octet::simd::row_count);
}
#endif
