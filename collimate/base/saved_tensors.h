#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collimate/base/tensor_part.h"

namespace collimate::base {

// An index of the parts of tensors that were saved, by whichever ranks of whichever layout, from which the parts that
// are wanted now are read. Parts that lie over each other must have the same values.
class SavedTensors {
 public:
  // Gives the floats of a file, valid until `read` returns.
  using Open = std::function<std::span<const float>(const std::string& file)>;

  // `where` all of it is saved, for errors.
  SavedTensors(std::string where, Open open) : where_(std::move(where)), open_(std::move(open)) {}
  void add(const std::string& array, const std::string& file, std::vector<TensorPart> parts);
  // Reads as StateReader::tensors.
  void read(const std::string& array, std::span<const TensorPart> parts, std::span<float> floats) const;

 private:
  struct Saved {
    TensorPart part;
    std::string file;
  };
  using Places = std::vector<Saved>;

  void read(const std::string& array, const Places& places, const TensorPart& wanted, float* out) const;
  // The floats of a saved part; InputError where its file has too few.
  const float* floats_of(const Saved& saved) const;
  void check_equal(const Saved& one, const Saved& other, const Box& wanted) const;
  const Places& places_of(const std::string& array, const TensorPart& wanted) const;

  std::string where_;
  Open open_;
  std::map<std::pair<std::string, std::string>, Places> places_;  // by array and name
};

}  // namespace collimate::base
