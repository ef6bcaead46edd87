#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "collimate/host/scratch_file.h"
#include "collimate/text/chat_template.h"

namespace collimate::text {

// An example as it is trained, and the JSON that rewards see of it.
struct RenderedExample {
  std::vector<RenderedTokens> rows;  // one, or chosen and rejected
  nlohmann::json example;
  bool desirable = false;      // the mark of a marked example
  std::vector<uint8_t> right;  // whether each of its steps is
  int64_t row = 0;             // its number in the data set
  int64_t file = 0;            // the number of its file
  int64_t line = 0, row_in_file = 0;
};

// Keeps examples in order: few in memory, many in a scratch file, of which 8 bytes an example stay in memory. Both give
// back what was added.
class RenderedRows {
 public:
  explicit RenderedRows(bool in_memory);

  void add(RenderedExample&& example);
  int64_t size() const;
  // Returns an example by its number, from 0. Throws RunError where the disk does not give it back.
  RenderedExample at(int64_t example) const;

 private:
  std::vector<RenderedExample> held_;
  std::unique_ptr<host::ScratchFile> file_;  // null: the examples are in memory
  std::deque<int64_t> begins_;               // by example: where it begins in the file
};

}  // namespace collimate::text
