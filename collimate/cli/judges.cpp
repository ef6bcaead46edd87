#include "collimate/cli/judges.h"

#include "collimate/base/config.h"
#include "collimate/base/config_yaml.h"
#include "collimate/base/error.h"
#include "collimate/base/log.h"

namespace collimate::cli {
namespace {

nlohmann::json reward_entry(const std::string& text) {
  nlohmann::json entry = name_or_map(text, "--reward");
  if (!entry.is_string()) return entry;
  if (text.starts_with("http://") || text.starts_with("https://")) return {{"http", text}};
  const bool python = text.ends_with(".py") || text.find(".py:") != std::string::npos;
  return {{python ? "python" : "rule", text}};
}

}  // namespace

nlohmann::json name_or_map(const std::string& text, const std::string& where) {
  if (!text.starts_with('{')) return text;
  const base::ConfigNode node = base::parse_yaml_value(text, where);
  if (node.kind != base::ConfigNode::Kind::kMap)
    throw base::InputError(base::expectation(where, "a map in braces, {key: value}", text));
  return base::to_json(node);
}

nlohmann::json rewards_of(const std::vector<std::string>& values) {
  if (values.empty()) return nullptr;
  nlohmann::json list = nlohmann::json::array();
  for (const std::string& value : values) list.push_back(reward_entry(value));
  for (const nlohmann::json& entry : list)
    if (entry.contains("gym"))
      throw base::InputError(base::expectation("--reward", "rewards of completions in one turn",
                                               entry.dump() + ", an environment that answers turns",
                                               "data.eval of the run, which is measured in turns"));
  return rlhf::resolved_rewards(base::from_json(list, "--reward"), "--reward");
}

Judges::Judges(const nlohmann::json& list) : rewards_(rlhf::make_rewards(list)) {}

void Judges::try_on(const std::string& data, const recipe::TruthRows& rows) const {
  recipe::require_rewards(data, rewards_, rows);
}

std::vector<std::optional<double>> Judges::score(const std::vector<rlhf::RewardSample>& samples) {
  const rlhf::ScoredSamples scored = rlhf::score_samples(rewards_, samples);
  if (errors_ == 0 && scored.errors > 0) first_error_ = fmt::format("{}; {}", scored.first_error, scored.first_effect);
  errors_ += scored.errors;
  std::vector<std::optional<double>> values;
  for (size_t i = 0; i < samples.size(); ++i)
    values.push_back(scored.kept[i] ? std::optional<double>(scored.rewards[i]) : std::nullopt);
  return values;
}

void Judges::warn_of_failures() const {
  if (errors_ > 0) base::log_warning("failed rewards: {}; the first: {}", errors_, first_error_);
}

}  // namespace collimate::cli
