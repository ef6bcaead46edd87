#include "collimate/tensor/away_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
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

TEST(AwayFile, ADirectoryThatIsMissingIsNamed) {
  EXPECT_EQ(base::message_of<base::RunError>([] { AwayFile file("/nowhere/at all"); }),
            "[/nowhere/at all] expected a file with room for what leaves the device, got No such file or directory");
}

}  // namespace
}  // namespace collimate::tensor
