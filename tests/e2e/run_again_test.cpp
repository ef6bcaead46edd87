#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <functional>

#include "collimate/base/error.h"
#include "tests/e2e/run_support.h"

namespace collimate::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// A run has left these files, each written at a time. metrics.jsonl is opened by every call: its bytes count.
struct Left {
  std::vector<std::string> texts;
  std::vector<fs::file_time_type> times;
  bool operator==(const Left&) const = default;
};

Left left_in(const std::string& output) {
  Left left;
  left.texts.push_back(read_text(output + "/metrics.jsonl"));
  for (const char* name : {"/model/model.safetensors", "/summary.json", "/trace.json", "/events.jsonl", "/plan.yaml"}) {
    left.texts.push_back(read_text(output + name));
    left.times.push_back(fs::last_write_time(output + name));
  }
  return left;
}

void expect_same_outcome(const recipe::TrainOutcome& one, const recipe::TrainOutcome& other) {
  EXPECT_EQ(one.first_evaluation, other.first_evaluation);
  EXPECT_EQ(one.last_evaluation, other.last_evaluation);
  EXPECT_EQ(one.summary, other.summary);
  EXPECT_EQ(one.iterations, other.iterations);
  EXPECT_EQ(one.seconds, other.seconds);
}

// Runs that are started again with the same config after their end.
class RunAgain : public testing::Test {
 protected:
  void SetUp() override { write_small_task(scratch_.path()); }

  // The rate is so high that val/loss rises at once: patience ends the run after two of its iterations.
  recipe::TrainOutcome run_out_of_patience() {
    return train_text(small_config("sft", scratch_.path()), output_,
                      {"data.eval=" + (scratch_ / "demonstrations.jsonl"), "run.iterations=20", "run.evaluate_every=1",
                       "run.patience=1", "train.learning_rate=1"});
  }
  // GRPO from that model as policy and reference, stopped by a signal soon.
  void stopped_grpo(const std::string& model) {
    base::StopFlag stop;
    stop.request(SIGINT);
    recipe::TrainCall call;
    call.stop = &stop;
    train_text(
        small_config("grpo", scratch_.path()), scratch_ / "grpo",
        {"models.policy.from_scratch=false", "models.policy.path=" + model, "algorithm.beta=0.04", "run.iterations=50"},
        call);
  }

  // Runs that recipe for many iterations, with a signal asked for before the first; gives what it told.
  std::vector<std::string> stopped(const std::string& recipe, const std::vector<std::string>& more = {}) {
    base::StopFlag stop;
    stop.request(SIGINT);
    std::vector<std::string> told, sets = {"run.iterations=50"};
    sets.insert(sets.end(), more.begin(), more.end());
    recipe::TrainCall call;
    call.stop = &stop;
    call.note = [&](const std::string& line) { told.push_back(line); };
    try {
      train_text(small_config(recipe, scratch_.path()), output_, sets, call);
      ADD_FAILURE() << "not stopped";
    } catch (const base::StoppedError&) {
    }
    return told;
  }
  // With `changed` in that file a stopped run is refused, by an error with these parts; with the old text it goes on.
  void expect_refused_with(const fs::path& file, const std::string& changed, const std::vector<std::string>& parts,
                           const std::function<void()>& run) {
    run();
    const std::string metrics = read_text(output_ + "/metrics.jsonl"), text = read_text(file);
    write_text(file, changed);
    try {
      run();
      ADD_FAILURE() << "gone on with";
    } catch (const base::InputError& error) {
      for (const std::string& part : parts) EXPECT_THAT(error.what(), HasSubstr(part));
    }
    EXPECT_EQ(read_text(output_ + "/metrics.jsonl"), metrics);
    write_text(file, text);
    run();
    EXPECT_TRUE(read_text(output_ + "/metrics.jsonl").starts_with(metrics));
    EXPECT_GT(read_text(output_ + "/metrics.jsonl").size(), metrics.size());
  }
  // The file then has each of its 40 rows twice.
  void expect_other_data_refused(const fs::path& file, const std::string& key, const std::function<void()>& run) {
    expect_refused_with(
        file, read_text(file) + read_text(file),
        {fmt::format("[{}] expected what {} began with, 40 rows with fingerprint ", key, output_),
         ": it has changed since; try that data again, or --overwrite, which removes that run, or another --output"},
        run);
  }
  // One more line, which says nothing.
  void expect_other_file_refused(const fs::path& file, const std::string& line, const std::function<void()>& run) {
    const std::string text = read_text(file);
    expect_refused_with(
        file, text + line + "\n",
        {fmt::format("[{}] expected what {} began with, {} bytes with CRC-32C ", file.string(), output_, text.size()),
         ": it has changed since; try that file again, or --overwrite, which removes that run, or another --output"},
        run);
  }

  Scratch scratch_{"run-again"};
  const std::string output_ = scratch_ / "run";
};

TEST_F(RunAgain, AfterPatienceHasRunOutNothingIsTrainedOrWritten) {
  const recipe::TrainOutcome first = run_out_of_patience();
  ASSERT_EQ(first.iterations, 2);
  const Left left = left_in(output_);
  for (int call = 0; call < 2; ++call) {
    expect_same_outcome(run_out_of_patience(), first);
    EXPECT_TRUE(left_in(output_) == left);
  }
}

// A process may end between its last checkpoint and the model: the rest is done then, without a further iteration.
TEST_F(RunAgain, AfterPatienceHasRunOutTheModelIsWrittenFromTheCheckpoint) {
  const recipe::TrainOutcome first = run_out_of_patience();
  const std::string model = model_bytes(output_);
  const Metrics metrics = metrics_of(output_);
  fs::remove_all(output_ + "/model");
  fs::remove(output_ + "/summary.json");
  const recipe::TrainOutcome second = run_out_of_patience();
  EXPECT_EQ(second.iterations, first.iterations);
  EXPECT_EQ(second.last_evaluation, first.last_evaluation);
  EXPECT_EQ(second.summary.at("final_metrics").at("actor/loss"), first.summary.at("final_metrics").at("actor/loss"));
  EXPECT_TRUE(model_bytes(output_) == model);
  EXPECT_EQ(metrics_of(output_).size(), metrics.size());
}

TEST_F(RunAgain, AfterItsCallerHasEndedItOnlyALongerRunGoesOn) {
  const auto run = [&](const std::vector<std::string>& more, const recipe::TrainCall& call = {}) {
    std::vector<std::string> sets = {"run.iterations=20"};
    sets.insert(sets.end(), more.begin(), more.end());
    return train_text(small_config("sft", scratch_.path()), output_, sets, call);
  };
  recipe::TrainCall ended;
  ended.on_metrics = [](const base::MetricsRecord&) { return recipe::GoesOn::kEnds; };
  const recipe::TrainOutcome first = run({}, ended);
  ASSERT_LT(first.iterations, 20);
  const Left left = left_in(output_);
  expect_same_outcome(run({"log.every=1"}), first);
  EXPECT_TRUE(left_in(output_) == left);
  fs::remove_all(output_ + "/model");
  expect_same_outcome(run({}), first);
  EXPECT_TRUE(model_bytes(output_) == left.texts[1]);
  EXPECT_EQ(run({"run.iterations=21"}).iterations, 21);
}

TEST_F(RunAgain, AfterTheLastIterationItsRecordsStay) {
  const auto run = [&] {
    return train_text(small_config("sft", scratch_.path()), output_,
                      {"data.eval=" + (scratch_ / "demonstrations.jsonl")});
  };
  const recipe::TrainOutcome first = run();
  const Left left = left_in(output_);
  expect_same_outcome(run(), first);
  EXPECT_TRUE(left_in(output_) == left);
  fs::remove_all(output_ + "/model");
  expect_same_outcome(run(), first);
  EXPECT_TRUE(model_bytes(output_) == left.texts[1]);
}

// `--output other --resume run` takes over the run's last checkpoint: `--output other` alone finds nothing left to do.
TEST_F(RunAgain, AfterItsEndWasTakenOverElsewhereItsRecordsStayThere) {
  std::vector<std::string> told;
  const auto run = [&](const std::string& output, const std::string& resume) {
    recipe::TrainCall call;
    call.resume = resume;
    call.note = [&](const std::string& line) { told.push_back(line); };
    return train_text(small_config("sft", scratch_.path()), output, {}, call);
  };
  run(output_, "auto");
  const std::string other = scratch_ / "other";
  const recipe::TrainOutcome first = run(other, output_);
  EXPECT_EQ(first.iterations, 3);
  const Left left = left_in(other);
  told.clear();
  expect_same_outcome(run(other, "auto"), first);
  EXPECT_TRUE(left_in(other) == left);
  EXPECT_THAT(told, ElementsAre("nothing is left to do: " + other + " has ended after 3 iterations"));
}

// An evaluation that has a name has a directory of its own below samples/.
TEST_F(RunAgain, TakenOverElsewhereItHasAllSamplesOfBefore) {
  const std::vector<std::string> sets = {
      "evaluation.measure=[{measure: perplexity, name: text, data: " + (scratch_ / "demonstrations.jsonl") + "}]"};
  train_text(small_config("sft", scratch_.path()), output_, sets);
  recipe::TrainCall call;
  call.resume = output_;
  train_text(small_config("sft", scratch_.path()), scratch_ / "other", sets, call);
  const std::string first = "/samples/text/eval-000000.jsonl";
  ASSERT_FALSE(read_text(output_ + first).empty());
  EXPECT_EQ(read_text(scratch_ / "other" + first), read_text(output_ + first));
}

// The reference is read from files and in no checkpoint: with others than at the beginning the run is not gone on with.
TEST_F(RunAgain, WithOtherWeightsBelowItARunIsRefused) {
  train_text(small_config("sft", scratch_.path()), output_);
  const std::string model = output_ + "/model", file = model + "/model.safetensors", run = scratch_ / "grpo";
  EXPECT_THROW(stopped_grpo(model), base::StoppedError);
  const std::string metrics = read_text(run + "/metrics.jsonl"), bytes = read_text(file);
  std::string other = bytes;
  other.back() = static_cast<char>(other.back() ^ 1);
  write_text(file, other);
  try {
    stopped_grpo(model);
    ADD_FAILURE() << "gone on with";
  } catch (const base::InputError& error) {
    const std::string size = fmt::format("{} bytes with CRC-32C ", bytes.size());
    EXPECT_THAT(error.what(), HasSubstr(fmt::format("[{}] expected what {} began with, {}", file, run, size)));
    EXPECT_THAT(error.what(), HasSubstr(", got " + size));
    EXPECT_THAT(error.what(),
                HasSubstr("; try that file again, or --overwrite, which removes that run, or another --output"));
  }
  EXPECT_EQ(read_text(run + "/metrics.jsonl"), metrics);
  write_text(file, bytes);
  EXPECT_THROW(stopped_grpo(model), base::StoppedError);
  EXPECT_TRUE(read_text(run + "/metrics.jsonl").starts_with(metrics));
  EXPECT_GT(read_text(run + "/metrics.jsonl").size(), metrics.size());  // gone on with
}

TEST_F(RunAgain, WithOtherDataARunIsRefused) {
  expect_other_data_refused(scratch_ / "demonstrations.jsonl", "data.train", [&] { stopped("sft"); });
}

TEST_F(RunAgain, WithOtherHeldOutDataARunIsRefused) {
  const std::string file = scratch_ / "others.jsonl";
  fs::copy_file(scratch_ / "demonstrations.jsonl", file);
  expect_other_data_refused(file, "data.eval", [&] { stopped("sft", {"data.eval=" + file}); });
}

TEST_F(RunAgain, WithAnotherRewardFileARunIsRefused) {
  const std::string file = scratch_ / "reward.py";
  write_text(file, "def score(prompts, completions, **columns):\n    return [float(len(c)) for c in completions]\n");
  expect_other_file_refused(file, "# another", [&] { stopped("grpo", {"reward=[{python: \"" + file + ":score\"}]"}); });
}

TEST_F(RunAgain, WithAnotherFileOfTheEvaluationsRewardARunIsRefused) {
  const std::string file = scratch_ / "judge.py";
  write_text(file, "def score(prompts, completions, **columns):\n    return [float(len(c)) for c in completions]\n");
  expect_other_file_refused(file, "# another", [&] {
    stopped("grpo",
            {"data.eval=" + (scratch_ / "held_out.jsonl"), "evaluation.reward=[{python: \"" + file + ":score\"}]"});
  });
}

TEST_F(RunAgain, WithAnotherTokenizerOrConfigurationARunIsRefused) {
  for (const char* name : {"start/tokenizer.json", "start/tokenizer_config.json", "start/config.json"})
    expect_other_file_refused(scratch_ / name, "", [&] { stopped("sft"); });
  for (const char* name : {"generation_config.json", "special_tokens_map.json", "chat_template.jinja", "vocab.json",
                           "merges.txt"}) {  // the run began without them
    const std::string file = scratch_ / (std::string("start/") + name);
    write_text(file, "{}");
    EXPECT_THROW(stopped("sft"), base::InputError) << name;
    fs::remove(file);
  }
}

// A run of an earlier version kept the files of weights alone.
TEST_F(RunAgain, WithoutAFingerprintDataIsNotCompared) {
  const std::string file = scratch_ / "demonstrations.jsonl";
  stopped("sft");
  write_text(output_ + "/models.json", "{}\n");
  write_text(file, read_text(file) + lines_of(file).at(0) + "\n");
  stopped("sft");
  EXPECT_EQ(metrics_of(output_).size(), 2U);
  EXPECT_THAT(read_text(output_ + "/models.json"), HasSubstr("data.train"));
}

TEST_F(RunAgain, ASignalIsToldOnceAndEndsTheRunAfterItsIteration) {
  const std::string line = "stopping after this iteration; press Ctrl-C again to stop at once";
  for (size_t call = 1; call <= 2; ++call) {
    const std::vector<std::string> told = stopped("sft");
    EXPECT_EQ(std::count(told.begin(), told.end(), line), 1) << call;
    EXPECT_EQ(metrics_of(output_).size(), call);
  }
}

TEST_F(RunAgain, WithoutACheckpointItSaysWhatItDrops) {
  const std::string line =
      "there is no checkpoint: the run begins again, and 2 earlier lines of metrics.jsonl are removed";
  for (int call = 0; call < 2; ++call) EXPECT_THAT(stopped("sft"), Not(Contains(HasSubstr("no checkpoint"))));
  fs::remove_all(output_ + "/checkpoints");
  EXPECT_THAT(stopped("sft"), Contains(line));
  EXPECT_EQ(metrics_of(output_).size(), 1U);
}

TEST_F(RunAgain, SavesEveryFiftyIterationsUnlessToldOtherwise) {
  const auto checkpoints = [&](const std::string& output, const std::vector<std::string>& more) {
    std::vector<std::string> sets = {"run.iterations=51"};
    sets.insert(sets.end(), more.begin(), more.end());
    train_text(small_config("sft", scratch_.path()), output, sets);
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(output + "/checkpoints")) found.push_back(entry.path().filename());
    std::sort(found.begin(), found.end());
    return found;
  };
  EXPECT_THAT(checkpoints(output_, {}), ElementsAre("step-000050", "step-000051"));
  EXPECT_THAT(checkpoints(scratch_ / "last", {"run.save_every=0"}), ElementsAre("step-000051"));
}

}  // namespace
}  // namespace collimate::test
