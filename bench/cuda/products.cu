// Rows of FP8 products by cuBLASLt, with and without fast accumulation, against the same products in bfloat16.
// SPDX-License-Identifier: MIT
#include "row.hpp"

#if !OCTET_BENCH_CUBLASLT
void cuda_bench::add_products(std::vector<row>&) {}
#else
#include <cublasLt.h>

#include <memory>

#include "octet/cuda/kernels.cuh"
#include "race.hpp"

namespace cuda_bench {
namespace {

using octet::bfloat16;
using octet::descale;
using octet::e4m3;

// D [m, n] = X [m, k] W^T, W [n, k], all row-major, as a linear layer has them; D is bfloat16.
struct shape {
  std::size_t m, n, k;
};

enum class scales { none, per_tensor, per_token_and_channel };

void require(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) throw unsupported(std::string(what) + " by cuBLASLt");
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string(what) + ": " + cublasLtGetStatusString(status));
}

template <class Handle, cublasStatus_t (*Destroy)(Handle)>
struct destroyer {
  using pointer = Handle;
  void operator()(Handle handle) const { Destroy(handle); }
};
template <class Handle, cublasStatus_t (*Destroy)(Handle)>
using owned = std::unique_ptr<Handle, destroyer<Handle, Destroy> >;
using layout = owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;

// cuBLASLt counts in columns: a row-major [rows, cols] is its column-major [cols, rows].
layout layout_of(cudaDataType_t type, std::size_t rows, std::size_t cols) {
  cublasLtMatrixLayout_t made = nullptr;
  require(cublasLtMatrixLayoutCreate(&made, type, cols, rows, static_cast<std::int64_t>(cols)), "a layout");
  return layout(made);
}

// A product that is set up, with the fastest of the algorithms that cuBLASLt proposes.
class product {
  owned<cublasLtHandle_t, cublasLtDestroy> library_;
  owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> operation_;
  layout w_, x_, d_;
  std::vector<cublasLtMatmulHeuristicResult_t> proposed_;
  std::size_t best_ = 0;
  void* workspace_;

  template <class Value>
  void set(cublasLtMatmulDescAttributes_t attribute, const Value& value) {
    require(cublasLtMatmulDescSetAttribute(operation_.get(), attribute, &value, sizeof value), "an attribute");
  }

 public:
  static constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

  product(const shape& s, cudaDataType_t type, scales how, bool fast, const descale* w, const descale* x,
          void* workspace)
      : w_(layout_of(type, s.n, s.k)),
        x_(layout_of(type, s.m, s.k)),
        d_(layout_of(CUDA_R_16BF, s.m, s.n)),
        workspace_(workspace) {
    cublasLtHandle_t library = nullptr;
    require(cublasLtCreate(&library), "cuBLASLt");
    library_.reset(library);
    cublasLtMatmulDesc_t operation = nullptr;
    require(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "a product");
    operation_.reset(operation);
    set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    if (how != scales::none) {
      set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<std::int8_t>(fast));
      if (how == scales::per_token_and_channel) {
        set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F);
        set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F);
      }
      set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, w);
      set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, x);
    }
    cublasLtMatmulPreference_t made = nullptr;
    require(cublasLtMatmulPreferenceCreate(&made), "a preference");
    const owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> preference(made);
    require(cublasLtMatmulPreferenceSetAttribute(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes,
                                                 sizeof workspace_bytes),
            "a preference");
    int count = 0;
    proposed_.resize(8);
    require(cublasLtMatmulAlgoGetHeuristic(library, operation, w_.get(), x_.get(), d_.get(), d_.get(), made,
                                           static_cast<int>(proposed_.size()), proposed_.data(), &count),
            "this product");
    if (count == 0) throw unsupported("this product by cuBLASLt");
    proposed_.resize(static_cast<std::size_t>(count));
  }

  cudaError_t run(const void* w, const void* x, void* d, cudaStream_t stream) const {
    const float one = 1, zero = 0;
    const cublasLtMatmulHeuristicResult_t& chosen = proposed_[best_];
    const cublasStatus_t status =
        cublasLtMatmul(library_.get(), operation_.get(), &one, w, w_.get(), x, x_.get(), &zero, d, d_.get(), d,
                       d_.get(), &chosen.algo, workspace_, chosen.workspaceSize, stream);
    return status == CUBLAS_STATUS_SUCCESS ? cudaSuccess : cudaErrorUnknown;
  }

  // Tries them on these arrays, a few times each.
  void choose(const void* w, const void* x, void* d, cudaStream_t stream) {
    if (proposed_.size() == 1) return;
    constexpr int runs = 4;
    double least = 0;
    std::size_t fastest = 0;
    for (best_ = 0; best_ < proposed_.size(); ++best_) {
      const event begin, end;
      cudaError_t error = run(w, x, d, stream);
      begin.record(stream);
      for (int i = 0; i < runs && error == cudaSuccess; ++i) error = run(w, x, d, stream);
      end.record(stream);
      cuda_bench::require(cudaStreamSynchronize(stream), "a product");
      if (error != cudaSuccess) continue;
      const double ms = end.ms_since(begin);
      if (least == 0 || ms < least) {
        least = ms;
        fastest = best_;
      }
    }
    best_ = fastest;
  }
};

template <class T>
launch turns_of(arena& a, const shape& s, cudaDataType_t type, scales how, bool fast, const descale* w_descales,
                const descale* x_descales, void* workspace) {
  const turns<T> w = a.drawn<T>(s.n * s.k), x = a.drawn<T>(s.m * s.k);
  const turns<bfloat16> d = a.room<bfloat16>(s.m * s.n);
  const auto made = std::make_shared<product>(s, type, how, fast, w_descales, x_descales, workspace);
  made->choose(w[0], x[0], d[0], a.stream());
  return [=](std::size_t turn, cudaStream_t stream) { return made->run(w[turn], x[turn], d[turn], stream); };
}

contest against_bfloat16(arena& a, const shape& s, scales how, bool fast) {
  const std::size_t inputs = s.n * s.k + s.m * s.k, output = 2 * s.m * s.n;
  a.begin(inputs + output);
  void* const workspace = a.shared<char>(product::workspace_bytes);
  const std::size_t per_row = how == scales::per_token_and_channel;
  const descale* const w_descales = a.shared_drawn<descale>(per_row != 0 ? s.n : 1);
  const descale* const x_descales = a.shared_drawn<descale>(per_row != 0 ? s.m : 1);
  launch mark = turns_of<bfloat16>(a, s, CUDA_R_16BF, scales::none, false, nullptr, nullptr, workspace);
  launch work = turns_of<e4m3>(a, s, CUDA_R_8F_E4M3, how, fast, w_descales, x_descales, workspace);
  return {std::to_string(s.m * s.n),
          static_cast<double>(inputs + output),
          2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k),
          work,
          mark,
          "bfloat16"};
}

// The layers of an 8B model: attention's projections, and the two of its feed-forward block.
constexpr shape layers[] = {{0, 4096, 4096}, {0, 14336, 4096}, {0, 4096, 14336}};

struct mode {
  const char* name;
  scales how;
  bool fast;
};
constexpr mode modes[] = {
    {"per_tensor", scales::per_tensor, false},
    {"per_tensor/fast", scales::per_tensor, true},
    {"per_token", scales::per_token_and_channel, false},
    {"per_token/fast", scales::per_token_and_channel, true},
};

}  // namespace

void add_products(std::vector<row>& rows) {
  for (const mode& how : modes)
    for (const shape& layer : layers)
      for (const std::size_t m : {1, 16, 64, 4096, 8192}) {
        const shape s{m, layer.n, layer.k};
        const std::string name = std::string("cuda/product/e4m3/") + how.name + "/M:" + std::to_string(m) +
                                 "/N:" + std::to_string(s.n) + "/K:" + std::to_string(s.k);
        rows.push_back({name, m >= 4096 ? 1.6 : 0, [=](arena& a) {
                          // Where sizes are tiny, so are these; a multiple of what cuBLASLt asks for.
                          const std::size_t part = a.is_tiny() ? 128 : 1;
                          const shape used{m / (m > 64 ? part : 1), s.n / part, s.k / part};
                          return against_bfloat16(a, used, how.how, how.fast);
                        }});
      }
}

}  // namespace cuda_bench
#endif
