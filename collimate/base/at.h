#pragma once

#include <cstddef>

namespace collimate::base {

// Returns the element of a vector, span or array at an index of any integral type, counted from 0. The index is not
// checked, as with operator[].
template <class Sequence, class Index>
constexpr decltype(auto) at(Sequence&& sequence, Index index) {
  return sequence[static_cast<std::size_t>(index)];
}

}  // namespace collimate::base
