#include "collimate/recipe/tensorboard.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <iterator>

namespace collimate::recipe {
namespace {

std::string hex_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string hex;
  for (auto at = std::istreambuf_iterator<char>(file); at != std::istreambuf_iterator<char>(); ++at)
    hex += fmt::format("{:02x}", static_cast<unsigned char>(*at));
  return hex;
}

// The bytes that tensorboard 2.19's own RecordWriter gives for the same two events.
TEST(Tensorboard, WritesTheBytesThatItsOwnWriterDoes) {
  const std::filesystem::path directory =
      std::filesystem::path(testing::TempDir()) / ("tensorboard-" + std::to_string(getpid()));
  const base::MetricsRecord record{300, 2.25, {{"actor/loss", 0.25}, {"val/accuracy", -1.5}}};
  const std::string expected =
      "1800000000000000a37f4b22090000000000448f401a0d627261696e2e4576656e743a32aba33345"
      "36000000000000004f578cef090000000000568f4010ac022a280a110a0a6163746f722f6c6f7373150000803e"
      "0a130a0c76616c2f6163637572616379150000c0bf5484ea6e";
  {
    TensorboardWriter writer(directory, 1000.5, {});
    writer.append(record);
  }
  EXPECT_EQ(hex_of(directory / "events.out.tfevents.0.collimate"), expected);
  TensorboardWriter again(directory, 1000.5, {record});  // a run that goes on
  EXPECT_EQ(hex_of(directory / "events.out.tfevents.0.collimate"), expected);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace collimate::recipe
