#include "collimate/host/atomic_file.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <span>

#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/host/checksum.h"
#include "collimate/host/mapped_file.h"
#include "tests/support/fault_control.h"
#include "tests/support/host/temp_directory.h"

namespace {

bool names_cannot_be_exchanged = false;  // as on a file system that has no RENAME_EXCHANGE

}  // namespace

// This stands in place of the C library's: it does the same, but for what a test says.
extern "C" int renameat2(int from_directory, const char* from, int to_directory, const char* to,
                         unsigned int flags) noexcept {
  if (names_cannot_be_exchanged && (flags & RENAME_EXCHANGE) != 0) {
    errno = EINVAL;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_renameat2, from_directory, from, to_directory, to, flags));
}

namespace collimate::host {
namespace {

namespace fs = std::filesystem;

class Files : public TempDirectory {
 protected:
  void TearDown() override {
    base::limit_disk_for_tests(std::nullopt);
    names_cannot_be_exchanged = false;
    TempDirectory::TearDown();
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(directory_)) out.push_back(entry.path().filename());
    std::sort(out.begin(), out.end());
    return out;
  }
  void make_checkpoint(const std::string& text) {
    AtomicDirectory checkpoint(directory_ / "step-1");
    fs::create_directories(checkpoint.building() / "deep");
    OutputFile file(checkpoint.building() / "deep" / "weights");
    file.write(text);
    file.close();
    checkpoint.commit();
  }
};

using AtomicFileTest = Files;
using AtomicDirectoryTest = Files;

TEST_F(AtomicFileTest, ReplacesAsAWhole) {
  const fs::path path = directory_ / "a.json";
  write_file_atomically(path, "old");
  {
    AtomicFile file(path);
    file.write("ne");
    EXPECT_EQ(read_file(path), "old");
    file.write("w");
    EXPECT_EQ(file.size_bytes(), 3);
    file.commit();
  }
  EXPECT_EQ(read_file(path), "new");
  EXPECT_EQ(names(), std::vector<std::string>{"a.json"});
}

TEST_F(AtomicFileTest, WithoutCommitNothingChanges) {
  const fs::path path = directory_ / "a.json";
  write_file_atomically(path, "old");
  { AtomicFile(path).write("new"); }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(names(), std::vector<std::string>{"a.json"});
}

TEST_F(AtomicFileTest, LargePiecesArriveWhole) {
  std::string big(3 << 20, 'x');
  for (size_t i = 0; i < big.size(); i += 1000) big[i] = static_cast<char>('a' + i % 26);
  AtomicFile file(directory_ / "big");
  for (size_t begin = 0; begin < big.size(); begin += 700'001) file.write(std::string_view(big).substr(begin, 700'001));
  file.write(big);
  file.commit();
  EXPECT_EQ(read_file(directory_ / "big"), big + big);
}

TEST_F(AtomicFileTest, TheChecksumIsOfAllPieces) {
  const std::string text = "weights, and the state of the optimizer";
  OutputFile file(directory_ / "pieces");
  for (size_t begin = 0; begin < text.size(); begin += 7) file.write(std::string_view(text).substr(begin, 7));
  EXPECT_EQ(file.crc32c(), crc32c(std::as_bytes(std::span(text))));
  file.close();
}

TEST_F(AtomicFileTest, FullDiskNamesTheFileAndKeepsTheOldOne) {
  const fs::path path = directory_ / "a.json";
  write_file_atomically(path, "old");
  base::limit_disk_for_tests(5);
  EXPECT_EQ(
      message_of<base::RunError>([&] { write_file_atomically(path, "0123456789"); }),
      "[" + path.string() + ".partial] expected to write, got No space left on device; try freeing space on that disk");
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(names(), std::vector<std::string>{"a.json"});
}

// The kernel's own answer, not ours.
TEST_F(AtomicFileTest, RealFullDevice) {
  OutputFile file("/dev/full");
  file.write("x");
  EXPECT_EQ(message_of<base::RunError>([&] { file.close(); }),
            "[/dev/full] expected to write, got No space left on device; try freeing space on that disk");
}

TEST_F(AtomicFileTest, MissingDirectoryIsNamed) {
  EXPECT_EQ(message_of<base::RunError>([&] { write_file_atomically(directory_ / "no" / "a", ""); }),
            "[" + (directory_ / "no" / "a.partial").string() +
                "] expected to create the file, got No such file or directory");
  EXPECT_EQ(message_of<base::InputError>([&] { read_file(directory_ / "no"); }),
            "[" + (directory_ / "no").string() + "] expected a readable file, got No such file or directory");
  EXPECT_THROW(read_file(directory_), base::InputError);
}

TEST_F(AtomicDirectoryTest, CompleteOrAbsent) {
  {
    AtomicDirectory checkpoint(directory_ / "step-1/");
    OutputFile(checkpoint.building() / "a").close();
    EXPECT_FALSE(fs::exists(directory_ / "step-1"));
  }
  EXPECT_TRUE(names().empty());
  make_checkpoint("one");
  EXPECT_EQ(names(), std::vector<std::string>{"step-1"});
  EXPECT_EQ(read_file(directory_ / "step-1/deep/weights"), "one");
}

TEST_F(AtomicDirectoryTest, ReplacesAnOlderOne) {
  make_checkpoint("one");
  std::ofstream(directory_ / "step-1" / "stale") << "x";
  make_checkpoint("two");
  EXPECT_EQ(read_file(directory_ / "step-1/deep/weights"), "two");
  EXPECT_FALSE(fs::exists(directory_ / "step-1/stale"));
  EXPECT_EQ(names(), std::vector<std::string>{"step-1"});
}

TEST_F(AtomicDirectoryTest, ReplacesAnOlderOneWhereNamesCannotBeExchanged) {
  names_cannot_be_exchanged = true;
  make_checkpoint("one");
  make_checkpoint("two");
  EXPECT_EQ(read_file(directory_ / "step-1/deep/weights"), "two");
  EXPECT_EQ(names(), std::vector<std::string>{"step-1"});
}

TEST_F(AtomicDirectoryTest, LeftoverOfACrashIsRemoved) {
  fs::create_directories(directory_ / "step-1.partial" / "deep");
  std::ofstream(directory_ / "step-1.partial" / "torn") << "x";
  make_checkpoint("one");
  EXPECT_FALSE(fs::exists(directory_ / "step-1/torn"));
}

TEST_F(AtomicDirectoryTest, FullDiskKeepsTheOldOne) {
  make_checkpoint("one");
  base::limit_disk_for_tests(1);
  EXPECT_THROW(make_checkpoint("two"), base::RunError);
  base::limit_disk_for_tests(std::nullopt);
  EXPECT_EQ(read_file(directory_ / "step-1/deep/weights"), "one");
  EXPECT_EQ(names(), std::vector<std::string>{"step-1"});
}

TEST(AtomicDirectoryDeathTest, KilledAroundTheRename) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const fs::path fixed = fs::path(::testing::TempDir()) / "host_killed_around_rename";
  const auto save = [&](const char* place) {
    setenv("COLLIMATE_TEST_KILL_AT", place, 1);
    AtomicDirectory checkpoint(fixed / "step-1");
    OutputFile file(checkpoint.building() / "weights");
    file.write("whole");
    file.close();
    checkpoint.commit();
  };
  fs::create_directories(fixed);
  EXPECT_EXIT(save("directory.before_rename"), ::testing::KilledBySignal(SIGKILL), "");
  EXPECT_FALSE(fs::exists(fixed / "step-1"));
  EXPECT_EXIT(save("directory.after_rename"), ::testing::KilledBySignal(SIGKILL), "");
  EXPECT_EQ(read_file(fixed / "step-1/weights"), "whole");
  fs::remove_all(fixed);
}

TEST(AtomicDirectoryDeathTest, KilledWhileItIsRemoved) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const fs::path fixed = fs::path(::testing::TempDir()) / "host_killed_while_removed";
  const auto remove = [&] {
    setenv("COLLIMATE_TEST_KILL_AT", "directory.before_remove", 1);
    fs::create_directories(fixed / "step-1");
    write_file_atomically(fixed / "step-1/weights", "whole");
    remove_directory(fixed / "step-1");
  };
  EXPECT_EXIT(remove(), ::testing::KilledBySignal(SIGKILL), "");
  EXPECT_FALSE(fs::exists(fixed / "step-1"));
  EXPECT_EQ(read_file(fixed / "step-1.removed/weights"), "whole");
  remove_leftovers(fixed);
  EXPECT_TRUE(fs::is_empty(fixed));
  fs::remove_all(fixed);
}

TEST(AtomicDirectoryDeathTest, KilledWhileAnOlderOneIsReplacedWithoutAnExchange) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const fs::path fixed = fs::path(::testing::TempDir()) / "host_killed_while_replaced";
  fs::remove_all(fixed);
  const auto replace = [&] {
    names_cannot_be_exchanged = true;
    setenv("COLLIMATE_TEST_KILL_AT", "directory.before_remove", 1);
    fs::create_directories(fixed / "step-1");
    write_file_atomically(fixed / "step-1/weights", "old");
    AtomicDirectory checkpoint(fixed / "step-1");
    write_file_atomically(checkpoint.building() / "weights", "new");
    checkpoint.commit();
  };
  EXPECT_EXIT(replace(), ::testing::KilledBySignal(SIGKILL), "");
  EXPECT_EQ(read_file(fixed / "step-1/weights"), "new");
  EXPECT_EQ(read_file(fixed / "step-1.removed/weights"), "old");
  fs::remove_all(fixed);
}

class MappedFileTest : public TempDirectory {};

TEST_F(MappedFileTest, AFifoIsRefusedAtOnce) {
  ASSERT_EQ(::mkfifo((directory_ / "fifo").c_str(), 0600), 0);
  const std::string refused = "[" + (directory_ / "fifo").string() + "] expected a regular file, got a pipe or device";
  EXPECT_EQ(message_of<base::InputError>([&] { MappedFile(directory_ / "fifo"); }), refused);
  EXPECT_EQ(message_of<base::InputError>([&] { read_file(directory_ / "fifo"); }), refused);
}

TEST_F(MappedFileTest, MapsTheBytes) {
  write_file_atomically(directory_ / "a", "hello");
  MappedFile file(directory_ / "a");
  ASSERT_EQ(file.size(), 5u);
  EXPECT_EQ(static_cast<char>(file.bytes()[4]), 'o');
  const MappedFile moved = std::move(file);
  EXPECT_EQ(static_cast<char>(moved.bytes()[0]), 'h');
  fs::remove(directory_ / "a");
  EXPECT_EQ(static_cast<char>(moved.bytes()[1]), 'e') << "a mapping outlives the name";
}

TEST_F(MappedFileTest, EmptyAbsentAndDirectory) {
  write_file_atomically(directory_ / "empty", "");
  EXPECT_EQ(MappedFile(directory_ / "empty").size(), 0u);
  EXPECT_EQ(message_of<base::InputError>([&] { MappedFile(directory_ / "absent"); }),
            "[" + (directory_ / "absent").string() + "] expected a readable file, got No such file or directory");
  EXPECT_THROW(MappedFile{directory_}, base::InputError);
}

}  // namespace
}  // namespace collimate::host
