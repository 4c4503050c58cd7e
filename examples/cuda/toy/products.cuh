// Matrix products by cuBLASLt, in bfloat16 and in FP8: chosen once, run often; the benchmark measures them.
// SPDX-License-Identifier: MIT
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device.cuh"
#include "octet/scale.hpp"

namespace toy {

// What cuBLASLt does not do on this GPU.
struct no_such_product : lab::failure {
  explicit no_such_product(const std::string& name) : failure(name + ": cuBLASLt has no such product here") {}
};

inline void check(cublasStatus_t status, const std::string& what) {
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) throw no_such_product(what);
  if (status != CUBLAS_STATUS_SUCCESS) throw lab::failure(what + ": " + cublasLtGetStatusString(status));
}

// The library, and the workspace that its products on one stream share (32 MiB, what it advises for Hopper).
class cublas {
  cublasLtHandle_t handle_ = nullptr;

 public:
  cublas() { check(cublasLtCreate(&handle_), "cuBLASLt"); }
  ~cublas() { cublasLtDestroy(handle_); }
  cublas(const cublas&) = delete;
  cublas& operator=(const cublas&) = delete;
  operator cublasLtHandle_t() const { return handle_; }

  memory<char> workspace{std::size_t{32} << 20, "the workspace of the products"};
};

// `batch` products of row-major matrices, result[rows, cols] = factor * x[rows, inner] * w, where w is [cols, inner] and is
// taken transposed, as weights and keys are, or is [inner, cols], as values are. Each matrix begins a stride behind the
// one before it; strides and leading dimensions in elements.
struct product_request {
  std::string name;     // what it is for
  cudaDataType type;    // of x and w
  cudaDataType result;  // bfloat16 or float
  std::size_t rows, cols, inner;
  std::size_t result_row;  // elements from row to row of the result; those of x and w are dense
  std::size_t x_row;
  bool transposed = true;
  float factor = 1;
  int batch = 1;
  std::size_t x_stride = 0, w_stride = 0, result_stride = 0;
  // FP8: result = factor * (codes of x times codes of w) * descales; one each, or one for each row of x and of w.
  const octet::descale* x_descales = nullptr;
  const octet::descale* w_descales = nullptr;
  bool descale_each_row = false;
  bool fast_accumulation = false;
};

class product {
  template <auto Destroy>
  struct destroyer {
    template <class T>
    void operator()(T* p) const {
      Destroy(p);
    }
  };
  using layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, destroyer<&cublasLtMatrixLayoutDestroy>>;

  std::string name_;
  float factor_;
  std::unique_ptr<cublasLtMatmulDescOpaque_t, destroyer<&cublasLtMatmulDescDestroy>> description_;
  layout w_, x_, result_;
  std::vector<cublasLtMatmulHeuristicResult_t> proposed_;
  std::size_t taken_ = 0;

  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    check(cublasLtMatmulDescSetAttribute(description_.get(), attribute, &value, sizeof value), name_);
  }

  layout make_layout(cudaDataType type, std::size_t rows, std::size_t cols, std::size_t row, int batch,
                     std::size_t stride) {
    cublasLtMatrixLayout_t made = nullptr;  // cuBLASLt's columns are our rows
    check(cublasLtMatrixLayoutCreate(&made, type, cols, rows, static_cast<std::int64_t>(row)), name_);
    layout owned(made);
    const auto apart = static_cast<std::int64_t>(stride);
    check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch), name_);
    check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &apart, sizeof apart),
          name_);
    return owned;
  }

 public:
  // FP8 products exist in this one form on Hopper: the left factor transposed, the right one not; with the weights to the
  // left that is row-major x times row-major weights [outputs, inputs], and nothing is moved.
  // Of the algorithms that cuBLASLt proposes, the likely fastest first, up to `most` are kept, and the first is taken.
  product(const cublas& library, const product_request& r, std::size_t most = 1)
      : name_(r.name), factor_(r.factor), proposed_(most) {
    cublasLtMatmulDesc_t made = nullptr;
    check(cublasLtMatmulDescCreate(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F), name_);
    description_.reset(made);
    set(CUBLASLT_MATMUL_DESC_TRANSA, r.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
    if (r.w_descales != nullptr) {
      if (r.descale_each_row)
        for (const auto side : {CUBLASLT_MATMUL_DESC_A_SCALE_MODE, CUBLASLT_MATMUL_DESC_B_SCALE_MODE})
          set(side, std::int32_t{CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F});
      set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, static_cast<const void*>(r.w_descales));
      set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, static_cast<const void*>(r.x_descales));
      set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<std::int8_t>(r.fast_accumulation));
    }
    w_ = make_layout(r.type, r.transposed ? r.cols : r.inner, r.transposed ? r.inner : r.cols,
                     r.transposed ? r.inner : r.cols, r.batch, r.w_stride);
    x_ = make_layout(r.type, r.rows, r.inner, r.x_row, r.batch, r.x_stride);
    result_ = make_layout(r.result, r.rows, r.cols, r.result_row, r.batch, r.result_stride);
    ask(library);
  }

  std::size_t proposals() const { return proposed_.size(); }
  void take(std::size_t i) { taken_ = i; }

  // x, w and result are multiples of 16 bytes.
  void run(const cublas& library, cudaStream_t on, const void* x, const void* w, void* result) const {
    const float zero = 0;
    check(cublasLtMatmul(library, description_.get(), &factor_, w, w_.get(), x, x_.get(), &zero, result, result_.get(),
                         result, result_.get(), &proposed_[taken_].algo, library.workspace.data(),
                         library.workspace.size(), on),
          name_);
  }

 private:
  void ask(const cublas& library) {
    cublasLtMatmulPreference_t made = nullptr;
    check(cublasLtMatmulPreferenceCreate(&made), name_);
    const std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, destroyer<&cublasLtMatmulPreferenceDestroy>> wish(made);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      check(cublasLtMatmulPreferenceSetAttribute(made, attribute, &value, sizeof value), name_);
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{library.workspace.size()});
    for (const auto alignment :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      prefer(alignment, std::uint32_t{16});
    int count = 0;
    check(cublasLtMatmulAlgoGetHeuristic(library, description_.get(), w_.get(), x_.get(), result_.get(), result_.get(),
                                         made, static_cast<int>(proposed_.size()), proposed_.data(), &count),
          name_);
    if (count == 0) throw no_such_product(name_);
    proposed_.resize(static_cast<std::size_t>(count));
  }
};

}  // namespace toy
