#pragma once

#include <string>

#include "collimate/base/error.h"
#include "collimate/base/section.h"

namespace collimate::base {

// A key that its section does not have; `near` is the section's key most like it, or "".
class UnknownKeyError : public InputError {
 public:
  UnknownKeyError(std::string where, std::string section, std::string key, std::string near)
      : InputError(expectation(where, "a key of " + section_title(section), "\"" + key + "\"",
                               near.empty() ? "" : "\"" + near + "\"")),
        where_(std::move(where)),
        section_(std::move(section)),
        key_(std::move(key)),
        near_(std::move(near)) {}

  const std::string& where() const { return where_; }
  const std::string& section() const { return section_; }
  const std::string& key() const { return key_; }
  const std::string& near() const { return near_; }

 private:
  std::string where_;
  std::string section_;
  std::string key_;
  std::string near_;
};

}  // namespace collimate::base
