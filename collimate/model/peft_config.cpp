#include "collimate/model/peft_config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>
#include <string_view>

#include "collimate/base/error.h"
#include "collimate/base/json.h"
#include "collimate/host/file_io.h"
#include "collimate/shape/fields.h"
#include "collimate/shape/text_part.h"

namespace collimate::model {
namespace {

using base::expectation;
using base::InputError;
using nlohmann::json;
using shape::Fields;

constexpr int64_t kDefault = 8;  // PEFT's rank and alpha
constexpr const char* kMerged = "merging them with PEFT's merge_and_unload";

bool is_empty(const json& value) { return value.is_null() || value == false || value.empty(); }

std::regex end_of(const std::string& key) { return std::regex("(?:.*\\.)?(?:" + key + ")"); }

// Returns the names in a list, or the one name if the value is a text.
std::vector<std::string> names_of(const Fields& fields, const char* key) {
  if (!fields.has(key)) return {};
  const json& value = fields.raw(key);
  const json list = value.is_string() ? json::array({value}) : value;
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), [](const json& name) { return name.is_string(); }))
    throw InputError(expectation(fields.at(key), "names of modules", value.dump()));
  return list.get<std::vector<std::string>>();
}

// Returns the layers that a config lists; none if it chooses layers in another way too. Whole names are turned into
// those of the language model alone.
std::vector<std::string> listed_targets(const Fields& fields) {
  for (const char* key : {"exclude_modules", "layers_to_transform"})
    if (fields.has(key) && !is_empty(fields.raw(key))) return {};
  if (!fields.has("target_modules") || !fields.raw("target_modules").is_array()) return {};
  std::vector<std::string> targets;
  for (const std::string& name : names_of(fields, "target_modules"))
    if (const auto alone = shape::text_part_name(name)) targets.push_back(*alone);
  return targets;
}

}  // namespace

PeftConfig::PeftConfig(const std::string& directory) : where_(directory + "/adapter_config.json") {
  const auto ordered = base::parse_ordered_json(host::read_file(where_), where_, 1);
  const json config = ordered;
  if (!config.is_object()) throw InputError(expectation(where_, "a JSON object", config.type_name()));
  refuse_others(config);
  const Fields fields(config, where_);
  rank_ = fields.count_or("r", shape::kMaxHidden, kDefault);
  alpha_ = fields.real_or("lora_alpha", kDefault);
  rslora_ = fields.flag_or("use_rslora", false);
  dora_ = fields.flag_or("use_dora", false);
  ranks_ = read_patterns(ordered, "rank_pattern");
  alphas_ = read_patterns(ordered, "alpha_pattern");
  saved_ = names_of(fields, "modules_to_save");
  parameters_ = names_of(fields, "target_parameters");
  targets_ = listed_targets(fields);
}

void PeftConfig::refuse_others(const json& config) const {
  const Fields fields(config, where_);
  if (const std::string type = fields.text_or("peft_type", ""); type != "LORA")
    throw InputError(expectation(fields.at("peft_type"), "LORA", "'" + type + "'", kMerged));
  if (const std::string bias = fields.text_or("bias", "none"); bias != "none")
    throw InputError(expectation(fields.at("bias"), "none", "'" + bias + "'", kMerged));
  for (const char* key : {"lora_bias", "use_qalora", "use_bdlora", "layer_replication", "trainable_token_indices",
                          "alora_invocation_tokens", "arrow_config", "kasa_config", "monteclora_config"})
    if (config.contains(key) && !is_empty(config.at(key)))
      throw InputError(expectation(fields.at(key), "none", config.at(key).dump(), kMerged));
  // All other kinds begin by changing the model's own weights.
  const json begin = config.value("init_lora_weights", json(true));
  for (const json& plain : json::array({true, false, nullptr, "gaussian", "eva", "orthogonal"}))
    if (begin == plain) return;
  throw InputError(
      expectation(fields.at("init_lora_weights"), "a kind that leaves the model's own weights", begin.dump(), kMerged));
}

std::vector<PeftConfig::Pattern> PeftConfig::read_patterns(const nlohmann::ordered_json& config,
                                                           const char* key) const {
  std::vector<Pattern> patterns;
  if (!config.contains(key) || config.at(key).is_null()) return patterns;
  const std::string where = where_ + " " + key;
  if (!config.at(key).is_object()) throw InputError(expectation(where, "an object", config.at(key).dump()));
  for (const auto& [name, value] : config.at(key).items()) {
    if (!value.is_number() || !(value.get<double>() > 0) || value.get<double>() > shape::kMaxCount)
      throw InputError(expectation(where + "." + name, "a positive number", value.dump()));
    patterns.push_back({name, value.get<double>()});
    try {
      end_of(name);
    } catch (const std::regex_error& error) {
      throw InputError(expectation(where, "a regular expression as key", name + ": " + error.what()));
    }
  }
  return patterns;
}

double PeftConfig::value_of(const std::vector<Pattern>& patterns, const std::string& module, double otherwise) {
  const auto found = std::find_if(patterns.begin(), patterns.end(), [&](const Pattern& pattern) {
    return std::regex_match(module, end_of(pattern.key));
  });
  return found == patterns.end() ? otherwise : found->value;
}

int64_t PeftConfig::rank_of(const std::string& module) const {
  return static_cast<int64_t>(value_of(ranks_, module, static_cast<double>(rank_)));
}

float PeftConfig::scale_of(const std::string& module) const {
  return LoraOptions{.rank = rank_of(module), .alpha = alpha_of(module), .rslora = rslora_}.scale();
}

double PeftConfig::alpha_of(const std::string& module) const { return value_of(alphas_, module, alpha_); }

bool PeftConfig::is_saved(const std::string& module) const {
  for (size_t end = module.find('.');; end = module.find('.', end + 1)) {
    const std::string_view whole = std::string_view(module).substr(0, end);  // the module, or one that it lies in
    if (std::ranges::any_of(saved_, [&](const std::string& name) { return whole.ends_with(name); })) return true;
    if (end == std::string::npos) return false;
  }
}

LoraOptions PeftConfig::options(const std::vector<std::string>& modules, const std::vector<std::string>& saved) const {
  std::vector<std::string> whole;  // by last parts of names; a score head is trained in any case
  for (const std::string& tensor : saved) {
    const std::string module = tensor.substr(0, tensor.rfind('.')), last = module.substr(module.rfind('.') + 1);
    if (module != "score" && std::ranges::count(whole, last) == 0) whole.push_back(last);
  }
  std::vector<std::string> targets;  // without names that fit none of `modules`
  for (const std::string& target : targets_)
    if (std::ranges::any_of(modules, [&](const std::string& module) { return ("." + module).ends_with("." + target); }))
      targets.push_back(target);
  return {.rank = rank_,
          .alpha = alpha_,
          .rslora = rslora_,
          .targets = targets.empty() ? modules : targets,
          .modules_to_save = whole,
          .dora = dora_};
}

}  // namespace collimate::model
