#include "collimate/rlhf/reward/python_reward.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/base/nearest_path.h"
#include "collimate/host/child_lines.h"
#include "collimate/host/child_process.h"
#include "collimate/host/frame_socket.h"
#include "collimate/host/python.h"
#include "collimate/host/sandbox.h"
#include "collimate/rlhf/reward/python_answer.h"

namespace collimate::rlhf {
namespace {

using base::Deadline;
using base::expectation;
using nlohmann::json;

host::Sandbox sandbox_of(const PythonSection& options, const PythonFunction& asked) {
  constexpr double kGib = 1 << 30;
  for (const std::string& path : options.readable)
    if (!std::filesystem::exists(path))
      throw base::InputError(expectation("reward.readable", "files and directories that are there", path));
  return {.network = options.network,
          .environment = options.environment,
          .readable = options.readable,
          .files = {asked.file},
          .memory_bytes = static_cast<int64_t>(options.memory_gib.get() * kGib),
          .processes = options.processes,
          .cpu_seconds = options.cpu_seconds};
}

std::string interpreter_of(const PythonSection& options) {
  return options.interpreter->empty() ? host::python_interpreter() : options.interpreter.get();
}

host::ChildOptions child_of(const PythonSection& options, const PythonFunction& asked) {
  host::ChildOptions child =
      host::python_module(interpreter_of(options), "reward_worker", {asked.file, asked.function});
  if (options.sandbox != PythonSection::kNoSandbox) child = host::in_sandbox(child, sandbox_of(options, asked));
  child.errors = host::ChildStream::kPipe;
  return child;
}

// Passes text that a function prints on to the log, of each call only the first kMostBytes.
class PrintedLines {
 public:
  void begin_call() { left_ = kMostBytes; }
  void pass_on(const std::string& line) {
    const int64_t before = left_.fetch_sub(static_cast<int64_t>(line.size()) + 1);
    if (before > 0)
      host::ChildLines::to_log(line.substr(0, static_cast<size_t>(before)));
    else if (!told_.exchange(true))
      base::log_warning("reward.python: the function printed more than {} KiB in one call; what is beyond is left out",
                        kMostBytes >> 10);
  }

 private:
  static constexpr int64_t kMostBytes = int64_t{1} << 18;
  std::atomic<int64_t> left_{kMostBytes};
  std::atomic<bool> told_{false};
};

// Returns read(), which reads an answer. Throws RunError if the answer has another form, which may happen, as the
// user's function shares the process that answers.
template <class Read>
auto parsed(const Read& read) {
  try {
    return read();
  } catch (const json::exception& error) {
    throw base::RunError(fmt::format("the function's process gave an answer of another form: {}", error.what()));
  }
}

// A Barrier is what Python says where the sandbox keeps a function from something, and what to do about it.
struct Barrier {
  std::string_view said, remedy;
};
constexpr std::string_view kNoNetwork = "network: true beside python, without which the sandbox has no network";
constexpr Barrier kBarriers[] = {
    {"Read-only file system",
     "printing it, as the function may change no file in the sandbox, or sandbox: none beside python"},
    {"name resolution", kNoNetwork},
    {"Network is unreachable", kNoNetwork},
    {"FileNotFoundError: ",
     "readable: [FILE] beside python if the file exists, as the sandbox shows the function few files"},
    {"MemoryError", "a larger memory_gib beside python, or a function that needs less memory"}};

// Returns an error of the function with what to do where the sandbox has caused it.
std::string with_remedy(const std::string& error, const PythonSection& options) {
  if (options.sandbox == PythonSection::kNoSandbox) return error;
  for (const Barrier& barrier : kBarriers)
    if (error.find(barrier.said) != std::string::npos && !(options.network && barrier.remedy == kNoNetwork))
      return fmt::format("{}; try {}", error, barrier.remedy);
  return error;
}

// The worker process tells these facts about the function.
struct FunctionFacts {
  std::vector<std::string> reserved;  // names that columns of the data may not have, as other arguments have them
  bool together = false;              // the function is called with several samples
};

// Reads the answer to the first frame. Throws InputError if it says that the sandbox or the import has failed.
FunctionFacts function_facts(const json& answer, const PythonSection& options, const PythonFunction& asked) {
  const auto text = [&](const char* key) { return answer.at(key).get<std::string>(); };
  if (answer.contains("refused"))
    throw base::InputError(
        expectation("reward.sandbox", text("refused"), text("got"),
                    text("remedy") + ", or sandbox: none, with which the function may do all that you may"));
  if (answer.contains("error")) {
    const std::filesystem::path file = asked.file;
    const bool directory = std::filesystem::is_directory(file);
    const bool lacks_module = text("error").starts_with("ModuleNotFoundError");
    const std::string near =
        directory                        ? base::nearest_file(file / "reward.py", {".py"})
        : !std::filesystem::exists(file) ? base::nearest_file(file, {".py"})
        : !lacks_module                  ? ""
                        : fmt::format("installing it for {}, or interpreter: PYTHON beside python, which has it",
                                      interpreter_of(options));
    throw base::InputError(
        expectation("reward.python", fmt::format("{} to define {}", asked.file, asked.function), text("error"), near) +
        text("trace"));
  }
  return {answer.at("reserved"), answer.at("together")};
}

// These limits are for a peer that may write anything, as slowly as it likes.
constexpr host::FrameLimits kAnswerLimits{
    .header_bytes = uint64_t{64} << 20, .buffers = 0, .total_bytes = 0, .bytes_renew = false};

// One worker process that has imported the user's file.
class PythonWorker {
 public:
  // `waiting` is called again and again until an answer comes, here and in score(), both of which have deadlines of
  // their own.
  PythonWorker(const PythonSection& options, const PythonFunction& asked, const std::function<void()>& waiting)
      : child_(child_of(options, asked)),
        lines_(child_.errors(), [this](const std::string& line) { printed_.pass_on(line); }),
        socket_(connect(child_)) {
    facts_ = parsed([&] { return function_facts(imported(options, asked, waiting), options, asked); });
  }

  const FunctionFacts& facts() const { return facts_; }

  // Throws RunError that says what came instead of an answer; the worker must not be used any more then.
  PythonAnswer score(const json& request, double seconds, const std::function<void()>& waiting) {
    printed_.begin_call();
    return parsed([&] { return parse_python_answer(ask(request, seconds, waiting)); });
  }

 private:
  json imported(const PythonSection& options, const PythonFunction& asked, const std::function<void()>& waiting) {
    try {
      return ask(json{{"hello", 1}}, options.start_timeout_seconds, waiting);
    } catch (const base::RunError& error) {
      throw base::RunError(expectation("reward.python", fmt::format("{} to be imported", asked.file), error.what(),
                                       "less work outside of the function, a larger start_timeout_seconds beside "
                                       "python, or another interpreter"));
    }
  }

  // Throws RunError that says how the process has ended, that the time is over, or what is wrong with the answer.
  json ask(const json& request, double seconds, const std::function<void()>& waiting) {
    constexpr double kLookSeconds = 0.1, kEndSeconds = 1.0;  // the process may take kEndSeconds to end after its pipe
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

  static host::FrameSocket connect(host::ChildProcess& child) {
    auto [from, to] = child.release_pipes();
    return {std::move(from), std::move(to), "reward worker", kAnswerLimits};
  }

  PrintedLines printed_;
  host::ChildProcess child_;
  host::ChildLines lines_;  // what the function prints
  host::FrameSocket socket_;
  FunctionFacts facts_;
};

class PythonReward final : public Reward {
 public:
  explicit PythonReward(const PythonSection& options)
      : options_(options), asked_(python_function(options.python)), worker_(started()), warnings_(asked_.function) {
    if (options.sandbox == PythonSection::kNoSandbox)
      base::log_warning("reward.python: {} runs without a sandbox: it may do all that you may", asked_.file);
  }

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

  void check_columns(const json& example) const override { refuse_reserved(facts_.reserved, asked_.function, example); }
  bool judges_together() const override { return facts_.together; }

 private:
  std::unique_ptr<PythonWorker> started() {
    auto worker = std::make_unique<PythonWorker>(options_, asked_, [this] { progress(); });
    facts_ = worker->facts();
    return worker;
  }

  // Scores the range in one call, within the time of one sample. If the worker does not answer in that time or dies,
  // each sample gets a call of its own, so that only the guilty ones fail and a slow function has its time for each.
  std::vector<RewardResult> score_range(const std::vector<RewardSample>& samples, size_t begin, size_t end) {
    std::vector<RewardResult> results;
    std::string error;  // of the call with the whole range
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
          "reward.python: {} samples in one call: {}; asked one by one, each was answered. From here on, each is asked "
          "alone. Raise "
          "timeout_seconds if the function works on several at a time.",
          end - begin, error);
    }
    return results;
  }

  // Calls the function once and fills in the results. Returns "", or what went wrong; the worker is then gone.
  std::string call(const std::vector<RewardSample>& samples, size_t begin, size_t end,
                   std::vector<RewardResult>& results) {
    try {
      if (!worker_) worker_ = started();
      const std::span asked = std::span(samples).subspan(begin, end - begin);
      PythonAnswer answer = worker_->score(python_request(asked), options_.timeout_seconds, [this] { progress(); });
      progress();
      warnings_.tell(answer, asked, told_of_raise());
      results = std::move(answer.results);
      for (RewardResult& result : results) result.error = with_remedy(result.error, options_);
      if (results.size() == end - begin) return "";
      throw base::RunError(fmt::format("{} rewards for {} samples", results.size(), end - begin));
    } catch (const base::RunError& error) {
      worker_.reset();
      results.clear();
      return error.what();
    }
  }

  PythonSection options_;
  PythonFunction asked_;
  FunctionFacts facts_;                   // of the last worker that started
  std::unique_ptr<PythonWorker> worker_;  // null: the next call starts one
  PythonWarnings warnings_;
  bool slow_ = false;  // several samples together take longer than one may, so that each is asked alone
};

}  // namespace

void PythonSection::section_demands(const std::string& path) const {
  if (sandbox != kNoSandbox) return;
  const std::string expected = fmt::format("nothing with sandbox: {}, which limits nothing", kNoSandbox);
  if (network) network.item_refuse(path, expected);
  if (!environment->empty()) environment.item_refuse(path, expected);
  if (!readable->empty()) readable.item_refuse(path, expected);
}

PythonFunction python_function(const std::string& target) {
  const size_t colon = target.rfind(".py:");
  if (colon == std::string::npos) return {target};
  return {target.substr(0, colon + 3), target.substr(colon + 4)};
}

std::unique_ptr<Reward> python_reward(const PythonSection& options) { return std::make_unique<PythonReward>(options); }

}  // namespace collimate::rlhf
