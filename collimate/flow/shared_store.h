#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "collimate/base/fields.h"
#include "collimate/base/stateful.h"

namespace collimate::flow {

// A StoreEntry is one value put at one iteration.
struct StoreEntry {
  std::string name;
  int64_t version = 0;  // iteration
  nlohmann::json value;

  COLLIMATE_FIELDS(name, version, value)
};

// A SharedStore holds small values that models hand to each other, versioned by iteration (an adaptive KL coefficient).
// Each worker holds a replica. Puts are sent to the driver with the reply and to other workers with their next message,
// so every later task sees a value put in iteration i. Not thread-safe: it belongs to one worker's thread.
class SharedStore : public base::Stateful {
 public:
  // Puts a value that is visible from `version` on. A second put of the same name and version replaces the first.
  void put(const std::string& name, int64_t version, nlohmann::json value);
  // Returns the newest value whose version is ≤ `version`, or nullopt when there is none.
  std::optional<nlohmann::json> get(const std::string& name, int64_t version) const;

  // Returns the puts since the last drain, in order, for the reply.
  std::vector<StoreEntry> drain();
  // Stores entries from elsewhere, which are not drained again.
  void apply(const std::vector<StoreEntry>& entries);
  // Forgets for every name the versions older than its newest version ≤ `version`.
  void trim(int64_t version);
  std::vector<StoreEntry> all() const;

  void save(base::StateWriter& out) const override;
  void load(base::StateReader& in) override;

 private:
  std::map<std::string, std::map<int64_t, nlohmann::json>> values_;
  std::vector<StoreEntry> fresh_;
};

}  // namespace collimate::flow
