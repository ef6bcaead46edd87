#include "collimate/flow/result_journal.h"

#include <algorithm>
#include <string_view>
#include <tuple>

#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/flow/payload.h"
#include "collimate/graph/event.h"

namespace collimate::flow {
namespace {

// The entry of a call has the node's name with this suffix, and uid and digest of the call's first row.
constexpr std::string_view kCallSuffix = "#call";

}  // namespace

ResultJournal::ResultJournal(const std::string& path, const std::string& replay) : replays_(!replay.empty()) {
  if (!path.empty()) {
    journal_ = std::make_unique<host::Journal>(path);
    if (journal_->cut_bytes() > 0)
      base::log_warning(
          "{}: cut off {} bytes after the last whole record, which was not written to its end; what they "
          "answered is asked again",
          path, journal_->cut_bytes());
    for (const host::JournalEntry& entry : journal_->entries()) index_call(entry.key, entry.payload);
  }
  if (!replays_) return;
  for (host::JournalEntry& entry : host::read_journal(replay)) {
    index_call(entry.key, entry.payload);
    replay_.emplace(std::move(entry.key), std::move(entry.payload));
  }
}

void ResultJournal::index_call(const Key& key, const std::string& payload) {
  if (!key.node.ends_with(kCallSuffix)) return;
  const std::string node = key.node.substr(0, key.node.size() - kCallSuffix.size());
  const nlohmann::json json = nlohmann::json::parse(payload);
  const auto call = std::make_shared<const Call>(json.get<Call>());
  for (const nlohmann::json& row : json.at("rows"))
    calls_.emplace(Key{key.iteration, node, row.at(0).get<uint64_t>(), row.at(1).get<uint64_t>()}, call);
  int64_t& next = next_sequence_[{key.iteration, node}];
  next = std::max(next, call->sequence + 1);
}

const ResultJournal::Call* ResultJournal::call_of(const Key& key) const {
  const auto found = calls_.find(key);
  return found == calls_.end() ? nullptr : found->second.get();
}

int64_t ResultJournal::next_sequence(int64_t iteration, const std::string& node) const {
  const auto found = next_sequence_.find({iteration, node});
  return found == next_sequence_.end() ? 0 : found->second;
}

void ResultJournal::forget_before(int64_t iteration) {
  if (journal_) journal_->forget_before(iteration);
  const Key first{.iteration = iteration, .node = "", .uid = 0, .digest = 0};
  replay_.erase(replay_.begin(), replay_.lower_bound(first));
  calls_.erase(calls_.begin(), calls_.lower_bound(first));
  next_sequence_.erase(next_sequence_.begin(), next_sequence_.lower_bound({iteration, ""}));
}

void ResultJournal::add_call(const std::vector<Key>& rows, const Call& call) {
  if (rows.empty()) return;
  nlohmann::json entry = call;
  for (const Key& row : rows) entry["rows"].push_back({row.uid, row.digest});
  Key key = rows.front();
  key.node += kCallSuffix;
  append(key, entry.dump());
}

const std::string& ResultJournal::replayed(const Key& key) const {
  const auto found = replay_.find(key);
  if (found != replay_.end()) return found->second;
  const std::string where = fmt::format("--replay, iteration {}, node {}, uid {}", graph::step_of(key.iteration),
                                        key.node, static_cast<int64_t>(key.uid));
  const std::string remedy = "--replay with the journal of this config";
  const auto other = replay_.lower_bound({key.iteration, key.node, key.uid, 0});
  if (other != replay_.end() && std::tie(other->first.iteration, other->first.node, other->first.uid) ==
                                    std::tie(key.iteration, key.node, key.uid))
    throw base::InputError(base::expectation(where, "the row that the journal answered", "another", remedy));
  throw base::InputError(base::expectation(where, "a row that the journal answers", "one that it lacks", remedy));
}

std::optional<ResultJournal::Entry> ResultJournal::find(const Key& key) const {
  const std::string* payload = journal_ ? journal_->find(key) : nullptr;
  if (payload == nullptr && replays_) payload = &replayed(key);
  if (payload == nullptr) return std::nullopt;
  if (payload->empty()) return Entry{true, Batch()};
  return Entry{false, unpack(*payload)};
}

void ResultJournal::append(const Key& key, std::string payload) {
  if (journal_ && journal_->find(key) == nullptr) journal_->append(key, std::move(payload));
}

void ResultJournal::add(const Key& key, const Batch& row) {
  if (journal_) append(key, pack(row));
}

void ResultJournal::commit() {
  if (journal_) journal_->commit();
}

}  // namespace collimate::flow
