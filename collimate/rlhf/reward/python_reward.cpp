#include "collimate/rlhf/reward/python_reward.h"

#include <cstdlib>
#include <optional>

#include "collimate/base/error.h"
#include "collimate/host/child_process.h"
#include "collimate/host/frame_socket.h"
#include "collimate/rlhf/reward/reward_section.h"

namespace collimate::rlhf {
namespace {

using base::Deadline;
using base::expectation;
using nlohmann::json;

struct PythonSection : RewardSection {
  base::Option<std::string> python{this, "python", "", "", "FILE.py or FILE.py:function", base::not_empty()};
  base::Option<double> timeout_seconds{this, "timeout_seconds", 5.0, "seconds", "for one sample", base::above(0.0)};
  base::Option<double> start_timeout_seconds{this,      "start_timeout_seconds", 60.0,
                                             "seconds", "for the import",        base::above(0.0)};
  base::Option<int64_t> batch_samples{this, "batch_samples", 64, "samples", "of one call", base::at_least(int64_t{1})};
  base::Option<bool> deterministic{this, "deterministic", true, "", "false: results are journaled and replayed"};
  base::Option<std::string> interpreter{this, "interpreter", "", "", "default: $COLLIMATE_PYTHON, else python3"};
};

std::string interpreter_of(const PythonRewardOptions& options) {
  if (!options.python.empty()) return options.python;
  const char* variable = std::getenv("COLLIMATE_PYTHON");
  return variable != nullptr ? variable : "python3";
}

std::string python_path() {
  const char* variable = std::getenv("COLLIMATE_PYTHON_PATH");
  const char* old = std::getenv("PYTHONPATH");
  const std::string own = variable != nullptr ? variable : COLLIMATE_PYTHON_DIR;
  return old != nullptr ? own + ":" + old : own;
}

// One worker process that has imported the user's file.
class PythonWorker {
 public:
  explicit PythonWorker(const PythonRewardOptions& options)
      : child_({.command = {interpreter_of(options), "-m", "collimate.reward_worker", options.file, options.function},
                .environment = {{"PYTHONPATH", python_path()}}}),
        socket_(connect(child_)) {
    const Deadline deadline = Deadline::after(options.start_timeout_seconds);
    socket_.send(json{{"hello", 1}}, deadline);
    const json answer = socket_.expect_frame(deadline).header;
    if (answer.contains("error"))
      throw base::InputError(expectation("reward.python",
                                         fmt::format("{} to define {}", options.file, options.function),
                                         answer.at("error").get<std::string>()));
  }

  std::vector<RewardResult> score(const json& samples, const Deadline& deadline) {
    socket_.send(json{{"samples", samples}}, deadline);
    std::vector<RewardResult> results;
    const json answer = socket_.expect_frame(deadline).header;
    for (const json& one : answer.at("results")) {
      if (one.at("value").is_number()) {
        results.push_back({one.at("value").get<double>(), "", steps_of(one)});
      } else {
        results.push_back({std::nullopt, one.at("error").get<std::string>()});
      }
    }
    return results;
  }

 private:
  static std::vector<StepReward> steps_of(const json& result) {
    std::vector<StepReward> steps;
    for (const json& step : result.value("steps", json::array()))
      steps.push_back({step.at(0).get<size_t>(), step.at(1).get<double>()});
    return steps;
  }

  static host::FrameSocket connect(host::ChildProcess& child) {
    auto [from, to] = child.release_pipes();
    return {std::move(from), std::move(to), "reward worker"};
  }

  host::ChildProcess child_;
  host::FrameSocket socket_;
};

class PythonReward final : public Reward {
 public:
  explicit PythonReward(PythonRewardOptions options)
      : options_(std::move(options)), worker_(std::make_unique<PythonWorker>(options_)) {}

  bool deterministic() const override { return options_.deterministic; }

  std::vector<RewardResult> score(const std::vector<RewardSample>& samples) override {
    std::vector<RewardResult> results;
    for (size_t begin = 0; begin < samples.size(); begin += options_.batch_samples) {
      const size_t end = std::min(samples.size(), begin + static_cast<size_t>(options_.batch_samples));
      for (RewardResult& result : score_range(samples, begin, end)) results.push_back(std::move(result));
    }
    return results;
  }

 private:
  static json to_json(const std::vector<RewardSample>& samples, size_t begin, size_t end) {
    json list = json::array();
    for (size_t i = begin; i < end; ++i)
      list.push_back({{"prompt", samples[i].prompt},
                      {"completion", samples[i].completion},
                      {"finished", samples[i].finished},
                      {"example", samples[i].example}});
    return list;
  }

  // The whole range in one call; when that does not answer in time or dies, one by one, so that only the guilty fail.
  std::vector<RewardResult> score_range(const std::vector<RewardSample>& samples, size_t begin, size_t end) {
    const size_t count = end - begin;
    try {
      if (!worker_) worker_ = std::make_unique<PythonWorker>(options_);
      std::vector<RewardResult> results = worker_->score(
          to_json(samples, begin, end), Deadline::after(options_.timeout_seconds * static_cast<double>(count)));
      if (results.size() == count) return results;
      throw base::RunError(fmt::format("{} rewards for {} samples", results.size(), count));
    } catch (const base::RunError& error) {
      worker_.reset();
      if (count == 1)
        return {{std::nullopt, fmt::format("no reward within {} s, or its process died ({})", options_.timeout_seconds,
                                           error.what())}};
    }
    std::vector<RewardResult> results;
    for (size_t i = begin; i < end; ++i) results.push_back(score_range(samples, i, i + 1).front());
    return results;
  }

  PythonRewardOptions options_;
  std::unique_ptr<PythonWorker> worker_;
};

}  // namespace

PythonRewardOptions PythonRewardOptions::parse(const json& entry) {
  PythonSection section;
  base::apply(entry, "reward", section);
  PythonRewardOptions options;
  const std::string& target = section.python;
  const size_t colon = target.rfind(".py:");
  options.file = colon == std::string::npos ? target : target.substr(0, colon + 3);
  if (colon != std::string::npos) options.function = target.substr(colon + 4);
  options.timeout_seconds = section.timeout_seconds;
  options.start_timeout_seconds = section.start_timeout_seconds;
  options.batch_samples = section.batch_samples;
  options.deterministic = section.deterministic;
  options.python = section.interpreter;
  return options;
}

std::unique_ptr<Reward> python_reward(const PythonRewardOptions& options) {
  return std::make_unique<PythonReward>(options);
}

}  // namespace collimate::rlhf
