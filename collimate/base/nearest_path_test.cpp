#include "collimate/base/nearest_path.h"

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

TEST_F(NearestPath, ARelativePathStaysOne) {
  const fs::path before = fs::current_path();
  fs::current_path(root_);
  EXPECT_EQ(nearest_path("dota"), "data, which is there");
  fs::current_path(before);
}

}  // namespace
}  // namespace collimate::base
