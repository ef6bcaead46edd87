// The small goldens of this repository, and those beside it where they are; and that a wrong number is noticed.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <fstream>

#include "collimate/base/error.h"
#include "tests/golden/replay.h"
#include "tests/support/shared_data.h"

namespace collimate::golden {
namespace {

const std::string kSmall = COLLIMATE_SOURCE_DIR "/tests/golden/small";

// As in the program: the tensors are too small to be worth a second thread.
[[maybe_unused]] const bool kOneThread = (at::set_num_threads(1), true);

json read(const std::string& path) { return json::parse(std::ifstream(path)); }

void expect_within(const std::vector<Outcome>& outcomes) {
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.verdict, Verdict::kWithin) << line_of(outcome);
}

TEST(SmallGoldens, AreWithin) {
  const auto outcomes = replay_folder(kSmall);
  expect_within(outcomes);
  EXPECT_EQ(outcomes.size(), 1U + 3U + 1U + 11U + 2U + 1U);  // sft, dpo, reward, policy, arrays, ppo
  EXPECT_FALSE(totals_of(outcomes).failed);
}

TEST(SmallGoldens, AWrongLossIsOutside) {
  json golden = read(kSmall + "/sft_tiny.json");
  const double loss = golden["steps"][0]["micro"][0]["loss"];
  golden["steps"][0]["micro"][0]["loss"] = loss * 1.0001;
  const auto outcomes = replay_steps("changed", golden, ModelShelf(kSmall));
  EXPECT_EQ(outcomes[0].verdict, Verdict::kOutside);
  EXPECT_NE(outcomes[0].text.find("loss, step 1.1"), std::string::npos) << outcomes[0].text;
  EXPECT_TRUE(totals_of(outcomes).failed);
}

TEST(SmallGoldens, AWrongGradientNormIsOutside) {
  json golden = read(kSmall + "/dpo_variants_tiny.json");
  const double norm = golden["variants"]["ipo"]["steps"][1]["grad_norm"];
  golden["variants"]["ipo"]["steps"][1]["grad_norm"] = norm * 1.01;
  int outside = 0;
  for (const Outcome& outcome : replay_dpo_variants("changed", golden, ModelShelf(kSmall)))
    outside += outcome.verdict == Verdict::kOutside;
  EXPECT_EQ(outside, 1);
}

TEST(SmallGoldens, AnUnknownLossIsUnknownAndAnUnknownOptionOfAKnownOneFails) {
  json golden = read(kSmall + "/dpo_variants_tiny.json");
  golden["variants"] = {{"aot", golden["variants"]["sigmoid"]}};
  const auto unknown = replay_dpo_variants("changed", golden, ModelShelf(kSmall));
  EXPECT_EQ(unknown[0].verdict, Verdict::kUnknown);
  EXPECT_FALSE(totals_of(unknown).failed);
  golden["variants"] = {{"sigmoid", golden["variants"]["aot"]}};
  golden["hyper"]["use_weighting"] = true;
  const auto required = replay_dpo_variants("changed", golden, ModelShelf(kSmall));
  EXPECT_EQ(required[0].verdict, Verdict::kUnknown);
  EXPECT_TRUE(totals_of(required).failed);
}

TEST(SmallGoldens, AMissingModelOrFileIsAnError) {
  const auto outcomes = replay_file(kSmall + "/sft_tiny.json", ModelShelf("/nowhere"));
  EXPECT_EQ(outcomes[0].verdict, Verdict::kOutside);
  EXPECT_NE(outcomes[0].text.find("[golden] expected model \"tiny\""), std::string::npos) << outcomes[0].text;
  EXPECT_THROW(replay_folder("/nowhere"), base::InputError);
}

TEST(SharedGoldens, AreWithin) {
  const std::string folder = test::shared_path("goldens");
  if (folder.empty()) GTEST_SKIP() << "no shared goldens beside the repository";
  expect_within(replay_folder(folder));
}

}  // namespace
}  // namespace collimate::golden
