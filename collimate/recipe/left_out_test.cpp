#include "collimate/recipe/left_out.h"

#include <gtest/gtest.h>

namespace collimate::recipe {
namespace {

rlhf::SourceOptions limited(int64_t positions, int64_t drawn) {
  rlhf::SourceOptions options;
  limit_rows({rlhf::LongRows::kTruncate, true}, {positions, drawn}, data_option_names(), options);
  return options;
}

// A row has room for one token behind it; a cut one for all that are drawn, but keeps half of what the model can read.
TEST(LeftOut, RowsLeaveRoomForWhatIsDrawn) {
  EXPECT_EQ(limited(64, 8).max_tokens, 63);
  EXPECT_EQ(limited(64, 8).cut_tokens, 56);
  EXPECT_EQ(limited(64, 128).cut_tokens, 32);
  EXPECT_EQ(limited(64, 0).max_tokens, 64) << "nothing is drawn";
  EXPECT_EQ(limited(64, 0).cut_tokens, 64);
}

TEST(LeftOut, OptionsAreCalledAsTheCallerCallsThem) {
  const rlhf::SourceOptions options = limited(64, 8);
  EXPECT_EQ(options.bad_rows.remedy, "data.bad_rows: drop");
  EXPECT_TRUE(options.bad_rows.drop);
  EXPECT_EQ(options.long_remedy, "data.long_rows: drop or truncate");
  const OptionNames flags{.of = [](const std::string& key) { return "--" + key; }, .between = " "};
  EXPECT_EQ(bad_rows_of({}, flags).remedy, "--bad_rows drop");
}

}  // namespace
}  // namespace collimate::recipe
