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
  uint64_t digest = 0;  // of what was asked; 0 where nothing was
  auto operator<=>(const JournalKey&) const = default;
};

struct JournalEntry {
  JournalKey key;
  std::string payload;  // JSON text or raw bytes, as the writer of that node chose
};

// Results that the deterministic core did not compute, appended before they are used. One thread (the driver's).
// File, little endian: 8 bytes magic and version, then records {u32 length of the body, u32 CRC-32C of the body, u64
// offset in the file at which the record's commit begins, u32 CRC-32C of these three and of the record's own offset as
// u64, body}. Entries reach the disk at `commit`, many at once. A crash may leave the last commit torn: cut short, or
// wrong where a page did not reach the disk. It is cut off on opening from its first bad record on: nothing has used
// it. A bad record, whatever of it, that a later commit follows is an InputError naming its byte, and so is a file of
// another version.
class Journal {
 public:
  // Opens or creates. Throws InputError for a file that is no journal, RunError for the disk.
  explicit Journal(std::filesystem::path path);

  void append(JournalKey key, std::string payload);
  // One write and one fdatasync for all entries appended since the last one. Throws RunError; then they are not in the
  // file.
  void commit();

  // The payload of the first entry with that key, committed or not; null when absent.
  const std::string* find(const JournalKey& key) const;
  // All committed and pending entries in the order of appending (order of arrival is data).
  const std::vector<JournalEntry>& entries() const { return entries_; }
  int64_t cut_bytes() const { return cut_bytes_; }  // length of the torn tail that was cut off on opening

 private:
  void truncate(int64_t bytes);

  std::filesystem::path path_;
  FileDescriptor fd_;
  std::vector<JournalEntry> entries_;
  int64_t end_ = 0;                     // of the committed records in the file
  std::map<JournalKey, size_t> index_;  // first entry of a key
  std::string pending_;                 // encoded records not yet in the file
  int64_t cut_bytes_ = 0;
};

// Reads a journal without changing it, e.g. for --replay. Throws InputError when there is none.
std::vector<JournalEntry> read_journal(const std::filesystem::path& path);

}  // namespace collimate::host
