#include "collimate/model/segment_parts.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "collimate/shape/local.h"
#include "tests/support/model/tiny_weights.h"

namespace collimate::model {
namespace {

// Wherever a segment is cut, its parts have each value of each parameter once, at its row and column.
TEST(SegmentParts, HaveEachValueOnceWhereverSharesBegin) {
  const std::vector<shape::ParamSpec> specs = shape::param_specs(testing::tiny_shape("qwen2"));
  const std::vector<int64_t> floats = shape::segment_floats(specs);
  for (const int64_t length : {1, 7, 16, 100, 4096, 1 << 20}) {
    std::map<std::string, std::vector<int>> covered;
    for (int s = 0; s < static_cast<int>(floats.size()); ++s)
      for (int64_t begin = 0; begin < floats[static_cast<size_t>(s)]; begin += length) {
        const Share share{begin, std::min(begin + length, floats[static_cast<size_t>(s)])};
        for (const base::TensorPart& part : parts_of(specs, s, share)) {
          const auto spec = std::ranges::find(specs, part.name, &shape::ParamSpec::name);
          ASSERT_EQ(spec->segment, s);
          EXPECT_EQ(part.rows, spec->sizes[0]);
          EXPECT_EQ(part.rows * part.columns, spec->count());
          std::vector<int>& times = covered[part.name];
          times.resize(static_cast<size_t>(spec->count()));
          int64_t at = share.begin + part.offset;  // in the segment
          for (int64_t r = part.box.row; r < part.box.row + part.box.rows; ++r)
            for (int64_t c = part.box.column; c < part.box.column + part.box.columns; ++c) {
              ASSERT_EQ(spec->offset + r * part.columns + c, at++) << part.name;
              ++times.at(static_cast<size_t>(r * part.columns + c));
            }
          EXPECT_LE(at, share.end);
        }
      }
    EXPECT_EQ(covered.size(), specs.size());
    for (const auto& [name, times] : covered)
      EXPECT_TRUE(std::ranges::all_of(times, [](int n) { return n == 1; })) << name << " by " << length;
  }
}

// Tensor ranks of several widths together have each value once, or all of them have it alike.
TEST(SegmentParts, AreOfTheWholeWhereRanksHavePiecesOfIt) {
  for (const char* family : {"llama", "gpt2"}) {
    const shape::ModelShape of = testing::tiny_shape(family);
    const std::vector<shape::ParamSpec> whole = shape::param_specs(of);
    std::map<std::string, std::vector<int>> covered;
    for (int r = 0; r < 2; ++r) {
      const std::vector<shape::ParamSpec> mine = shape::local(whole, of, {{r, 2}});
      for (size_t i = 0; i < mine.size(); ++i) {
        std::vector<float> numbers(static_cast<size_t>(whole[i].count())), own(static_cast<size_t>(mine[i].count()));
        std::iota(numbers.begin(), numbers.end(), 0.0F);
        if (mine[i].cut < 0) continue;
        shape::take_pieces(mine[i], numbers, own);
        const Share all{mine[i].offset, mine[i].offset + mine[i].count()};
        for (const base::TensorPart& part : parts_of(std::span(mine).subspan(i, 1), mine[i].segment, all)) {
          EXPECT_EQ(part.rows, whole[i].sizes[0]);
          EXPECT_EQ(part.rows * part.columns, whole[i].count());
          covered[part.name].resize(numbers.size());
          size_t at = static_cast<size_t>(part.offset);
          for (int64_t row = part.box.row; row < part.box.row + part.box.rows; ++row)
            for (int64_t column = part.box.column; column < part.box.column + part.box.columns; ++column) {
              const auto place = static_cast<size_t>(row * part.columns + column);
              ASSERT_EQ(own.at(at++), static_cast<float>(place)) << part.name;
              ++covered[part.name].at(place);
            }
        }
      }
    }
    EXPECT_GT(covered.size(), 6U) << family;
    for (const auto& [name, times] : covered)
      EXPECT_TRUE(std::ranges::all_of(times, [](int n) { return n == 1; })) << name;
  }
}

}  // namespace
}  // namespace collimate::model
