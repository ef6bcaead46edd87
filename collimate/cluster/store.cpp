#include "collimate/cluster/store.h"

#include "collimate/base/deadline.h"
#include "collimate/base/error.h"

namespace collimate::cluster {

void MemoryStore::set(const std::string& key, const std::string& value) {
  std::lock_guard lock(mutex_);
  values_[key] = value;
  changed_.notify_all();
}

std::string MemoryStore::get(const std::string& key, double seconds) {
  std::unique_lock lock(mutex_);
  bool there = base::wait_until(changed_, lock, base::Deadline::after(seconds), [&] { return values_.contains(key); });
  if (!there)
    throw base::RunError(base::expectation("store", "somebody to set " + key, fmt::format("nobody in {} s", seconds)));
  return values_.at(key);
}

int64_t MemoryStore::add(const std::string& key, int64_t amount) {
  std::lock_guard lock(mutex_);
  return counters_[key] += amount;
}

}  // namespace collimate::cluster
