// Logits and greedy tokens of published models against references computed by independent programs.
#include <fstream>
#include <nlohmann/json.hpp>

#include "collimate/base/at.h"
#include "tests/support/model/tiny_weights.h"

namespace collimate::model {
namespace {

using nlohmann::json;
using testing::pack;
using testing::to_vector;

struct Greedy {
  std::vector<int32_t> ids;
  std::vector<float> logits;        // of each of the ids
  std::vector<float> first_logits;  // [V], after the prompt
};

int32_t argmax(const std::vector<float>& logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// Prefill of the prompt, then `count` tokens through the cache.
Greedy decode(Model& model, const std::vector<int32_t>& prompt, size_t count) {
  KvCache cache(model.shape(), kv_type(model.weights().options().compute), 32);
  std::vector<int32_t> table(32);
  std::iota(table.rbegin(), table.rend(), 0);
  TokenBatch step = pack({prompt});
  Greedy result;
  while (result.ids.size() < count) {
    const at::Tensor hidden = model.forward_cached(step, cache, {&table, 1});
    const auto logits = to_vector(model.logits(hidden.slice(0, hidden.size(0) - 1)));
    if (result.ids.empty()) result.first_logits = logits;
    result.ids.push_back(argmax(logits));
    result.logits.push_back(base::at(logits, result.ids.back()));
    const auto position = static_cast<int32_t>(prompt.size() + result.ids.size() - 1);
    step = {{result.ids.back()}, {position}, {0, 1}};
  }
  return result;
}

json read(const std::string& path) {
  std::ifstream file(path);
  return json::parse(file);
}

// A list of {prompt_ids, greedy_ids, next_logits_first8} and, where it was computed, greedy_logits.
void expect_greedy(const std::string& directory, const std::string& reference, double tolerance) {
  Model model(load_huggingface(directory, "", {}, {}), {});
  for (const json& one : read(reference)) {
    const auto expected = one["greedy_ids"].get<std::vector<int32_t>>();
    const Greedy greedy = decode(model, one["prompt_ids"].get<std::vector<int32_t>>(), expected.size());
    EXPECT_EQ(greedy.ids, expected);
    for (size_t i = 0; i < 8; ++i)
      EXPECT_NEAR(greedy.first_logits[i], one["next_logits_first8"][i].get<double>(), tolerance) << i;
    if (!one.contains("greedy_logits")) continue;
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(greedy.logits[i], one["greedy_logits"][i].get<double>(), tolerance) << "token " << i;
  }
}

// Written by tests/golden/make_small.py; they are in the repository.
TEST(SmallGolden, GreedyOfEachFamily) {
  for (const char* name : {"tiny", "tiny-gpt2"}) {
    SCOPED_TRACE(name);
    const std::string directory = COLLIMATE_SOURCE_DIR "/tests/golden/small/models/" + std::string(name);
    expect_greedy(directory, directory + "/greedy_reference.json", 2e-5);
  }
}

class Golden : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(testing::shared_models())) GTEST_SKIP() << "no " << testing::shared_models();
  }
};

TEST_F(Golden, Stories260kLlama) {
  const std::string directory = testing::shared_models() + "/stories260k-llama";
  const json reference = read(directory + "/greedy_reference.json");
  Model model(load_huggingface(directory + "/hf-llama", "lm", {}, {}), {});
  const auto expected = reference["greedy_from_bos_ids"].get<std::vector<int32_t>>();
  const Greedy greedy = decode(model, {1}, expected.size());
  EXPECT_EQ(greedy.ids, expected);
  for (size_t i = 0; i < 16; ++i)
    EXPECT_NEAR(greedy.first_logits[i], reference["logits_at_bos_first16"][i].get<double>(), 1e-4) << i;
}

TEST_F(Golden, Chat3mGpt2) {
  const std::string directory = testing::shared_models() + "/chat-3m-gptneo";
  for (const char* files : {"/hf-gpt2", "/hf-gpt-neo"})
    expect_greedy(directory + files, directory + "/greedy_reference.json", 2e-4);
}

TEST_F(Golden, BfloatFileWithItsOwnHead) {
  auto weights = load_huggingface(testing::shared_models() + "/verl-arith-llama-random", "", {}, {});
  EXPECT_GE(weights->index_of("lm_head.weight"), 0);
  Model model(weights, {});
  const auto logits = to_vector(model.logits(model.forward(pack({{4, 5, 6, 14, 7}}))));
  EXPECT_EQ(logits.size(), 5U * 16);
  for (const float value : logits) EXPECT_TRUE(std::isfinite(value));
}

}  // namespace
}  // namespace collimate::model
