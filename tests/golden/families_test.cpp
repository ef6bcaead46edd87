// Logits of each model family and kind of RoPE against those of Hugging Face transformers (make_families.py).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "collimate/model/model.h"
#include "tests/support/model/pack_sequences.h"

namespace collimate::golden {
namespace {

using nlohmann::json;

// The formula of make_families.py.
void fill(model::Weights& weights) {
  for (size_t p = 0; p < weights.params().size(); ++p) {
    const shape::ParamSpec& spec = weights.params()[p];
    const double phase = std::accumulate(spec.name.begin(), spec.name.end(), 0.0);
    const tensor::HostEdit values = weights.edit(static_cast<int>(p));
    const int64_t width = spec.count() / spec.sizes[0];
    for (int64_t i = 0; i < spec.count(); ++i) {
      const int64_t in_file = spec.file_row(i / width) * width + i % width;
      const double wave = 0.4 * std::sin(0.7311 * static_cast<double>(in_file) + phase);
      values[i] = static_cast<float>(spec.name.ends_with("norm.weight") ? 1 + wave / 4 : wave);
    }
  }
  weights.commit();
}

std::vector<float> logits_of(const json& config, const std::vector<int32_t>& ids) {
  auto weights = std::make_shared<model::Weights>(shape::parse_model_shape(config, "families.json"),
                                                  model::WeightsOptions{}, tensor::Exec{});
  fill(*weights);
  model::Model model(weights, {});
  const std::span<const int32_t> sequence = ids;
  const at::Tensor logits = model.logits(model.forward(model::pack_sequences({&sequence, 1})));
  return {logits.const_data_ptr<float>(), logits.const_data_ptr<float>() + logits.numel()};
}

TEST(Families, LogitsAreThoseOfAnotherImplementation) {
  const json cases = json::parse(std::ifstream(COLLIMATE_SOURCE_DIR "/tests/golden/families.json"));
  ASSERT_EQ(cases.size(), 28U);
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
