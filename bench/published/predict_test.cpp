#include "bench/published/predict.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/published/fit.h"
#include "collimate/plan/inputs/backends.h"

namespace collimate::plan::published {
namespace {

using nlohmann::json;

// A run of PPO as many papers have it, with changes.
Scenario run_of(const json& changes) {
  json run = json::parse(R"({
    "backend": "verl", "gpu": {"kind": "A100-80", "per_node": 0, "network_bits": 0}, "devices": 16,
    "models": {"actor": "llama2-7b", "critic": "llama2-7b", "ref": "llama2-7b", "reward": "llama2-7b"},
    "prompt": 1024, "completion": 1024, "mean_completion": 0, "completion_cap": 0, "short_answers": false,
    "rows": 1024, "updates": 8, "sharing": "colocated", "train_devices": 0, "generate_devices": 0, "places": {},
    "staleness": 0, "continuous": false, "layouts": {}, "searched": false, "sharded_training": false,
    "recomputes_log_probs": false, "zero3": false, "offload": false, "recompute": false, "fp8": false,
    "generations": 1, "rewards": 1, "train_sets": 1, "lora_rank": 0, "micro_batch": 0, "unfused": false,
    "call_rows": 0, "call_tokens": 0})");
  if (changes.is_object()) run.update(changes);  // {} is null
  return scenario_of(run, {});
}

Prediction predicted(const json& changes) {
  const Scenario run = run_of(changes);
  return predict(run, constants_of(run.backend));
}

double value(const Scenario& run, const json& measure) {
  const auto found = value_of(measure_of(measure, {}), run, predict(run, constants_of(run.backend)),
                              [](const std::string& name) { return constants_of(name); });
  return std::get<double>(found);
}

TEST(Runs, SizesFindTheirModel) {
  EXPECT_EQ(dense_outline(7)->name, "llama2-7b");
  EXPECT_EQ(dense_outline(6.7)->name, "opt-6.7b");
  EXPECT_EQ(dense_outline(34)->name, "codellama-34b");
  EXPECT_EQ(dense_outline(0.35)->name, "opt-350m");
  EXPECT_EQ(dense_outline(1000), nullptr);
}

TEST(Runs, GpusHaveTheNetworkThatIsGiven) {
  const auto network = [](double per_node, double bits) {
    return run_of({{"gpu", {{"kind", "A100-80"}, {"per_node", per_node}, {"network_bits", bits}}}})
        .gpu.network_bytes_per_second;
  };
  EXPECT_EQ(network(0, 0), 25e9);
  EXPECT_EQ(network(8, 800e9), 12.5e9);
  EXPECT_EQ(network(4, 200e9), 6.25e9);
}

// Where only a cap is given, models that reason use a share of it; others have their back end's mean.
TEST(Runs, LengthsOfWhichOnlyTheCapIsGiven) {
  const auto completion = [](double mean, double cap, bool short_answers) {
    return run_of({{"mean_completion", mean}, {"completion_cap", cap}, {"short_answers", short_answers}})
        .load.completion;
  };
  EXPECT_NEAR(completion(0, 8192, false).mean(), 0.34 * 8192, 1);
  EXPECT_NEAR(completion(0, 28672, true).mean(), constants_of("verl").mean_tokens, 1);
  // A mean that is given comes with the usual spread, whose software it is does not matter.
  const Lengths usual = Lengths::capped_mean(3000, constants_of("").length_sigma, 16384);
  EXPECT_NEAR(completion(3000, 16384, true).mean_square(), usual.mean_square(), 1);
}

// One run stated in other units has the same time behind it.
TEST(Measures, UnitsAgree) {
  const Scenario run = run_of({{"rows", 512}, {"prompt", 128}, {"completion", 896}});
  const auto time = [&](const json& more) {
    json measure = {{"kind", "time"}, {"parts", {"step"}}, {"unit", "h"}};
    measure.update(more);
    return value(run, measure);
  };
  const auto rate = [&](const char* unit) {
    return value(run, {{"kind", "throughput"}, {"parts", {"step"}}, {"unit", unit}});
  };
  const double seconds = time({{"unit", "s"}});
  EXPECT_NEAR(time({{"iterations", 1600}}), seconds * 1600 / 3600, 1e-9);
  EXPECT_NEAR(time({{"rows", 50000}}), seconds * 50000 / 512 / 3600, 1e-9);
  EXPECT_NEAR(time({{"rows", 50000}, {"unit", "min"}}), seconds * 50000 / 512 / 60, 1e-9);
  EXPECT_NEAR(time({{"unit", "ms"}}), seconds * 1000, 1e-6);
  EXPECT_NEAR(rate("samples/s"), 512 / seconds, 1e-9);
  EXPECT_NEAR(rate("tok/s/GPU"), 512 * 1024 / seconds / 16, 1e-6);
}

TEST(Measures, ASpeedUpIsOverTheBaselinesTime) {
  const Scenario run = run_of({});
  Measure measure{"speed-up", {}, "", "", 0, 0, std::make_shared<Scenario>(run_of({{"backend", "openrlhf"}}))};
  const Prediction mine = predict(run, constants_of("verl"));
  const auto constants = [](const std::string& name) { return constants_of(name); };
  const double theirs = predict(*measure.baseline, constants_of("openrlhf")).step_seconds;
  EXPECT_NEAR(std::get<double>(value_of(measure, run, mine, constants)), theirs / mine.step_seconds, 1e-12);
}

// Split trains side by side what colocation trains in turns, on half of the devices each.
TEST(Predict, SetsTakeTheirStagesSideBySide) {
  const json places = {
      {"actor", {8, 0}}, {"ref", {8, 0}}, {"generate", {8, 0}}, {"critic", {8, 1}}, {"reward", {8, 1}}};
  const Prediction split = predicted({{"sharing", "groups"}, {"places", places}}), all = predicted({});
  const double trains = std::max(split.seconds("train"), split.seconds("critic_train"));
  const double scores = std::max(split.seconds("ref"), split.seconds("reward") + split.seconds("critic"));
  EXPECT_NEAR(split.step_seconds, split.seconds("generate") + trains + scores + split.transfer_seconds, 1e-9);
  EXPECT_GT(split.seconds("train"), all.seconds("train"));
}

// An asynchronous run leaves nothing exposed of the shorter side, and always the transfer of weights.
TEST(Predict, WhatAnAsynchronousStepExposes) {
  const json beside = {{"models", {{"actor", "llama2-7b"}}},
                       {"devices", 32},
                       {"rows", 8192},
                       {"updates", 16},
                       {"gpu", {{"kind", "H20-96"}, {"per_node", 0}, {"network_bits", 0}}},
                       {"completion_cap", 8192},
                       {"prompt", 200},
                       {"sharded_training", true}};
  const auto at = [&](int train, double staleness) {
    json run = beside;
    run.update({{"sharing", "two_sides"},
                {"train_devices", train},
                {"generate_devices", 32 - train},
                {"staleness", staleness},
                {"continuous", staleness > 0}});
    return predicted(run);
  };
  const Prediction hidden = at(8, 1);
  EXPECT_LT(hidden.waiting_seconds, 0.1 * hidden.step_seconds);
  EXPECT_GT(at(8, 0).waiting_seconds, 10 * hidden.waiting_seconds);
  // Rows that are there in time are still waited for; trainers on devices of their own are as much faster as the back
  // end's constants say.
  const Constants c = constants_of("verl");
  EXPECT_EQ(hidden.waiting_seconds, c.queue_seconds);
  const double colocated = predicted(beside).seconds("train"), own = at(16, 1).seconds("train");
  EXPECT_LT(own, 2 * colocated / c.own_training * 1.15);
  EXPECT_GT(own, 0.9 * colocated / c.own_training);
}

// Generation has the whole rows; what is trained and scored has the parts, and fewer copies of the model.
TEST(Predict, PartsOfARowAreOfWhatTrainsAndScores) {
  const auto with_parts = [](int cp) {
    return predicted(
        {{"backend", "nemo-rl"},
         {"models", {{"actor", "qwen3-235b-a22b"}}},
         {"devices", 128},
         {"gpu", {{"kind", "H100-80"}, {"per_node", 0}, {"network_bits", 0}}},
         {"completion", 4096},
         {"recomputes_log_probs", true},
         {"layouts",
          {{"generate", {{"tp", 16}, {"pp", 1}}}, {"train", {{"tp", 2}, {"cp", cp}, {"ep", 16}, {"pp", 8}}}}}});
  };
  const Prediction parts = with_parts(4), whole = with_parts(1);
  EXPECT_EQ(parts.executions.at("train").layout.cp, 4);
  EXPECT_EQ(parts.executions.at("train").layout.dp, 2);
  EXPECT_EQ(parts.executions.at("log_probs").layout.cp, 4);
  EXPECT_EQ(parts.executions.at("generate").layout.cp, 1);
  EXPECT_EQ(whole.executions.at("train").layout.dp, 8);
  EXPECT_NE(parts.phases.at("train").total(), whole.phases.at("train").total());
}

// "DP4 TP1" leaves nothing for a pipeline.
TEST(Predict, StatedCopiesLeaveTheStages) {
  const auto stages = [](int tp, int dp) {
    return predicted({{"layouts", {{"generate", {{"tp", tp}, {"dp", dp}}}}}}).executions.at("generate").layout.pp;
  };
  EXPECT_EQ(stages(4, 4), 1);
  EXPECT_EQ(stages(4, 2), 2);
}

// DeepSpeed-Chat decodes in calls of its micro-batch, and without its fused kernels where layers are gated.
TEST(Predict, CallsAndKernelsOfDeepSpeedChat) {
  const auto generates = [](const json& more) {
    json run = {{"backend", "deepspeed-chat"}, {"sharded_training", true}, {"prompt", 256}, {"completion", 256}};
    if (more.is_object()) run.update(more);
    return predicted(run);
  };
  const Prediction eights = generates({{"call_rows", 8}}), fours = generates({{"call_rows", 4}});
  EXPECT_EQ(eights.executions.at("generate").decoding_rows, 8);
  EXPECT_NEAR(fours.phases.at("generate").latency, 2 * eights.phases.at("generate").latency, 1e-9);
  EXPECT_EQ(eights.executions.at("train").layout.zero, 3);
  EXPECT_EQ(eights.executions.at("train").layout.pp, 1);
  EXPECT_EQ(run_of({{"call_tokens", 16384}, {"prompt", 256}, {"completion", 256}}).call_rows, 32);
  const json plain = {{"models", {{"actor", "opt-13b"}}}, {"unfused", true}};
  EXPECT_EQ(generates(plain).seconds("generate"), generates({{"models", {{"actor", "opt-13b"}}}}).seconds("generate"));
  EXPECT_GT(generates({{"unfused", true}}).seconds("generate"), generates({}).seconds("generate"));
}

// DeepSpeed-Chat's table 3: the largest OPT that its hybrid engine trains on one GPU.
TEST(Predict, WhichModelsFitOneGpu) {
  const std::pair<const char*, double> largest[] = {
      {"V100-32", 2.7}, {"A6000-48", 6.7}, {"A100-40", 6.7}, {"A100-80", 13}};
  for (const auto& [gpu, most] : largest)
    for (const double size : {1.3, 2.7, 6.7, 13.0, 30.0}) {
      const std::string actor = fmt::format("opt-{}b", size);
      const Prediction made =
          predicted({{"backend", "deepspeed-chat"},
                     {"sharded_training", true},
                     {"devices", 1},
                     {"rows", 1024},
                     {"updates", 1},
                     {"gpu", {{"kind", gpu}, {"per_node", 0}, {"network_bits", 0}}},
                     {"prompt", 256},
                     {"completion", 256},
                     {"models", {{"actor", actor}, {"critic", "opt-350m"}, {"ref", actor}, {"reward", "opt-350m"}}},
                     {"call_tokens", 16384},
                     {"unfused", true}});
      EXPECT_EQ(made.misfit.empty(), size <= most) << gpu << " " << size;
    }
}

// Rows made by known constants give those constants' times back.
// A fit prints all of fitted_members(), so that one left out is an error, not the default.
TEST(Fit, BackEndsThatHaveOneSayAllThatItMoves) {
  for (const Backend& backend : backends()) {
    if (!backend.fitted) continue;
    ASSERT_GE(backend.values.size(), fitted_members().size()) << backend.name;
    for (size_t i = 0; i < fitted_members().size(); ++i)
      EXPECT_EQ(constant_info(backend.values[i].first).name, constant_info(fitted_members()[i]).name) << backend.name;
  }
}

TEST(Fit, FindsWhatMadeTheRows) {
  Constants truth = constants_of("");
  truth.decode_layer_seconds = 3e-3;
  truth.train_efficiency = 0.3;
  Samples samples;
  for (const char* actor : {"llama2-7b", "llama2-13b"})
    for (const int length : {128, 384, 896}) {
      const Scenario run =
          run_of({{"backend", "deepspeed-chat"},
                  {"sharded_training", true},
                  {"prompt", 128},
                  {"completion", length},
                  {"models", {{"actor", actor}, {"critic", "llama2-7b"}, {"ref", actor}, {"reward", "llama2-7b"}}},
                  {"rows", 131072 / (length + 128)},
                  {"call_tokens", 16384},
                  {"unfused", true}});
      const Measure step = measure_of({{"kind", "time"}, {"parts", {"step"}}, {"unit", "s"}}, {});
      samples.push_back({run, step, predict(run, truth).step_seconds, "P", actor});
    }
  ASSERT_EQ(by_backend(samples).at("deepspeed-chat").size(), 6U);
  EXPECT_GT(mismatch(samples, constants_of("")), 0.3);
  EXPECT_LT(mismatch(samples, fit(samples, "deepspeed-chat")), 0.06);
}

// Returns the text without line breaks (of strings too), blanks and comments of whole lines.
std::string packed(std::istream& text) {
  std::string kept, line;
  while (std::getline(text, line)) {
    const size_t first = line.find_first_not_of(' ');
    if (first == std::string::npos || line.compare(first, 2, "//") == 0) continue;
    for (const char c : line)
      if (std::isspace(static_cast<unsigned char>(c)) == 0) kept += c;
  }
  for (size_t joint; (joint = kept.find("\"\"")) != std::string::npos;) kept.erase(joint, 2);
  return kept;
}

// The text that --fit prints takes a row's place as it is: the shipped constants give the shipped rows.
TEST(Fit, IsPrintedAsTheBackEndsAreWritten) {
  std::ifstream file(COLLIMATE_SOURCE_DIR "/collimate/plan/inputs/backends.cpp");
  const std::string source = packed(file);
  for (const Backend& backend : backends()) {
    if (!backend.fitted) continue;
    std::istringstream printed(backend_row(backend.name, constants_of(backend.name)));
    EXPECT_THAT(source, testing::HasSubstr(packed(printed))) << backend.name;
  }
}

}  // namespace
}  // namespace collimate::plan::published
