#include "collimate/cli/rows_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/base/error_of.h"
#include "tests/support/small_task.h"

namespace collimate::cli {
namespace {

using base::message_of;
using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::ordered_json;

class RowsFileTest : public testing::Test {
 protected:
  const Json command_ = {{"seed", 1}, {"sampling", {{"top_p", 0.5}}}, {"files", {{"/a/model", "x"}}}};
  test::Scratch root_{"rows-file"};
  const std::string path_ = root_ / "rows.jsonl";
};

TEST_F(RowsFileTest, GoesOnBehindTheLastWholeLine) {
  {
    RowsFile file(path_, command_);
    EXPECT_EQ(file.lines(), 0);
    file.append("{\"a\": 1}");
    file.append("{\"a\": 2}");
  }
  test::write_text(path_, test::read_text(path_) + "{\"a\": ");
  RowsFile file(path_, command_);
  EXPECT_EQ(file.lines(), 2);
  file.append("{\"a\": 3}");
  EXPECT_THAT(test::lines_of(path_), ElementsAre("{\"a\": 1}", "{\"a\": 2}", "{\"a\": 3}"));
}

TEST_F(RowsFileTest, ALineThatWasCutMayBeTheFirst) {
  { RowsFile(path_, command_).append("x"); }
  test::write_text(path_, "{\"a\"");
  EXPECT_EQ(RowsFile(path_, command_).lines(), 0);
  EXPECT_EQ(test::read_text(path_), "");
}

TEST_F(RowsFileTest, RefusesAnotherCommandByWhatDiffers) {
  { RowsFile(path_, command_).append("x"); }
  const auto message = [&](const Json& other) { return message_of([&] { RowsFile(path_, other); }); };
  Json other = command_;
  other["seed"] = 2;
  EXPECT_EQ(message(other),
            "[" + path_ + "] expected the command that began it, with seed 1, got 2; try another --output");
  other = command_;
  other["sampling"]["top_p"] = 0.25;
  EXPECT_THAT(message(other), HasSubstr("with sampling.top_p 0.5, got 0.25;"));
  other = command_;
  other["files"] = {{"/a/model", "y"}};
  EXPECT_THAT(message(other), HasSubstr("with files./a/model \"x\", got \"y\";"));
  other = command_;
  other["n"] = 4;
  EXPECT_THAT(message(other), HasSubstr("with n none, got 4;"));
  EXPECT_EQ(test::read_text(path_), "x\n") << "untouched";
}

TEST_F(RowsFileTest, RefusesAFileOfNoCommand) {
  test::write_text(path_, "mine\n");
  EXPECT_EQ(message_of([&] { RowsFile(path_, command_); }),
            "[" + path_ + "] expected a file that this verb began, got one without " + path_ +
                ".command.json beside it; try another --output");
  EXPECT_EQ(test::read_text(path_), "mine\n");
}

TEST_F(RowsFileTest, AnEmptyFileIsBegunByAnyCommand) {
  { RowsFile(path_, command_); }
  Json other = command_;
  other["seed"] = 2;
  { RowsFile(path_, other).append("x"); }
  EXPECT_EQ(RowsFile(path_, other).lines(), 1);
}

}  // namespace
}  // namespace collimate::cli
