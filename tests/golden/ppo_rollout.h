#pragma once

#include <string>
#include <vector>

#include "tests/golden/rows.h"

namespace collimate::golden {

// One rollout: responses of R rows with T places; `tokens` marks the tokens of the response, `states` one place more
// where the response ends early: the value after its last token counts there.
class Rollout {
 public:
  // `update` must outlive it; `pad` fills prompts on the left.
  Rollout(const json& update, int32_t pad);

  size_t rows() const { return tokens_.size(); }
  Batch policy_rows() const { return to_batch(policy_rows_); }
  Batch value_rows() const { return to_batch(value_rows_); }
  const json& tokens() const { return tokens_; }
  const json& states() const { return states_; }
  const json& recorded(const std::string& name) const { return update_.at(name); }

  // One of these tokens is in the response: up to its end when a stop token ended it, else anywhere.
  bool has_any(size_t r, const std::vector<int64_t>& ids, bool stopped) const;

  // Numbers of [R, T] arrays under one of the masks.
  static std::vector<std::vector<float>> under(const json& masks, const json& values);

 private:
  // Prompt without its padding on the left, then the marked places of the response.
  TokenRow row(size_t r, const json& marked, int32_t pad) const;

  const json& update_;
  size_t context_;
  json tokens_ = json::array(), states_ = json::array();
  std::vector<TokenRow> policy_rows_, value_rows_;
};

}  // namespace collimate::golden
