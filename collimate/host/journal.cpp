#include "collimate/host/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/host/atomic_file.h"
#include "collimate/host/checksum.h"

namespace collimate::host {
namespace {

static_assert(std::endian::native == std::endian::little, "the file is little endian");
constexpr std::string_view kMagic = {"CLMTJNL\x02", 8};  // the last byte is the version
constexpr size_t kHeadBytes = 8;                         // u32 length, u32 checksum
constexpr size_t kNodeBytesAt = 8 + 8 + 8;               // behind iteration, uid and digest
constexpr size_t kFixedBytes = kNodeBytesAt + 4;         // with the length of the node's name
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

void encode(const JournalEntry& entry, std::string& out) {
  std::string body;
  put(body, entry.key.iteration);
  put(body, entry.key.uid);
  put(body, entry.key.digest);
  put(body, static_cast<uint32_t>(entry.key.node.size()));
  body += entry.key.node;
  body += entry.payload;
  put(out, static_cast<uint32_t>(body.size()));
  put(out, checksum(body));
  out += body;
}

struct Parsed {
  std::vector<JournalEntry> entries;
  std::vector<int64_t> ends;
  bool bad_record = false;  // reading stopped at a whole record with a wrong checksum or shape
};

// Takes one record at `offset`; false at the end, at a torn record or at a bad one.
bool take_record(std::string_view data, size_t offset, Parsed& out) {
  if (data.size() - offset < kHeadBytes) return false;
  const auto length = get<uint32_t>(data, offset);
  if (length > data.size() - offset - kHeadBytes) return false;
  const std::string_view body = data.substr(offset + kHeadBytes, length);
  const bool fits = length >= kFixedBytes && get<uint32_t>(body, kNodeBytesAt) <= length - kFixedBytes;
  if (!fits || checksum(body) != get<uint32_t>(data, offset + 4)) {
    out.bad_record = true;
    return false;
  }
  const auto node_bytes = get<uint32_t>(body, kNodeBytesAt);
  out.entries.push_back({{get<int64_t>(body, 0), std::string(body.substr(kFixedBytes, node_bytes)),
                          get<uint64_t>(body, 8), get<uint64_t>(body, 16)},
                         std::string(body.substr(kFixedBytes + node_bytes))});
  out.ends.push_back(static_cast<int64_t>(offset + kHeadBytes + length));
  return true;
}

int64_t good_bytes(const Parsed& parsed) {
  return parsed.ends.empty() ? static_cast<int64_t>(kMagic.size()) : parsed.ends.back();
}

// A crash leaves the last write cut short or, when its pages did not all reach the disk, full of zeros or wrong: then
// no good record follows. A good record behind a bad one means that the file was damaged.
bool good_record_follows(std::string_view data, size_t bad_offset) {
  const size_t next = bad_offset + kHeadBytes + get<uint32_t>(data, bad_offset);
  Parsed ignored;
  return next < data.size() && take_record(data, next, ignored);
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
  while (take_record(data, static_cast<size_t>(good_bytes(parsed)), parsed)) {
  }
  const auto end = static_cast<size_t>(good_bytes(parsed));
  if (parsed.bad_record && good_record_follows(data, end)) {
    throw base::InputError(
        base::expectation(path.string(), "an undamaged journal",
                          fmt::format("a wrong checksum at byte {} with good records after it", end)));
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
    return;
  }
  Parsed parsed = parse(data, path_);
  entries_ = std::move(parsed.entries);
  ends_ = std::move(parsed.ends);
  cut_bytes_ = static_cast<int64_t>(data.size()) - end_bytes();
  truncate(end_bytes());
  rebuild_index();
}

int64_t Journal::end_bytes() const { return ends_.empty() ? static_cast<int64_t>(kMagic.size()) : ends_.back(); }

// Also puts the write position there.
void Journal::truncate(int64_t bytes) {
  if (::ftruncate(fd_.get(), bytes) != 0 || ::lseek(fd_.get(), bytes, SEEK_SET) < 0) {
    throw_io_error(path_, "to cut the journal", errno);
  }
}

void Journal::append(JournalKey key, std::string payload) {
  COLLIMATE_CHECK(key.node.size() + payload.size() + kFixedBytes <= kMaxBodyBytes, "a journal entry of over 1 GiB");
  entries_.push_back({std::move(key), std::move(payload)});
  encode(entries_.back(), pending_);
  pending_ends_.push_back(static_cast<int64_t>(pending_.size()));
  index_.emplace(entries_.back().key, entries_.size() - 1);
}

void Journal::commit() {
  if (pending_.empty()) return;
  base::fault_point("journal.before_commit");
  const int64_t begin = end_bytes();
  try {
    write_fully(fd_.get(), std::as_bytes(std::span(pending_)), path_);
    if (::fdatasync(fd_.get()) != 0) throw_io_error(path_, "to reach the disk", errno);
  } catch (const base::RunError&) {
    truncate(begin);
    throw;
  }
  for (const int64_t end : pending_ends_) ends_.push_back(begin + end);
  pending_.clear();
  pending_ends_.clear();
  base::fault_point("journal.after_commit");
}

void Journal::cut_back(int64_t last_iteration) {
  commit();
  const auto kept = [&](const JournalEntry& entry) { return entry.key.iteration <= last_iteration; };
  const auto first_cut = std::find_if_not(entries_.begin(), entries_.end(), kept);
  const bool is_prefix = std::none_of(first_cut, entries_.end(), kept);
  const auto prefix = static_cast<size_t>(first_cut - entries_.begin());
  if (is_prefix) {
    entries_.resize(prefix);
    ends_.resize(prefix);
    truncate(end_bytes());
    sync_file(fd_.get(), path_);
  } else {
    std::erase_if(entries_, [&](const JournalEntry& entry) { return !kept(entry); });
    rewrite();
  }
  rebuild_index();
}

// Iterations of asynchronous runs overlap in the file; then what stays is not a prefix and the file is replaced whole.
void Journal::rewrite() {
  std::string data(kMagic);
  ends_.clear();
  for (const auto& entry : entries_) {
    encode(entry, data);
    ends_.push_back(static_cast<int64_t>(data.size()));
  }
  write_file_atomically(path_, data);
  fd_.reset(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd_.valid() || ::lseek(fd_.get(), 0, SEEK_END) < 0) throw_io_error(path_, "to open the journal again", errno);
}

const std::string* Journal::find(const JournalKey& key) const {
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &entries_[found->second].payload;
}

void Journal::rebuild_index() {
  index_.clear();
  for (size_t i = 0; i < entries_.size(); ++i) index_.emplace(entries_[i].key, i);
}

std::vector<JournalEntry> read_journal(const std::filesystem::path& path) {
  return parse(read_file(path), path).entries;
}

}  // namespace collimate::host
