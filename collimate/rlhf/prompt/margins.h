#pragma once

#include <string>
#include <vector>

#include "collimate/text/dataset.h"

namespace collimate::rlhf {

// Reads the margins of pairs, one example after the other: their column `margin`, which all have or none.
class Margins {
 public:
  void add(const text::Example& example);
  // Returns the margins of all examples, or nothing if none has one. Throws InputError for the first example whose
  // margin is no number of float's range, or that has none where others have one, as TRL too has no default.
  std::vector<float> finish();

 private:
  std::vector<float> values_;
  std::string first_;              // where the first example with a margin is
  std::string missing_, problem_;  // the first example at fault: where it has no margin, or what is wrong with its own
};

}  // namespace collimate::rlhf
