// Holds our forward pass against the logits of models that make_models.py wrote: compare_logits FOLDER.
// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lab/model/forward.hpp"
#include "lab/model/hugging_face.hpp"

namespace {

// The largest difference of any logit of any position.
double largest_difference(const std::string& folder) {
  nlohmann::json expected;
  std::ifstream(folder + "/logits.json") >> expected;
  const std::vector<std::int32_t> tokens = expected.at("tokens");
  const std::vector<std::vector<double>> logits = expected.at("logits");
  const lab::transformer model = lab::read_hugging_face(folder);
  lab::treatment nothing;
  lab::kv_cache cache;
  const lab::tensor ours =
      lab::forward(model, nothing, {{tokens.data(), tokens.size(), &cache}}) * model.head->transpose();
  double largest = 0;
  for (std::size_t r = 0; r < logits.size(); ++r)
    for (std::size_t c = 0; c < logits[r].size(); ++c)
      largest = std::fmax(largest, std::fabs(static_cast<double>(ours(lab::index(r), lab::index(c))) - logits[r][c]));
  return largest;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  int compared = 0, wrong = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    const std::string folder = entry.path().string();
    try {
      const double difference = largest_difference(folder);
      std::printf("%s: logits differ by at most %.2g\n", folder.c_str(), difference);
      ++compared;
      if (!(difference <= 1e-3)) ++wrong;
    } catch (const std::exception& error) {
      std::printf("%s: %s\n", folder.c_str(), error.what());
      ++wrong;
    }
  }
  return compared > 0 && wrong == 0 ? 0 : 1;
}
