#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collimate/base/fields.h"
#include "collimate/batch/batch.h"
#include "collimate/recipe/evaluation/asked_measures.h"
#include "collimate/recipe/left_out.h"
#include "collimate/recipe/option_names.h"
#include "collimate/recipe/page.h"
#include "collimate/rlhf/prompt/source.h"
#include "collimate/text/dataset.h"

namespace collimate::recipe {

struct RunData;

// Holds rows as one evaluation measures them.
struct HeldOutRows {
  std::string key;                          // of their data, "data.eval"; "data.eval for choices" of a further measure
  Batch rows;                               // all that are measured, those of an example together
  int64_t group_size = 1;                   // rows of an example; 1 for choices, whose number varies
  std::unique_ptr<rlhf::RowSource> source;  // null of choices, and of rows of the training
  text::LeftOut bad, too_long;              // of choices: the questions that are not used

  // Returns notes of the data set's rows that are not used, or not whole. `names` gives the names of "bad_rows" and
  // "long_rows".
  std::vector<LeftOutNote> notes(const std::string& data, const text::Dataset& dataset, const OptionNames& names) const;
};

// A run's samples have at most so many rows of an evaluation. The number is even, as pairs stay together.
constexpr int64_t kHeldOutSamples = 100;

// Counts the rows that an evaluation measures, and how many of them are kept for people.
struct HeldOutCount {
  std::string data;  // HeldOutRows::key
  MeasureKind measured = MeasureKind::kCompletions;
  int64_t examples = 0;         // prompts, texts, pairs or questions
  int64_t rows = 0;             // completions, texts, answers or choices
  int64_t rows_in_samples = 0;  // of the rows, in the file of samples
  bool greedy = false;          // completions of temperature 0

  // Returns "256 completions of 64 prompts; samples/ has the first 100".
  std::string text() const;

  COLLIMATE_FIELDS(data, measured, examples, rows, rows_in_samples, greedy)
};
// Returns the counts of each evaluation of a run, but for those of rows of the training.
std::vector<HeldOutCount> count_held_out(const Plan& plan, const RunData& data);
// Returns "64 pairs", or for several evaluations "data.eval: 64 pairs; data.eval for choices: 120 choices of 40
// questions".
std::string text_of(const std::vector<HeldOutCount>& counts);

// Returns how held-out rows are read for a measure, by a model of so many positions. Prompts come with the samples and
// the sampling of `asked`, whatever the training does. Throws InputError, with `names` for options, for several samples
// of a prompt that would all be equal.
rlhf::SourceOptions held_out_options(const Config& config, const AskedMeasure& asked, MeasureKind measured,
                                     int64_t positions, const OptionNames& names);

// Reads the rows of a data set as a measure reads them. `renderer` ends no turn for choices. Throws InputError as
// RowSource and choice_rows.
HeldOutRows held_out_rows(const text::Dataset& dataset, MeasureKind measured, const text::Renderer& renderer,
                          rlhf::SourceOptions options, const OptionNames& names);

// Reads the held-out data sets of a run, each once.
class HeldOutData {
 public:
  // Takes the rows that data.val_size holds out away from `train`.
  HeldOutData(const Config& config, text::Dataset& train, RunData& data);

  // Adds the rows of an evaluation to RunData::held_out, and what is to be said of them.
  void read(const EvaluationPlan& evaluation, int64_t positions);

 private:
  void read_training(const EvaluationPlan& evaluation);
  const text::Dataset& read_once(const AskedMeasure& asked, const text::BadRows& bad);
  const text::Dataset& keep(const std::string& key, text::Dataset dataset);
  const text::Renderer& renderer_of(MeasureKind measured);

  const Config& config_;
  RunData& data_;
  std::map<std::string, text::Dataset> sets_;  // by key
  std::unique_ptr<text::Renderer> unended_;    // for choices
};

}  // namespace collimate::recipe
