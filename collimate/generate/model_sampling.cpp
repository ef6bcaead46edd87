#include "collimate/generate/model_sampling.h"

#include <nlohmann/json.hpp>

#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/text/files.h"

namespace collimate::generate {
namespace {

constexpr const char* kDoSample = "do_sample";
constexpr const char* kModelKeys[] = {"temperature", "top_p", "top_k", "min_p", "repetition_penalty"};

[[noreturn]] void refuse_file(const std::string& message) {
  const bool advised = message.find("; try ") != std::string::npos;
  throw base::InputError(advised ? message : fmt::format("{}; try --generation-config none", message));
}

// Returns the values that the file gives to options, by their names.
nlohmann::ordered_json values_of(const nlohmann::json& config, const std::string& file) {
  if (!config.is_object()) refuse_file(base::expectation(file, "a JSON object", config.type_name()));
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
  for (const char* key : kModelKeys)
    if (const auto found = config.find(key); found != config.end() && !found->is_null()) values[key] = *found;
  if (const auto all = values.find("top_k"); all != values.end() && *all == -1) *all = 0;
  const auto draws = config.find(kDoSample);
  if (draws == config.end() || draws->is_null()) return values;
  if (!draws->is_boolean())
    refuse_file(base::expectation(file, fmt::format("{} to be true or false", kDoSample), draws->dump()));
  if (!draws->get<bool>()) values["temperature"] = 0.0;
  return values;
}

// Returns whether the user has set the option. All options that generation_config.json sets are numbers.
bool is_set(const base::Section& options, const std::string& name) {
  for (const base::ConfigItem* item : options.section_items()) {
    if (item->item_name() != name) continue;
    if (const auto* real = dynamic_cast<const base::Option<double>*>(item)) return !real->where().empty();
    if (const auto* whole = dynamic_cast<const base::Option<int64_t>*>(item)) return !whole->where().empty();
  }
  COLLIMATE_CHECK(false, "{} is no number among the options of sampling", name);
}

}  // namespace

ModelSampling take_model_sampling(const std::string& directory, SamplingOptions& options) {
  ModelSampling taken{.file = text::generation_config_path(directory), .values = ""};
  if (!text::file_exists(taken.file)) return taken;
  nlohmann::json given = nlohmann::json::object();
  const nlohmann::ordered_json values = values_of(text::read_json_file(taken.file), taken.file);
  for (const auto& [key, value] : values.items()) {
    if (is_set(options, key)) continue;
    given[key] = value;
    taken.values += fmt::format("{}{} {}", taken.values.empty() ? "" : ", ", key, value.dump());
  }
  try {
    base::apply(given, taken.file, options);
  } catch (const base::InputError& error) {
    refuse_file(error.what());
  }
  return taken;
}

}  // namespace collimate::generate
