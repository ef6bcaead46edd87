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

// A ResultJournal holds results of functions that are not deterministic, by (iteration, node, uid) and a digest of the
// row that was asked about. They are on disk before anything uses them, and are served instead of a call on resume and
// replay.
class ResultJournal {
 public:
  using Key = host::JournalKey;

  // With `path` "" nothing is kept; with `replay` "" results are served from `path` alone. A torn tail of `path` is cut
  // off and logged. Throws InputError when `replay` is no journal, or either is damaged.
  ResultJournal(const std::string& path, const std::string& replay);

  struct Entry {
    bool dropped = false;
    Batch row;  // one row
  };
  // Returns what is known of the row, or nullopt when nothing is. With `replay` it throws InputError instead, also when
  // only an entry of another digest is known.
  std::optional<Entry> find(const Key& key) const;
  // A Call is a call that gave results: where it stood in its iteration and what it measured, by rank. It is kept with
  // its rows, so that results that are served count as they did.
  struct Call {
    int replica = 0;
    int part = 0;
    int64_t sequence = 0;
    std::map<int, std::vector<Metric>> metrics;

    COLLIMATE_FIELDS(replica, part, sequence, metrics)
  };
  // Returns the known call that gave this row or dropped it, or null when there is none.
  const Call* call_of(const Key& key) const;
  // Returns one more than the largest sequence of the node's known calls.
  int64_t next_sequence(int64_t iteration, const std::string& node) const;
  // Gives back the memory of what is known of iterations before this one, which nothing asks about any more.
  void forget_before(int64_t iteration);
  // Adds a call; `rows` are of one iteration and node.
  void add_call(const std::vector<Key>& rows, const Call& call);

  // These add rows of a result, given or dropped; `commit` brings them to the disk.
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
  std::map<Key, std::shared_ptr<const Call>> calls_;  // of the journals that were opened, by row
  std::map<std::pair<int64_t, std::string>, int64_t> next_sequence_;
};

}  // namespace collimate::flow
