// The table of rows: there is always one that runs, and every row that runs here gives the bytes of the scalar row.
// SPDX-License-Identifier: MIT
#include <cstring>
#include <string>
#include <vector>

#include "catch.hpp"
#include "octet/quantize.hpp"
#include "oracle.hpp"

namespace simd = octet::simd;

TEST_CASE("The last row is the scalar one, and it runs everywhere") {
  REQUIRE(simd::row_count >= 1);
  CHECK(std::string(simd::row_name(simd::row_count - 1)) == "scalar");
  CHECK(simd::row_runs_here(simd::row_count - 1));
  CHECK(simd::row_runs_here(simd::row_in_use()));
}

TEST_CASE("Every row gives the same bytes, and a row can be picked") {
  oracle::random random(1);
  std::vector<std::uint32_t> bits(100003);
  for (auto& b : bits) b = static_cast<std::uint32_t>(random());
  std::vector<float> x(bits.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = octet::bit_cast<float>(bits[i]);
  std::vector<octet::e4m3> wanted(x.size()), got(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) wanted[i] = octet::encode<octet::e4m3>(x[i]);
  for (std::size_t row = 0; row < simd::row_count; ++row) {
    if (!simd::row_runs_here(row)) continue;
    simd::pick_row(row);
    CHECK(simd::row_in_use() == row);
    octet::encode(x, got);
    std::size_t differences = 0;
    for (std::size_t i = 0; i < x.size(); ++i) differences += got[i].bits() != wanted[i].bits();
    CAPTURE(simd::row_name(row));
    CHECK(differences == 0);
  }
  simd::pick_row(simd::row_count);
  CHECK(simd::row_runs_here(simd::row_in_use()));
}

// Work that is larger than the last-level cache goes along several pages at once and stores past the cache.
template <class F, class T>
void compare_past_the_cache(std::uint64_t seed) {
  oracle::random random(seed);
  using bits = octet::exact::bits_of<T>;
  constexpr std::size_t most = 70001;  // several rounds of pages, and no multiple of anything
  std::vector<T> x(most), y(most + 200), y_wanted(most + 200);
  std::vector<F> q(most + 200), q_wanted(most + 200);
  const auto boundary = [](const auto& results) {  // the first result on a 64-byte boundary
    return (0 - reinterpret_cast<std::uintptr_t>(results.data())) % 64 / sizeof(results[0]);
  };
  for (std::size_t i = 0; i < most; ++i) {
    const auto any = static_cast<bits>(random());
    x[i] = octet::float_traits<T>::from_bits(i % 5 == 0 ? any
                                                        : static_cast<bits>(any & ~(bits{3} << (8 * sizeof(T) - 3))));
  }
  const auto& scalar = simd::scalar::row::scales<F, T>;
  for (std::size_t row = 0; row + 1 < simd::row_count; ++row) {
    if (!simd::row_runs_here(row)) continue;
    simd::pick_row(row);
    CAPTURE(simd::row_name(row));
    for (const std::size_t offset : {0u, 1u, 63u}) {
      for (const std::size_t n :
           {most, std::size_t{40960}, std::size_t{1500}, std::size_t{63}, std::size_t{31}, std::size_t{0}}) {
        const octet::descale d(n == 1500 || n == most ? 0x1.1p-90f : 0.0123f);
        const octet::group_scale s = octet::scale_of(d, octet::scaling::divide);
        const auto expect = [&](const auto& got, const auto& wanted) {
          CHECK(std::memcmp(got.data(), wanted.data(), got.size() * sizeof(got[0])) == 0);
        };
        const auto clear = [](auto& got, auto& wanted, auto guard) {
          got.assign(got.size(), guard);
          wanted.assign(wanted.size(), guard);
        };
        const std::size_t at = boundary(q) + offset, at_wanted = boundary(q_wanted) + offset;
        const auto expect_codes = [&] {
          CHECK(std::memcmp(q.data() + at, q_wanted.data() + at_wanted, n) == 0);
          CHECK(q[at + n].bits() == 1);
          CHECK((at == 0 || q[at - 1].bits() == 1));
        };
        for (const octet::overflow o : {octet::overflow::saturate, octet::overflow::nonfinite}) {
          clear(q, q_wanted, F::from_bits(1));
          simd::converts<F, T>().encode(x.data(), q.data() + at, n, o, true);
          simd::scalar::encode(x.data(), q_wanted.data() + at_wanted, n, o, false);
          expect_codes();
          const std::size_t y_at = boundary(y) + offset;
          clear(y, y_wanted, T(1.0f));
          simd::converts<F, T>().decode(q.data() + at, y.data() + y_at, n, true);
          simd::scalar::decode(q.data() + at, y_wanted.data() + y_at, n, false);
          expect(y, y_wanted);
          clear(y, y_wanted, T(1.0f));
          simd::scales<F, T>().dequantize(q.data() + at, y.data() + y_at, n, d, true);
          scalar.dequantize(q.data() + at, y_wanted.data() + y_at, n, d, false);
          expect(y, y_wanted);
        }
        clear(q, q_wanted, F::from_bits(1));
        simd::scales<F, T>().quantize(x.data(), q.data() + at, n, s, true);
        scalar.quantize(x.data(), q_wanted.data() + at_wanted, n, s, false);
        expect_codes();
        q.assign(q.size(), F::from_bits(1));
        const bits largest = simd::scales<F, T>().quantize_and_amax(x.data(), q.data() + at, n, s, x.data(), n, true);
        expect_codes();
        CHECK(largest == simd::scalar::amax(x.data(), n, false));
        CHECK(largest == simd::reduces<T>().amax(x.data(), n, true));
        std::size_t not_finite = 1, not_finite_wanted = 1;
        const bits finite = simd::reduces<T>().finite_amax(x.data(), n, not_finite);
        CHECK(finite == simd::scalar::finite_amax(x.data(), n, not_finite_wanted));
        CHECK(not_finite == not_finite_wanted);
      }
    }
  }
  simd::pick_row(simd::row_count);
}

TEST_CASE("Work past the cache gives the same bytes, wherever it begins and ends") {
  compare_past_the_cache<octet::e4m3, float>(1);
  compare_past_the_cache<octet::e5m2, octet::bfloat16>(2);
  compare_past_the_cache<octet::e4m3, octet::float16>(3);
}
