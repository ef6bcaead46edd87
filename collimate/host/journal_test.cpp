#include "collimate/host/journal.h"

#include <gmock/gmock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>

#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/host/atomic_file.h"
#include "collimate/host/checksum.h"
#include "tests/support/fault_control.h"
#include "tests/support/host/temp_directory.h"

namespace collimate::host {
namespace {

int syncs = 0;  // calls of fdatasync in this process

}  // namespace
}  // namespace collimate::host

// This stands in place of the C library's: it does the same and counts the calls.
extern "C" int fdatasync(int fd) {
  ++collimate::host::syncs;
  return static_cast<int>(::syscall(SYS_fdatasync, fd));
}

namespace collimate::host {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Checksum, KnownAnswers) {
  const auto crc = [](std::string_view text) { return crc32c(std::as_bytes(std::span(text))); };
  EXPECT_EQ(crc("123456789"), 0xe3069283u);
  EXPECT_EQ(crc(std::string(32, '\0')), 0x8a9136aau);  // RFC 3720, B.4
  EXPECT_EQ(crc(std::string(32, '\xff')), 0x62a8ab43u);
  const std::string_view text = "123456789";
  EXPECT_EQ(crc32c(std::as_bytes(std::span(text.substr(4))), crc(text.substr(0, 4))), crc(text));
}

class JournalTest : public TempDirectory {
 protected:
  void SetUp() override {
    TempDirectory::SetUp();
    path_ = directory_ / "journal.bin";
  }
  void TearDown() override {
    base::limit_disk_for_tests(std::nullopt);
    TempDirectory::TearDown();
  }
  void fill(int64_t iterations) {
    Journal journal(path_);
    for (int64_t iteration = 0; iteration < iterations; ++iteration) {
      journal.append({iteration, "reward", 7}, "score " + std::to_string(iteration));
      journal.append({iteration, "judge", 8}, std::string("\0raw\xff", 5));
      journal.commit();
    }
  }
  std::vector<int64_t> iterations() const {
    std::vector<int64_t> out;
    for (const auto& entry : read_journal(path_)) out.push_back(entry.key.iteration);
    return out;
  }
  void damage(int64_t offset) {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(offset);
    const char byte = static_cast<char>(file.get() ^ 0x40);
    file.seekp(offset);
    file.put(byte);
  }

  std::filesystem::path path_;
};

TEST_F(JournalTest, KeepsEntriesInOrderAndFindsThem) {
  fill(2);
  const Journal journal(path_);
  ASSERT_EQ(journal.entries().size(), 4u);
  EXPECT_EQ(journal.entries()[2].payload, "score 1");
  EXPECT_EQ(*journal.find({1, "reward", 7}), "score 1");
  EXPECT_EQ(*journal.find({0, "judge", 8}), std::string("\0raw\xff", 5));
  EXPECT_EQ(journal.find({2, "reward", 7}), nullptr);
  EXPECT_EQ(journal.find({1, "reward", 8}), nullptr);
  EXPECT_EQ(journal.cut_bytes(), 0);
}

TEST_F(JournalTest, UncommittedEntriesAreSeenButNotInTheFile) {
  Journal journal(path_);
  journal.append({0, "reward", 1}, "a");
  EXPECT_EQ(*journal.find({0, "reward", 1}), "a");
  EXPECT_TRUE(iterations().empty());
  journal.commit();
  journal.commit();
  EXPECT_THAT(iterations(), ElementsAre(0));
}

TEST_F(JournalTest, ACommitIsOnTheDisk) {
  Journal journal(path_);
  const int before = syncs;
  journal.append({0, "reward", 1}, "a");
  EXPECT_EQ(syncs, before);
  journal.commit();
  EXPECT_EQ(syncs, before + 1);
}

// A long run holds its last iterations alone.
TEST_F(JournalTest, ForgetsEarlierIterationsAndKeepsThemInTheFile) {
  Journal journal(path_);
  for (const int64_t iteration : {3, 4, 3, 5}) journal.append({iteration, "reward", 7}, std::to_string(iteration));
  journal.commit();
  journal.forget_before(4);
  EXPECT_EQ(journal.entries().size(), 2U);
  EXPECT_EQ(journal.find({3, "reward", 7}), nullptr);
  EXPECT_EQ(*journal.find({5, "reward", 7}), "5");
  journal.append({6, "reward", 7}, "6");
  journal.commit();
  EXPECT_EQ(*journal.find({6, "reward", 7}), "6");
  EXPECT_EQ(read_journal(path_).size(), 5U);
}

TEST_F(JournalTest, FirstEntryOfAKeyCounts) {
  Journal journal(path_);
  journal.append({0, "reward", 1}, "first");
  journal.append({0, "reward", 1}, "second");
  EXPECT_EQ(*journal.find({0, "reward", 1}), "first");
}

// Every length at which a crash may leave the file: whole records stay, the rest goes, and writing goes on.
TEST_F(JournalTest, TornAtEveryByte) {
  fill(2);
  const std::string whole = read_file(path_);
  const size_t first_two = 8 + (whole.size() - 8) / 2;
  for (size_t length = 0; length < whole.size(); ++length) {
    std::ofstream(path_, std::ios::binary) << whole.substr(0, length);
    std::vector<JournalEntry> kept;
    {
      Journal journal(path_);
      kept = journal.entries();
      journal.append({9, "reward", 1}, "after the crash");
      journal.commit();
    }
    ASSERT_LT(kept.size(), 4u);
    ASSERT_EQ(kept.size() >= 2, length >= first_two) << length;
    const Journal again(path_);
    ASSERT_EQ(again.entries().size(), kept.size() + 1);
    ASSERT_EQ(*again.find({9, "reward", 1}), "after the crash");
    ASSERT_EQ(again.cut_bytes(), 0);
  }
}

TEST_F(JournalTest, BadTailIsCutButDamageInTheMiddleIsAnError) {
  fill(3);
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path_));
  damage(size - 1);
  {
    const Journal journal(path_);
    EXPECT_EQ(journal.entries().size(), 5u);
    EXPECT_GT(journal.cut_bytes(), 0);
  }
  damage(8 + 20 + 30);
  EXPECT_THAT(message_of<base::InputError>([&] { Journal journal(path_); }),
              HasSubstr("expected an undamaged journal, got a wrong record at byte 8 with good records after it"));
}

// Whatever the record then says of its length, which for the fourth byte is over 1 GiB.
TEST_F(JournalTest, ADamagedHeadHidesNoLaterRecord) {
  std::vector<int64_t> begins = {8};
  for (const int64_t iteration : {0, 1, 2}) {
    Journal journal(path_);
    journal.append({iteration, "reward", 7}, "score");
    journal.commit();
    begins.push_back(static_cast<int64_t>(std::filesystem::file_size(path_)));
  }
  const std::string whole = read_file(path_);
  for (const size_t record : {0, 1, 2}) {
    for (int64_t byte = 0; byte < 20; ++byte) {
      write_file_atomically(path_, whole);
      damage(begins[record] + byte);
      if (record == 2) {
        EXPECT_EQ(Journal(path_).cut_bytes(), begins[3] - begins[2]) << byte;
        continue;
      }
      const std::string expected =
          fmt::format("got a wrong record at byte {} with good records after it", begins[record]);
      const std::string damaged = read_file(path_);
      for (const auto& open :
           std::vector<std::function<void()>>{[&] { Journal journal(path_); }, [&] { read_journal(path_); }})
        EXPECT_THAT(message_of<base::InputError>(open), HasSubstr(expected)) << byte;
      EXPECT_EQ(read_file(path_), damaged) << "it is left as it was found";
    }
  }
}

// Pages of one write reach the disk in any order: what follows the missing one in the same commit was used by nobody.
TEST_F(JournalTest, AHoleInTheLastCommitIsATornTail) {
  fill(1);
  const int64_t before = static_cast<int64_t>(std::filesystem::file_size(path_));
  {
    Journal journal(path_);
    for (const uint64_t uid : {1, 2, 3}) journal.append({1, "reward", uid}, "score");
    journal.commit();
  }
  const int64_t size = static_cast<int64_t>(std::filesystem::file_size(path_));
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(before);
  file << std::string(40, '\0');
  file.close();
  const Journal journal(path_);
  EXPECT_EQ(journal.entries().size(), 2u);
  EXPECT_EQ(journal.cut_bytes(), size - before);
}

// A record of another place is no record here: a payload may be a journal itself.
TEST_F(JournalTest, ARecordInsideAPayloadIsNoRecord) {
  fill(2);
  const std::string inner = read_file(path_).substr(8);
  std::filesystem::remove(path_);
  {
    Journal journal(path_);
    journal.append({0, "reward", 1}, inner);
    journal.commit();
  }
  damage(static_cast<int64_t>(std::filesystem::file_size(path_)) - 1);
  EXPECT_EQ(Journal(path_).entries().size(), 0u);
}

// A crash can leave the file long but its last pages empty.
TEST_F(JournalTest, ZerosAtTheEndAreCut) {
  fill(1);
  std::ofstream(path_, std::ios::app | std::ios::binary) << std::string(4096, '\0');
  const Journal journal(path_);
  EXPECT_EQ(journal.entries().size(), 2u);
  EXPECT_EQ(journal.cut_bytes(), 4096);
}

TEST_F(JournalTest, FullDiskLosesNothing) {
  fill(1);
  Journal journal(path_);
  journal.append({1, "reward", 7}, "late");
  base::limit_disk_for_tests(20);
  EXPECT_THAT(message_of<base::RunError>([&] { journal.commit(); }),
              HasSubstr("journal.bin] expected to write, got No space"));
  EXPECT_THAT(iterations(), ElementsAre(0, 0));
  base::limit_disk_for_tests(std::nullopt);
  journal.commit();
  EXPECT_THAT(iterations(), ElementsAre(0, 0, 1));
}

TEST_F(JournalTest, AnotherFileIsRefusedAndUntouched) {
  write_file_atomically(path_, "not a journal at all");
  EXPECT_THAT(message_of<base::InputError>([&] { Journal journal(path_); }),
              HasSubstr("expected a journal of version 3, got another file"));
  EXPECT_EQ(read_file(path_), "not a journal at all");
  EXPECT_THROW(read_journal(directory_ / "absent"), base::InputError);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "absent"));
}

// Entries of version 1 do not say what they answer; records of version 2 do not tell a torn commit from damage.
TEST_F(JournalTest, AnOlderVersionIsRefusedAndUntouched) {
  for (const char version : {'\x01', '\x02'}) {
    const std::string old = std::string("CLMTJNL") + version;
    write_file_atomically(path_, old);
    for (const auto& open :
         std::vector<std::function<void()>>{[&] { Journal journal(path_); }, [&] { read_journal(path_); }})
      EXPECT_THAT(message_of<base::InputError>(open),
                  HasSubstr(fmt::format("journal.bin] expected a journal of version 3, got version {}; try a new run, "
                                        "or the program that wrote it",
                                        version + 0)));
    EXPECT_EQ(read_file(path_), old);
  }
}

TEST_F(JournalTest, ADigestIsKeptAndTellsEntriesOfOneUidApart) {
  {
    Journal journal(path_);
    journal.append({0, "reward", 1, 77}, "of 77");
    journal.append({0, "reward", 1, 78}, "of 78");
    journal.commit();
  }
  const Journal journal(path_);
  EXPECT_EQ(*journal.find({0, "reward", 1, 77}), "of 77");
  EXPECT_EQ(*journal.find({0, "reward", 1, 78}), "of 78");
  EXPECT_EQ(journal.find({0, "reward", 1}), nullptr);
  EXPECT_EQ(journal.entries()[1].key.digest, 78U);
}

// The record that would stand at `offset`, its checksums right, with a head that says `length` of its body.
std::string record_of_length(uint32_t length, const std::string& body, uint64_t offset) {
  const auto bytes = [](auto value) { return std::string(reinterpret_cast<const char*>(&value), sizeof value); };
  const auto crc = [](const std::string& text) { return crc32c(std::as_bytes(std::span(text))); };
  const std::string head = bytes(length) + bytes(crc(body.substr(0, length))) + bytes(offset);
  return head + bytes(crc(head + bytes(offset))) + body;
}

// A length that reaches past the end is a torn record, however absurd and whatever its checksums.
TEST_F(JournalTest, HostileLength) {
  fill(1);
  const uint64_t end = std::filesystem::file_size(path_);
  const std::string body(64, '\0');  // of iteration, uid and digest 0, without a node's name
  std::vector<std::string> tails = {"\xff\xff\xff\xff____short", std::string(100, '\xff')};
  for (const uint32_t length : {0U, 27U, 65U, 0xffffffffU}) tails.push_back(record_of_length(length, body, end));
  for (size_t i = 0; i < tails.size(); ++i) {
    std::ofstream(path_, std::ios::app | std::ios::binary) << tails[i];
    const Journal journal(path_);
    EXPECT_EQ(journal.entries().size(), 2u) << i;
    EXPECT_EQ(journal.cut_bytes(), static_cast<int64_t>(tails[i].size())) << i;
  }
  std::ofstream(path_, std::ios::app | std::ios::binary) << record_of_length(64, body, end);
  EXPECT_EQ(Journal(path_).entries().size(), 3u) << "it was the length that was refused";
}

}  // namespace
}  // namespace collimate::host
