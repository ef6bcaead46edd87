#include "collimate/rlhf/reward/python_reward.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/host/child_lines.h"
#include "collimate/host/child_process.h"
#include "collimate/host/frame_socket.h"
#include "collimate/host/python.h"
#include "collimate/text/utf8.h"

namespace collimate::rlhf {
namespace {

using base::Deadline;
using base::expectation;
using nlohmann::json;

host::ChildOptions child_of(const PythonSection& options, const PythonFunction& asked) {
  host::ChildOptions child =
      host::python_module(options.interpreter->empty() ? host::python_interpreter() : options.interpreter.get(),
                          "reward_worker", {asked.file, asked.function});
  child.errors = host::ChildStream::kPipe;
  return child;
}

struct Answer {
  std::vector<RewardResult> results;  // by sample
  std::string batch_error;            // of the call of all samples, when they were asked one by one after it; else ""
  size_t raised = 0;                  // the first sample on which the function raised
  std::string trace;                  // Python's lines of that; "" when it raised on none
};

// Text in quotes on one line; of a long one its beginning and its end.
std::string quoted(const std::string& text) {
  constexpr size_t kShown = 300;  // bytes of each
  if (text.size() <= 2 * kShown) return json(text).dump();
  return json(text::valid_utf8(text.substr(0, kShown)) + " [...] " +
              text::valid_utf8(text.substr(text.size() - kShown)))
      .dump();
}

// One worker process that has imported the user's file.
class PythonWorker {
 public:
  // `waiting` is called again and again until an answer comes, here and in score(): the waits have deadlines of their
  // own.
  PythonWorker(const PythonSection& options, const PythonFunction& asked, const std::function<void()>& waiting)
      : child_(child_of(options, asked)), lines_(child_.errors()), socket_(connect(child_)) {
    const json answer = imported(options, asked, waiting);
    if (answer.contains("error"))
      throw base::InputError(expectation("reward.python", fmt::format("{} to define {}", asked.file, asked.function),
                                         answer.at("error").get<std::string>()));
    reserved_ = answer.at("reserved");
  }

  // Names that columns of the data may not have: the function gets something else by them.
  const std::vector<std::string>& reserved() const { return reserved_; }

  // RunError that says what came instead of an answer; the worker is of no use then.
  Answer score(const json& samples, double seconds, const std::function<void()>& waiting) {
    const json answer = ask(json{{"samples", samples}}, seconds, waiting);
    Answer out{.batch_error = answer.at("batch_error")};
    for (const json& one : answer.at("results")) {
      if (one.at("value").is_number()) {
        out.results.push_back({one.at("value").get<double>(), "", steps_of(one), answer_of(one)});
      } else {
        if (out.trace.empty()) {
          out.raised = out.results.size();
          out.trace = one.value("trace", "");
        }
        out.results.push_back({std::nullopt, one.at("error").get<std::string>()});
      }
    }
    return out;
  }

 private:
  json imported(const PythonSection& options, const PythonFunction& asked, const std::function<void()>& waiting) {
    try {
      return ask(json{{"hello", 1}}, options.start_timeout_seconds, waiting);
    } catch (const base::RunError& error) {
      throw base::RunError(expectation("reward.python", fmt::format("{} to be imported", asked.file), error.what(),
                                       "a larger start_timeout_seconds, or another interpreter"));
    }
  }

  // RunError: how the process has ended, that the time is over, or what is wrong with the answer.
  json ask(const json& request, double seconds, const std::function<void()>& waiting) {
    constexpr double kLookSeconds = 0.1, kEndSeconds = 1.0;  // the second: from the end of its pipe to its own
    const Deadline deadline = Deadline::after(seconds);
    try {
      socket_.send(request, deadline);
      while (!socket_.readable(Deadline::after(std::min(kLookSeconds, deadline.remaining_milliseconds() / 1000.0))) &&
             !deadline.expired())
        waiting();
      return socket_.expect_frame(deadline).header;
    } catch (const base::RunError&) {
      if (const auto ended = child_.wait(Deadline::after(deadline.expired() ? 0.0 : kEndSeconds)))
        throw base::RunError(fmt::format("the function's process ended with {}", ended->description()));
      if (deadline.expired()) throw base::RunError(fmt::format("no answer within {} s", seconds));
      throw;
    }
  }

  static std::vector<StepReward> steps_of(const json& result) {
    std::vector<StepReward> steps;
    for (const json& step : result.value("steps", json::array()))
      steps.push_back({step.at(0).get<size_t>(), step.at(1).get<double>()});
    return steps;
  }

  static std::optional<std::string> answer_of(const json& result) {
    if (!result.contains("answer")) return std::nullopt;
    return result.at("answer").get<std::string>();
  }

  static host::FrameSocket connect(host::ChildProcess& child) {
    auto [from, to] = child.release_pipes();
    return {std::move(from), std::move(to), "reward worker"};
  }

  host::ChildProcess child_;
  host::ChildLines lines_;  // what the function prints
  host::FrameSocket socket_;
  std::vector<std::string> reserved_;
};

class PythonReward final : public Reward {
 public:
  explicit PythonReward(const PythonSection& options)
      : options_(options), asked_(python_function(options.python)), worker_(started()) {}

  std::vector<RewardResult> score(const std::vector<RewardSample>& samples) override {
    for (const RewardSample& sample : samples) check_columns(sample.example);
    std::vector<RewardResult> results;
    const auto most = static_cast<size_t>(options_.batch_samples.get());
    for (size_t begin = 0; begin < samples.size(); begin += most) {
      const size_t end = std::min(samples.size(), begin + most);
      for (RewardResult& result : score_range(samples, begin, end)) results.push_back(std::move(result));
    }
    return results;
  }

  void check_columns(const json& example) const override {
    for (const std::string& name : reserved_)
      if (example.contains(name))
        throw base::InputError(expectation(
            "reward.python", fmt::format("no data column of the name of an argument that {} has", asked_.function),
            "\"" + name + "\"", fmt::format("another name for it in data.columns: {{{}: new_name}}", name)));
  }

 private:
  std::unique_ptr<PythonWorker> started() {
    auto worker = std::make_unique<PythonWorker>(options_, asked_, [this] { progress(); });
    reserved_ = worker->reserved();
    return worker;
  }

  static json to_json(const std::vector<RewardSample>& samples, size_t begin, size_t end) {
    json list = json::array();
    for (size_t i = begin; i < end; ++i)
      list.push_back({{"prompt", samples[i].prompt},
                      {"completion", samples[i].completion},
                      {"finished", samples[i].finished},
                      {"example", samples[i].example}});
    return list;
  }

  // One call for the whole range, within the time of one sample; when it does not answer in that time or dies, one call
  // per sample, so that only the guilty fail and a slow function still has its time for each.
  std::vector<RewardResult> score_range(const std::vector<RewardSample>& samples, size_t begin, size_t end) {
    std::vector<RewardResult> results;
    std::string error;  // of the call of all
    if (!slow_ || end - begin == 1) {
      error = call(samples, begin, end, results);
      if (error.empty()) return results;
      if (end - begin == 1) return {{std::nullopt, error}};
    }
    bool all_answered = true;
    for (size_t i = begin; i < end; ++i) {
      results.push_back(score_range(samples, i, i + 1).front());
      all_answered = all_answered && worker_ != nullptr;
    }
    if (all_answered && !slow_) {
      slow_ = true;
      base::log_warning(
          "reward.python: {} samples in one call: {}; each alone was answered. From here on each is asked alone. Raise "
          "timeout_seconds if the function works on several at a time.",
          end - begin, error);
    }
    return results;
  }

  // Empty, with the results filled in, or what went wrong; the worker is gone then.
  std::string call(const std::vector<RewardSample>& samples, size_t begin, size_t end,
                   std::vector<RewardResult>& results) {
    try {
      if (!worker_) worker_ = started();
      Answer answer = worker_->score(to_json(samples, begin, end), options_.timeout_seconds, [this] { progress(); });
      progress();
      warn_of_batch_error(answer.batch_error, end - begin);
      if (!answer.trace.empty()) warn_of_raise(samples.at(begin + answer.raised), answer.trace);
      results = std::move(answer.results);
      if (results.size() == end - begin) return "";
      throw base::RunError(fmt::format("{} rewards for {} samples", results.size(), end - begin));
    } catch (const base::RunError& error) {
      worker_.reset();
      results.clear();
      return error.what();
    }
  }

  // A function that compares the samples of a call gives other values when it is asked for each alone: said once.
  void warn_of_batch_error(std::string error, size_t samples) {
    if (error.empty() || batch_error_told_) return;
    batch_error_told_ = true;
    std::ranges::replace(error, '\n', ' ');  // the log's line stays one
    base::log_warning("reward.python: {} failed on {} samples in one call ({}); they were asked one by one",
                      asked_.function, samples, error);
  }

  // The first time that the function raises: where in its file, and on what.
  void warn_of_raise(const RewardSample& sample, std::string_view trace) {
    if (std::exchange(raise_told_, true)) return;
    base::log_warning(
        "reward.python: {} raised on sample {}; later ones are counted in reward/errors.\n{}prompt: {}\n"
        "completion: {}",
        asked_.function, sample.uid, trace, quoted(sample.prompt), quoted(sample.completion));
  }

  PythonSection options_;
  PythonFunction asked_;
  std::vector<std::string> reserved_;     // as PythonWorker has it
  std::unique_ptr<PythonWorker> worker_;  // null before the next call starts one
  bool batch_error_told_ = false;
  bool raise_told_ = false;
  bool slow_ = false;  // several samples take longer together than one may
};

}  // namespace

PythonFunction python_function(const std::string& target) {
  const size_t colon = target.rfind(".py:");
  if (colon == std::string::npos) return {target};
  return {target.substr(0, colon + 3), target.substr(colon + 4)};
}

std::unique_ptr<Reward> python_reward(const PythonSection& options) { return std::make_unique<PythonReward>(options); }

}  // namespace collimate::rlhf
