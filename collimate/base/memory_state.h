#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/base/stateful.h"

namespace collimate::base {

// A state in memory: of a schedule that is replayed, and for tests.
class MemoryState : public StateWriter, public StateReader {
 public:
  // The value is kept as text, since a file gives that back.
  void json(const std::string& name, const nlohmann::json& value) override { json_[name] = value.dump(); }
  void bytes(const std::string& name, std::span<const std::byte> value) override {
    bytes_[name].assign(value.begin(), value.end());
  }
  bool has(const std::string& name) const override { return json_.contains(name) || bytes_.contains(name); }
  nlohmann::json json(const std::string& name) override { return nlohmann::json::parse(entry(json_, name)); }
  size_t bytes_size(const std::string& name) override { return entry(bytes_, name).size(); }
  void bytes(const std::string& name, std::span<std::byte> out) override {
    const auto& from = entry(bytes_, name);
    if (from.size() != out.size())
      throw RunError(expectation(name, fmt::format("{} bytes", out.size()), std::to_string(from.size())));
    std::copy(from.begin(), from.end(), out.begin());
  }

 private:
  template <class T>
  static const T& entry(const std::map<std::string, T>& entries, const std::string& name) {
    const auto at = entries.find(name);
    if (at == entries.end()) throw RunError(expectation(name, "an entry of the state", "none"));
    return at->second;
  }

  std::map<std::string, std::string> json_;
  std::map<std::string, std::vector<std::byte>> bytes_;
};

}  // namespace collimate::base
