#pragma once

#include <string>

namespace collimate::base {

// An option of this type is given as a text or as a mapping; `text` is then the JSON of the mapping in written order.
struct JsonText {
  std::string text;
  bool operator==(const JsonText&) const = default;
};

}  // namespace collimate::base
