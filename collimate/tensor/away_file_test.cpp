#include "collimate/tensor/away_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/tensor/host_access.h"
#include "tests/support/base/error_of.h"

namespace collimate::tensor {
namespace {

std::vector<float> numbers_of(const Buffer& buffer) {
  const HostRead read({}, buffer.floats(), buffer.bytes() / 4);
  return {read.begin(), read.end()};
}

void fill(Buffer& buffer, float first) {
  HostEdit edit({}, buffer.floats(), buffer.bytes() / 4);
  std::iota(edit.begin(), edit.end(), first);
}

TEST(AwayFile, BuffersComeBackWithTheirBits) {
  AwayFile file(std::filesystem::temp_directory_path());
  const MemoryScope tagged(41, "values");
  Buffer a(int64_t{5} << 20), b(64), none;
  fill(a, 1);
  fill(b, -7);
  const std::vector<float> of_a = numbers_of(a), of_b = numbers_of(b);
  AwayFile::Slot at_a, at_b, at_none;
  file.put({}, at_a, a);
  file.put({}, at_b, b);
  file.put({}, at_none, none);
  EXPECT_EQ(memory_used(41), 0);
  file.bring({}, at_b, b);
  file.bring({}, at_a, a);
  file.bring({}, at_none, none);
  EXPECT_EQ(numbers_of(a), of_a);
  EXPECT_EQ(numbers_of(b), of_b);
}

TEST(AwayFile, ABufferIsWholeFloats) {
  AwayFile file(std::filesystem::temp_directory_path());
  Buffer buffer(6);
  AwayFile::Slot slot;
  EXPECT_THROW(file.put({}, slot, buffer), std::logic_error);
}

TEST(AwayFile, OnlyWhatIsSaidToHaveChangedIsWrittenAgain) {
  AwayFile file(std::filesystem::temp_directory_path());
  Buffer buffer(4000);
  fill(buffer, 0);
  AwayFile::Slot slot;
  const auto away_and_back = [&] {
    file.put({}, slot, buffer);
    file.bring({}, slot, buffer);
    return numbers_of(buffer);
  };
  const std::vector<float> first = away_and_back();
  fill(buffer, 3);
  EXPECT_EQ(away_and_back(), first) << "the file is believed to have the buffer's bytes";
  fill(buffer, 3);
  slot.current = false;
  EXPECT_EQ(away_and_back()[0], 3);
}

// Gives the newest file of the process that has no name in the directory.
int unnamed_file_of(const std::filesystem::path& directory) {
  int newest = -1;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
    if (target.starts_with(directory.string()) && target.ends_with("(deleted)"))
      newest = std::max(newest, std::stoi(entry.path().filename().string()));
  }
  return newest;
}

TEST(AwayFile, BytesThatTheDiskHasLostAreNoticed) {
  const std::filesystem::path directory = std::filesystem::canonical(std::filesystem::temp_directory_path());
  AwayFile file(directory);
  Buffer buffer(4000);
  fill(buffer, 1);
  const std::vector<float> values = numbers_of(buffer);
  AwayFile::Slot slot;
  file.put({}, slot, buffer);
  const int fd = unnamed_file_of(directory);
  ASSERT_GE(fd, 0);
  const float lost = 0;
  ASSERT_EQ(pwrite(fd, &lost, sizeof(lost), 400), 4);
  EXPECT_EQ(base::message_of<base::RunError>([&] { file.bring({}, slot, buffer); }),
            "[" + directory.string() +
                "] expected the 4000 bytes that were written there when a model left its device, got others; try "
                "run.swap_directory on another disk: this one has lost them");
  ASSERT_EQ(pwrite(fd, &values[100], sizeof(float), 400), 4);
  file.bring({}, slot, buffer);
  EXPECT_EQ(numbers_of(buffer), values);
}

TEST(AwayFile, SaysThatItGoesOnAfterEachPiece) {
  int pieces = 0;
  AwayFile file(std::filesystem::temp_directory_path(), [&] { ++pieces; });
  Buffer buffer(int64_t{40} << 20);
  fill(buffer, 1);
  AwayFile::Slot slot;
  file.put({}, slot, buffer);
  EXPECT_EQ(pieces, 3) << "of 16 MiB";
  file.bring({}, slot, buffer);
  EXPECT_EQ(pieces, 6);
  file.put({}, slot, buffer);
  EXPECT_EQ(pieces, 6) << "nothing is written";
}

TEST(AwayFile, ADirectoryThatIsMissingIsNamed) {
  EXPECT_EQ(base::message_of<base::RunError>([] { AwayFile file("/nowhere/at all"); }),
            "[/nowhere/at all] expected a file with room for what leaves the device, got No such file or directory");
}

}  // namespace
}  // namespace collimate::tensor
