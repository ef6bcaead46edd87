#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collimate/base/tensor_part.h"

namespace collimate::base {

// A SavedTensors is an index of the saved parts of tensors, whichever ranks of whichever layout wrote them, and reads
// from them the parts that are wanted now. Saved parts that overlap must have the same values there.
class SavedTensors {
 public:
  // Returns the floats of a file, which stay valid until `read` returns.
  using Open = std::function<std::span<const float>(const std::string& file)>;

  // Errors name `where`, the place of everything that was saved.
  SavedTensors(std::string where, Open open) : where_(std::move(where)), open_(std::move(open)) {}
  void add(const std::string& array, const std::string& file, std::vector<TensorPart> parts);
  // Reads as StateReader::tensors does.
  void read(const std::string& array, std::span<const TensorPart> parts, std::span<float> floats) const;

 private:
  struct Saved {
    TensorPart part;
    std::string file;
  };
  using Places = std::vector<Saved>;

  void read(const std::string& array, const Places& places, const TensorPart& wanted, float* out) const;
  // Returns the floats of a saved part. Throws InputError where its file has too few.
  const float* floats_of(const Saved& saved) const;
  void check_equal(const Saved& one, const Saved& other, const Box& wanted) const;
  const Places& places_of(const std::string& array, const TensorPart& wanted) const;

  std::string where_;
  Open open_;
  std::map<std::pair<std::string, std::string>, Places> places_;  // by array and name
};

}  // namespace collimate::base
