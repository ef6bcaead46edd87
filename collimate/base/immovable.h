#pragma once

namespace collimate::base {

// A base class of what is neither copied nor moved: its destructor undoes something once, or others hold its address.
class Immovable {
 public:
  Immovable(const Immovable&) = delete;
  Immovable& operator=(const Immovable&) = delete;

 protected:
  Immovable() = default;
  ~Immovable() = default;
};

}  // namespace collimate::base
