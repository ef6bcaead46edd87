// Advantages of each kind against an implementation that is not ours (make_advantages.py).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "collimate/base/config.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/rlhf/advantage/list.h"

namespace collimate::golden {
namespace {

using batch::Batch;
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
  return out;
}

void expect_near(const Batch& got, const Key<float>& key, const json& wanted, const std::string& what) {
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
      rlhf::AlgorithmOptions options;
      base::apply(one.at("options"), "algorithm", options);
      const Batch got = entry.add(rows, options);
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
