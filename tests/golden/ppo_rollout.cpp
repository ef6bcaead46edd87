#include "tests/golden/ppo_rollout.h"

#include <algorithm>

namespace collimate::golden {
namespace {

json negated(const json& mask) {
  json out = json::array();
  for (const json& value : mask) out.push_back(!is_true(value));
  return out;
}

}  // namespace

Rollout::Rollout(const json& update, int32_t pad) : update_(update), context_(update.at("context_length")) {
  for (size_t r = 0; r < update["query_responses"].size(); ++r) {
    tokens_.push_back(negated(update["padding_mask"][r]));
    states_.push_back(negated(update["padding_mask_p1"][r]));
    policy_rows_.push_back(row(r, tokens_[r], pad));
    value_rows_.push_back(row(r, states_[r], pad));
  }
}

bool Rollout::has_any(size_t r, const std::vector<int64_t>& ids, bool stopped) const {
  for (size_t t = 0; t < tokens_[r].size(); ++t)
    if ((!stopped || tokens_[r][t].get<bool>()) &&
        std::find(ids.begin(), ids.end(), update_["query_responses"][r][context_ + t].get<int64_t>()) != ids.end())
      return true;
  return false;
}

std::vector<std::vector<float>> Rollout::under(const json& masks, const json& values) {
  std::vector<std::vector<float>> out;
  for (size_t r = 0; r < values.size(); ++r) out.push_back(masked(values[r], masks[r]));
  return out;
}

TokenRow Rollout::row(size_t r, const json& marked, int32_t pad) const {
  const json& ids = update_["query_responses"][r];
  TokenRow out;
  for (size_t t = 0; t < context_; ++t)
    if (!out.ids.empty() || ids[t] != pad) out.ids.push_back(ids[t]);
  out.trainable.resize(out.ids.size(), 0);
  for (size_t t = 0; t < marked.size(); ++t)
    if (marked[t].get<bool>()) out.ids.push_back(ids[context_ + t]);
  out.trainable.resize(out.ids.size(), 1);
  return out;
}

}  // namespace collimate::golden
