#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace collimate::cluster {

// Workers of one run find each other in a Store: names to small texts. Thread-safe.
class Store {
 public:
  virtual ~Store() = default;
  virtual void set(const std::string& key, const std::string& value) = 0;
  // Returns the value of a key and waits until somebody has set it. Throws RunError after `seconds`, naming the key.
  virtual std::string get(const std::string& key, double seconds) = 0;
  // Adds to a counter that starts at 0; returns the new value.
  virtual int64_t add(const std::string& key, int64_t amount) = 0;
};

// A MemoryStore lives in this process.
class MemoryStore : public Store {
 public:
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, double seconds) override;
  int64_t add(const std::string& key, int64_t amount) override;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
  std::map<std::string, int64_t> counters_;
};

}  // namespace collimate::cluster
