// The program collimate-goldens: where it finds the models that goldens name.
#include <gtest/gtest.h>

#include "tests/golden/changed.h"
#include "tests/support/host/run_command.h"
#include "tests/support/small_task.h"

namespace collimate::golden {
namespace {

namespace fs = std::filesystem;

// A folder with one golden and no models.
class GoldensProgram : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(scratch_ / "goldens");
    fs::copy_file(kSmallGoldens + "/sft_tiny.json", scratch_ / "goldens/sft_tiny.json");
  }

  void put_models(const std::string& folder) {
    fs::create_directories(scratch_ / folder);
    fs::copy(kSmallGoldens + "/models", scratch_ / folder, fs::copy_options::recursive);
  }

  host::CommandResult run(std::vector<std::string> words) {
    host::ChildOptions options;
    options.command = std::move(words);
    options.command.insert(options.command.begin(), COLLIMATE_BIN_DIR "/collimate-goldens");
    options.environment = {{"COLLIMATE_SHARED", scratch_ / "shared"}};
    return host::run_command(options, "", base::Deadline::after(120));
  }

  test::Scratch scratch_{"goldens-program"};
};

TEST_F(GoldensProgram, FindsModelsBelowTheSharedFolder) {
  put_models("shared/data/models");
  const host::CommandResult found = run({scratch_ / "goldens"});
  EXPECT_TRUE(found.status.ok()) << found.output;
  EXPECT_TRUE(found.output.ends_with("\n1 within, 0 outside, 0 unknown\n")) << found.output;
}

TEST_F(GoldensProgram, SaysWhereItLookedForAModel) {
  const host::CommandResult none = run({scratch_ / "goldens"});
  EXPECT_EQ(none.status.code, 1);
  EXPECT_NE(none.output.find("[golden] expected model \"tiny\" as tiny in ../data/models or models of the goldens or " +
                             scratch_ / "shared/data/models, got none; try COLLIMATE_SHARED"),
            std::string::npos)
      << none.output;
}

TEST(ModelShelf, ModelsBesideTheGoldensComeFirst) {
  const test::Scratch scratch("goldens-shelf");
  for (const char* folder : {"models/tiny", "other/tiny"}) {
    fs::create_directories(scratch / folder);
    test::write_text(scratch.path() / folder / "config.json", "{}");
  }
  const ModelShelf shelf(scratch.path().string(), scratch / "other");
  EXPECT_EQ(shelf.directory("tiny"), scratch / "models/tiny");
  fs::remove_all(scratch.path() / "models");
  EXPECT_EQ(shelf.directory("tiny"), scratch / "other/tiny");
}

}  // namespace
}  // namespace collimate::golden
