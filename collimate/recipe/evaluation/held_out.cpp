#include "collimate/recipe/evaluation/held_out.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/recipe/arithmetic.h"
#include "collimate/recipe/data.h"
#include "collimate/recipe/evaluation/choices.h"
#include "collimate/recipe/list.h"
#include "collimate/rlhf/types/model_answer.h"

namespace collimate::recipe {
namespace {

using base::expectation;
using base::InputError;

constexpr const char* kDataEval = "data.eval";
constexpr int64_t kAskedExamples = 8;  // as many as a report shows

// Throws InputError for several greedy samples of a prompt, which are all equal.
void check_samples(const MeasureOptions& evaluation, const OptionNames& names) {
  const int64_t samples = evaluation.samples_per_prompt;
  if (samples == 1 || evaluation.values().temperature > 0) return;
  throw InputError(expectation(names.of("samples_per_prompt"),
                               "1 with temperature 0, at which all samples of a prompt are equal",
                               fmt::to_string(samples), names.with("temperature", "1")));
}

// Returns how many of the rows are held out. Throws InputError for a number that is none, leaves none to train on, or
// stands beside data.eval.
int64_t val_rows(const DataOptions& options, int64_t rows) {
  const double size = options.val_size;
  if (size == 0) return 0;
  if (!options.eval->is_null())
    throw InputError(expectation("data.val_size", "nothing beside data.eval, which is the held-out data",
                                 fmt::format("{}", size), "one of the two"));
  const double count = size < 1 ? std::max(1.0, std::round(size * static_cast<double>(rows))) : size;
  if (count != std::floor(count) || count >= static_cast<double>(rows))
    throw InputError(expectation("data.val_size",
                                 fmt::format("a share below 1, or fewer than the {} rows of data.train", rows),
                                 fmt::format("{}", size), "0.05"));
  return static_cast<int64_t>(count);
}

// Asks the model to answer the prompts of the first examples itself (rlhf::kAsked): a pair's prompt by its first row,
// and none of a row without a prompt or without an answer.
void ask_for_answers(Batch& rows, int64_t rows_of_each) {
  std::vector<uint8_t> asked(static_cast<size_t>(rows.rows()));
  for (int64_t r = 0; r < std::min(rows.rows(), kAskedExamples * rows_of_each); r += rows_of_each) {
    const int64_t prompt = rows.get(batch::kPromptTokens, r);  // the whole row where it was truncated within its prompt
    base::at(asked, r) = prompt > 0 && prompt < rows.length(batch::kIds.name, r) ? 1 : 0;
  }
  rows.set(rlhf::kAsked, std::move(asked));
}

// Returns what messages about a measure's rows call the options that matter to them.
OptionNames names_of(const AskedMeasure& asked) {
  return {.of = [asked](const std::string& key) {
    if (key == "data") return asked.data_key;
    if (key == "long_rows" || key == "bad_rows") return "data." + key;
    return key == "chat_template" ? "models.policy.chat_template" : asked.key + "." + key;
  }};
}

HeldOutCount count_of(const HeldOutRows& held, const EvaluationPlan& plan) {
  const Batch& rows = held.rows;
  HeldOutCount count{.data = held.key, .measured = plan.measured, .rows = rows.rows()};
  count.greedy = plan.measured == MeasureKind::kCompletions && plan.asked.options.values().temperature == 0;
  for (int64_t r = 0; r < rows.rows(); ++r)
    count.examples += r == 0 || rows.get(batch::kPromptUid, r) != rows.get(batch::kPromptUid, r - 1) ? 1 : 0;
  count.rows_in_samples = std::min(count.rows, kHeldOutSamples);
  return count;
}

}  // namespace

std::vector<LeftOutNote> HeldOutRows::notes(const std::string& data, const text::Dataset& dataset,
                                            const OptionNames& names) const {
  return source ? left_out_notes(data, dataset, *source, names) : left_out_notes(data, dataset, {bad, too_long}, names);
}

std::string HeldOutCount::text() const {
  struct Nouns {
    const char *example, *row;
  };
  static constexpr Nouns kNouns[] = {{"prompt", "completion"}, {"row", "row"},       {"pair", "answer"},
                                     {"question", "choice"},   {"answer", "answer"}, {"answer", "answer"}};
  const Nouns& noun = base::at(kNouns, measured);
  const std::string of_rows = counted(rows, greedy ? fmt::format("greedy {}", noun.row) : noun.row);
  const std::string text =
      rows == examples ? of_rows : fmt::format("{} of {}", of_rows, counted(examples, noun.example));
  return rows_in_samples == rows ? text : fmt::format("{}; samples/ has the first {}", text, rows_in_samples);
}

std::vector<HeldOutCount> count_held_out(const Plan& plan, const RunData& data) {
  std::vector<HeldOutCount> counts;
  for (size_t i = 0; i < plan.evaluations.size(); ++i)
    if (!plan.evaluations[i].of_training) counts.push_back(count_of(data.held_out.at(i), plan.evaluations[i]));
  return counts;
}

std::string text_of(const std::vector<HeldOutCount>& counts) {
  std::vector<std::string> texts;
  for (const HeldOutCount& count : counts) texts.push_back((counts.size() > 1 ? count.data + ": " : "") + count.text());
  return fmt::format("{}", fmt::join(texts, "; "));
}

rlhf::SourceOptions held_out_options(const Config& config, const AskedMeasure& asked, MeasureKind measured,
                                     int64_t positions, const OptionNames& names) {
  const bool drawn = measured == MeasureKind::kCompletions;
  const int64_t completion = completion_tokens(asked, config);
  rlhf::SourceOptions options = common_options(config, rows_of(measured), positions, drawn ? completion : 0);
  options.name = "eval";
  if (!drawn) return options;
  check_samples(asked.options, names);
  options.samples_per_prompt = asked.options.samples_per_prompt;
  options.sampling = asked.options.params(completion).to_json();
  return options;
}

HeldOutRows held_out_rows(const text::Dataset& dataset, MeasureKind measured, const text::Renderer& renderer,
                          rlhf::SourceOptions options, const OptionNames& names) {
  HeldOutRows held;
  if (measured == MeasureKind::kChoices) {
    ChoiceRows made = choice_rows(dataset, renderer, options, names);
    held.rows = std::move(made.rows);
    held.bad = std::move(made.bad);
    held.too_long = std::move(made.too_long);
    return held;
  }
  held.source = std::make_unique<rlhf::RowSource>(dataset, renderer, std::move(options));
  held.group_size = held.source->rows_per_example();
  held.rows = held.source->all();
  return held;
}

HeldOutData::HeldOutData(const Config& config, text::Dataset& train, RunData& data) : config_(config), data_(data) {
  const int64_t count = val_rows(config.data, train.size());
  if (count == 0) return;
  data.notes.push_back(
      fmt::format("{}: {} of the {} rows of data.train, drawn by run.seed, which are not trained on (data.val_size)",
                  kDataEval, count, train.size()));
  keep(kDataEval, train.hold_out(count, static_cast<uint64_t>(config.run.seed.get())));
}

void HeldOutData::read(const EvaluationPlan& evaluation, int64_t positions) {
  if (evaluation.of_training) return read_training(evaluation);
  const AskedMeasure& asked = evaluation.asked;
  const OptionNames names = names_of(asked);
  const rlhf::SourceOptions options = held_out_options(config_, asked, evaluation.measured, positions, names);
  const text::Dataset& whole = read_once(asked, options.bad_rows);
  std::optional<text::Dataset> first;  // as `eval` has them: rows behind these are not looked at
  if (asked.options.examples > 0) first.emplace(whole).keep_first(asked.options.examples);
  const text::Dataset& dataset = first ? *first : whole;
  HeldOutRows held = held_out_rows(dataset, evaluation.measured, renderer_of(evaluation.measured), options, names);
  held.key = asked.data_key + (evaluation.name.empty() ? "" : " for " + evaluation.name);
  data_.add_left_out(held.notes(held.key, dataset, names));
  if (evaluation.answers) ask_for_answers(held.rows, held.group_size);
  data_.held_out.push_back(std::move(held));
}

void HeldOutData::read_training(const EvaluationPlan& evaluation) {
  HeldOutRows rows{.key = "data.train", .rows = data_.train->all(kAskedExamples)};
  rows.group_size = data_.train->rows_per_example();
  if (evaluation.answers) ask_for_answers(rows.rows, rows.group_size);
  data_.held_out.push_back(std::move(rows));
  const int64_t asked = std::min(data_.train->examples(), kAskedExamples);
  data_.notes.push_back(fmt::format("samples: the model answers {} of data.train, because no rows are held out",
                                    asked == 1 ? "the first prompt" : fmt::format("the first {} prompts", asked)));
}

const text::Dataset& HeldOutData::read_once(const AskedMeasure& asked, const text::BadRows& bad) {
  const auto found = sets_.find(asked.data_key);
  if (found != sets_.end()) return found->second;
  return keep(asked.data_key, text::Dataset::read(data_sources(asked.data, asked.data_key), bad));
}

const text::Dataset& HeldOutData::keep(const std::string& key, text::Dataset dataset) {
  const bool rewards = find_recipe(config_.recipe).rows == rlhf::RowKind::kPrompt;
  data_.add(key, dataset, rewards ? readers_of_others(config_) : "");
  return sets_.try_emplace(key, std::move(dataset)).first->second;
}

// Returns a renderer that ends no turn for choices.
const text::Renderer& HeldOutData::renderer_of(MeasureKind measured) {
  if (measured != MeasureKind::kChoices) return *data_.renderer;
  if (!unended_) {
    const rlhf::ModelOptions& policy = config_.model("policy");
    auto chat = text::make_chat_template(*data_.tokenizer, policy.chat_template, policy.chat_template_kwargs.get());
    unended_ =
        std::make_unique<text::Renderer>(*data_.tokenizer, std::move(chat), text::RenderOptions{.end_turn = false});
  }
  return *unended_;
}

}  // namespace collimate::recipe
