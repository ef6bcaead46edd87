#include "collimate/plan/calibrate/calibrate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "collimate/plan/calibrate/least_squares.h"
#include "collimate/plan/calibrate/observe.h"
#include "collimate/plan/inputs/flows.h"
#include "collimate/plan/inputs/machine.h"
#include "tests/support/base/error_of.h"

namespace collimate::plan {
namespace {

shape::Outline small_model() {
  shape::Outline model;
  model.name = "small";
  model.layers = 5;
  model.hidden = 64;
  model.heads = model.kv_heads = 8;
  model.head_dim = 8;
  model.intermediate = 172;
  model.vocabulary = 512;
  model.tied = true;
  return model;
}

Observation observed(const std::string& run, Work work, double rows, double completion) {
  Workload load;
  load.rows = rows;
  load.prompt = Lengths::fixed(40);
  load.completion = Lengths::fixed(completion);
  load.updates = 2;
  return {run, "f", {small_model(), work, true, DeviceKinds().find("cpu"), 1, 1, load}, {}, 0};
}

// The runs that `collimate calibrate` makes, with the times that these constants give.
std::vector<Observation> runs_by(const Constants& truth, const std::vector<Work>& works) {
  std::vector<Observation> all;
  for (const Work work : works) {
    all.push_back(observed("all", work, 128, 64));
    all.push_back(observed("half of the rows", work, 64, 64));
    all.push_back(observed("half of the completion", work, 128, 32));
  }
  for (Observation& o : all) o.seconds = phase_time(o.job, o.how, truth).total();
  return all;
}

Constants true_constants() {
  Constants c = constants_of("");
  c.train_efficiency = 0.9;
  c.score_efficiency = 1.3;
  c.decode_layer_seconds = 9e-5;
  c.decode_step_seconds = 4e-4;
  c.decode_row_seconds = 5e-6;
  c.update_seconds = 8e-3;
  c.phase_seconds = 5e-3;
  c.layer_seconds = 0;
  return c;
}

std::vector<std::string> names_of(const Calibration& made) {
  std::vector<std::string> names;
  for (const ConstantInfo* info : made.found) names.push_back(info->name);
  return names;
}

TEST(Calibrate, FindsTheConstantsThatMadeTheTimes) {
  const Constants truth = true_constants();
  const std::vector<Observation> all = runs_by(truth, {Work::kGenerate, Work::kScore, Work::kTrain});
  const Calibration made =
      calibrate(all, {{"all", "reward", 128, 0.256}, {"half", "reward", 64, 0.128}}, constants_of(""));
  const auto near = [&](double Constants::*member) { EXPECT_NEAR(made.constants.*member / (truth.*member), 1, 0.01); };
  near(&Constants::train_efficiency);
  near(&Constants::score_efficiency);
  near(&Constants::decode_row_seconds);
  near(&Constants::update_seconds);
  near(&Constants::phase_seconds);
  EXPECT_EQ(made.constants.layer_seconds, 0);  // whatever the start says
  // One depth says nothing of which part of a round is a layer's.
  const auto round = [](const Constants& c) { return 5 * c.decode_layer_seconds + c.decode_step_seconds; };
  EXPECT_NEAR(round(made.constants) / round(truth), 1, 0.01);
  EXPECT_NEAR(made.constants.host_row_seconds, 0.002, 1e-9);
  for (size_t i = 0; i < all.size(); ++i) EXPECT_NEAR(made.fitted_seconds[i] / all[i].seconds, 1, 0.002) << i;
}

// A constant without which the times are best is 0, not negative, and the others make up for it.
TEST(Calibrate, StaysWithinTheLimits) {
  Constants truth = true_constants();
  truth.decode_row_seconds = 0;
  truth.update_seconds = 0;
  std::vector<Observation> all = runs_by(truth, {Work::kGenerate, Work::kScore, Work::kTrain});
  for (Observation& o : all)
    if (o.job.work == Work::kTrain) o.seconds -= 1e-3;
  const Calibration made = calibrate(all, {}, constants_of(""));
  EXPECT_GE(made.constants.decode_row_seconds, 0);
  EXPECT_EQ(made.constants.update_seconds, 0);
  for (size_t i = 0; i < all.size(); ++i) EXPECT_NEAR(made.fitted_seconds[i] / all[i].seconds, 1, 0.02) << i;
}

// The part of the time beyond the largest value that a constant may have is left over.
TEST(Calibrate, StaysWithinTheUpperLimits) {
  Constants truth = true_constants();
  truth.decode_row_seconds = 0.02;
  const Calibration made =
      calibrate(runs_by(truth, {Work::kGenerate, Work::kScore, Work::kTrain}), {}, constants_of(""));
  const double high = constant_info(&Constants::decode_row_seconds).high;
  EXPECT_LE(made.constants.decode_row_seconds, high * (1 + 1e-12));
  EXPECT_NEAR(made.constants.decode_row_seconds, high, 0.01 * high);
}

// Times that show nothing of the forward passes of scoring would say that these take none, and a plan with a scorer
// that no run had would leave it out of its time.
TEST(Calibrate, AShareThatTheRunsDriveToItsLimitKeepsItsDefault) {
  const Constants truth = true_constants();
  std::vector<Observation> all = runs_by(truth, {Work::kGenerate, Work::kTrain});
  for (Observation& o : all)  // as if generation took as long for half of the rows, so that prompts took no time
    if (o.job.work == Work::kGenerate && o.run == "half of the rows") o.seconds *= 1.6;
  const Calibration made = calibrate(all, {}, constants_of(""));
  EXPECT_EQ(made.constants.score_efficiency, constants_of("").score_efficiency);
  EXPECT_THAT(names_of(made), testing::Not(testing::Contains("score_efficiency")));
  EXPECT_NEAR(made.constants.train_efficiency, truth.train_efficiency, 0.05);
}

TEST(Calibrate, WhatNoRunDependsOnStaysAsItWas) {
  const Constants truth = true_constants();
  const Calibration made = calibrate(runs_by(truth, {Work::kTrain}), {}, constants_of(""));
  EXPECT_NEAR(made.constants.train_efficiency, truth.train_efficiency, 0.01);
  EXPECT_EQ(made.constants.score_efficiency, constants_of("").score_efficiency);
  EXPECT_EQ(made.constants.decode_layer_seconds, constants_of("").decode_layer_seconds);
  const std::vector<std::string> names = names_of(made);
  EXPECT_THAT(names, testing::IsSupersetOf({"train_efficiency", "phase_seconds", "layer_seconds"}));
  EXPECT_THAT(names, testing::Not(testing::Contains("score_efficiency")));
  EXPECT_THAT(names, testing::Not(testing::Contains("host_row_seconds")));
}

// The fit lies between noisy times: no observation is off by more than the noise.
TEST(Calibrate, AveragesNoise) {
  std::vector<Observation> all = runs_by(true_constants(), {Work::kGenerate, Work::kScore, Work::kTrain});
  for (size_t i = 0; i < all.size(); ++i) all[i].seconds *= i % 2 == 0 ? 1.05 : 0.95;
  const Calibration made = calibrate(all, {}, constants_of(""));
  for (size_t i = 0; i < all.size(); ++i) EXPECT_NEAR(made.fitted_seconds[i] / all[i].seconds, 1, 0.1) << i;
}

TEST(Calibrate, WrongTimesAreNamed) {
  EXPECT_THAT(base::message_of([] { calibrate({}, {}, constants_of("")); }), testing::HasSubstr("at least one"));
  const std::vector<Observation> none = {observed("all rows", Work::kTrain, 8, 8)};
  EXPECT_THAT(base::message_of([&] { calibrate(none, {}, constants_of("")); }),
              testing::HasSubstr("[calibrate f in run 'all rows'] expected a time above 0, got 0 s"));
}

TEST(BoundedQuadratic, IsSolvedBetweenItsBounds) {
  const BoundedQuadratic free{{{2, 1}, {1, 2}}, {2, -4}, {-10, -10}, {10, 10}};
  EXPECT_THAT(solve(free), testing::Pointwise(testing::DoubleNear(1e-9), {8.0 / 3, -10.0 / 3}));
  const BoundedQuadratic bounded{{{2, 1}, {1, 2}}, {2, -4}, {-10, 0}, {10, 10}};
  EXPECT_THAT(solve(bounded), testing::Pointwise(testing::DoubleNear(1e-9), {1.0, 0.0}));
  // Free, the best is 96/7 and -18/7: the first number is the farther out, and held at 10 it keeps the second at 0; but
  // beside that one the best of the first is 6.
  const BoundedQuadratic released{{{1, 3}, {3, 16}}, {6, 0}, {0, 0}, {10, 10}};
  EXPECT_THAT(solve(released), testing::Pointwise(testing::DoubleNear(1e-9), {6.0, 0.0}));
}

// Four iterations, the first of which does not count: generation on both devices, reward on the host beside the
// reference, advantages, training, which takes longer in some.
TEST(Observe, AnIterationIsTheSumOfItsNodes) {
  const graph::Graph graph = flow_of("grpo");
  const auto node = [&](const std::string& model) {
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      if (graph.nodes[n].model == model) return static_cast<int>(n);
    return -1;
  };
  std::vector<NodeSpan> spans;
  double begin = 0;
  int64_t iteration = 0;
  for (const double longer : {20.0, 0.0, 8.0, 1.0}) {
    ++iteration;
    const auto add = [&](const std::string& model, double from, double to) {
      spans.push_back({node(model), iteration, begin + from, begin + to});
    };
    add("policy", 0.5, 3);
    add("policy", 0.5, 4);  // the other device
    add("reward", 1, 2);
    add("reward", 4, 5.5);  // its last rows
    add("reference", 4, 5);
    add("advantages", 5.5, 6);
    add("policy_trainer", 6.5, 10 + longer);
    begin += 10 + longer;
  }
  const std::map<int, double> seconds = node_seconds(graph, spans);
  EXPECT_DOUBLE_EQ(seconds.at(node("policy")), 4);
  EXPECT_DOUBLE_EQ(seconds.at(node("reward")), 1.5);
  EXPECT_DOUBLE_EQ(seconds.at(node("reference")), 1);
  EXPECT_DOUBLE_EQ(seconds.at(node("advantages")), 0.5);
  EXPECT_DOUBLE_EQ(seconds.at(node("policy_trainer")), 5);  // the median of 4, 12 and 5
  spans.resize(7);
  EXPECT_TRUE(node_seconds(graph, spans).empty());
}

TEST(Observe, LengthsHaveTheirMeanAndTheirLongest) {
  for (const double share : {0.0, 0.3}) {
    const Lengths lengths = Lengths::parse(lengths_text(40, 64, share, 128), "w");
    EXPECT_NEAR(lengths.mean(), 40, 0.05);
    EXPECT_EQ(lengths.largest(), 64);
    EXPECT_EQ(lengths.sample(128).back(), 64);
  }
  EXPECT_EQ(lengths_text(7, 7, 0, 512), "7");
  for (const double mean : {1.0, 7.0, 42.6719, 511.25, 511.9999999}) {
    EXPECT_NEAR(Lengths::parse(mean_text(mean), "w").mean(), mean, 1e-4 * mean) << mean_text(mean);
    EXPECT_NEAR(Lengths::parse(lengths_text(mean, mean, 0, 512), "w").mean(), mean, 1e-4 * mean);
  }
  EXPECT_EQ(mean_text(0.2), "1");
}

TEST(Machine, AFileGoesRoundAndBack) {
  Machine machine{{}, "0123456789abcdef", "41.5", "histogram:30=0.6,64=0.4"};
  Constants expected = constants_of("");
  for (const ConstantInfo& info : constant_table())
    if (info.name == "train_efficiency" || info.name == "phase_seconds" || info.name == "host_row_seconds")
      machine.constants.emplace_back(&info, expected.*(info.member) = 0.0125);
  const std::string text = machine_text(machine, {"measured", ""});
  EXPECT_THAT(text, testing::StartsWith("# measured\n#\nconstants:\n  train_efficiency: 0.0125  # share"));
  const Machine again = parse_machine(text, "machine.yaml");
  EXPECT_EQ(again.constants, machine.constants);
  EXPECT_EQ(again.config, machine.config);
  EXPECT_EQ(again.prompt, machine.prompt);
  EXPECT_EQ(again.completion, machine.completion);
  Constants applied = constants_of("");
  apply(again, applied);
  for (const ConstantInfo& info : constant_table())
    EXPECT_EQ(applied.*(info.member), expected.*(info.member)) << info.name;
}

TEST(Machine, WhatIsWrongIsNamedWithItsLine) {
  const auto error = [](const std::string& text) { return base::message_of([&] { parse_machine(text, "m.yaml"); }); };
  EXPECT_THAT(error("constants:\n  train_eficiency: 0.4\n"),
              testing::AllOf(testing::StartsWith("[m.yaml:2]"), testing::EndsWith("try 'train_efficiency'")));
  EXPECT_THAT(error("constants: {train_efficiency: 700}"), testing::HasSubstr("a number from 0.0001 to 100 share"));
  EXPECT_THAT(error("constants: {train_efficiency: fast}"), testing::HasSubstr("\"fast\""));
  EXPECT_THAT(error("constants: [1]"), testing::HasSubstr("constants: {NAME: VALUE"));
  EXPECT_THAT(error("constant: {}"), testing::EndsWith("try 'constants'"));
  EXPECT_THAT(error(""), testing::StartsWith("[m.yaml] expected constants: {NAME: VALUE"));
  EXPECT_THAT(error("constants: {}\nlengths: {config: a, prompt: 0, completion: 3}"),
              testing::HasSubstr("lengths.prompt"));
  EXPECT_THAT(error("constants: {}\nlengths: {prompt: 3, completion: 3}"), testing::HasSubstr("config"));
}

}  // namespace
}  // namespace collimate::plan
