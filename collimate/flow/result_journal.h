#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "collimate/batch/batch.h"
#include "collimate/host/journal.h"

namespace collimate::flow {

// Results of functions that are not deterministic, by (iteration, node, uid): appended and on disk before anything uses
// them, and served instead of a call on resume and replay.
class ResultJournal {
 public:
  // `path` "" keeps nothing; `replay` "" serves from `path` alone. InputError when `replay` is no journal.
  ResultJournal(const std::string& path, const std::string& replay);

  struct Entry {
    bool dropped = false;
    Batch row;  // one row
  };
  // What is known of the row; nullopt when nothing is.
  std::optional<Entry> find(int64_t iteration, const std::string& node, int64_t uid) const;
  // Rows of a result; `commit` puts them on disk.
  void add(int64_t iteration, const std::string& node, int64_t uid, const Batch& row);
  void add_dropped(int64_t iteration, const std::string& node, int64_t uid);
  void commit();

 private:
  void append(int64_t iteration, const std::string& node, int64_t uid, std::string payload);

  std::unique_ptr<host::Journal> journal_;
  std::map<host::JournalKey, std::string> replay_;
};

}  // namespace collimate::flow
