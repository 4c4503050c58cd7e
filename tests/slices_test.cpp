// What one thread of a kernel does, run on the host: every number of values, every road, nothing beyond.
// SPDX-License-Identifier: MIT
#include <cstring>
#include <vector>

#include "catch.hpp"
#include "octet/cuda/tiles.cuh"
#include "oracle.hpp"

namespace {

template <class T>
std::vector<T> any_values(std::size_t n, std::uint64_t seed) {
  oracle::random random(seed);
  std::vector<T> x;
  const float specials[] = {-0.0f, std::numeric_limits<float>::infinity(), -0x1p-140f,
                            std::numeric_limits<float>::quiet_NaN()};
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t any = random();
    const float ordinary = std::ldexp(static_cast<float>(random() >> 40) - 0x1p23f, -30 + static_cast<int>(any % 16));
    x.push_back(T(any % 64 < 60 ? ordinary : specials[any % 4]));
  }
  return x;
}

// All slices of n values, and one too many; what lies behind them stays as it was.
template <int N, class F, class T>
bool encodes(const std::vector<T>& x, octet::overflow o) {
  const std::size_t n = x.size();
  alignas(16) F codes[320];
  std::memset(static_cast<void*>(codes), 0x5A, sizeof codes);
  alignas(16) T from[320];
  if (n > 0) std::memcpy(static_cast<void*>(from), x.data(), n * sizeof(T));
  for (std::size_t slice = 0; slice <= n / N + 1; ++slice)
    octet::cuda::detail::encode_slice<N>(from, codes, n, slice, o);
  bool same = true;
  for (std::size_t i = 0; i < n; ++i) same = same && codes[i].bits() == octet::encode<F>(x[i], o).bits();
  for (std::size_t i = n; i < 320; ++i) same = same && codes[i].bits() == F::from_bits(0x5A).bits();
  return same;
}
template <int N, class T, class F>
bool decodes(const std::vector<F>& codes) {
  const std::size_t n = codes.size();
  alignas(16) T x[320], before[320];
  std::memset(static_cast<void*>(x), 0x5A, sizeof x);
  std::memcpy(static_cast<void*>(before), x, sizeof x);
  alignas(16) F from[320];
  if (n > 0) std::memcpy(static_cast<void*>(from), codes.data(), n * sizeof(F));
  for (std::size_t slice = 0; slice <= n / N + 1; ++slice) octet::cuda::detail::decode_slice<N>(from, x, n, slice);
  bool same = true;
  for (std::size_t i = 0; i < n; ++i) {
    const T expected = octet::decode<T>(codes[i]);
    same = same && std::memcmp(&x[i], &expected, sizeof(T)) == 0;
  }
  return same && std::memcmp(static_cast<const void*>(x + n), before + n, (320 - n) * sizeof(T)) == 0;
}

template <class F, class T>
void every_length() {
  std::size_t wrong = 0;
  for (std::size_t n = 0; n <= 300; ++n) {
    const std::vector<T> x = any_values<T>(n, n);
    wrong += encodes<16, F>(x, octet::overflow::saturate) ? 0 : 1;
    wrong += encodes<1, F>(x, octet::overflow::saturate) ? 0 : 1;
    wrong += encodes<1, F>(x, octet::overflow::nonfinite) ? 0 : 1;
    std::vector<F> codes;
    for (const T value : x) codes.push_back(F(value));
    wrong += decodes<16, T>(codes) ? 0 : 1;
    wrong += decodes<1, T>(codes) ? 0 : 1;
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("The slices of any number of values are their conversions, and nothing more") {
  every_length<octet::e4m3, float>();
  every_length<octet::e5m2, octet::bfloat16>();
  every_length<octet::e2m1, octet::float16>();
}

namespace {

using octet::descale;
using octet::matrix_view;
using octet::per_block;
using octet::scale_rule;
namespace kernels = octet::cuda::detail;

// A matrix, what plain arithmetic makes of it, and room for what the slices make of it, with gaps between rows that stay as
// they were.
template <class F, class T>
struct trial {
  std::size_t rows, cols, stride, tile_cols;
  octet::tiling t;
  std::vector<T> x;
  std::vector<F> expected, found;
  std::vector<float> amax;
  std::vector<descale> expected_descales, found_descales;

  template <class Granularity>
  trial(std::size_t r, std::size_t c, const Granularity& granularity, const scale_rule& rule)
      : rows(r),
        cols(c),
        stride((c + 15) / 16 * 16 + 16),
        t(granularity.tiles(r, c)),
        x(any_values<T>(r * stride + 1, r * 301 + c)),
        expected(x.size(), F::from_bits(0x2A)),
        found(expected),
        amax(octet::descale_count(granularity, r, c), 0.0f) {
    tile_cols = t.cols.count(cols);
    each([this](std::size_t i, std::size_t tile) {
      const float magnitude = std::fabs(static_cast<float>(x[i]));
      if (std::isfinite(magnitude)) amax[tile] = std::max(amax[tile], magnitude);
    });
    for (const float a : amax) expected_descales.push_back(octet::scale_of<F>(a, rule).stored);
    found_descales.assign(amax.size(), descale(3));
    each([this](std::size_t i, std::size_t tile) {
      expected[i] = F(static_cast<float>(x[i]) / expected_descales[tile].value());
    });
  }
  template <class Visitor>
  void each(Visitor visit) const {
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < cols; ++c) visit(r * stride + c, t.rows.tile(r) * tile_cols + t.cols.tile(c));
  }
  matrix_view<const T> in() const { return {x.data(), rows, cols, stride}; }
  matrix_view<F> codes(std::vector<F>& of) const { return {of.data(), rows, cols, stride}; }
  bool same() const {
    bool all = true;
    for (std::size_t i = 0; i < expected.size(); ++i) all = all && expected[i].bits() == found[i].bits();
    for (std::size_t i = 0; i < expected_descales.size(); ++i)
      all = all && octet::bit_cast<std::uint32_t>(expected_descales[i].value()) ==
                       octet::bit_cast<std::uint32_t>(found_descales[i].value());
    return all;
  }
};

// Every tile by a team: all its threads read, the descale follows from the largest they found, all of them write.
template <int N, int Team, int Held, bool Again, class F, class T, class Granularity>
bool by_teams(std::size_t rows, std::size_t cols, const Granularity& granularity, const scale_rule& rule) {
  trial<F, T> m(rows, cols, granularity, rule);
  if (!kernels::cuts_between_slices<N>(m.t.cols, cols)) return true;
  const kernels::matrix_rows<F> to{m.codes(m.found)};
  const auto descales = octet::cuda::row_major(m.found_descales.data(), m.tile_cols);
  for (std::size_t i = 0; i < m.t.rows.count(rows); ++i)
    for (std::size_t j = 0; j < m.tile_cols; ++j) {
      const auto tile = kernels::tile_slices<N>::of(m.t, rows, cols, i, j);
      kernels::tile_share<N, Team, Held, Again, T> shares[Team];
      std::uint32_t amax = 0;
      for (std::size_t lane = 0; lane < Team; ++lane)
        amax = std::max(amax, shares[lane].read(m.in(), tile, lane, true));
      const octet::group_scale s = octet::scale_of<F>(octet::bit_cast<float>(amax), rule);
      descales.data[descales.index(i, j)] = s.stored;
      for (std::size_t lane = 0; lane < Team; ++lane) shares[lane].template write<F>(m.in(), tile, lane, s, to);
    }
  return m.same();
}

// Every slice with the scale that its tile has: given, or following from an amax where that is of the whole; and back.
template <int N, class F, class T, class Granularity>
bool by_slices(std::size_t rows, std::size_t cols, const Granularity& granularity, const scale_rule& rule) {
  trial<F, T> m(rows, cols, granularity, rule);
  if (cols == 0 || !kernels::cuts_between_slices<N>(m.t.cols, cols)) return true;
  const std::size_t slices = rows * ((cols + N - 1) / N);
  const kernels::matrix_rows<F> to{m.codes(m.found)};
  bool same = true;
  if constexpr (std::is_same_v<Granularity, octet::per_tensor>) {
    const kernels::found_scales<F> found{m.amax.data(), m.tile_cols, rule, m.found_descales.data()};
    for (std::size_t number = 0; number <= slices; ++number)
      kernels::quantize_slice<N, F>(m.in(), m.t, found, to, number);
    same = m.same();
    m.found.assign(m.found.size(), F::from_bits(0x2A));
  }
  m.found_descales = m.expected_descales;
  const kernels::given_scales<descale> given{
      octet::cuda::row_major<const descale>(m.expected_descales.data(), m.tile_cols), octet::scaling::divide};
  std::vector<T> expected(m.x.size(), T(0.0f)), back(expected);
  for (std::size_t number = 0; number <= slices; ++number) {
    kernels::quantize_slice<N, F>(m.in(), m.t, given, to, number);
    kernels::dequantize_slice<N>(matrix_view<const F>(m.codes(m.expected)), m.t, given.descales,
                                 matrix_view<T>(back.data(), rows, cols, m.stride), number);
  }
  m.each([&](std::size_t i, std::size_t tile) {
    const double value = static_cast<double>(m.expected[i]) * m.expected_descales[tile].value();
    // One NaN on every machine, whichever its own arithmetic makes.
    expected[i] = std::isnan(value) ? octet::float_traits<T>::from_bits(octet::float_traits<T>::sign_mask - 1)
                                    : static_cast<T>(value);
  });
  same = same && std::memcmp(static_cast<const void*>(expected.data()), back.data(), back.size() * sizeof(T)) == 0;
  return same && m.same();
}

// Columns with a scale each.
template <int N, class F, class T>
bool by_columns(std::size_t rows, std::size_t cols) {
  const scale_rule rule;
  trial<F, T> m(rows, cols, octet::per_channel{1}, rule);
  if (rows == 0 || cols == 0) return true;
  std::vector<std::uint32_t> bits(cols, 0);
  const std::size_t patches = kernels::column_patch<N>::count(rows, cols);
  for (std::size_t number = 0; number < patches; ++number) {
    const auto patch = kernels::column_patch<N>::of(rows, cols, number);
    const auto largest = kernels::column_amax_bits<N>(m.in(), patch, true);
    for (std::size_t k = 0; k < N && patch.col + k < cols; ++k)
      bits[patch.col + k] = std::max(bits[patch.col + k], largest.value[k]);
  }
  std::vector<float> amax;
  for (const std::uint32_t b : bits) amax.push_back(octet::bit_cast<float>(b));
  const kernels::found_scales<F> scales{amax.data(), cols, rule, m.found_descales.data()};
  for (std::size_t number = 0; number <= patches; ++number)
    kernels::quantize_columns<N>(m.in(), scales, m.codes(m.found), kernels::column_patch<N>::of(rows, cols, number));
  return m.same();
}

// The transpose, or the matrix as it is, patch by patch: all threads read, then each takes a slice.
template <bool Transposed, class F, class T, class Granularity>
bool by_patches(std::size_t rows, std::size_t cols, const Granularity& granularity) {
  trial<F, T> m(Transposed ? cols : rows, Transposed ? rows : cols, granularity, scale_rule());
  std::vector<T> x(rows * cols, T(0.0f));
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < cols; ++c) x[r * cols + c] = Transposed ? m.x[c * m.stride + r] : m.x[r * m.stride + c];
  m.found_descales = m.expected_descales;
  const matrix_view<const T> in(x.data(), rows, cols);
  const kernels::given_scales<descale> scales{
      octet::cuda::row_major<const descale>(m.expected_descales.data(), m.tile_cols), octet::scaling::divide};
  using patch = kernels::transposed_patch;
  std::vector<float> shared(patch::words);
  const bool one_scale = kernels::cuts_between_slices<patch::values>(m.t.cols, m.cols);
  constexpr std::size_t strip = Transposed ? 1 : 3;
  for (std::size_t number = 0; number < strip * patch::count(rows, cols, strip); ++number) {
    patch p = patch::of(cols, number / strip, strip);
    for (std::size_t i = 0; i < number % strip; ++i) p = p.next();
    for (std::size_t thread = 0; thread < patch::threads; ++thread) p.read(in, thread, shared.data());
    for (std::size_t thread = 0; thread < patch::threads; ++thread) {
      const std::size_t row = Transposed ? p.row(thread) : p.straight_row(thread);
      const std::size_t col = Transposed ? p.col(thread) : p.straight_col(thread);
      if (row >= m.rows || col >= m.cols) continue;
      const auto slice =
          Transposed ? patch::slice(shared.data(), thread) : patch::straight_slice(shared.data(), thread);
      const auto codes = kernels::quantize_in_row<F>(slice, m.t, scales, row, col, m.cols, one_scale);
      kernels::store(m.codes(m.found).row(row) + col, codes, m.cols - col);
    }
  }
  return m.same();
}

template <class F, class T>
std::size_t every_road(std::size_t rows, std::size_t cols) {
  const scale_rule rule, power_of_two(octet::descale_form::e8m0_up);
  bool same = by_teams<16, 8, 1, false, F, T>(rows, cols, per_block<1, 128>{}, rule) &&
              by_teams<16, 2, 1, false, F, T>(rows, cols, per_block<1, 32>{}, power_of_two) &&
              by_teams<1, 8, 2, true, F, T>(rows, cols, per_block<3, 20>{2, 7}, rule) &&
              by_teams<16, 4, 2, true, F, T>(rows, cols, octet::per_token{}, rule) &&
              by_teams<16, 32, 4, true, F, T>(rows, cols, per_block<128, 128>{}, rule);
  same = same && by_slices<16, F, T>(rows, cols, octet::per_tensor{}, rule) &&
         by_slices<16, F, T>(rows, cols, per_block<128, 128>{100, 64}, rule) &&
         by_slices<1, F, T>(rows, cols, per_block<3, 20>{2, 7}, rule);
  same = same && by_columns<4, F, T>(rows, cols) && by_columns<1, F, T>(rows, cols);
  same = same && by_patches<true, F, T>(rows, cols, per_block<1, 128>{}) &&
         by_patches<true, F, T>(rows, cols, per_block<3, 20>{2, 7});
  same = same && by_patches<false, F, T>(rows, cols, per_block<1, 32>{}) &&
         by_patches<false, F, T>(rows, cols, per_block<3, 20>{2, 7});
  return same ? 0 : 1;
}

}  // namespace

TEST_CASE("Teams, slices, columns and patches quantize as plain arithmetic does, over every shape in both directions") {
  std::size_t wrong = 0;
  for (std::size_t n = 0; n <= 300; ++n) {
    CAPTURE(n, wrong);
    wrong += every_road<octet::e4m3, octet::bfloat16>(5, n);
    wrong += every_road<octet::e4m3, octet::bfloat16>(n, 5);
    if (n % 3 == 0) wrong += every_road<octet::e5m2, float>(n, 33) + every_road<octet::e5m2, float>(2, n);
    if (n % 50 == 0) wrong += every_road<octet::e5m2, float>(n, 130);
  }
  CHECK(wrong == 0);
}

TEST_CASE("The descales of MX lie where tensor cores look for them") {
  // 130 x 6 tiles: blocks of 128 x 4, two by two; within one, 16 bytes hold four rows that are 32 apart.
  const octet::cuda::descale_view<octet::e8m0> d = octet::cuda::swizzled_128x4(static_cast<octet::e8m0*>(nullptr), 6);
  CHECK(d.row_stride == 8);
  CHECK(d.index(0, 0) == 0);
  CHECK(d.index(0, 3) == 3);
  CHECK(d.index(32, 0) == 4);
  CHECK(d.index(1, 0) == 16);
  CHECK(d.index(127, 3) == 511);
  CHECK(d.index(0, 4) == 512);
  CHECK(d.index(128, 0) == 1024);
  CHECK(d.index(129, 5) == 1024 + 512 + 16 + 1);
  CHECK(d.extent(130, 6) == 2 * 2 * 512);
  CHECK(d.extent(1, 8) == 2 * 512);
}

TEST_CASE("Descales that would share a place have no extent") {
  octet::cuda::descale_view<descale> d = octet::cuda::row_major(static_cast<descale*>(nullptr), 6);
  CHECK(d.extent(5, 6) == 30);
  CHECK(d.extent(5, 7) == 0);
  CHECK(d.extent(1, 7) == 7);
  CHECK(d.extent(0, 6) == 0);
  d = octet::cuda::column_major(static_cast<descale*>(nullptr), 5);
  CHECK(d.extent(5, 6) == 5 * 8 + 5);
  CHECK(d.extent(9, 6) == 0);
  CHECK(octet::cuda::swizzled_128x4(static_cast<descale*>(nullptr), 4).extent(3, 5) == 0);
  CHECK(octet::cuda::descale_view<descale>(nullptr, 0, 1).extent(2, 3) == 0);
  CHECK(octet::cuda::descale_view<descale>(nullptr, static_cast<std::size_t>(-1), 1).extent(3, 3) == 0);
  CHECK(octet::cuda::descale_view<descale>(nullptr, 6, 1, true).extent(3, 5) == 0);  // no multiple of 4
}

TEST_CASE("Indices have 64 bits: more than 2^31 values, and more than 2^32") {
  // 262,144 x 14,336 values: the last of them.
  constexpr std::size_t rows = 262144, cols = 14336;
  const octet::tiling blocks = per_block<128, 128>{}.tiles(rows, cols);
  const auto tile = kernels::tile_slices<16>::of(blocks, rows, cols, 2047, 111);
  CHECK(tile.first_row == rows - 128);
  CHECK(tile.first_col == cols - 128);
  CHECK(tile.count() == 1024);
  CHECK(tile.row(1023) == rows - 1);
  CHECK(tile.col(1023) == cols - 16);
  const auto column = kernels::column_patch<4>::of(rows, cols, kernels::column_patch<4>::count(rows, cols) - 1);
  CHECK(column.end == rows);
  CHECK(column.col == cols - 4);
  const auto turned = kernels::transposed_patch::of(cols, kernels::transposed_patch::count(rows, cols) - 1);
  CHECK(turned.first_row == rows - 128);
  CHECK(turned.first_col == cols - 32);
  const auto slice = kernels::slice_place<16>::of(blocks, cols, rows * (cols / 16) - 1);
  CHECK(slice.row == rows - 1);
  CHECK(slice.col == cols - 16);
  CHECK(slice.i == 2047);
  CHECK(slice.j == 111);
  const auto far = kernels::slice_place<1>::of(octet::per_tensor{}.tiles(3, std::size_t{1} << 40), std::size_t{1} << 40,
                                               (std::size_t{2} << 40) + 12345);
  CHECK(far.row == 2);
  CHECK(far.col == 12345);
}
