#include "collimate/cli/weight_diff.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>

#include "collimate/base/error.h"
#include "tests/support/model/raw_safetensors.h"

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

// Two matrices [2, 32] of four bits are shown as [32, 2], as a file without scales has them: equal to that file.
TEST(WeightDiff, ValuesOfFourBitsAreShownTimesTheirScales) {
  std::string blocks(64, '\0');
  std::vector<float> wanted(128);
  for (size_t i = 0; i < 128; ++i) {  // in the order of the blocks
    constexpr float kValues[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6};
    const size_t code = (i * 7 + 3) % 16, row = i / 32, matrix = row / 2;
    blocks[i / 2] = static_cast<char>(static_cast<uint8_t>(blocks[i / 2]) | code << (i % 2 * 4));
    wanted[matrix * 64 + i % 32 * 2 + row % 2] = kValues[code] * std::exp2(static_cast<float>(row) - 1);
  }
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("collimate-mxfp4-{}", ::getpid());
  std::filesystem::create_directories(folder);
  model::testing::write_raw_safetensors(
      (folder / "model.safetensors").string(),
      {{"w_blocks", "U8", {2, 2, 1, 16}, blocks}, {"w_scales", "U8", {2, 2, 1}, std::string("\x7e\x7f\x80\x81")}});
  const auto tensors = shown_tensors(folder.string());
  const model::TensorEntry& entry = *tensors->find("w");
  EXPECT_EQ(shown_sizes(entry), (std::vector<int64_t>{2, 32, 2}));
  EXPECT_EQ(first_values(entry, "w", 1000), wanted);
  EXPECT_EQ(summary_of(entry, "w").most, *std::ranges::max_element(wanted));

  const auto plain = std::filesystem::temp_directory_path() / fmt::format("collimate-plain-{}", ::getpid());
  std::filesystem::create_directories(plain);
  const auto write_plain = [&] {
    model::testing::write_raw_safetensors((plain / "model.safetensors").string(),
                                          {{"w", "F32", {2, 32, 2}, model::testing::bytes_of(wanted)}});
    return weight_differences(folder.string(), plain.string());
  };
  EXPECT_FALSE(write_plain().at(0).differs());
  wanted[70] += 1;
  const std::vector<TensorDifference> found = write_plain();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].differing, 1);
  EXPECT_EQ(place_of(*found[0].first, found[0].sizes), "[1, 3, 0]");
  std::filesystem::remove_all(folder);
  std::filesystem::remove_all(plain);
}

TEST(WeightDiff, ValuesInFp8AreShownTimesTheirScales) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("collimate-fp8-{}", ::getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json") << R"({"quantization_config": {"quant_method": "fp8"}})";
  model::testing::write_raw_safetensors(
      (folder / "model.safetensors").string(),
      {{"w.weight", "F8_E4M3", {1, 2}, std::string("\x38\xc0")},  // 1 and -2
       {"w.weight_scale_inv", "F32", {1}, model::testing::bytes_of(std::vector<float>{0.75F})}});
  const auto tensors = shown_tensors(folder.string());
  ASSERT_EQ(tensors->entries().size(), 1U);
  EXPECT_EQ(first_values(*tensors->find("w.weight"), "w", 2), (std::vector<float>{0.75F, -1.5F}));
  std::filesystem::remove(folder / "config.json");
  EXPECT_THROW(shown_tensors(folder.string()), base::InputError);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace collimate::cli
