#include "collimate/base/nearest_path.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

namespace collimate::base {
namespace {

namespace fs = std::filesystem;

class NearestPath : public testing::Test {
 protected:
  NearestPath() {
    fs::create_directories(root_ / "data");
    std::ofstream(root_ / "data/train.jsonl") << "x";
  }
  ~NearestPath() override { fs::remove_all(root_); }

  // Returns the nearest path less the root.
  std::string near(const std::string& missing) {
    const std::string found = nearest_path(root_ / missing), before = root_.string() + "/";
    return found.starts_with(before) ? found.substr(before.size()) : found;
  }

  const fs::path root_ = fs::path(testing::TempDir()) / "nearest_path";
};

TEST_F(NearestPath, OneMisspeltNameIsPutRight) {
  EXPECT_EQ(near("data/train.json"), "data/train.jsonl, which is there");
  EXPECT_EQ(near("date/train.jsonl"), "data/train.jsonl, which is there");
  EXPECT_EQ(near("dat"), "data, which is there");
}

TEST_F(NearestPath, IsNothingWhereNoneIsNear) {
  EXPECT_EQ(near("date/train.json"), "") << "two names are wrong";
  EXPECT_EQ(near("date/other.jsonl"), "");
  EXPECT_EQ(near("data/validation.jsonl"), "");
  EXPECT_EQ(near("data/train.jsonl"), "") << "it is there";
}

// As a long ending does not make two names alike, and no letter is like another.
TEST_F(NearestPath, IsNoFileThatHasTheEndingAlone) {
  for (const char* name : {"prefs.jsonl", "eval.jsonl", "b.jsonl"}) std::ofstream(root_ / "data" / name) << "x";
  EXPECT_EQ(near("data/reward.jsonl"), "");
  EXPECT_EQ(near("data/evil.csv"), "") << "name and ending are others";
  EXPECT_EQ(near("data/a.jsonl"), "");
  EXPECT_EQ(near("data/test.jsonl"), "");
  EXPECT_EQ(near("data/perfs.jsonl"), "data/prefs.jsonl, which is there");
  EXPECT_EQ(near("data/Eval.json"), "data/eval.jsonl, which is there");
  EXPECT_EQ(near("data/train"), "data/train.jsonl, which is there");
}

TEST_F(NearestPath, IsTheBeginningOfALongerName) {
  std::ofstream(root_ / "data/validation-00000-of-00001.parquet") << "x";
  EXPECT_EQ(near("data/validation.parquet"), "data/validation-00000-of-00001.parquet, which is there");
}

TEST_F(NearestPath, FilesThatAreThereAreNamedWhereNoneIsNear) {
  const std::vector<std::string> endings = {".jsonl", ".csv"};
  EXPECT_EQ(nearest_file(root_ / "data/trian.jsonl", endings), nearest_path(root_ / "data/trian.jsonl"));
  const std::string data = (root_ / "data").string();
  EXPECT_EQ(nearest_file(root_ / "data/other", endings), fmt::format("one that is there: {}/train.jsonl", data));
  for (const char* name : {"a.csv", "b.csv", "c.csv", "d.txt"}) std::ofstream(root_ / "data" / name) << "x";
  EXPECT_EQ(nearest_file(root_ / "data/other", endings),
            fmt::format("one that is there: {0}/a.csv, {0}/b.csv, {0}/c.csv, …", data));
  EXPECT_EQ(nearest_file(root_ / "no/where/other.csv", endings),
            fmt::format("another path: there is no directory {}/no/where", root_.string()));
  EXPECT_EQ(nearest_file(root_ / "data/of/mine/train.jsonl", endings), data + "/train.jsonl, which is there");
  EXPECT_EQ(nearest_file(root_ / "data/other", {".yaml"}), "");
  const fs::path before = fs::current_path();
  fs::current_path(root_);
  EXPECT_EQ(nearest_file("other", {".yaml"}), fmt::format("a path from {}", fs::current_path().string()));
  fs::current_path(before);
}

TEST_F(NearestPath, ARelativePathStaysOne) {
  const fs::path before = fs::current_path();
  fs::current_path(root_);
  EXPECT_EQ(nearest_path("dota"), "data, which is there");
  fs::current_path(before);
}

}  // namespace
}  // namespace collimate::base
