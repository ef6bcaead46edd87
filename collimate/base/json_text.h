#pragma once

#include <string>

namespace collimate::base {

// An option of this type is a text, or a mapping, of which the text is its JSON in the order written.
struct JsonText {
  std::string text;
  bool operator==(const JsonText&) const = default;
};

}  // namespace collimate::base
