#include "collimate/flow/result_journal.h"

#include "collimate/flow/payload.h"

namespace collimate::flow {
namespace {

host::JournalKey key_of(int64_t iteration, const std::string& node, int64_t uid) {
  return {iteration, node, static_cast<uint64_t>(uid)};
}

}  // namespace

ResultJournal::ResultJournal(const std::string& path, const std::string& replay) {
  if (!path.empty()) journal_ = std::make_unique<host::Journal>(path);
  if (replay.empty()) return;
  for (host::JournalEntry& entry : host::read_journal(replay))
    replay_.emplace(std::move(entry.key), std::move(entry.payload));
}

std::optional<ResultJournal::Entry> ResultJournal::find(int64_t iteration, const std::string& node, int64_t uid) const {
  host::JournalKey key = key_of(iteration, node, uid);
  const std::string* payload = journal_ ? journal_->find(key) : nullptr;
  auto replayed = replay_.find(key);
  if (payload == nullptr && replayed != replay_.end()) payload = &replayed->second;
  if (payload == nullptr) return std::nullopt;
  if (payload->empty()) return Entry{true, Batch()};
  return Entry{false, unpack(*payload)};
}

void ResultJournal::append(int64_t iteration, const std::string& node, int64_t uid, std::string payload) {
  host::JournalKey key = key_of(iteration, node, uid);
  if (journal_ && journal_->find(key) == nullptr) journal_->append(std::move(key), std::move(payload));
}

void ResultJournal::add(int64_t iteration, const std::string& node, int64_t uid, const Batch& row) {
  if (journal_) append(iteration, node, uid, pack(row));
}

void ResultJournal::add_dropped(int64_t iteration, const std::string& node, int64_t uid) {
  append(iteration, node, uid, "");
}

void ResultJournal::commit() {
  if (journal_) journal_->commit();
}

}  // namespace collimate::flow
