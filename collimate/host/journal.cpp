#include "collimate/host/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/host/atomic_file.h"
#include "collimate/host/checksum.h"

namespace collimate::host {
namespace {

static_assert(std::endian::native == std::endian::little, "the file is little endian");
constexpr std::string_view kMagic = {"CLMTJNL\x03", 8};  // the last byte is the version
constexpr size_t kHeadBytes = 4 + 4 + 8 + 4;             // length, checksum, commit, checksum of the head
constexpr size_t kNodeBytesAt = 8 + 8 + 8;               // the name's length, after iteration, uid and digest
constexpr size_t kFixedBytes = kNodeBytesAt + 4;         // including that length
constexpr uint32_t kMaxBodyBytes = 1 << 30;

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T get(std::string_view data, size_t offset) {
  T value;
  std::memcpy(&value, data.data() + offset, sizeof value);
  return value;
}

uint32_t checksum(std::string_view text) { return crc32c(std::as_bytes(std::span(text.data(), text.size()))); }

// Computes the checksum of a head and its offset, so that a copy of a record inside a payload does not count as a
// record of this file.
uint32_t head_checksum(std::string_view head, uint64_t offset) {
  return crc32c(std::as_bytes(std::span(&offset, 1)), checksum(head.substr(0, kHeadBytes - sizeof(uint32_t))));
}

// Appends to `out` the record that stands at `offset` of the file, in the commit that begins at `commit`.
void encode(const JournalEntry& entry, uint64_t offset, uint64_t commit, std::string& out) {
  std::string body;
  put(body, entry.key.iteration);
  put(body, entry.key.uid);
  put(body, entry.key.digest);
  put(body, static_cast<uint32_t>(entry.key.node.size()));
  body += entry.key.node;
  body += entry.payload;
  std::string head;
  put(head, static_cast<uint32_t>(body.size()));
  put(head, checksum(body));
  put(head, commit);
  put(head, head_checksum(head, offset));
  out += head;
  out += body;
}

struct Parsed {
  std::vector<JournalEntry> entries;
  int64_t end = static_cast<int64_t>(kMagic.size());  // where the last good record ends
};

// Returns the body of the record at `offset`, or nothing where there is none, it is cut short or anything in it is
// wrong.
std::optional<std::string_view> body_at(std::string_view data, size_t offset) {
  if (data.size() - offset < kHeadBytes) return std::nullopt;
  const std::string_view head = data.substr(offset, kHeadBytes);
  if (get<uint32_t>(head, 16) != head_checksum(head, offset)) return std::nullopt;
  const auto length = get<uint32_t>(head, 0);
  if (length < kFixedBytes || length > data.size() - offset - kHeadBytes) return std::nullopt;
  const std::string_view body = data.substr(offset + kHeadBytes, length);
  if (get<uint32_t>(body, kNodeBytesAt) > length - kFixedBytes || checksum(body) != get<uint32_t>(head, 4))
    return std::nullopt;
  return body;
}

// Takes the record at `offset`. Returns false where there is no good one.
bool take_record(std::string_view data, size_t offset, Parsed& out) {
  const std::optional<std::string_view> body = body_at(data, offset);
  if (!body) return false;
  const auto node_bytes = get<uint32_t>(*body, kNodeBytesAt);
  out.entries.push_back({{get<int64_t>(*body, 0), std::string(body->substr(kFixedBytes, node_bytes)),
                          get<uint64_t>(*body, 8), get<uint64_t>(*body, 16)},
                         std::string(body->substr(kFixedBytes + node_bytes))});
  out.end = static_cast<int64_t>(offset + kHeadBytes + body->size());
  return true;
}

// Says whether the file has a good record of a commit that began behind the bad record at `bad`. A commit begins only
// when the one before it is on the disk, so a crash leaves none behind a torn commit; the file was then damaged later.
// Looks at every byte, because the length in a bad record cannot be trusted.
bool later_commit_follows(std::string_view data, size_t bad) {
  for (size_t offset = bad + 1; offset + kHeadBytes <= data.size(); ++offset) {
    const auto commit = get<uint64_t>(data, offset + 8);
    if (commit > bad && commit <= offset && body_at(data, offset)) return true;
  }
  return false;
}

void check_magic(std::string_view data, const std::filesystem::path& path) {
  if (data.substr(0, kMagic.size()) == kMagic) return;
  const std::string expected = fmt::format("a journal of version {}", kMagic.back() + 0);
  const std::string_view name = kMagic.substr(0, kMagic.size() - 1);
  if (data.size() < kMagic.size() || data.substr(0, name.size()) != name)
    throw base::InputError(base::expectation(path.string(), expected, "another file"));
  throw base::InputError(base::expectation(path.string(), expected, fmt::format("version {}", data[name.size()] + 0),
                                           "a new run, or the program that wrote it"));
}

Parsed parse(std::string_view data, const std::filesystem::path& path) {
  check_magic(data, path);
  Parsed parsed;
  while (take_record(data, static_cast<size_t>(parsed.end), parsed)) {
  }
  const auto end = static_cast<size_t>(parsed.end);
  if (later_commit_follows(data, end)) {
    throw base::InputError(base::expectation(path.string(), "an undamaged journal",
                                             fmt::format("a wrong record at byte {} with good records after it", end),
                                             "a copy of it, or a new run"));
  }
  return parsed;
}

}  // namespace

Journal::Journal(std::filesystem::path path)
    : path_(std::move(path)), fd_(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  if (!fd_.valid()) throw_io_error(path_, "to open the journal", errno);
  const std::string data = read_file(path_);
  if (data.size() < kMagic.size() && kMagic.substr(0, data.size()) == data) {
    truncate(0);
    write_fully(fd_.get(), std::as_bytes(std::span(kMagic)), path_);
    sync_file(fd_.get(), path_);
    const auto directory = path_.parent_path();
    sync_path(directory.empty() ? "." : directory);
    end_ = static_cast<int64_t>(kMagic.size());
    return;
  }
  Parsed parsed = parse(data, path_);
  entries_ = std::move(parsed.entries);
  end_ = parsed.end;
  cut_bytes_ = static_cast<int64_t>(data.size()) - end_;
  truncate(end_);
  for (size_t i = 0; i < entries_.size(); ++i) index_.emplace(entries_[i].key, i);
}

// Cuts the file and puts the write position at the new end.
void Journal::truncate(int64_t bytes) {
  if (::ftruncate(fd_.get(), bytes) != 0 || ::lseek(fd_.get(), bytes, SEEK_SET) < 0) {
    throw_io_error(path_, "to cut the journal", errno);
  }
}

void Journal::append(JournalKey key, std::string payload) {
  COLLIMATE_CHECK(key.node.size() + payload.size() + kFixedBytes <= kMaxBodyBytes, "a journal entry of over 1 GiB");
  entries_.push_back({std::move(key), std::move(payload)});
  const auto commit = static_cast<uint64_t>(end_);
  encode(entries_.back(), commit + pending_.size(), commit, pending_);
  index_.emplace(entries_.back().key, entries_.size() - 1);
}

void Journal::commit() {
  if (pending_.empty()) return;
  base::fault_point("journal.before_commit");
  try {
    write_fully(fd_.get(), std::as_bytes(std::span(pending_)), path_);
    if (::fdatasync(fd_.get()) != 0) throw_io_error(path_, "to reach the disk", errno);
  } catch (const base::RunError&) {
    truncate(end_);
    throw;
  }
  end_ += static_cast<int64_t>(pending_.size());
  pending_.clear();
  base::fault_point("journal.after_commit");
}

const std::string* Journal::find(const JournalKey& key) const {
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &entries_[found->second].payload;
}

void Journal::forget_before(int64_t iteration) {
  if (std::erase_if(entries_, [&](const JournalEntry& entry) { return entry.key.iteration < iteration; }) == 0) return;
  index_.clear();
  for (size_t i = 0; i < entries_.size(); ++i) index_.emplace(entries_[i].key, i);
}

std::vector<JournalEntry> read_journal(const std::filesystem::path& path) {
  return parse(read_file(path), path).entries;
}

}  // namespace collimate::host
