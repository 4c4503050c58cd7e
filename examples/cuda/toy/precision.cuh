// The two precisions of the one decoder: what is stored, how it becomes that, and what multiplies it.
// SPDX-License-Identifier: MIT
#pragma once

#include "model.cuh"
#include "octet/cuda/quantize.cuh"
#include "products.cuh"
#include "witness.cuh"

namespace toy {

struct in_bfloat16 {
  using value = bf16;
  static constexpr cudaDataType type = CUDA_R_16BF;
};
struct in_fp8 {
  using value = octet::e4m3;
  static constexpr cudaDataType type = CUDA_R_8F_E4M3;
};

// Who shares a descale, in weights and in what multiplies them: an output channel and a token have their own, which
// cuBLASLt takes on compute capability 9.0 only; or the whole tensor has one.
enum class sharing { rows, tensor };

// How values become codes, and who watches.
struct quantizing {
  sharing shared;
  witness* watched;  // null: nobody, as while a graph is recorded
};

// A matrix of values as products take them: stored, and scaled by descales where they are codes.
template <class P>
class stored;

template <>
class stored<in_bfloat16> {
  const bf16* values_ = nullptr;

 public:
  stored() = default;
  stored(std::size_t, std::size_t, sharing, const std::string&) {}

  // Values that stay where they are.
  void take(const stream&, const quantizing&, const std::string&, const bf16* x, std::size_t, std::size_t) {
    values_ = x;
  }
  const bf16* values() const { return values_; }
  const octet::descale* descales() const { return nullptr; }
};

template <>
class stored<in_fp8> {
  memory<octet::e4m3> codes_;
  memory<octet::descale> descales_;
  memory<float> amax_;  // one for the whole tensor; tokens need none

 public:
  stored() = default;
  // Room for up to `rows` x `cols`.
  stored(std::size_t rows, std::size_t cols, sharing shared, const std::string& what)
      : codes_(rows * cols, what), descales_(shared == sharing::rows ? rows : 1, what), amax_(1, what) {}

  // Quantizes [rows, cols] with descales found from the largest magnitudes.
  void take(const stream& on, const quantizing& how, const std::string& name, const bf16* x, std::size_t rows,
            std::size_t cols) {
    const octet::matrix_view<const bf16> in(x, rows, cols);
    const octet::matrix_view<octet::e4m3> out(codes_.data(), rows, cols);
    const octet::scale_rule rule;
    const auto is_as_on_host = [&](const auto& granularity) {
      if (how.watched != nullptr)
        how.watched->found(name, granularity, rule, x, rows, cols, codes_.data(), descales_.data());
    };
    if (how.shared == sharing::rows) {
      check(octet::cuda::quantize_into(in, octet::per_token{}, rule, out, descales_.data(), on), name);
      is_as_on_host(octet::per_token{});
    } else {
      check(octet::cuda::quantize_into(in, octet::per_tensor{}, rule, out, descales_.data(), amax_.data(), on), name);
      is_as_on_host(octet::per_tensor{});
    }
  }
  const octet::e4m3* values() const { return codes_.data(); }
  const octet::descale* descales() const { return descales_.data(); }
};

}  // namespace toy
