#include "collimate/flow/result_journal.h"

#include <algorithm>
#include <string_view>

#include "collimate/flow/payload.h"

namespace collimate::flow {
namespace {

host::JournalKey key_of(int64_t iteration, const std::string& node, int64_t uid) {
  return {iteration, node, static_cast<uint64_t>(uid)};
}

// Entries of calls have the node's name with this behind it, and the uid of the call's first row.
constexpr std::string_view kCallSuffix = "#call";

}  // namespace

ResultJournal::ResultJournal(const std::string& path, const std::string& replay) {
  if (!path.empty()) {
    journal_ = std::make_unique<host::Journal>(path);
    for (const host::JournalEntry& entry : journal_->entries()) index_call(entry.key, entry.payload);
  }
  if (replay.empty()) return;
  for (host::JournalEntry& entry : host::read_journal(replay)) {
    index_call(entry.key, entry.payload);
    replay_.emplace(std::move(entry.key), std::move(entry.payload));
  }
}

void ResultJournal::index_call(const host::JournalKey& key, const std::string& payload) {
  if (!key.node.ends_with(kCallSuffix)) return;
  const std::string node = key.node.substr(0, key.node.size() - kCallSuffix.size());
  const nlohmann::json json = nlohmann::json::parse(payload);
  auto call = std::make_shared<Call>();
  call->replica = json.at("replica").get<int>();
  call->part = json.at("part").get<int>();
  call->sequence = json.at("sequence").get<int64_t>();
  for (const nlohmann::json& rank : json.at("metrics"))
    call->metrics[rank.at(0).get<int>()] = metrics_from_json(rank.at(1));
  for (const nlohmann::json& uid : json.at("uids")) calls_.emplace(key_of(key.iteration, node, uid), call);
  int64_t& next = next_sequence_[{key.iteration, node}];
  next = std::max(next, call->sequence + 1);
}

const ResultJournal::Call* ResultJournal::call_of(int64_t iteration, const std::string& node, int64_t uid) const {
  const auto found = calls_.find(key_of(iteration, node, uid));
  return found == calls_.end() ? nullptr : found->second.get();
}

int64_t ResultJournal::next_sequence(int64_t iteration, const std::string& node) const {
  const auto found = next_sequence_.find({iteration, node});
  return found == next_sequence_.end() ? 0 : found->second;
}

void ResultJournal::add_call(int64_t iteration, const std::string& node, const std::vector<int64_t>& uids,
                             const Call& call) {
  if (uids.empty()) return;
  nlohmann::json metrics = nlohmann::json::array();
  for (const auto& [rank, measured] : call.metrics) metrics.push_back({rank, to_json(measured)});
  append(iteration, node + std::string(kCallSuffix), uids.front(),
         nlohmann::json{{"replica", call.replica},
                        {"part", call.part},
                        {"sequence", call.sequence},
                        {"metrics", std::move(metrics)},
                        {"uids", uids}}
             .dump());
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
