#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collimate/base/fields.h"
#include "collimate/batch/batch.h"
#include "collimate/flow/metric.h"
#include "collimate/host/journal.h"

namespace collimate::flow {

// Results of functions that are not deterministic, by (iteration, node, uid) and a digest of the row that was asked
// about: appended and on disk before anything uses them, and served instead of a call on resume and replay.
class ResultJournal {
 public:
  using Key = host::JournalKey;

  // `path` "" keeps nothing; `replay` "" serves from `path` alone. A torn tail of `path` is cut off and logged.
  // InputError when `replay` is no journal, or either is damaged.
  ResultJournal(const std::string& path, const std::string& replay);

  struct Entry {
    bool dropped = false;
    Batch row;  // one row
  };
  // Finds what is known of the row; nullopt when nothing is. With `replay` that, or an entry of another digest alone,
  // is an InputError.
  std::optional<Entry> find(const Key& key) const;
  // A call that gave results: where it stood in its iteration and what it measured, by rank. Kept with its rows, so
  // that what is served counts as it did.
  struct Call {
    int replica = 0;
    int part = 0;
    int64_t sequence = 0;
    std::map<int, std::vector<Metric>> metrics;

    COLLIMATE_FIELDS(replica, part, sequence, metrics)
  };
  // The known call that gave this row or dropped it; null when there is none.
  const Call* call_of(const Key& key) const;
  // One more than the largest sequence of the node's known calls.
  int64_t next_sequence(int64_t iteration, const std::string& node) const;
  // `rows`: of one iteration and node.
  void add_call(const std::vector<Key>& rows, const Call& call);

  // Rows of a result; `commit` puts them on disk.
  void add(const Key& key, const Batch& row);
  void add_dropped(const Key& key) { append(key, ""); }
  void commit();

 private:
  void append(const Key& key, std::string payload);
  void index_call(const Key& key, const std::string& payload);
  const std::string& replayed(const Key& key) const;

  std::unique_ptr<host::Journal> journal_;
  bool replays_ = false;
  std::map<Key, std::string> replay_;
  std::map<Key, std::shared_ptr<const Call>> calls_;  // found on opening, by row
  std::map<std::pair<int64_t, std::string>, int64_t> next_sequence_;
};

}  // namespace collimate::flow
