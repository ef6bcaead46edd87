#include "collimate/flow/shared_store.h"

#include <iterator>
#include <utility>

namespace collimate::flow {

void SharedStore::put(const std::string& name, int64_t version, nlohmann::json value) {
  fresh_.push_back({name, version, value});
  values_[name][version] = std::move(value);
}

std::optional<nlohmann::json> SharedStore::get(const std::string& name, int64_t version) const {
  auto found = values_.find(name);
  if (found == values_.end()) return std::nullopt;
  auto after = found->second.upper_bound(version);
  if (after == found->second.begin()) return std::nullopt;
  return std::prev(after)->second;
}

std::vector<StoreEntry> SharedStore::drain() { return std::exchange(fresh_, {}); }

void SharedStore::apply(const std::vector<StoreEntry>& entries) {
  for (const StoreEntry& entry : entries) values_[entry.name][entry.version] = entry.value;
}

void SharedStore::trim(int64_t version) {
  for (auto& [name, versions] : values_) {
    auto after = versions.upper_bound(version);
    if (after != versions.begin()) versions.erase(versions.begin(), std::prev(after));
  }
}

std::vector<StoreEntry> SharedStore::all() const {
  std::vector<StoreEntry> entries;
  for (const auto& [name, versions] : values_)
    for (const auto& [version, value] : versions) entries.push_back({name, version, value});
  return entries;
}

void SharedStore::save(base::StateWriter& out) const { out.json("values", all()); }

void SharedStore::load(base::StateReader& in) {
  values_.clear();
  fresh_.clear();
  apply(in.json("values"));
}

}  // namespace collimate::flow
