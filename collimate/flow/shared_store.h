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

// One value put at one iteration.
struct StoreEntry {
  std::string name;
  int64_t version = 0;  // iteration
  nlohmann::json value;

  COLLIMATE_FIELDS(name, version, value)
};

// Small values that models hand to each other, versioned by iteration (an adaptive KL coefficient). Each worker holds a
// replica; puts travel to the driver with the reply and to other workers with their next message, so a value put in
// iteration i is seen by every later task. Not thread-safe: it belongs to one worker's thread.
class SharedStore : public base::Stateful {
 public:
  // Visible from `version` on. A second put of the same name and version replaces the first.
  void put(const std::string& name, int64_t version, nlohmann::json value);
  // The newest value whose version is ≤ `version`; nullopt when there is none.
  std::optional<nlohmann::json> get(const std::string& name, int64_t version) const;

  // Puts since the last drain, in order: what the reply carries.
  std::vector<StoreEntry> drain();
  // Entries from elsewhere: stored, and not drained again.
  void apply(const std::vector<StoreEntry>& entries);
  // Forgets all but the newest version ≤ `version` of every name.
  void trim(int64_t version);
  std::vector<StoreEntry> all() const;

  void save(base::StateWriter& out) const override;
  void load(base::StateReader& in) override;

 private:
  std::map<std::string, std::map<int64_t, nlohmann::json>> values_;
  std::vector<StoreEntry> fresh_;
};

}  // namespace collimate::flow
