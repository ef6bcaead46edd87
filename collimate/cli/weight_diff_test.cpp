#include "collimate/cli/weight_diff.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

namespace collimate::cli {
namespace {

// Writes tensors [2, n] as a model's weights.
std::string directory_of(const std::string& name, const std::map<std::string, std::vector<float>>& tensors) {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("collimate-diff-{}-{}", name, ::getpid());
  std::filesystem::create_directories(path);
  std::vector<model::TensorToWrite> list;
  for (const auto& [tensor, values] : tensors)
    list.push_back({tensor, {2, std::ssize(values) / 2}, [&values](std::span<float> out) {
                      std::ranges::copy(values, out.begin());
                    }});
  model::write_safetensors((path / "model.safetensors").string(), list);
  return path.string();
}

TEST(WeightDiff, NamesEveryTensorThatDiffersAndWhereFirst) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::string a = directory_of("a", {{"same", {1, nan}},
                                           {"other", {1, 2, 3, 4, 5, 6}},
                                           {"gone", {1, 2}},
                                           {"short", {1, 2}},
                                           {"nan", {1, 2}}}),
                    b = directory_of("b", {{"same", {1, nan}},
                                           {"other", {1, 2, 3, 4, 5.5, 4}},
                                           {"new", {1, 2}},
                                           {"short", {1, 2, 3, 4}},
                                           {"nan", {1, nan}}});
  std::map<std::string, TensorDifference> found;
  for (const TensorDifference& one : weight_differences(a, b)) found[one.name] = one;
  ASSERT_EQ(found.size(), 6U);
  EXPECT_FALSE(found.at("same").differs());
  EXPECT_EQ(found.at("other").largest, 2);
  EXPECT_EQ(found.at("other").differing, 2);
  EXPECT_EQ(found.at("other").first, 4);
  EXPECT_EQ(found.at("other").first_b, 5.5F);
  EXPECT_EQ(place_of(4, {2, 3}), "[1, 1]");
  EXPECT_EQ(found.at("gone").missing_in, b);
  EXPECT_EQ(found.at("new").missing_in, a);
  EXPECT_TRUE(found.at("short").differs());
  EXPECT_TRUE(std::isinf(found.at("nan").largest));
  std::filesystem::remove_all(a);
  std::filesystem::remove_all(b);
}

TEST(WeightDiff, SummariesCountFiniteValues) {
  const std::string a = directory_of("c", {{"x", {3, -4, std::numeric_limits<float>::infinity(), 0}}});
  const model::TensorDirectory tensors(a);
  const TensorSummary s = summary_of(*tensors.find("x"), "x");
  EXPECT_EQ(s.least, -4);
  EXPECT_EQ(s.most, 3);
  EXPECT_DOUBLE_EQ(s.mean, -1.0 / 3);
  EXPECT_EQ(s.norm, 5);
  EXPECT_EQ(s.not_finite, 1);
  EXPECT_EQ(first_values(*tensors.find("x"), "x", 2), (std::vector<float>{3, -4}));
  std::filesystem::remove_all(a);
}

}  // namespace
}  // namespace collimate::cli
