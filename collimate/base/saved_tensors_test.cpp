#include "collimate/base/saved_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>

#include "collimate/base/error.h"
#include "tests/support/base/error_of.h"

namespace collimate::base {
namespace {

using testing::HasSubstr;

constexpr int64_t kRows = 5, kColumns = 4;

TensorPart part_of(const Box& box, int64_t offset = 0) {
  return {.name = "w", .rows = kRows, .columns = kColumns, .box = box, .offset = offset};
}

// Value (r, c) of the whole is 10 · r + c.
std::vector<float> values_of(const Box& box) {
  std::vector<float> values;
  for (int64_t r = box.row; r < box.row + box.rows; ++r)
    for (int64_t c = box.column; c < box.column + box.columns; ++c) values.push_back(static_cast<float>(10 * r + c));
  return values;
}

// Files with a part each, and their index.
class Files {
 public:
  void add(const std::string& file, const Box& box) { add(file, part_of(box), values_of(box)); }
  void add(const std::string& file, const TensorPart& part, std::vector<float> values) {
    files_[file] = std::move(values);
    saved_.add("weights", file, {part});
  }
  std::vector<float> read(const Box& box) const {
    std::vector<float> out(static_cast<size_t>(box.count()) + 2, -1.0F);
    saved_.read("weights", std::vector{part_of(box, 1)}, out);
    EXPECT_EQ(out.front(), -1.0F);
    EXPECT_EQ(out.back(), -1.0F);
    return {out.begin() + 1, out.end() - 1};
  }
  std::string problem(const Box& box) const {
    return message_of<InputError>([&] { read(box); });
  }
  SavedTensors& saved() { return saved_; }

 private:
  std::map<std::string, std::vector<float>> files_;
  SavedTensors saved_{"step-000002",
                      [this](const std::string& file) -> std::span<const float> { return files_.at(file); }};
};

constexpr Box kWhole{0, kRows, 0, kColumns};

std::vector<Box> all_boxes() {
  std::vector<Box> boxes;
  for (int64_t row = 0; row < kRows; ++row)
    for (int64_t rows = 1; row + rows <= kRows; ++rows)
      for (int64_t column = 0; column < kColumns; ++column)
        for (int64_t columns = 1; column + columns <= kColumns; ++columns)
          boxes.push_back({row, rows, column, columns});
  return boxes;
}

TEST(Box, WithoutAHoleAndTheHoleAreTheBox) {
  for (const Box& hole : all_boxes()) {
    std::vector<int> covered(kRows * kColumns);
    std::vector<Box> boxes = without(kWhole, hole);
    boxes.push_back(common(kWhole, hole));
    for (const Box& box : boxes)
      for (int64_t r = box.row; r < box.row + box.rows; ++r)
        for (int64_t c = box.column; c < box.column + box.columns; ++c)
          ++covered[static_cast<size_t>(r * kColumns + c)];
    EXPECT_THAT(covered, testing::Each(1));
  }
  EXPECT_EQ(common({0, 2, 0, 4}, {2, 3, 0, 4}).count(), 0);
}

TEST(SavedTensors, AnyBoxIsReadFromAnyCut) {
  const std::vector<std::vector<Box>> cuts = {
      {kWhole},
      {{0, 2, 0, 4}, {2, 3, 0, 4}},                              // rows
      {{0, 5, 2, 2}, {0, 5, 0, 2}},                              // columns, the last ones first
      {{0, 1, 0, 4}, {1, 1, 0, 3}, {1, 1, 3, 1}, {2, 3, 0, 4}},  // a flat range ends within a row
      {{0, 3, 0, 4}, {2, 3, 0, 4}}};                             // two have a row, which is the same
  for (const std::vector<Box>& cut : cuts) {
    Files files;
    for (size_t i = 0; i < cut.size(); ++i) files.add(fmt::format("file {}", i), cut[i]);
    for (const Box& box : all_boxes()) EXPECT_EQ(files.read(box), values_of(box));
  }
}

TEST(SavedTensors, APartThatNobodySavedIsNamed) {
  Files files;
  files.add("rank-0/w.bin", {0, 2, 0, 4});
  files.add("rank-2/w.bin", {3, 2, 0, 4});
  EXPECT_EQ(files.read({3, 1, 0, 4}), values_of({3, 1, 0, 4})) << "what is not asked for may lack";
  EXPECT_EQ(
      files.problem(kWhole),
      "[step-000002: weights of w] expected rows 2 to 3 in columns 0 to 4, got files without them; try an earlier "
      "checkpoint");
}

TEST(SavedTensors, UnlikeValuesOfOnePlaceAreNamed) {
  Files files;
  files.add("rank-0/w.bin", {0, 3, 0, 4});
  std::vector<float> other = values_of({2, 3, 0, 4});
  other[1] += 1;
  files.add("rank-1/w.bin", part_of({2, 3, 0, 4}), other);
  EXPECT_EQ(
      files.problem(kWhole),
      "[rank-1/w.bin: w] expected in rows 2 to 3 in columns 0 to 4 the values of rank-0/w.bin, got others; try an "
      "earlier checkpoint");
}

TEST(SavedTensors, AnotherModelsTensorsAreNamed) {
  Files files;
  files.add("w.bin", kWhole);
  std::vector<float> out(8);
  const auto read = [&](TensorPart part) {
    return message_of<InputError>([&] { files.saved().read("weights", std::vector{part}, out); });
  };
  EXPECT_EQ(read({.name = "w", .rows = 4, .columns = 2, .box = {0, 4, 0, 2}}),
            "[w.bin: weights of w] expected 4 × 2 values, got 5 × 4 values; try the model that was saved there");
  EXPECT_EQ(read({.name = "v", .rows = 4, .columns = 2, .box = {0, 4, 0, 2}}),
            "[step-000002] expected weights of v, got none; try the model that was saved there");
}

TEST(SavedTensors, ListsThatDoNotFitTheirFilesAreRefused) {
  Files files;
  files.add("short.bin", part_of({0, 2, 0, 4}), {1, 2, 3});
  EXPECT_THAT(files.problem({0, 1, 0, 4}), HasSubstr("[short.bin] expected at least 8 values, with w, got 3"));
  EXPECT_THAT(message_of<InputError>([&] {
                files.saved().add("weights", "far.bin", {part_of({4, 2, 0, 4})});
              }),
              HasSubstr("[far.bin: w] expected a part of 5 × 4 values, got rows 4 to 6"));
}

}  // namespace
}  // namespace collimate::base
