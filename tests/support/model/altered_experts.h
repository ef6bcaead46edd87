#pragma once

#include <algorithm>
#include <iterator>
#include <span>

#include "collimate/model/model.h"
#include "collimate/shape/mixture.h"

namespace collimate::model::testing {

// Gives every `each`th token, and of it one router after the other, other experts than it chose: the highest becomes
// another one. Tokens of which nothing is known stay so.
inline void alter_experts(RoutedExperts& experts, const shape::ModelShape& shape, int64_t each) {
  const shape::Experts& how = *shape::experts_of(shape);
  const int64_t routers = shape::routers_of(shape);
  for (int64_t t = each - 1; t < std::ssize(experts) / routed_width(shape); t += each) {
    const auto first = experts.begin() + (t * routers + t / each % routers) * how.per_token;
    const std::span<int16_t> chosen(first, first + how.per_token);
    if (chosen.front() < 0) continue;
    int16_t other = 0;
    while (std::ranges::find(chosen, other) != chosen.end()) ++other;
    chosen.back() = other;
    std::ranges::sort(chosen);
  }
}

}  // namespace collimate::model::testing
