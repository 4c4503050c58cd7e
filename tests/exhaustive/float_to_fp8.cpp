// All 2^32 floats to E4M3 and E5M2, saturating and not, one value at a time and in bulk, against NVIDIA's bytes.
// SPDX-License-Identifier: MIT
#include <chrono>
#include <cstring>

#include "../formats.hpp"
#include "catch.hpp"
#include "digests.hpp"
#include "octet/bulk.hpp"
#include "reference.hpp"

namespace {

constexpr unsigned chunks = 64;
constexpr std::size_t block = 4096;
constexpr std::uint64_t chunk_size = (std::uint64_t{1} << 32) / chunks;

// The codes of the floats whose bits are first, first + 1, ...
template <class F>
void encode_one_by_one(std::uint32_t first, octet::overflow o, std::uint8_t* codes) {
  for (std::size_t i = 0; i < block; ++i)
    codes[i] = octet::encode<F>(octet::bit_cast<float>(first + static_cast<std::uint32_t>(i)), o).bits();
}

template <class F>
void encode_in_bulk(std::uint32_t first, octet::overflow o, std::uint8_t* codes) {
  std::uint32_t bits[block];
  float values[block];
  for (std::size_t i = 0; i < block; ++i) bits[i] = first + static_cast<std::uint32_t>(i);
  std::memcpy(values, bits, sizeof bits);
  octet::encode(values, octet::as_codes<F>(codes), block, o);
}

template <class F>
void encode_by_reference(std::uint32_t first, octet::overflow o, std::uint8_t* codes) {
  for (std::size_t i = 0; i < block; ++i)
    codes[i] = reference::encode<F>(octet::bit_cast<float>(first + static_cast<std::uint32_t>(i)), o);
}

using block_encoder = void (*)(std::uint32_t, octet::overflow, std::uint8_t*);

// One way to encode over one chunk: its digest, and its differences from another way (if there is one).
tally run_chunk(unsigned chunk, octet::overflow o, block_encoder encode, block_encoder other, std::uint64_t& digest) {
  tally t;
  reference::digest d;
  alignas(64) std::uint8_t codes[block], wanted[block];
  for (std::uint64_t done = 0; done < chunk_size; done += block) {
    const auto first = static_cast<std::uint32_t>(chunk * chunk_size + done);
    encode(first, o, codes);
    d.add(codes, block);
    t.compared += block;
    if (other == nullptr) continue;
    other(first, o, wanted);
    if (std::memcmp(codes, wanted, block) == 0) continue;
    t.compared -= block;
    for (std::size_t i = 0; i < block; ++i)
      t.expect(codes[i] == wanted[i], [&] { return difference("float", first + i, codes[i], wanted[i]); });
  }
  digest = d.value();
  return t;
}

// All chunks of one format and overflow mode against the recorded digests.
void check(const char* name, const char* how, octet::overflow o, block_encoder encode, block_encoder other,
           const std::uint64_t* digests) {
  const auto start = std::chrono::steady_clock::now();
  const unsigned every = reference::every();
  std::vector<tally> tallies(chunks);
  std::vector<std::uint64_t> found(digests, digests + chunks);
  reference::share(chunks, [&](unsigned i) {
    if (i % every == 0) tallies[i] = run_chunk(i, o, encode, other, found[i]);
  });
  tally all;
  int wrong_digests = 0;
  for (unsigned i = 0; i < chunks; ++i) {
    all.add(tallies[i]);
    wrong_digests += found[i] != digests[i];
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%s %s, %s: %llu floats, %llu differences, %d of %u digests wrong, %.1f s\n", name,
              o == octet::overflow::saturate ? "saturate" : "nonfinite", how,
              static_cast<unsigned long long>(all.compared), static_cast<unsigned long long>(all.differences),
              wrong_digests, chunks, seconds);
  std::fflush(stdout);
  INFO(name << " " << how << " " << all.first);
  CHECK(all.differences == 0);
  CHECK(wrong_digests == 0);
  CHECK(all.compared == (chunks + every - 1) / every * chunk_size);
}

template <class F>
void check_format(const char* name, const std::uint64_t (&digests)[2][chunks]) {
  for (const octet::overflow o : overflows) {
    const std::uint64_t* recorded = digests[o == octet::overflow::nonfinite];
    check(name, "one by one", o, &encode_one_by_one<F>, reference::has_header ? &encode_by_reference<F> : nullptr,
          recorded);
  }
}

template <class F>
void check_rows(const char* name, const std::uint64_t (&digests)[2][chunks]) {
  for (std::size_t row = 0; row < octet::simd::row_count; ++row) {
    if (!octet::simd::row_runs_here(row)) continue;
    octet::simd::pick_row(row);
    for (const octet::overflow o : overflows)
      check(name, octet::simd::row_name(row), o, &encode_in_bulk<F>, nullptr, digests[o == octet::overflow::nonfinite]);
  }
  octet::simd::pick_row(octet::simd::row_count);
}

}  // namespace

TEST_CASE("every float encodes to NVIDIA's byte") {
  std::printf("Reference: %s\n", reference::name);
  check_format<octet::e4m3>("e4m3", digests::float_to_e4m3);
  check_format<octet::e5m2>("e5m2", digests::float_to_e5m2);
}

TEST_CASE("every float encodes in bulk to NVIDIA's byte on every row that runs here") {
  std::printf("Reference: the digests recorded from cuda_fp8.h\n");
  check_rows<octet::e4m3>("e4m3", digests::float_to_e4m3);
  check_rows<octet::e5m2>("e5m2", digests::float_to_e5m2);
}

#if OCTET_TEST_CUDA_FP8
namespace {

template <class F>
void record(const char* name) {
  std::printf("inline constexpr std::uint64_t float_to_%s[2][%u] = {\n", name, chunks);
  for (const octet::overflow o : overflows) {
    std::vector<std::uint64_t> found(chunks);
    reference::share(chunks, [&](unsigned i) { run_chunk(i, o, &encode_by_reference<F>, nullptr, found[i]); });
    std::printf("    {");
    for (unsigned i = 0; i < chunks; ++i)
      std::printf("0x%016llX%s", static_cast<unsigned long long>(found[i]), i + 1 < chunks ? ", " : "},\n");
  }
  std::printf("};\n");
}

}  // namespace

TEST_CASE("prints the digests of all floats", "[.record]") {
  record<octet::e4m3>("e4m3");
  record<octet::e5m2>("e5m2");
}
#endif
