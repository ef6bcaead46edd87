#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/base/saved_tensors.h"
#include "collimate/base/stateful.h"

namespace collimate::base {

// A MemoryState holds a saved state in memory, for a schedule that is replayed and for tests.
class MemoryState : public StateWriter, public StateReader {
 public:
  // The value is kept as text, because a state that is read from a file also goes through text.
  void json(const std::string& name, const nlohmann::json& value) override { json_[name] = value.dump(); }
  void bytes(const std::string& name, std::span<const std::byte> value) override {
    bytes_[name].assign(value.begin(), value.end());
  }
  void tensors(const std::string& array, int piece, std::span<const TensorPart> parts,
               std::span<const float> floats) override {
    saved_[fmt::format("{}.{}", array, piece)] = {array, {parts.begin(), parts.end()}, {floats.begin(), floats.end()}};
  }
  void tensors(const std::string& array, std::span<const TensorPart> parts, std::span<float> floats) override {
    const auto open = [this](const std::string& file) -> std::span<const float> { return saved_.at(file).floats; };
    SavedTensors index("the state in memory", open);
    for (const auto& [file, saved] : saved_) index.add(saved.array, file, saved.parts);
    index.read(array, parts, floats);
  }
  // Adds the tensors that another rank saved in its own state, so that readers of this state see them too.
  void add_tensors_of(const MemoryState& other, const std::string& rank) {
    for (const auto& [file, saved] : other.saved_) saved_[rank + "/" + file] = saved;
  }
  bool has(const std::string& name) const override {
    return json_.contains(name) || bytes_.contains(name) || saved_.contains(name);
  }
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

  struct SavedArray {
    std::string array;
    std::vector<TensorPart> parts;
    std::vector<float> floats;
  };

  std::map<std::string, std::string> json_;
  std::map<std::string, std::vector<std::byte>> bytes_;
  std::map<std::string, SavedArray> saved_;  // by "array.piece"
};

}  // namespace collimate::base
