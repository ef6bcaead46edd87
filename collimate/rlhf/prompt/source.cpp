#include "collimate/rlhf/prompt/source.h"

#include <algorithm>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/philox.h"
#include "collimate/batch/padding.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/rlhf/prompt/divergence_region.h"
#include "collimate/rlhf/prompt/margins.h"
#include "collimate/rlhf/prompt/steps.h"
#include "collimate/rlhf/types/loss.h"

namespace collimate::rlhf {
namespace {

using base::expectation;
using base::InputError;

std::string place_of(const text::Example& example) { return example.location.text(); }

// Says what the row is and which recipe reads such rows.
std::string other_kind(const text::Example& example) {
  if (example.chosen) return "a pair of a chosen and a rejected answer, which recipe: dpo or reward reads";
  if (!example.steps.empty()) return "steps with labels, which recipe: process_reward reads";
  if (example.completion && example.label) return "a marked answer, which recipe: kto reads";
  if (example.completion) return "a prompt with a completion, which recipe: sft reads";
  if (text::turns_of(example.prompt) != nullptr)
    return "messages of which the last is not the assistant's, which recipe: grpo or ppo reads as a prompt";
  return "a prompt alone, which recipe: grpo or ppo reads";
}

const text::Message& part(const text::Example& example, const std::optional<text::Message>& value,
                          const std::string& name) {
  if (!value) throw InputError(expectation(place_of(example), "a row with \"" + name + "\"", other_kind(example)));
  return *value;
}

bool says_nothing(const text::Message& turn) { return turn.content.empty() && !turn.calls_tools(); }

// Returns an answer to train towards, which must not be empty: the model would learn to end its turn at once.
const text::Message& answer(const text::Example& example, const std::optional<text::Message>& value,
                            const std::string& name) {
  if (says_nothing(part(example, value, name)))
    throw InputError(expectation(place_of(example), "an answer in \"" + name + "\" to train on", "an empty text",
                                 "leaving the row out"));
  return *value;
}

// Throws InputError if an earlier turn of the assistant is empty and is trained too.
void check_turns(const text::Example& example, const text::Renderer& renderer) {
  const text::Messages* turns = text::turns_of(example.prompt);
  if (turns == nullptr || renderer.options().train_on == text::TrainOn::kCompletion) return;
  for (size_t i = 0; i < turns->size(); ++i)
    if ((*turns)[i].role == "assistant" && says_nothing((*turns)[i]))
      throw InputError(expectation(place_of(example), fmt::format("an answer in message {} to train on", i + 1),
                                   "an empty text", "leaving the row out, or data.train_on: completion"));
}

// Renders a marked answer. An undesirable one may be empty, as the model is trained away from it.
text::RenderedTokens render_marked(const text::Example& example, const text::Renderer& renderer) {
  const text::Message& given = part(example, example.completion, "completion");
  if (!example.label)
    throw InputError(expectation(place_of(example), "a row with \"label\", true or false", other_kind(example)));
  return renderer.render_tokens(example.prompt,
                                *example.label ? answer(example, example.completion, "completion") : given);
}

bool is_undesirable(const text::Example& example) { return example.label && !*example.label; }

std::vector<text::RenderedTokens> render(const text::Example& example, const text::Renderer& renderer,
                                         const SourceOptions& options) {
  const RowKind kind = options.kind;
  if (kind == RowKind::kDemonstration) {
    check_turns(example, renderer);
    if (is_undesirable(example))
      throw InputError(expectation(place_of(example), "an answer to train towards", "one with label: false"));
    if (const auto other = example.extra.find("completion"); other != example.extra.end() && !other->is_null())
      throw InputError(expectation(place_of(example), "one answer to train towards",
                                   "the row's own and another in the column completion, as generate adds it",
                                   "columns in data.train: {YOURS: prompt} trains the completion, {completion: drawn} "
                                   "the row's own answer"));
    text::RenderedTokens row =
        renderer.render_tokens(example.prompt, answer(example, example.completion, "completion"));
    if (!row.trainable.empty()) row.trainable.front() = 0;  // nothing predicts the first token
    return {std::move(row)};
  }
  if (kind == RowKind::kPreference)
    return {renderer.render_tokens(example.prompt, answer(example, example.chosen, "chosen")),
            renderer.render_tokens(example.prompt, part(example, example.rejected, "rejected"))};
  if (kind == RowKind::kMarked) return {render_marked(example, renderer)};
  if (kind == RowKind::kSteps) return {render_steps(example, renderer, options.step_separator, other_kind(example))};
  if (options.judged && example.completion && example.ground_truth.is_null() && is_undesirable(example))
    throw InputError(expectation(place_of(example), "an answer that can be the ground truth", "one with label: false",
                                 "leaving the row out, or a column ground_truth"));
  text::RenderedTokens row{.ids = renderer.prompt_tokens(example.prompt)};
  row.trainable.assign(row.ids.size(), 0);
  row.prompt_tokens = static_cast<int64_t>(row.ids.size());
  return {row};
}

// Leaves untrained all ahead of the first token in which the rows differ or, if that is earlier, which one trains last.
void train_from_difference(std::vector<text::RenderedTokens>& pair) {
  int64_t from = std::ranges::mismatch(pair[0].ids, pair[1].ids).in1 - pair[0].ids.begin();
  for (const text::RenderedTokens& row : pair)
    from = std::clamp<int64_t>(row.trainable.rend() - std::find(row.trainable.rbegin(), row.trainable.rend(), 1) - 1, 0,
                               from);
  for (text::RenderedTokens& row : pair) std::fill_n(row.trainable.begin(), from, uint8_t{0});
}

bool loses_thoughts(const text::Example& example, const text::Renderer& renderer, RowKind kind) {
  const auto loses = [&](const std::optional<text::Message>& answer) {
    return answer && renderer.leaves_out_thoughts(example.prompt, *answer);
  };
  if (kind == RowKind::kDemonstration || kind == RowKind::kMarked) return loses(example.completion);
  return kind == RowKind::kPreference && (loses(example.chosen) || loses(example.rejected));
}

// Throws InputError for an empty prompt or completion. Plain text has no prompt, but its first token is not predicted.
void check(const text::Example& example, const text::RenderedTokens& row, const SourceOptions& options) {
  const auto tokens = static_cast<int64_t>(row.ids.size());
  if (options.kind == RowKind::kPrompt && example.completion && example.prompt == text::Prompt(std::string()))
    throw InputError(expectation(place_of(example), "a prompt", "an empty one beside an answer, as plain text has",
                                 "columns: {text: prompt} in data.train, where the column text is the prompt"));
  if (row.prompt_tokens == 0 && options.kind != RowKind::kDemonstration)
    throw InputError(expectation(place_of(example), "a prompt of at least one token", "an empty one"));
  if (options.kind != RowKind::kPrompt && tokens <= std::max<int64_t>(row.prompt_tokens, 1))
    throw InputError(expectation(place_of(example), "a completion of at least one token",
                                 row.prompt_tokens > 0 ? "an empty one" : "a text whose only token nothing predicts"));
}

bool is_long(const std::vector<text::RenderedTokens>& rows, const SourceOptions& options) {
  return options.max_tokens > 0 && std::ranges::any_of(rows, [&](const text::RenderedTokens& row) {
           return static_cast<int64_t>(row.ids.size()) > options.max_tokens;
         });
}

std::string length_error(const text::Example& example, const std::vector<text::RenderedTokens>& rows,
                         const SourceOptions& options) {
  size_t longest = 0;
  for (const text::RenderedTokens& row : rows) longest = std::max(longest, row.ids.size());
  const bool prompt = options.kind == RowKind::kPrompt;
  std::string remedy = "data.long_rows: drop or truncate";
  if (options.model_tokens == 0 || static_cast<int64_t>(longest) <= options.model_tokens)
    remedy = fmt::format("a larger {}, or {}",
                         !options.limit.empty() ? options.limit
                         : prompt               ? "rollout.prompt_tokens"
                                                : "data.max_tokens",
                         remedy);
  else if (options.max_tokens > options.model_tokens)
    remedy += fmt::format(", together with {}: {}, as the model has no more positions{}",
                          prompt ? "rollout.prompt_tokens" : "data.max_tokens", options.model_tokens,
                          prompt ? " beside a completion" : "");
  if (!options.long_remedy.empty()) remedy = options.long_remedy;
  return expectation(place_of(example), fmt::format("at most {} tokens{}", options.max_tokens, options.reach),
                     std::to_string(longest), options.long_rows == LongRows::kStop ? remedy : "");
}

// Cuts a row that is longer than `limit` tokens: a prompt keeps its last tokens, any other row its first ones.
void truncate(text::RenderedTokens& row, RowKind kind, int64_t limit) {
  const int64_t excess = static_cast<int64_t>(row.ids.size()) - limit;
  if (excess <= 0) return;
  const int64_t begin = kind == RowKind::kPrompt ? 0 : limit;
  row.ids.erase(row.ids.begin() + begin, row.ids.begin() + begin + excess);
  row.trainable.erase(row.trainable.begin() + begin, row.trainable.begin() + begin + excess);
  row.prompt_tokens = std::min(row.prompt_tokens, limit);
  row.cut = true;
}

bool trains(const text::RenderedTokens& row) { return std::ranges::count(row.trainable, 1) > 0; }

// Makes the whole row trainable but its first token, and returns what was trainable of it.
std::vector<float> train_prompt(std::vector<uint8_t>& trainable) {
  std::vector<float> completion(trainable.begin(), trainable.end());
  std::fill(trainable.begin() + 1, trainable.end(), 1);
  return completion;
}

// Throws InputError if the model's chat template does not mark the turns: no row by itself is at fault.
void check_template(const text::Dataset& dataset, const text::Renderer& renderer, const SourceOptions& options) {
  if (renderer.chat().marks_turns()) return;
  const std::string chatml = options.chatml.empty() ? "models.policy.chat_template: chatml" : options.chatml;
  dataset.for_each([&](int64_t, const text::Example& example) {
    text::require_marked_turns(example, renderer, options.kind == RowKind::kPrompt ? 2 : 0,
                               chatml + ", or plain to join turns with nothing between");
  });
}

}  // namespace

std::string other_than(const text::Example& example, RowKind kind) {
  const bool fits = kind == RowKind::kPreference      ? example.chosen && example.rejected
                    : kind == RowKind::kMarked        ? example.completion && example.label
                    : kind == RowKind::kSteps         ? !example.steps.empty()
                    : kind == RowKind::kDemonstration ? example.completion.has_value()
                                                      : true;
  return fits ? "" : other_kind(example);
}

nlohmann::json example_json(const text::Example& example, const std::string& prompt_text) {
  nlohmann::json out = example.extra;
  out["prompt"] = prompt_text;
  if (!example.ground_truth.is_null()) out["ground_truth"] = example.ground_truth;
  if (example.completion && !out.contains("ground_truth")) out["ground_truth"] = example.completion->content;
  return out;
}

RowSource::RowSource(const text::Dataset& dataset, const text::Renderer& renderer, SourceOptions options)
    : options_(std::move(options)), rendered_(dataset.is_held()) {
  check_template(dataset, renderer, options_);
  for (const text::RowWeight& source : dataset.weights()) order_.weights.push_back({0, source.weight});
  Margins margins;
  size_t source = 0;
  int64_t end = dataset.weights().at(0).rows;  // of the source's rows
  dataset.for_each([&](int64_t row, const text::Example& example) {
    while (row >= end) end += dataset.weights().at(++source).rows;
    if (!take(row, example, renderer)) return;
    ++order_.weights[source].rows;
    if (options_.margins) margins.add(example);
  });
  bad_.require_none(options_.bad_rows, examples());
  order_.rows = examples();
  order_.seed = options_.seed;
  order_.shuffle = options_.shuffle;
  epoch_examples_ = static_cast<int64_t>(text::epoch_order(order_, 0).size());
  if (epoch_examples_ == 0) throw InputError(nothing_left());
  margins_ = margins.finish();
}

bool RowSource::take(int64_t row, const text::Example& example, const text::Renderer& renderer) {
  std::vector<text::RenderedTokens> rows = rows_of(example, renderer);
  if (rows.empty()) return false;
  if (loses_thoughts(example, renderer, options_.kind)) thoughtless_.add(place_of(example));
  if (files_.empty() || files_.back() != example.location.file) files_.push_back(example.location.file);
  rendered_.add({.rows = std::move(rows),
                 .example = example_json(example, renderer.prompt_text(example.prompt)),
                 .desirable = example.label.value_or(false),
                 .right = marks_of(example.steps),
                 .row = row,
                 .file = std::ssize(files_) - 1,
                 .line = example.location.line,
                 .row_in_file = example.location.row});
  return true;
}

std::vector<text::RenderedTokens> RowSource::rows_of(const text::Example& example, const text::Renderer& renderer) {
  std::vector<text::RenderedTokens> rows;
  try {
    rows = render(example, renderer, options_);
    for (const text::RenderedTokens& row : rows) check(example, row, options_);
    if (options_.kind == RowKind::kPreference && options_.from_difference) train_from_difference(rows);
  } catch (const InputError& error) {
    const std::string reason = error.what();  // without the row's place if the chat template threw
    bad_.add(reason.find(place_of(example)) == std::string::npos ? place_of(example) + ": " + reason : reason);
    return {};
  }
  if (!is_long(rows, options_)) return rows;
  const std::string reason = length_error(example, rows, options_);
  if (options_.long_rows == LongRows::kStop) {
    bad_.require_none(options_.bad_rows, examples());
    throw InputError(reason);
  }
  const bool cuts = options_.long_rows == LongRows::kTruncate;
  if (cuts)
    for (text::RenderedTokens& row : rows)
      truncate(row, options_.kind, options_.cut_tokens > 0 ? options_.cut_tokens : options_.max_tokens);
  const bool equal = cuts && options_.kind == RowKind::kPreference && rows[0].ids == rows[1].ids;
  if (cuts && !equal && (options_.kind == RowKind::kPrompt || std::ranges::all_of(rows, trains))) {
    ++truncated_;
    return rows;
  }
  too_long_.add(equal ? fmt::format("{} in a pair that is the same up to the cut", reason) : reason);
  return {};
}

int64_t RowSource::rows_per_example() const {
  if (options_.kind == RowKind::kPrompt) return options_.samples_per_prompt;
  return options_.kind == RowKind::kPreference ? 2 : 1;
}

Batch RowSource::rows(int64_t iteration, int64_t rows, int64_t first, int64_t count) const {
  const int64_t unit = rows_per_example();
  if (rows % unit != 0 || first % unit != 0 || count % unit != 0)
    throw InputError(
        expectation("data", fmt::format("a multiple of {} rows", unit), fmt::format("{} of {}", count, rows)));
  require_iteration(rows);
  std::vector<Pick> picks;
  for (int64_t i = first / unit; i < (first + count) / unit; ++i) picks.push_back(pick(iteration, rows / unit, i));
  Batch out = make(picks);
  const int64_t before = (first > 0 ? first : rows_of(iteration, rows)) - 1;
  if (options_.mismatched && !picks.empty()) add_mismatched(out, picks, pick(iteration, rows, before));
  return out;
}

Batch RowSource::all(int64_t examples) const {
  std::vector<Pick> picks;
  const int64_t count = examples > 0 ? std::min(examples, this->examples()) : this->examples();
  for (int64_t row = 0; row < count; ++row) picks.push_back({.use = row, .by_row = true});
  return make(picks);
}

std::string RowSource::place(int64_t example) const {
  const text::RenderedExample made = rendered_.at(example);
  return text::RowLocation{base::at(files_, made.file), made.row_in_file, made.line}.text();
}

int64_t RowSource::uid_of(const Pick& pick, int64_t row, const char* purpose, int64_t sample) const {
  const int64_t number = pick.by_row ? row : pick.use;
  return batch::make_uid(purpose, options_.name, number, pick.epoch, sample, pick.attempt);
}

Batch RowSource::make(const std::vector<Pick>& picks) const {
  if (picks.empty()) return {};
  std::vector<int64_t> uids, groups, prompt_tokens;
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<uint8_t>> trainable;
  std::vector<std::vector<float>> completion;
  std::vector<nlohmann::json> examples;
  std::vector<float> desirable;
  for (const Pick& pick : picks) {
    const text::RenderedExample rendered = rendered_.at(example_of(pick));
    const int64_t group = uid_of(pick, rendered.row, "prompt", 0);
    desirable.push_back(rendered.desirable ? 1.F : 0.F);
    for (int64_t i = 0; i < rows_per_example(); ++i) {
      const text::RenderedTokens& row = rendered.rows[options_.kind == RowKind::kPreference ? i : 0];
      uids.push_back(uid_of(pick, rendered.row, "sample", i));
      groups.push_back(group);
      ids.push_back(row.ids);
      trainable.push_back(row.trainable);
      if (options_.prompt_is_trained) completion.push_back(train_prompt(trainable.back()));
      prompt_tokens.push_back(row.prompt_tokens);
      examples.push_back(rendered.example);
    }
  }
  Batch out;
  out.set(batch::kUid, uids);
  out.set(batch::kPromptUid, groups);
  if (options_.kind == RowKind::kPreference) out.set(batch::kPairUid, groups);
  out.set(batch::kPromptTokens, prompt_tokens);
  if (options_.region_padding) out.set(batch::kUnpaddedTokens, pad_pairs(ids, trainable, *options_.region_padding));
  out.set_ragged(batch::kIds, ids);
  out.set_ragged(batch::kTrainable, trainable);
  if (options_.prompt_is_trained) out.set_ragged(kCompletion, completion);
  if (options_.margins) add_margins(out, picks);
  out.set_json(batch::kExample, std::move(examples));
  if (options_.kind == RowKind::kMarked) out.set(kDesirable, desirable);
  if (options_.kind == RowKind::kSteps) add_steps(out, picks);
  if (options_.kind == RowKind::kPrompt && !options_.sampling.is_null()) add_sampling(out);
  return out;
}

}  // namespace collimate::rlhf
