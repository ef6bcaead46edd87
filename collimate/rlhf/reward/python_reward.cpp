#include "collimate/rlhf/reward/python_reward.h"

#include <algorithm>
#include <span>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/rlhf/reward/python_answer.h"
#include "collimate/rlhf/reward/python_process.h"

namespace collimate::rlhf {
namespace {

using nlohmann::json;

// The worker process tells these facts about the function.
struct FunctionFacts {
  std::vector<std::string> reserved;  // names that columns of the data may not have, as other arguments have them
  bool together = false;              // the function is called with several samples
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
  std::unique_ptr<PythonProcess> started() {
    auto worker = std::make_unique<PythonProcess>(options_, "reward_worker", asked_, "python", [this] { progress(); });
    facts_ = worker->facts([](const json& told) { return FunctionFacts{told.at("reserved"), told.at("together")}; });
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
      PythonAnswer answer = worker_->ask(
          python_request(asked), options_.timeout_seconds, [this] { progress(); }, parse_python_answer);
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
  FunctionFacts facts_;                    // of the last worker that started
  std::unique_ptr<PythonProcess> worker_;  // null: the next call starts one
  PythonWarnings warnings_;
  bool slow_ = false;  // several samples together take longer than one may, so that each is asked alone
};

}  // namespace

std::unique_ptr<Reward> python_reward(const PythonSection& options) { return std::make_unique<PythonReward>(options); }

}  // namespace collimate::rlhf
