#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "collimate/host/file_io.h"

namespace collimate::host {

// The key says what a journal entry is about.
struct JournalKey {
  int64_t iteration = 0;
  std::string node;
  uint64_t uid = 0;
  uint64_t digest = 0;  // of the request; 0 where there was none
  auto operator<=>(const JournalKey&) const = default;
};

struct JournalEntry {
  JournalKey key;
  std::string payload;  // JSON text or raw bytes, as the writer of that node chose
};

// A Journal holds results that the deterministic core did not compute; they are appended before they are used. Only one
// thread (the driver's) may use it. The file is little endian: 8 bytes magic and version, then records {u32 length of
// the body, u32 CRC-32C of the body, u64 offset in the file at which the record's commit begins, u32 CRC-32C of these
// three and of the record's own offset as u64, body}. Entries reach the disk at `commit`, many at once. A crash may
// leave the last commit torn: cut short, or wrong where a page did not reach the disk. Opening cuts it off from its
// first bad record on, as nothing has used it. A bad record before a later commit, whatever is bad about it, is an
// InputError naming its byte. A file of another version is an InputError too.
class Journal {
 public:
  // Opens or creates the file. Throws InputError for a file that is no journal, RunError when the disk fails.
  explicit Journal(std::filesystem::path path);

  void append(JournalKey key, std::string payload);
  // Brings all entries appended since the last commit to the disk with one write and one fdatasync. Throws RunError;
  // then they are not in the file.
  void commit();

  // Returns the payload of the first entry with that key, committed or not, or null when there is none.
  const std::string* find(const JournalKey& key) const;
  // Gives back the memory of entries of iterations before this one, which find() and entries() no longer return. The
  // file keeps them.
  void forget_before(int64_t iteration);
  // Returns all committed and pending entries in the order of appending (order of arrival is data).
  const std::vector<JournalEntry>& entries() const { return entries_; }
  int64_t cut_bytes() const { return cut_bytes_; }  // length of the torn tail that was cut off on opening

 private:
  void truncate(int64_t bytes);

  std::filesystem::path path_;
  FileDescriptor fd_;
  std::vector<JournalEntry> entries_;
  int64_t end_ = 0;                     // where the committed records end in the file
  std::map<JournalKey, size_t> index_;  // index of the first entry of a key
  std::string pending_;                 // encoded records not yet in the file
  int64_t cut_bytes_ = 0;
};

// Reads a journal without changing it, e.g. for --replay. Throws InputError when there is none.
std::vector<JournalEntry> read_journal(const std::filesystem::path& path);

}  // namespace collimate::host
