// Paired differences, Wilson's interval and McNemar's test, against numbers worked out elsewhere.
// SPDX-License-Identifier: MIT
#include "lab/quality/comparison.hpp"

#include <cmath>
#include <vector>

#include "catch.hpp"

TEST_CASE("The error of a mean counts blocks, not tokens") {
  // Two documents of 128: four blocks of 64, each of one value throughout.
  std::vector<double> x;
  for (const double value : {1.0, 2.0, 3.0, 6.0}) x.insert(x.end(), 64, value);
  const lab::estimate e = lab::paired_difference(x, {128, 128}, true);
  CHECK(e.mean == Approx(3));
  // The deviations of the block means are 2, 1, 0, 3: sqrt((4 + 1 + 9) / (4 * 3)).
  CHECK(e.standard_error == Approx(std::sqrt(14.0 / 12)));
  // A document's end ends a block.
  CHECK(lab::paired_difference(x, {32, 224}, true).standard_error != Approx(e.standard_error));
  CHECK(std::isnan(lab::paired_difference({1, 2, 3}, {3}, true).standard_error));
}

TEST_CASE("Twenty documents are blocks themselves, however long") {
  std::vector<double> x;
  std::vector<std::size_t> sizes;
  for (int i = 0; i < 20; ++i) {
    const std::size_t size = i % 2 == 0 ? 100 : 300;
    x.insert(x.end(), size, i % 2 == 0 ? 1.0 : 2.0);
    sizes.push_back(size);
  }
  const lab::estimate e = lab::paired_difference(x, sizes, true);
  CHECK(e.mean == Approx(1.75));
  // Each document deviates by 100 * -0.75 or 300 * 0.25 in its sum: 75 either way.
  CHECK(e.standard_error == Approx(std::sqrt(20.0 / 19 * 20 * 75 * 75) / 4000));
  // Windows that are no documents do not count as blocks: of 100 there are two, 64 and 36, of 300 five.
  const double squares = 10 * ((64.0 * 64 + 36 * 36) * 0.75 * 0.75 + (4 * 64.0 * 64 + 44 * 44) * 0.25 * 0.25);
  CHECK(lab::paired_difference(x, sizes, false).standard_error == Approx(std::sqrt(70.0 / 69 * squares) / 4000));
}

TEST_CASE("Wilson's interval is the one in the books") {
  const lab::interval ten = lab::wilson(8, 10);
  CHECK(ten.least == Approx(0.4901625));
  CHECK(ten.most == Approx(0.9433178));
  const lab::interval none = lab::wilson(0, 20);
  CHECK(none.least == Approx(0).margin(1e-12));
  CHECK(none.most == Approx(0.1611252));
}

TEST_CASE("McNemar's exact p is a sum of binomial chances") {
  CHECK(lab::mcnemar(0, 0) == Approx(1));
  CHECK(lab::mcnemar(3, 3) == Approx(1));
  CHECK(lab::mcnemar(1, 0) == Approx(1));
  CHECK(lab::mcnemar(5, 0) == Approx(2.0 / 32));
  CHECK(lab::mcnemar(2, 8) == Approx(2 * (1 + 10 + 45) / 1024.0));
  CHECK(lab::mcnemar(8, 2) == lab::mcnemar(2, 8));
}
