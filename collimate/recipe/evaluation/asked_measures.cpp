#include "collimate/recipe/evaluation/asked_measures.h"

#include <set>

#include "collimate/base/error.h"
#include "collimate/recipe/data.h"
#include "collimate/recipe/list.h"
#include "collimate/rlhf/reward/reward.h"

namespace collimate::recipe {
namespace {

using base::ConfigNode;
using base::expectation;
using base::InputError;

// Is an entry of evaluation.measure. Options of a measure that it leaves out are as `evaluation` has them.
struct EntrySection : MeasureOptions {
  COLLIMATE_OPTION(std::string, measure, "", "", "perplexity, pairs, completions, choices, marked or steps");
  COLLIMATE_OPTION(std::string, name, "", "", "stands before its metrics: val/NAME/accuracy");
  COLLIMATE_OPTION(nlohmann::json, data, nullptr, "", "as data.eval, which it takes by default");
};

constexpr const char* kMeasure = "measure";

// Throws InputError for options of drawing and judging where whole rows are measured as they are.
void refuse_drawing(const ConfigNode& entry, const std::string& path, MeasureKind measured) {
  static const std::set<std::string> of_every_kind = {kMeasure, "name", "data", "examples"};
  for (size_t i = 0; i < entry.keys.size(); ++i)
    if (measured != MeasureKind::kCompletions && !of_every_kind.contains(entry.keys[i]))
      throw InputError(expectation(entry.children[i].where,
                                   fmt::format("no {}.{} with the measure {}, for which no completion is drawn and "
                                               "judged",
                                               path, entry.keys[i], words_of(measured).name(measured)),
                                   base::to_json(entry.children[i]).dump(), "leaving it out"));
}

nlohmann::json resolved_entry(const ConfigNode& entry, const std::string& path) {
  if (entry.kind == ConfigNode::Kind::kScalar) {
    words_of(MeasureKind()).parse(entry.where, entry.text);
    return entry.text;
  }
  EntrySection given;
  base::apply(entry, path, given);
  const MeasureKind measured = words_of(MeasureKind()).parse(entry.where, given.measure.get());
  refuse_drawing(entry, path, measured);
  if (given.name->find('/') != std::string::npos)
    throw InputError(expectation(given.name.where(), path + ".name to be without a slash", given.name.get()));
  nlohmann::json resolved = base::to_json(entry);
  if (const ConfigNode* rewards = entry.find("reward"))
    resolved["reward"] = rlhf::resolved_rewards(*rewards, path + ".reward");
  if (const ConfigNode* data = entry.find("data")) check_source_keys(*data, path + ".data");
  return resolved;
}

AskedMeasure by_default(const Config& config) {
  AskedMeasure asked{.data = config.data.eval};
  nlohmann::json options = base::to_json(config.evaluation.section_value());
  options.erase(kMeasure);
  base::apply(options, asked.key, asked.options);
  return asked;
}

AskedMeasure asked_by(const nlohmann::json& entry, const std::string& key, const Config& config) {
  EntrySection given;
  nlohmann::json options = base::to_json(config.evaluation.section_value());
  options.erase(kMeasure);
  options.update(entry.is_string() ? nlohmann::json{{kMeasure, entry}} : entry);
  base::apply(options, key, given);
  AskedMeasure asked = by_default(config);
  asked.key = key;
  asked.measured = words_of(MeasureKind()).parse(key, given.measure.get());
  asked.name = given.name;
  for (const char* own : {kMeasure, "name", "data"}) options.erase(own);
  base::apply(options, key, asked.options);
  if (!given.data->is_null()) {
    asked.data = given.data;
    asked.data_key = key + ".data";
  } else if (!config.data.holds_out()) {
    throw InputError(expectation(asked.key, "held-out data to measure", "neither data of its own nor data.eval",
                                 fmt::format("{{measure: {}, data: FILE}}, or data.eval: FILE", given.measure.get())));
  }
  return asked;
}

}  // namespace

rlhf::RowKind rows_of(MeasureKind measured) {
  if (measured == MeasureKind::kCompletions) return rlhf::RowKind::kPrompt;
  if (measured == MeasureKind::kMarked) return rlhf::RowKind::kMarked;
  if (measured == MeasureKind::kSteps) return rlhf::RowKind::kSteps;
  return measured == MeasureKind::kPairs ? rlhf::RowKind::kPreference : rlhf::RowKind::kDemonstration;
}

int64_t completion_tokens(const AskedMeasure& asked, const Config& config) {
  const bool draws = find_recipe(config.recipe).rows == rlhf::RowKind::kPrompt;
  const int64_t usual = draws ? config.rollout.completion_tokens.get() : generate::SamplingParams().max_tokens;
  return asked.options.max_tokens->value_or(usual);
}

int64_t longest_row(const Config& config, const AskedMeasure& asked) {
  const bool drawn = find_recipe(config.recipe).rows == rlhf::RowKind::kPrompt;
  if (asked.measured.value_or(drawn ? MeasureKind::kCompletions : MeasureKind::kPerplexity) !=
      MeasureKind::kCompletions)
    return config.data.max_tokens;
  return (drawn ? config.rollout.prompt_tokens : config.data.max_tokens) + completion_tokens(asked, config);
}

std::vector<AskedMeasure> asked_measures(const Config& config) {
  const nlohmann::json& list = config.evaluation.measure;
  if (list.is_null()) return config.data.holds_out() ? std::vector{by_default(config)} : std::vector<AskedMeasure>();
  if (!list.is_array()) return {asked_by(list, "evaluation.measure", config)};
  std::vector<AskedMeasure> asked;
  for (const nlohmann::json& entry : list)
    asked.push_back(asked_by(entry, fmt::format("evaluation.measure.{}", asked.size()), config));
  return asked;
}

nlohmann::json hashed_measures(const nlohmann::json& list) {
  if (list.is_object()) return hashed_measures(nlohmann::json::array({list})).at(0);
  nlohmann::json hashed = list;
  for (nlohmann::json& entry : hashed)
    if (entry.is_object() && entry.contains("reward")) entry["reward"] = rlhf::hashed_rewards(entry["reward"]);
  return hashed;
}

nlohmann::json resolved_measures(const ConfigNode& list, const std::string& path) {
  if (list.kind != ConfigNode::Kind::kList) return resolved_entry(list, path);
  nlohmann::json out = nlohmann::json::array();
  for (const ConfigNode& entry : list.children)
    out.push_back(resolved_entry(entry, fmt::format("{}.{}", path, out.size())));
  return out;
}

}  // namespace collimate::recipe
