#include <cmath>
#include <map>

#include "collimate/recipe/evaluation/of_models.h"
#include "collimate/recipe/placement.h"

namespace collimate::recipe {
namespace {

using Json = nlohmann::ordered_json;

Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json estimate_json(const Estimate& found) {
  return {{"value", number_or_null(found.value)},
          {"standard_error", number_or_null(found.standard_error)},
          {"units", found.units}};
}

Json model_json(const ModelEvaluation& made) {
  Json metrics = Json::object();
  for (const Measure& measure : made.measures) metrics[measure.name] = estimate_json(estimate(measure));
  return {{"model", made.model},       {"rows", made.rows},
          {"left_out", made.left_out}, {"failed_rewards", made.failed_rewards},
          {"seconds", made.seconds},   {"metrics", std::move(metrics)}};
}

Json difference_json(const ModelEvaluation& first, const ModelEvaluation& second) {
  Json metrics = Json::object();
  for (size_t i = 0; i < first.measures.size(); ++i)
    metrics[first.measures[i].name] = estimate_json(paired_difference(first.measures[i], second.measures.at(i)));
  return {{"from", first.model}, {"to", second.model}, {"metrics", std::move(metrics)}};
}

// Returns the settings on which the numbers depend beside model and data.
Json settings_of(const EvaluationCall& call, MeasureKind measured) {
  Json settings = {{"compute", call.compute},
                   {"chat_template", call.chat_template},
                   {"chat_template_kwargs", call.chat_template_kwargs},
                   {"examples", call.section.value("examples", 0)}};
  if (const int64_t parts = sum_parts(call.reduction_chunks, call.layout.value("tp", 1)); parts > 1)
    settings["reduction_chunks"] = parts;
  if (measured != MeasureKind::kCompletions) return settings;
  settings.update(call.section);
  settings["latent_cache"] = call.latent_cache;
  settings["max_tokens"] = call.completion_tokens;
  settings["seed"] = call.seed;
  return settings;
}

// Returns the units in the order of the first model that has them, with what every model made of each.
Json samples_json(const std::vector<ModelEvaluation>& models) {
  Json samples = Json::array();
  std::map<int64_t, size_t> place;
  for (const ModelEvaluation& made : models)
    for (const ShownUnit& unit : made.shown) {
      if (place.try_emplace(unit.uid, samples.size()).second)
        samples.push_back({{"prompt", unit.prompt}, {"expected", unit.expected}, {"models", Json::array()}});
      samples.at(place.at(unit.uid))["models"].push_back({{"model", made.model}, {"outputs", unit.outputs}});
    }
  return samples;
}

}  // namespace

Json evaluation_document(const EvaluationCall& call, const std::vector<ModelEvaluation>& models) {
  const ModelEvaluation& first = models.at(0);
  Json document = {
      {"data", call.data},       {"measure", first.measured},    {"settings", settings_of(call, first.measured)},
      {"models", Json::array()}, {"differences", Json::array()}, {"sample_values", first.values}};
  for (const ModelEvaluation& made : models) document["models"].push_back(model_json(made));
  for (size_t i = 1; i < models.size(); ++i) document["differences"].push_back(difference_json(first, models[i]));
  document["samples"] = samples_json(models);
  return document;
}

}  // namespace collimate::recipe
