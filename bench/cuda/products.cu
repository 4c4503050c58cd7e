// Rows of FP8 products by cuBLASLt, with and without fast accumulation, against the same products in bfloat16.
// SPDX-License-Identifier: MIT
#include "row.hpp"

#if !OCTET_BENCH_CUBLASLT
void cuda_bench::add_products(std::vector<row>&) {}
#else
#include <memory>

#include "cuda/toy/products.cuh"
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

// Takes the fastest of the algorithms that cuBLASLt proposes, tried on these arrays, a few runs each.
void take_fastest(toy::product& product, const toy::cublas& library, const void* x, const void* w, void* d,
                  cudaStream_t stream) {
  constexpr int runs = 4;
  double least = 0;
  std::size_t fastest = 0;
  for (std::size_t i = 0; i < product.proposals() && product.proposals() > 1; ++i) {
    product.take(i);
    const event begin, end;
    try {
      product.run(library, stream, x, w, d);
      begin.record(stream);
      for (int k = 0; k < runs; ++k) product.run(library, stream, x, w, d);
      end.record(stream);
    } catch (const lab::failure&) {
      continue;  // it is proposed and refused
    }
    require(cudaStreamSynchronize(stream), "a product");
    const double ms = end.ms_since(begin);
    if (least == 0 || ms < least) {
      least = ms;
      fastest = i;
    }
  }
  product.take(fastest);
}

template <class T>
launch turns_of(arena& a, const std::shared_ptr<toy::cublas>& library, const shape& s, cudaDataType type, scales how,
                bool fast, const descale* x_descales, const descale* w_descales) {
  const turns<T> x = a.drawn<T>(s.m * s.k), w = a.drawn<T>(s.n * s.k);
  const turns<bfloat16> d = a.room<bfloat16>(s.m * s.n);
  toy::product_request r;
  r.name = "this product";
  r.type = type, r.result = CUDA_R_16BF;
  r.rows = s.m, r.cols = s.n, r.inner = s.k;
  r.x_row = s.k, r.result_row = s.n;
  r.x_descales = x_descales, r.w_descales = w_descales;
  r.descale_each_row = how == scales::per_token_and_channel;
  r.fast_accumulation = fast;
  try {
    const auto made = std::make_shared<toy::product>(*library, r, 8);
    take_fastest(*made, *library, x[0], w[0], d[0], a.stream());
    return [=](std::size_t turn, cudaStream_t stream) {
      made->run(*library, stream, x[turn], w[turn], d[turn]);
      return cudaSuccess;
    };
  } catch (const toy::no_such_product& error) {
    throw unsupported(error.what());
  }
}

contest against_bfloat16(arena& a, const shape& s, scales how, bool fast) {
  const std::size_t inputs = s.n * s.k + s.m * s.k, output = 2 * s.m * s.n;
  a.begin(inputs + output);
  const auto library = std::make_shared<toy::cublas>();
  const bool each_row = how == scales::per_token_and_channel;
  const descale* const x_descales = a.shared_drawn<descale>(each_row ? s.m : 1);
  const descale* const w_descales = a.shared_drawn<descale>(each_row ? s.n : 1);
  launch mark = turns_of<bfloat16>(a, library, s, CUDA_R_16BF, scales::none, false, nullptr, nullptr);
  launch work = turns_of<e4m3>(a, library, s, CUDA_R_8F_E4M3, how, fast, x_descales, w_descales);
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
