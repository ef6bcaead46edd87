#include "collimate/text/rendered_rows.h"

#include <gtest/gtest.h>

#include <tuple>

namespace collimate::text {
namespace {

TEST(RenderedRows, GiveBackWhatWasAdded) {
  const RenderedExample example{
      .rows = {{.ids = {1, -2, 300000}, .trainable = {0, 1, 1}, .prompt_tokens = 1, .cut = true},
               {.ids = {4}, .trainable = {1}}},
      .example = {{"text", "ü\n"}, {"large", 18446744073709551615U}, {"part", 0.1}, {"none", nullptr}, {"list", {-1}}},
      .desirable = true,
      .row = 3,
      .file = 1,
      .line = 9,
      .row_in_file = 2};
  for (const bool in_memory : {true, false}) {
    RenderedRows rows(in_memory);
    rows.add({});
    rows.add(RenderedExample(example));
    rows.add({});
    ASSERT_EQ(rows.size(), 3);
    const RenderedExample got = rows.at(1);
    ASSERT_EQ(got.rows.size(), 2U);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(got.rows[i].ids, example.rows[i].ids);
      EXPECT_EQ(got.rows[i].trainable, example.rows[i].trainable);
      EXPECT_EQ(got.rows[i].prompt_tokens, example.rows[i].prompt_tokens);
      EXPECT_EQ(got.rows[i].cut, example.rows[i].cut);
    }
    EXPECT_EQ(got.example.dump(), example.example.dump());
    EXPECT_EQ(std::tuple(got.desirable, got.row, got.file, got.line, got.row_in_file), std::tuple(true, 3, 1, 9, 2));
    EXPECT_TRUE(rows.at(2).rows.empty());
  }
}

}  // namespace
}  // namespace collimate::text
