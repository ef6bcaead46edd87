// The small goldens of this repository, and those beside it where they are; and that a wrong number is noticed.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "collimate/base/error.h"
#include "tests/golden/changed.h"
#include "tests/support/shared_data.h"

namespace collimate::golden {
namespace {

TEST(SmallGoldens, AreWithin) {
  const auto outcomes = replay_folder(kSmallGoldens);
  expect_within(outcomes);
  size_t recorded = 0;  // of a file its variants or cases, or the file
  for (const auto& entry : std::filesystem::directory_iterator(kSmallGoldens)) {
    if (entry.path().extension() != ".json") continue;
    const json golden = read_small(entry.path().stem().string());
    recorded += golden.contains("variants") ? golden["variants"].size()
                : golden.contains("cases")  ? golden["cases"].size()
                                            : 1;
  }
  EXPECT_EQ(outcomes.size(), recorded);
  EXPECT_GE(recorded, 55U);
  EXPECT_FALSE(totals_of(outcomes).failed);
}

TEST(SmallGoldens, AWrongLossIsOutside) {
  json golden = read_small("sft_tiny");
  const double loss = golden["steps"][0]["micro"][0]["loss"];
  golden["steps"][0]["micro"][0]["loss"] = loss * 1.0001;
  const auto outcomes = replay_steps("changed", golden, ModelShelf(kSmallGoldens));
  EXPECT_EQ(outcomes[0].verdict, Verdict::kOutside);
  EXPECT_NE(outcomes[0].text.find("loss, step 1.1"), std::string::npos) << outcomes[0].text;
  EXPECT_TRUE(totals_of(outcomes).failed);
}

TEST(SmallGoldens, AWrongGradientNormIsOutside) {
  json golden = read_small("dpo_variants_tiny");
  const double norm = golden["variants"]["ipo"]["steps"][1]["grad_norm"];
  golden["variants"]["ipo"]["steps"][1]["grad_norm"] = norm * 1.01;
  int outside = 0;
  for (const Outcome& outcome : replay_dpo_variants("changed", golden, ModelShelf(kSmallGoldens)))
    outside += outcome.verdict == Verdict::kOutside;
  EXPECT_EQ(outside, 1);
}

TEST(SmallGoldens, AnUnknownLossIsUnknownAndAnUnknownOptionOfAKnownOneFails) {
  json golden = read_small("dpo_variants_tiny");
  golden["variants"] = {{"unheard_of", golden["variants"]["sigmoid"]}};
  const auto unknown = replay_dpo_variants("changed", golden, ModelShelf(kSmallGoldens));
  EXPECT_EQ(unknown[0].verdict, Verdict::kUnknown);
  EXPECT_FALSE(totals_of(unknown).failed);
  golden["variants"] = {{"sigmoid", golden["variants"]["unheard_of"]}};
  golden["hyper"]["rpo_alpha"] = 0.5;
  const auto required = replay_dpo_variants("changed", golden, ModelShelf(kSmallGoldens));
  EXPECT_EQ(required[0].verdict, Verdict::kUnknown);
  EXPECT_TRUE(totals_of(required).failed);
}

// A loss that TRL lacks is recorded as of no trainer of TRL, and computed on the rows that the record names.
TEST(ChangedGoldens, ALossOfOurOwnIsReplayedByItsRows) {
  const auto as = [](const char* trainer) {
    return replay_changed("sft_tiny", [&](json& golden) { golden["trainer"] = trainer; });
  };
  expect_within(as("own completions"));
  EXPECT_EQ(as("own letters")[0].verdict, Verdict::kUnknown);
}

TEST(ChangedGoldens, AChangedNumberOfARunIsOutside) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> places = {
      {"dpo_tiny",
       {"/steps/0/micro/1/loss", "/steps/2/grad_norm", "/steps/3/metrics/rewards~1chosen",
        "/steps/3/metrics/rewards~1accuracies", "/steps/1/lr", "/final/params/model.norm.weight/l2"}},
      {"grpo_e2e_dapo_beta0_tiny",
       {"/steps/0/loss", "/steps/0/batch/num_items_in_batch", "/steps/1/batch/advantages/0",
        "/steps/1/batch/old_per_token_logps/0/0", "/steps/1/metrics/clip_ratio~1low_mean", "/steps/2/grad_norm",
        "/hyper/epsilon_high", "/final/params/model.embed_tokens.weight/sum"}},
      {"grpo_e2e_kl_tiny",
       {"/steps/4/loss", "/steps/5/metrics/kl", "/steps/3/grad_norm", "/steps/1/lr", "/hyper/beta",
        "/hyper/temperature"}},
      {"sft_gpt2_tiny",
       {"/steps/0/micro/0/loss", "/steps/1/grad_norm", "/hyper/weight_decay",
        "/params_before/transformer.h.0.mlp.c_fc.weight/first/1", "/final/params/transformer.wpe.weight/l2",
        "/final/params/transformer.h.1.attn.c_attn.bias/first/0", "/final/logprobs_of_next_token_first_batch/1/0"}}};
  for (const auto& [file, pointers] : places) {
    for (const std::string& pointer : pointers) {
      const auto outcomes = replay_changed(file, [at = json::json_pointer(pointer)](json& golden) {
        golden.at(at) = golden.at(at).get<double>() * 1.03;
      });
      EXPECT_EQ(outcomes[0].verdict, Verdict::kOutside) << file << pointer << ": " << line_of(outcomes[0]);
    }
  }
}

TEST(ChangedGoldens, OptionsAtTheirDefaultMayBeLeftOut) {
  expect_within(replay_changed("dpo_variants_tiny", [](json& golden) {
    for (const char* key : {"beta", "label_smoothing", "weight_decay", "max_grad_norm", "adam_beta1"})
      golden["hyper"].erase(key);
  }));
  expect_within(replay_changed("sft_tiny", [](json& golden) { golden["hyper"]["loss_type"] = "chunked_nll"; }));
  expect_within(replay_changed("rm_tiny", [](json& golden) {
    golden["hyper"].update({{"label_smoothing_factor", 0.0}, {"entropy_target", 0.2}, {"packing", false}});
  }));
}

TEST(ChangedGoldens, EveryConstantOfALossMovesItOrIsRefused) {
  const std::vector<std::tuple<std::string, std::string, json>> changes = {
      {"sft_tiny", "loss_type", "dft"},
      {"sft_tiny", "label_smoothing_factor", 0.1},
      {"sft_tiny", "neftune_noise_alpha", 5},
      {"sft_tiny", "optim", "adamw_torch_8bit"},
      {"sft_tiny", "optim_args", "beta1=0.5"},
      {"rm_tiny", "center_rewards_coefficient", 0.5},
      {"dpo_variants_tiny", "beta", 0.5},
      {"dpo_variants_tiny", "beta", 0.0},
      {"dpo_variants_tiny", "ld_alpha", 0.5},
      {"dpo_variants_tiny", "use_weighting", true},
      {"dpo_variants_tiny", "sync_ref_model", true},
      {"dpo_variants_tiny", "ref", "another model"},
      {"grpo_loss_variants_tiny", "temperature", 0.7},
      {"grpo_loss_variants_tiny", "importance_sampling_level", "sequence"},
      {"grpo_loss_variants_tiny", "importance_sampling_level", "word"},
      {"grpo_loss_variants_tiny", "use_adaptive_entropy", true},
      {"ppo_e2e_tiny", "cliprange", 0.01},
      {"ppo_e2e_tiny", "cliprange_value", 0},
      {"ppo_e2e_tiny", "kl_estimator", "k4"},
      {"ppo_e2e_tiny", "lam", 0.5},
      {"ppo_e2e_tiny", "vf_coef", 0.2},
      {"ppo_e2e_tiny", "whiten_rewards", true},
      {"ppo_e2e_tiny", "missing_eos_penalty", 1.0}};
  for (const auto& [file, name, value] : changes) {
    const auto outcomes =
        replay_changed(file, [&, key = name, to = value](json& golden) { golden["hyper"][key] = to; });
    const bool noticed = std::any_of(outcomes.begin(), outcomes.end(),
                                     [](const Outcome& outcome) { return outcome.verdict != Verdict::kWithin; });
    EXPECT_TRUE(noticed) << file << " with " << name << " = " << value.dump();
  }
}

TEST(ChangedGoldens, AnOptionThatNothingKnowsIsDoubtedOnlyWhereNumbersDiffer) {
  const auto change = [](double factor) {
    return [factor](json& golden) {
      golden["hyper"]["unheard_of"] = 3;
      golden["steps"][0]["micro"][0]["loss"] = factor * golden["steps"][0]["micro"][0]["loss"].get<double>();
    };
  };
  EXPECT_EQ(replay_changed("sft_tiny", change(1.0))[0].verdict, Verdict::kWithin);
  const auto doubted = replay_changed("sft_tiny", change(1.01));
  EXPECT_EQ(doubted[0].verdict, Verdict::kUnknown);
  EXPECT_NE(doubted[0].text.find("not known here: unheard_of"), std::string::npos) << doubted[0].text;
  EXPECT_TRUE(totals_of(doubted).failed);
}

TEST(ChangedGoldens, MasksOfToolsAndOfTruncatedSamplesAreRead) {
  expect_within(replay_changed("grpo_loss_variants_tiny", [](json& golden) {
    golden["inputs"]["tool_mask"] = golden["inputs"]["completion_mask"];
  }));
  for (const char* name : {"tool_mask", "completion_mask"})
    for (const Outcome& outcome : replay_changed("grpo_loss_variants_tiny", [&](json& golden) {
           json mask = golden["inputs"]["completion_mask"];
           for (json& place : mask[0]) place = 0;
           golden["inputs"][name] = mask;
           golden["variants"] = {{"grpo", golden["variants"].begin().value()}};
         }))
      EXPECT_TRUE(outcome.verdict == Verdict::kOutside && !outcome.text.starts_with("error")) << line_of(outcome);
}

// Where all ratios are 1 those of tokens and of sequences give the same loss and gradient; TRL's share of what cispo
// caps, above epsilon_high where the advantage is positive, is 6 of 12 tokens or 2 of 3 rows.
TEST(ChangedGoldens, WhatCispoCapsIsComparedWhereTrlCountsTokens) {
  json golden = read_small("grpo_loss_variants_tiny");
  golden["inputs"].erase("old_per_token_logps");
  json variant = golden["variants"]["cispo|beta=0.0"];
  variant.erase("grad_l2");
  variant["over"]["epsilon_high"] = 0.5;
  golden["variants"] = {{"cispo|beta=0.0", variant}};
  for (const char* number : {"loss", "grad_norm"}) {
    const std::string pointer = std::string("/variants/cispo|beta=0.0/") + number;
    golden[json::json_pointer(pointer)] = ours_at(golden, pointer);
  }
  const auto replay = [&](const char* level, double share) {
    json changed = golden;
    json& one = changed["variants"]["cispo|beta=0.0"];
    one["over"]["importance_sampling_level"] = level;
    one["metrics"] = {{"cispo_clip_ratio", share}};
    return replay_small(changed).at(0);
  };
  expect_within({replay("token", 6.0 / 12), replay("sequence", 2.0 / 3)});
  EXPECT_EQ(replay("token", 2.0 / 3).verdict, Verdict::kOutside);
}

// This is so when every completion of a micro-batch is cut at its limit and TRL masks them: loss and gradient are 0.
TEST(ChangedGoldens, AMicroBatchMayHaveNothingToTrain) {
  const auto outcomes = replay_changed("grpo_loss_variants_tiny", [](json& golden) {
    for (json& row : golden["inputs"]["completion_mask"])
      for (json& place : row) place = 0;
    json& variant = golden["variants"]["grpo|beta=0.0"];
    variant["loss"] = variant["grad_norm"] = 0.0;
    for (json& norm : variant["grad_l2"]) norm = 0.0;
    golden["variants"] = {{"grpo|beta=0.0", variant}};
  });
  expect_within(outcomes);
}

// Two micro-batches with the same rows are an update like one with them once.
TEST(ChangedGoldens, AnUpdateMayBeOfSeveralMicroBatches) {
  const auto twice = [](const json& list) {
    json out = json::array();
    for (const json& one : list) out.insert(out.end(), {one, one});
    return out;
  };
  expect_within(replay_changed("dpo_variants_tiny", [&](json& golden) {
    golden["batches"] = twice(golden["batches"]);
    golden["hyper"]["gradient_accumulation_steps"] = 2;
  }));
  for (const bool with_norms : {false, true})
    expect_within(replay_changed("ppo_e2e_tiny", [&](json& golden) {
      json micros = twice(golden["updates"][0]["micro"]);
      for (size_t m = 0; m < micros.size(); m += 2) {
        const double norm = micros[m]["grad_norm"];
        micros[m]["grad_norm"] = with_norms ? json(norm / 2) : json();
      }
      golden["updates"][0]["micro"] = micros;
      golden["hyper"]["gradient_accumulation_steps"] = 2;
    }));
  const auto short_of =
      replay_changed("dpo_variants_tiny", [](json& golden) { golden["hyper"]["gradient_accumulation_steps"] = 2; });
  EXPECT_EQ(line_of(short_of[0]),
            "outside changed: error: [steps[1]] expected a batch for each of its micro-batches, got 2 batches in all");
}

TEST(SmallGoldens, AMissingModelOrFileIsAnError) {
  const auto outcomes = replay_file(kSmallGoldens + "/sft_tiny.json", ModelShelf("/nowhere"));
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
