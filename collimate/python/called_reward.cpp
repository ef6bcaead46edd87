#include "collimate/python/called_reward.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/rlhf/reward/functions.h"
#include "collimate/rlhf/reward/python_answer.h"
#include "collimate/rlhf/reward/reward_section.h"

namespace collimate::python {
namespace {

class CalledReward final : public rlhf::Reward {
 public:
  explicit CalledReward(CalledFunction function) : function_(std::move(function)), warnings_(function_.name) {}

  // A call gets at most as many samples as a call of a function in a file does by default.
  std::vector<rlhf::RewardResult> score(const std::vector<rlhf::RewardSample>& samples) override {
    for (const rlhf::RewardSample& sample : samples) check_columns(sample.example);
    const auto most = static_cast<size_t>(rlhf::PythonSection().batch_samples.get());
    std::vector<rlhf::RewardResult> results;
    for (size_t begin = 0; begin < samples.size(); begin += most) {
      const std::span asked = std::span(samples).subspan(begin, std::min(most, samples.size() - begin));
      for (rlhf::RewardResult& result : call(asked)) results.push_back(std::move(result));
      progress();
    }
    return results;
  }

  void check_columns(const nlohmann::json& example) const override {
    rlhf::refuse_reserved(function_.reserved, function_.name, example);
  }
  bool judges_together() const override { return function_.together; }

 private:
  std::vector<rlhf::RewardResult> call(std::span<const rlhf::RewardSample> asked) {
    constexpr auto kReplace = nlohmann::json::error_handler_t::replace;  // replaces bytes that are no UTF-8
    const std::string text = function_.answer(rlhf::python_request(asked).dump(-1, ' ', false, kReplace));
    rlhf::PythonAnswer answer = rlhf::parse_python_answer(nlohmann::json::parse(text));
    warnings_.tell(answer, asked, told_of_raise());
    COLLIMATE_CHECK(answer.results.size() == asked.size(), "{} gave {} results for {} samples", function_.name,
                    answer.results.size(), asked.size());
    return std::move(answer.results);
  }

  CalledFunction function_;
  rlhf::PythonWarnings warnings_;
};

}  // namespace

CalledRewards::CalledRewards(const std::vector<CalledFunction>& functions) : CalledRewards() {
  for (const CalledFunction& function : functions) {
    rlhf::register_reward(function.name, [function](const nlohmann::json& entry) -> std::unique_ptr<rlhf::Reward> {
      rlhf::read_entry<rlhf::FunctionSection>(entry);  // refuses other keys, as the function has none of its own
      return std::make_unique<CalledReward>(function);
    });
    names_.push_back(function.name);
  }
}

CalledRewards::~CalledRewards() {
  for (const std::string& name : names_) rlhf::unregister_reward(name);
}

}  // namespace collimate::python
