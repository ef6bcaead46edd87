// Goldens that cannot be replayed: one line each, which names the place, and the rest goes on.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "tests/golden/place.h"
#include "tests/golden/replay.h"
#include "tests/support/small_task.h"

namespace collimate::golden {
namespace {

const std::string kSmall = COLLIMATE_SOURCE_DIR "/tests/golden/small";

json read(const std::string& file) { return json::parse(std::ifstream(kSmall + "/" + file + ".json")); }

// Gives the report's line of a small golden with a part replaced, or left out where `value` is discarded.
std::string line(const std::string& file, const std::string& pointer, const json& value) {
  json golden = read(file);
  const json::json_pointer at(pointer);
  json& parent = golden.at(at.parent_pointer());
  if (value.is_discarded() && parent.is_array())
    parent.erase(std::stoul(at.back()));
  else if (value.is_discarded())
    parent.erase(at.back());
  else
    golden[at] = value;
  const auto outcomes = replay_golden(file, golden, ModelShelf(kSmall));
  EXPECT_EQ(outcomes.size(), 1U) << pointer;
  return line_of(outcomes[0]);
}

const json kGone(json::value_t::discarded);

TEST(MalformedGoldens, AreOneLineThatNamesThePlace) {
  const std::vector<std::tuple<std::string, std::string, json, std::string>> cases = {
      {"sft_tiny", "/steps/0/micro", json::array(), "[steps[0].micro] expected one element or more, got 0"},
      {"sft_tiny", "/steps/1/micro/0/batch", kGone, "[steps[1].micro[0]] expected \"batch\", got none"},
      {"sft_tiny", "/steps/0/lr", "fast", "[steps[0].lr] expected a number, got \"fast\""},
      {"sft_tiny", "/hyper", "none", "[hyper] expected an object, got \"none\""},
      {"sft_tiny", "/hyper/model", kGone, "[hyper] expected \"model\", got none"},
      {"sft_tiny", "/steps/0/micro/0/batch/labels", kGone,
       "[steps[0].micro[0].batch] expected \"completion_mask\", got none"},
      {"dpo_tiny", "/steps/0/micro/0/batch/input_ids/1/0", 16,
       "[steps[0].micro[0].batch.input_ids[1][0]] expected an integer from 0 to 15, got 16"},
      {"kto_tiny", "/steps/0/micro/0/batch/label", json::array({true}),
       "[steps[0].micro[0].batch.label] expected 4 elements, got 1"},
      {"grpo_e2e_kl_tiny", "/steps/0/batch/prompt_mask", kGone, "[steps[0].batch] expected \"prompt_mask\", got none"},
      {"grpo_e2e_kl_tiny", "/steps/2/batch/advantages/0", kGone,
       "[steps[2].batch.advantages] expected 6 elements, got 5"},
      {"grpo_loss_variants_tiny", "/inputs/completion_mask/0", json::array({1}),
       "[inputs.completion_mask[0]] expected 6 elements, got 1"},
      {"grpo_loss_variants_tiny", "/variants", json::object(), "[variants] expected one variant or more, got none"},
      {"dpo_variants_tiny", "/variants/ipo/steps/0/lr", kGone, "[variants.ipo.steps[0]] expected \"lr\", got none"},
      {"ppo_e2e_tiny", "/updates/0/context_length", 9,
       "[updates[0].context_length] expected an integer from 0 to 6, got 9"},
      {"ppo_arrays_tiny", "/inputs/values", nullptr, "[inputs] expected \"values\", got none"}};
  for (const auto& [file, pointer, value, text] : cases)
    EXPECT_EQ(line(file, pointer, value), "outside " + file + ": error: " + text) << pointer;
}

TEST(MalformedGoldens, ANullIsADefault) {
  for (const auto& [file, pointer] :
       std::vector<std::pair<std::string, std::string>>{{"rm_tiny", "/hyper/pad"},
                                                        {"grpo_e2e_kl_tiny", "/steps/1/metrics"},
                                                        {"grpo_e2e_kl_tiny", "/steps/1/metrics/kl"},
                                                        {"grpo_e2e_kl_tiny", "/final"},
                                                        {"grpo_e2e_kl_tiny", "/steps/0/batch/num_items_in_batch"},
                                                        {"sft_tiny", "/steps/0/micro/0/batch/completion_mask"}})
    EXPECT_TRUE(line(file, pointer, nullptr).starts_with("within")) << line(file, pointer, nullptr);
}

TEST(MalformedGoldens, FilesThatAreNoGoldensDoNotEndTheReplay) {
  const test::Scratch folder("goldens");
  const auto write = [&](const char* name, const std::string& text) { test::write_text(folder.path() / name, text); };
  write("a.json", "[1, 2]");
  write("b.json", "{\"a\":");
  write("c.json", "{\"steps\": [], \"trainer\": null}");
  write("d.json", "{\"trainer\": \"trl.RLOOTrainer\", \"steps\": [{\"batch\": {}}]}");
  const auto outcomes = replay_folder(folder.path().string());
  ASSERT_EQ(outcomes.size(), 4U);
  EXPECT_EQ(line_of(outcomes[0]), "outside a: error: [the file] expected an object, got array of 2");
  EXPECT_TRUE(line_of(outcomes[1]).starts_with("outside b: error: [b.json] expected")) << line_of(outcomes[1]);
  EXPECT_EQ(line_of(outcomes[2]), "unknown c: trainer without a name");
  EXPECT_EQ(line_of(outcomes[3]), "unknown d: trainer RLOOTrainer");
}

TEST(PythonJson, HasNumbersThatJsonHasNot) {
  const json value = parse_python(R"({"a": [NaN, -Infinity, Infinity, "NaN \" NaN"]})", "file");
  EXPECT_TRUE(std::isnan(value["a"][0].get<double>()));
  EXPECT_EQ(value["a"][1].get<double>(), -INFINITY);
  EXPECT_EQ(value["a"][2].get<double>(), INFINITY);
  EXPECT_EQ(value["a"][3], "NaN \" NaN");
}

}  // namespace
}  // namespace collimate::golden
