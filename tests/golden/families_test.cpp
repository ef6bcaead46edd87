// Logits of each model family and kind of RoPE against those of Hugging Face transformers (make_families.py).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "tests/golden/family_weights.h"
#include "tests/support/model/pack_sequences.h"

namespace collimate::golden {
namespace {

using nlohmann::json;

std::vector<float> logits_of(const json& config, const std::vector<int32_t>& ids) {
  model::Model model(family_weights(config, {.longest_tokens = std::ssize(ids)}), {});
  const std::span<const int32_t> sequence = ids;
  const at::Tensor logits = model.logits(model.forward(model::pack_sequences({&sequence, 1})));
  return {logits.const_data_ptr<float>(), logits.const_data_ptr<float>() + logits.numel()};
}

TEST(Families, LogitsAreThoseOfAnotherImplementation) {
  const json cases = json::parse(std::ifstream(COLLIMATE_SOURCE_DIR "/tests/golden/families.json"));
  ASSERT_EQ(cases.size(), 52U);
  for (const json& one : cases) {
    const auto wanted = one.at("logits").get<std::vector<float>>();
    const std::vector<float> got = logits_of(one.at("config"), one.at("ids"));
    ASSERT_EQ(got.size(), wanted.size()) << one.at("name");
    float worst = 0;
    for (size_t i = 0; i < got.size(); ++i) worst = std::max(worst, std::abs(got[i] - wanted[i]));
    EXPECT_LT(worst, 2e-5F) << one.at("name");
  }
}

}  // namespace
}  // namespace collimate::golden
