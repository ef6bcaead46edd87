// Adapters that PEFT wrote, against logits of the models that PEFT merged them into (make_peft.py).
#include "collimate/model/peft.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "collimate/model/peft_adapters.h"
#include "tests/golden/peft_files.h"

namespace collimate::golden {
namespace {

using nlohmann::json;

class PeftGolden : public model::testing::InDirectory {
 protected:
  PeftGolden() : cases_(json::parse(std::ifstream(COLLIMATE_SOURCE_DIR "/tests/golden/peft.json"))) {}

  std::string adapter() const { return directory_ + "/adapter"; }

  // A case's model, and beside it its adapters.
  void write(const json& one) const {
    model::save_huggingface(*family_weights(one.at("config")), directory_ + "/base");
    write_adapters(adapter(), directory_ + "/base", one);
  }

  // How far the logits of the adapters' directory are from those of the case.
  float worst(const json& one, const model::WeightsOptions& options) const {
    return furthest(logits_of(adapter(), one, options), one);
  }

  json cases_;
};

TEST_F(PeftGolden, MergedLogitsAreThoseOfAnotherImplementation) {
  for (const json& one : cases_) {
    write(one);
    for (const bool mapped : {false, true}) EXPECT_LT(worst(one, {.mapped = mapped}), 3e-5F) << one.at("name");
  }
}

// Adapters of the blocks' linear layers can also stay beside the model to be trained on, are written as they were, and
// give the same again.
TEST_F(PeftGolden, SoAreThoseOfAdaptersThatAreTrainedOn) {
  const std::set<std::string> merged_alone = {"a head of its own",
                                              "an adapted head",
                                              "fused experts",
                                              "one parameter of fused experts, its router and attention",
                                              "gpt-oss's experts of one block, its router and attention",
                                              "one parameter of gpt-oss's experts",
                                              "experts of Granite's stacks",
                                              "fused experts of which ranks go by pattern"};
  size_t trained = 0;
  for (const json& one : cases_) {
    if (merged_alone.contains(one.at("name"))) continue;
    write(one);
    const model::WeightsOptions options{.trained = true, .lora = model::PeftAdapters(adapter()).options()};
    EXPECT_LT(worst(one, options), 3e-5F) << one.at("name");
    const auto weights = model::load_huggingface(adapter(), "lm", options, {});
    EXPECT_EQ(weights->params().size() - weights->own_params(), one.at("tensors").size());
    model::save_peft(*weights, adapter(), directory_ + "/base");
    const model::WeightsOptions again{.trained = true, .lora = model::PeftAdapters(adapter()).options()};
    EXPECT_EQ(model::load_huggingface(adapter(), "lm", again, {})->checksum(), weights->checksum());
    ++trained;
  }
  EXPECT_EQ(trained + merged_alone.size(), cases_.size());
}

}  // namespace
}  // namespace collimate::golden
