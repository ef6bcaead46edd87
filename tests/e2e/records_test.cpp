#include <gtest/gtest.h>

#include <set>

#include "collimate/base/error.h"
#include "collimate/generate/engine.h"
#include "collimate/host/core_pool.h"
#include "collimate/model/weights.h"
#include "collimate/text/tokenizer.h"
#include "tests/e2e/run_support.h"

namespace collimate::test {
namespace {

// A run leaves records beside its metrics and its model.
class Records : public testing::Test {
 protected:
  void SetUp() override {
    write_small_task(scratch_.path());
    train_text(small_config("grpo", scratch_.path()), output_,
               {"data.eval=" + (scratch_ / "held_out.jsonl"), "run.evaluate_every=2", "algorithm.beta=0.04"});
  }
  nlohmann::json json(const std::string& name) const { return nlohmann::json::parse(read_text(output_ + "/" + name)); }

  Scratch scratch_{"records"};
  const std::string output_ = scratch_ / "run";
};

TEST_F(Records, SummaryOfTheWholeRun) {
  const nlohmann::json summary = json("summary.json");
  const Metrics metrics = metrics_of(output_);
  EXPECT_EQ(summary.at("recipe"), "grpo");
  EXPECT_EQ(summary.at("iterations"), 3);
  EXPECT_EQ(summary.at("seed"), 7);
  EXPECT_EQ(summary.at("config_hash").get<std::string>().size(), 16U);
  double tokens = 0, step_seconds = 0, generation_seconds = 0, best = -1;
  int64_t best_step = -1;
  for (const nlohmann::json& line : metrics) {
    if (line.contains("perf/total_num_tokens")) tokens += line.at("perf/total_num_tokens").get<double>();
    if (line.contains("timing_s/step")) step_seconds += line.at("timing_s/step").get<double>();
    if (line.contains("timing_s/gen")) generation_seconds += line.at("timing_s/gen").get<double>();
    if (!line.contains("val/reward/mean") || line.at("val/reward/mean").get<double>() <= best) continue;
    best = line.at("val/reward/mean");
    best_step = line.at("step");
  }
  EXPECT_EQ(summary.at("tokens").get<double>(), tokens);
  EXPECT_NEAR(summary.at("tokens_per_second").get<double>(), tokens / step_seconds, 1e-6 * tokens / step_seconds);
  EXPECT_NEAR(summary.at("phase_seconds").at("gen").get<double>(), generation_seconds, 1e-9);
  EXPECT_EQ(summary.at("best_metrics").at("val/reward/mean"), (nlohmann::json{{"value", best}, {"step", best_step}}));
  EXPECT_EQ(summary.at("final_metrics").at("val/reward/mean"), metrics.back().at("val/reward/mean"));
  EXPECT_GT(summary.at("peak_memory_bytes").get<double>(), 1 << 20);
  for (const char* name : {"collimate", "libtorch", "compiler", "instruction_set", "processor"})
    EXPECT_FALSE(summary.at("versions").at(name).get<std::string>().empty()) << name;
}

TEST_F(Records, RecipesThatGenerateNothingHaveASpeed) {
  train_text(small_config("sft", scratch_.path()), scratch_ / "sft");
  for (const nlohmann::json& line : metrics_of(scratch_ / "sft")) {
    if (!line.contains("timing_s/step")) continue;
    EXPECT_NEAR(line.at("perf/throughput").get<double>() * line.at("timing_s/step").get<double>(),
                line.at("train/tokens").get<double>(), 1e-3);
  }
}

TEST_F(Records, LogHasWhatWasToldAndEveryIteration) {
  const std::string log = read_text(output_ + "/logs/rank-0.log");
  for (const char* part : {"data.train: ", "iteration 0: val/reward/mean", " (8 greedy completions)\n",
                           "iteration 1: reward", "iteration 3: reward"})
    EXPECT_NE(log.find(part), std::string::npos) << part << " in\n" << log;
}

// The line says what the numbers are means over, and how much of that is in samples/.
TEST_F(Records, AnEvaluationSaysHowManyRowsItMeasures) {
  const auto counts_of = [&](const std::string& recipe, const std::string& held_out, std::vector<std::string> sets) {
    const std::string output = scratch_ / (recipe + held_out);
    sets.push_back("data.eval=" + (scratch_ / held_out));
    const auto outcome = train_text(small_config(recipe, scratch_.path()), output, sets);
    return std::pair(read_text(output + "/logs/rank-0.log"), outcome.summary.at("held_out").dump());
  };
  const auto sampled =
      counts_of("grpo", "held_out.jsonl", {"evaluation.samples_per_prompt=13", "evaluation.temperature=1.0"});
  EXPECT_NE(sampled.first.find(" (104 completions of 8 prompts; samples/ has the first 100)\n"), std::string::npos);
  EXPECT_EQ(sampled.second, R"([{"data":"data.eval","measured":"completions","examples":8,"rows":104,)"
                            R"("rows_in_samples":100,"greedy":false}])");
  EXPECT_NE(counts_of("sft", "demonstrations.jsonl", {}).first.find(" (40 rows)\n"), std::string::npos);
  const auto pairs = counts_of("dpo", "pairs.jsonl", {});
  EXPECT_NE(pairs.first.find(" (80 answers of 40 pairs)\n"), std::string::npos) << pairs.second;
}

TEST_F(Records, AFailedRunsLogSaysWhy) {
  const std::string failed = scratch_ / "failed";
  EXPECT_THROW(train_text(small_config("grpo", scratch_.path()), failed, {"run.memory_budget=1"}), base::Error);
  EXPECT_FALSE(fs::exists(failed)) << "nothing was trained";
  write_text(scratch_ / "reward.py",
             "calls = 0\ndef score(prompts, completions, **columns):\n"
             "    global calls\n    calls += 1\n    if calls > 1: raise ValueError('second')\n"
             "    return [1.0] * len(completions)\n");
  EXPECT_THROW(train_text(small_config("grpo", scratch_.path()), failed,
                          {"reward=[{python: \"" + (scratch_ / "reward.py") + ":score\", on_error: stop}]"}),
               base::Error);
  const std::string log = read_text(failed + "/logs/rank-0.log");
  EXPECT_NE(log.find("stopped: "), std::string::npos) << log;
  EXPECT_NE(log.find("second"), std::string::npos) << log;
}

TEST_F(Records, ModelHashIsOfTheWeightsThatWereWritten) {
  host::CorePool pool(1);
  const auto weights = model::load_huggingface(output_ + "/model", "lm", {}, {&pool});
  EXPECT_EQ(json("summary.json").at("model_hash"), fmt::format("{:016x}", weights->checksum()));
}

TEST_F(Records, TheTraceNamesItsWorkers) {
  std::map<int, std::string> names;
  std::set<int> used, iterations;
  const nlohmann::json trace = json("trace.json");
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    const int worker = event.at("pid");
    if (event.at("ph") == "M") names[worker] = event.at("args").at("name");
    if (event.at("ph") != "X") continue;
    used.insert(worker);
    iterations.insert(event.at("args").at("iteration").get<int>());
  }
  EXPECT_EQ(iterations, (std::set<int>{1, 2, 3})) << "not as metrics.jsonl counts them";
  EXPECT_EQ(names.at(0), "device 0: policy, policy_trainer, reference");
  EXPECT_GE(used.size(), 3U);
  for (const int worker : used) EXPECT_FALSE(names.at(worker).empty());
}

TEST_F(Records, HeldOutSamplesAreThoseOfTheSamePromptsEachTime) {
  std::vector<std::vector<std::string>> prompts;
  for (const int step : {0, 2, 3}) {
    double rewards = 0;
    prompts.emplace_back();
    for (const std::string& line : lines_of(fmt::format("{}/samples/eval-{:06}.jsonl", output_, step))) {
      const auto sample = nlohmann::json::parse(line);
      prompts.back().push_back(sample.at("prompt"));
      EXPECT_EQ(sample.at("step"), step);
      EXPECT_FALSE(sample.at("expected").get<std::string>().empty());
      rewards += sample.at("reward").get<double>();
    }
    ASSERT_EQ(prompts.back().size(), 8U);
    EXPECT_EQ(prompts.back(), prompts.front());
    const Metrics metrics = metrics_of(output_);
    EXPECT_NEAR(metrics.at(static_cast<size_t>(step)).at("val/reward/mean").get<double>(), rewards / 8, 1e-6);
  }
}

// A line for each held-out row or pair with what the model makes of it, of which the margin is the mean. That of DPO is
// of the implicit reward, as in training.
TEST(DataRecords, EvaluationsWriteWhatTheModelMakesOfEachRow) {
  Scratch scratch{"data-records"};
  write_small_task(scratch.path());
  const auto lines_after = [&](const std::string& recipe, const std::string& data) {
    const std::string output = scratch / recipe;
    train_text(small_config(recipe, scratch.path()), output, {"data.eval=" + (scratch / data)});
    Metrics lines;
    for (const std::string& line : lines_of(output + "/samples/eval-000003.jsonl"))
      lines.push_back(nlohmann::json::parse(line));
    return std::pair(lines, metrics_of(output).back());
  };
  const auto [rows, sft] = lines_after("sft", "demonstrations.jsonl");
  ASSERT_FALSE(rows.empty());
  for (const nlohmann::json& row : rows) {
    EXPECT_EQ(row.at("measure"), "loss");
    EXPECT_FALSE(row.at("target").get<std::string>().empty());
    EXPECT_GT(row.at("value").get<double>(), 0);
  }
  using Row = std::tuple<const char*, const char*, const char*>;
  for (const auto& [recipe, measure, name] :
       {Row("dpo", "implicit_reward", "val/rewards/margins"), Row("reward", "score", "val/margin")}) {
    const auto [pairs, last] = lines_after(recipe, "pairs.jsonl");
    double margin = 0;
    for (const nlohmann::json& pair : pairs) {
      EXPECT_EQ(pair.at("measure"), measure);
      EXPECT_NE(pair.at("chosen"), pair.at("rejected"));
      margin += pair.at("chosen_value").get<double>() - pair.at("rejected_value").get<double>();
    }
    EXPECT_NEAR(margin / static_cast<double>(pairs.size()), last.at(name).get<double>(), 1e-6) << recipe;
    EXPECT_EQ(last.contains("val/accuracy"), std::string(recipe) == "reward");
  }
}

// Returns what the model in `directory` answers at temperature 0.
std::string greedy_answer(const std::string& directory, const std::string& prompt) {
  host::CorePool pool(1);
  const tensor::Exec exec{&pool};
  model::Model model(model::load_huggingface(directory, "lm", {}, exec), exec);
  const auto tokenizer = text::load_tokenizer(directory);
  generate::EngineOptions options;
  options.service.exec = exec;
  options.service.eos_ids = tokenizer->info().stop_ids;
  const std::vector<std::vector<int32_t>> prompts = {tokenizer->encode(prompt)};
  const generate::SamplingParams greedy{.max_tokens = 64, .temperature = 0};
  return tokenizer->decode(generate::generate_all(model, prompts, greedy, options).at(0).tokens);
}

// The first eight rows or pairs have what the model itself answers: the same on any number of devices, and no bit of
// the training depends on it.
TEST(DataRecords, TheModelAnswersTheFirstHeldOutPrompts) {
  Scratch scratch{"model-answers"};
  write_small_task(scratch.path());
  const auto train = [&](const std::string& recipe, const std::string& name, std::vector<std::string> sets) {
    sets.emplace_back("train.learning_rate=1e-2");
    train_text(small_config(recipe, scratch.path()), scratch / name, sets);
    return scratch / name;
  };
  for (const auto& [recipe, data] : {std::pair("sft", "demonstrations.jsonl"), std::pair("dpo", "pairs.jsonl")}) {
    const std::string held_out = "data.eval=" + (scratch / data), name = recipe;
    const std::string run = train(recipe, name, {held_out}), plain = train(recipe, name + "-plain", {});
    const std::string shared = train(recipe, name + "-2", {held_out, "devices=2"});
    size_t row = 0;
    std::set<std::string> answers;
    for (const std::string& line : lines_of(run + "/samples/eval-000003.jsonl")) {
      const auto sample = nlohmann::json::parse(line);
      ASSERT_EQ(sample.contains("model_answer"), row < 8) << recipe << " row " << row;
      if (row++ >= 8) continue;
      const std::string answer = sample.at("model_answer");
      answers.insert(answer);
      EXPECT_EQ(answer, greedy_answer(run + "/model", sample.at("prompt"))) << recipe << " row " << row;
    }
    EXPECT_GE(row, 8U);
    EXPECT_GT(answers.size(), 1U) << recipe << ": one answer to every prompt tells little";
    EXPECT_EQ(read_text(shared + "/samples/eval-000000.jsonl"), read_text(run + "/samples/eval-000000.jsonl"))
        << recipe;
    const auto hash = [](const std::string& of) {
      return nlohmann::json::parse(read_text(of + "/summary.json")).at("model_hash");
    };
    EXPECT_EQ(hash(run), hash(plain)) << recipe;
  }
}

// Without held-out rows it answers prompts of the training data, which nothing measures.
TEST(DataRecords, TheModelAnswersPromptsOfTheTrainingWhereNoneAreHeldOut) {
  Scratch scratch{"training-answers"};
  write_small_task(scratch.path());
  for (const std::string recipe : {"sft", "dpo"}) {
    const std::string run = scratch / recipe;
    std::vector<std::string> told;
    recipe::TrainCall call;
    call.note = [&](const std::string& line) { told.push_back(line); };
    const auto outcome = train_text(small_config(recipe, scratch.path()), run,
                                    {"run.evaluate_every=1", "train.learning_rate=1e-2"}, call);
    EXPECT_TRUE(outcome.last_evaluation.is_null()) << recipe;
    EXPECT_EQ(metrics_of(run).size(), 3U) << recipe << ": a line for each iteration alone";
    EXPECT_EQ(
        std::ranges::count_if(told, [](const std::string& line) { return line.starts_with("samples: the model"); }), 1)
        << recipe;
    for (const std::string step : {"000001", "000002"})
      EXPECT_FALSE(fs::exists(run + "/samples/step-" + step + ".jsonl"));
    for (const std::string step : {"000000", "000003"}) {
      const auto lines = lines_of(run + "/samples/step-" + step + ".jsonl");
      ASSERT_EQ(lines.size(), 8U) << recipe << step;
      for (const std::string& line : lines) EXPECT_TRUE(nlohmann::json::parse(line).contains("model_answer")) << line;
    }
    const auto last = nlohmann::json::parse(lines_of(run + "/samples/step-000003.jsonl").at(0));
    EXPECT_EQ(last.at("model_answer"), greedy_answer(run + "/model", last.at("prompt"))) << recipe;
  }
}

TEST(DataRecords, RowsLeftOutAreInTheSummary) {
  Scratch scratch{"left-out"};
  write_small_task(scratch.path());
  write_text(scratch / "demonstrations.jsonl", read_text(scratch / "demonstrations.jsonl") + "{\"prompt\": \n" +
                                                   R"({"prompt": "12=", "completion": "12345678"})" + "\n");
  train_text(small_config("sft", scratch.path()), scratch / "run",
             {"data.bad_rows=drop", "data.max_tokens=10", "data.long_rows=truncate"});
  const auto left_out = nlohmann::json::parse(read_text(scratch / "run/summary.json")).at("left_out");
  ASSERT_EQ(left_out.size(), 2U) << left_out.dump();
  EXPECT_EQ(left_out[0].at("data"), "data.train");
  EXPECT_EQ(left_out[0].at("rows"), 1);
  EXPECT_EQ(left_out[0].at("of"), 42);
  EXPECT_EQ(left_out[0].at("what"), "left out (data.bad_rows: drop)");
  const std::string rest = left_out[0].at("rest");
  EXPECT_TRUE(rest.starts_with("; the first: [")) << rest;
  EXPECT_NE(rest.find("demonstrations.jsonl:41] expected well-formed JSON"), std::string::npos) << rest;
  EXPECT_EQ(left_out[1].at("what"), "truncated (data.long_rows: truncate)");
}

}  // namespace
}  // namespace collimate::test
