// Advantages of each kind, as the module of recipes computes them, against an implementation that is not ours
// (make_advantages.py).
#include "collimate/rlhf/modules/advantages.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "collimate/batch/standard_keys.h"
#include "collimate/generate/service.h"
#include "collimate/rlhf/types/baseline_sample.h"
#include "collimate/rlhf/types/reward_parts.h"

namespace collimate::golden {
namespace {

using batch::Batch;
using generate::Finish;
using nlohmann::json;

template <class T>
std::vector<std::vector<T>> ragged(const json& rows, const std::string& name) {
  return rows.at(name).get<std::vector<std::vector<T>>>();
}

Batch batch_of(const json& rows) {
  Batch out;
  out.set(batch::kPromptUid, rows.at("prompt_uid").get<std::vector<int64_t>>());
  out.set(batch::kReward, rows.at("reward").get<std::vector<float>>());
  out.set_ragged(batch::kTrainable, ragged<uint8_t>(rows, "trainable"));
  out.set_ragged(batch::kStep, ragged<int32_t>(rows, "step"));
  out.set_ragged(batch::kStepRewards, ragged<float>(rows, "step_rewards"));
  out.set_ragged(batch::kLogProbs, ragged<float>(rows, "log_probs"));
  out.set_ragged(batch::kReferenceLogProbs, ragged<float>(rows, "reference_log_probs"));
  out.set_ragged(batch::kValues, ragged<float>(rows, "values"));
  out.set(rlhf::kBaselineSample, rows.at("baseline_sample").get<std::vector<int32_t>>());
  out.set(batch::kFinish, std::vector<int32_t>(rows.at("reward").size(), static_cast<int32_t>(Finish::kEos)));
  std::vector<std::vector<float>> parts;
  for (const json& row : rows.at("reward_parts")) {
    parts.emplace_back();
    for (const json& part : row) parts.back().push_back(part.is_null() ? std::nanf("") : part.get<float>());
  }
  out.set_ragged(rlhf::kRewardParts, parts);
  out.set_ragged(rlhf::kRewardWeights, ragged<float>(rows, "reward_weights"));
  return out;
}

void expect_near(const Batch& got, const Key<float>& key, const json& wanted, const std::string& what) {
  ASSERT_EQ(static_cast<size_t>(got.rows()), wanted.size()) << what;
  for (int64_t r = 0; r < got.rows(); ++r) {
    const auto row = got.row(key, r);
    const auto numbers = wanted.at(static_cast<size_t>(r)).get<std::vector<double>>();
    ASSERT_EQ(row.size(), numbers.size()) << what;
    for (size_t t = 0; t < numbers.size(); ++t) EXPECT_NEAR(row[t], numbers[t], 3e-6) << what << " " << r << " " << t;
  }
}

TEST(Advantages, AreThoseOfAnotherImplementation) {
  const json golden = json::parse(std::ifstream(COLLIMATE_SOURCE_DIR "/tests/golden/advantages.json"));
  const Batch rows = batch_of(golden.at("rows"));
  std::set<std::string> computed;
  for (const json& one : golden.at("cases")) {
    const std::string name = one.at("advantage"), what = name + " " + one.at("options").dump();
    for (const rlhf::AdvantageEntry& entry : rlhf::advantages()) {
      if (entry.name != name) continue;
      const Batch got = rlhf::AdvantageModule(entry, one.at("options")).call("advantages", rows, {});
      computed.insert(name);
      expect_near(got, batch::kAdvantages, one.at("advantages"), what);
      if (one.contains("returns")) expect_near(got, batch::kReturns, one["returns"], what);
    }
  }
  const std::vector<std::string> listed = rlhf::advantage_names();
  EXPECT_EQ(computed, std::set<std::string>(listed.begin(), listed.end()));
}

}  // namespace
}  // namespace collimate::golden
