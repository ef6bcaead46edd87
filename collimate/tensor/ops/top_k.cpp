#include "collimate/tensor/ops/top_k.h"

#include <algorithm>

#include "collimate/base/error.h"

namespace collimate::tensor {
namespace {

constexpr int64_t kLookTokens = 64;  // values that are compared at once with the least of the largest

bool any_above(const float* values, int64_t count, float bound) {
  int found = 0;
  for (int64_t i = 0; i < count; ++i) found |= values[i] > bound ? 1 : 0;
  return found != 0;
}

}  // namespace

RunningTopK::RunningTopK(int64_t most) : most_(most) {
  COLLIMATE_CHECK(most >= 1 && most <= kMostTopTokens, "the {} largest of a row", most);
}

void RunningTopK::add(const float* values, int64_t first, int64_t count) {
  for (int64_t begin = 0; begin < count; begin += kLookTokens) {
    const int64_t end = std::min(begin + kLookTokens, count);
    if (size_ == most_ && !any_above(values + begin, end - begin, value(size_ - 1))) continue;
    for (int64_t i = begin; i < end; ++i) insert(values[i], static_cast<int32_t>(first + i));
  }
}

// A value keeps its place before an equal one that is shown later.
void RunningTopK::insert(float x, int32_t id) {
  if (size_ == most_ && !(x > value(size_ - 1))) return;
  auto place = static_cast<size_t>(size_ < most_ ? size_++ : size_ - 1);
  for (; place > 0 && x > values_[place - 1]; --place) {
    values_[place] = values_[place - 1];
    ids_[place] = ids_[place - 1];
  }
  values_[place] = x;
  ids_[place] = id;
}

}  // namespace collimate::tensor
