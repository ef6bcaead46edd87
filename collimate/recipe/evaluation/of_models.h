#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "collimate/base/fields.h"
#include "collimate/recipe/evaluation/asked_measures.h"
#include "collimate/recipe/evaluation/measure.h"
#include "collimate/recipe/left_out.h"
#include "collimate/recipe/option_names.h"
#include "collimate/text/dataset.h"

// This file evaluates a model outside of a run, by the graphs and measures of a run's own evaluation, on the data
// alone.
namespace collimate::recipe {

// Says what is asked of each model.
struct EvaluationCall {
  nlohmann::json data;                                // as a config's data.eval
  std::optional<MeasureKind> measured;                // nothing: what measured_of() says
  nlohmann::json section = nlohmann::json::object();  // of a config's `evaluation`: reward, examples, sampling
  int64_t completion_tokens = 128;
  int64_t seed = 0;
  std::string compute = "float32";
  bool latent_cache = false;
  int64_t reduction_chunks = 1;
  // These are keys of a config: devices, how they share the model (tp, pp, cp, cp_kind, ep, zero), and cluster. A key
  // that is absent has the config's default.
  nlohmann::json layout = nlohmann::json::object();
  std::string chat_template = "auto";
  nlohmann::json chat_template_kwargs = nlohmann::json::object();
  rlhf::RowChoices rows = {};  // questions with choices are left out whole, and never cut
  OptionNames names = {};
  bool try_rewards = true;                  // tries the rewards on the first rows, before a model draws
  bool lines = false;                       // fills ModelEvaluation::lines
  std::function<void()> on_poll = nullptr;  // several times a second; what it throws ends the evaluation
};

// Returns what the rows ask for: completions with `rewards`, else by the columns of the first row choices, pairs
// (chosen and rejected), marked (a completion and a label) or perplexity (a completion). Throws InputError where
// nothing of that fits.
MeasureKind measured_of(const text::Dataset& dataset, bool rewards);

// ShownUnit is a unit of the data with what a model made of it: completions with rewards, or given answers with their
// scores.
struct ShownOutput {
  std::string text;
  double value = 0;

  COLLIMATE_FIELDS(text, value)
};
struct ShownUnit {
  int64_t uid = 0;
  std::string prompt, expected;
  std::vector<ShownOutput> outputs;
};

struct ModelEvaluation {
  std::string model;
  MeasureKind measured = MeasureKind::kCompletions;
  std::string values;  // what ShownOutput::value is: "reward"
  std::vector<Measure> measures;
  std::vector<ShownUnit> shown;  // the first ones of the data
  // Where lines are asked for, each completion that was judged has one: the row as rewards see it (a column that has
  // one of the following names is called data_NAME), "sample" of several, "completion", "finish" and "reward".
  std::vector<nlohmann::ordered_json> lines;
  int64_t rows = 0;                   // that the model has read or drawn
  std::vector<LeftOutRows> left_out;  // of the data, and rows that were cut
  double failed_rewards = 0;
  double seconds = 0;
};

// Reads the data and measures one model, a directory, on the devices that are asked for, here or in processes of their
// own. Blocks until that is done. Throws InputError for a layout that does not fit the model, data that does not fit
// what is measured, an option that the measure does not read, lines where nothing is completed, a row longer than the
// model has positions, or rewards that cannot judge the first rows. Warns of rewards that failed.
ModelEvaluation evaluate(const std::string& model, const EvaluationCall& call);

// Measures each model in turn, by what the first one's rows ask for, which it notes in `call`. Rewards are tried once.
// A name as on a hub is looked for in the local cache, and downloaded where `download`.
std::vector<ModelEvaluation> evaluate_each(const std::vector<std::string>& models, EvaluationCall& call, bool download);

// Returns all that was measured as one document: {"data", "measure", "settings", "models": [{"model", "rows",
// "left_out", "failed_rewards", "seconds", "metrics": {NAME: {"value", "standard_error", "units"}}}], "differences": of
// each model after the first from it, with such "metrics", "sample_values", and "samples"}. A standard error of one
// unit is null.
nlohmann::ordered_json evaluation_document(const EvaluationCall& call, const std::vector<ModelEvaluation>& models);

}  // namespace collimate::recipe
