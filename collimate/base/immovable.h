#pragma once

namespace collimate::base {

// Immovable is a base class of objects that may be neither copied nor moved, because the destructor undoes something
// once or because others hold their address.
class Immovable {
 public:
  Immovable(const Immovable&) = delete;
  Immovable& operator=(const Immovable&) = delete;

 protected:
  Immovable() = default;
  ~Immovable() = default;
};

}  // namespace collimate::base
