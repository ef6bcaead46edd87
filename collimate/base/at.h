#pragma once

#include <cstddef>

namespace collimate::base {

// The element of a vector, span or array at an index of any integral type, from 0. As unchecked as operator[].
template <class Sequence, class Index>
constexpr decltype(auto) at(Sequence&& sequence, Index index) {
  return sequence[static_cast<std::size_t>(index)];
}

}  // namespace collimate::base
