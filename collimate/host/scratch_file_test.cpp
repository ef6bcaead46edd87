#include "collimate/host/scratch_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <span>
#include <string>

#include "collimate/base/error.h"
#include "collimate/host/file_status.h"
#include "tests/support/host/temp_directory.h"

namespace collimate::host {
namespace {

// Temporary files of this process are in a directory of the test's own.
class ScratchFileTest : public TempDirectory {
 protected:
  void SetUp() override {
    TempDirectory::SetUp();
    if (const char* usual = std::getenv("TMPDIR")) usual_ = usual;
    ::setenv("TMPDIR", directory_.c_str(), 1);
  }
  void TearDown() override {
    usual_ ? ::setenv("TMPDIR", usual_->c_str(), 1) : ::unsetenv("TMPDIR");
    TempDirectory::TearDown();
  }

  static int64_t append(ScratchFile& file, const std::string& text) {
    return file.append(std::as_bytes(std::span(text)));
  }
  static std::string read(const ScratchFile& file, int64_t offset, size_t count) {
    std::string text(count, '\0');
    file.read(offset, std::as_writable_bytes(std::span(text)));
    return text;
  }

  std::optional<std::string> usual_;
};

TEST_F(ScratchFileTest, KeepsWhatIsWrittenBehindEachOtherAndIsInNoDirectory) {
  ScratchFile file("rows");
  EXPECT_EQ(append(file, "one"), 0);
  EXPECT_EQ(append(file, ""), 3);
  EXPECT_EQ(append(file, "three"), 3);
  EXPECT_EQ(file.size(), 8);
  EXPECT_EQ(read(file, 3, 5), "three");
  EXPECT_EQ(read(file, 0, 3), "one");
  EXPECT_EQ(append(file, "!"), 8) << "reading moves no end";
  EXPECT_EQ(read(file, 0, 9), "onethree!");
  EXPECT_TRUE(paths_in(directory_).empty());
  EXPECT_NE(message_of<base::RunError>([&] { read(file, 8, 2); }).find("the end of the file"), std::string::npos);
}

TEST_F(ScratchFileTest, NamesTheVariableThatNamesNoDirectory) {
  ::setenv("TMPDIR", (directory_ / "missing").c_str(), 1);
  EXPECT_NE(message_of([] { ScratchFile("rows"); }).find("[TMPDIR] expected the directory of temporary files"),
            std::string::npos);
}

}  // namespace
}  // namespace collimate::host
