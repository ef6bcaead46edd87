#include "collimate/rlhf/prompt/source.h"

#include <algorithm>

#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"

namespace collimate::rlhf {
namespace {

using base::expectation;
using base::InputError;

std::string place(const text::Example& example) { return example.location.text(); }

const std::string& part(const text::Example& example, const std::optional<std::string>& value,
                        const std::string& name) {
  if (!value) throw InputError(expectation(place(example), "a row with \"" + name + "\"", "none"));
  return *value;
}

std::vector<text::RenderedTokens> render(const text::Example& example, const text::Renderer& renderer, RowKind kind) {
  if (kind == RowKind::kCompletion)
    return {renderer.render_tokens(example.prompt, part(example, example.completion, "completion"))};
  if (kind == RowKind::kPreference)
    return {renderer.render_tokens(example.prompt, part(example, example.chosen, "chosen")),
            renderer.render_tokens(example.prompt, part(example, example.rejected, "rejected"))};
  text::RenderedTokens row;
  row.ids = renderer.prompt_tokens(example.prompt);
  row.trainable.assign(row.ids.size(), 0);
  row.prompt_tokens = static_cast<int64_t>(row.ids.size());
  return {row};
}

void check(const text::Example& example, const text::RenderedTokens& row, const SourceOptions& options) {
  const auto tokens = static_cast<int64_t>(row.ids.size());
  if (row.prompt_tokens == 0)
    throw InputError(expectation(place(example), "a prompt of at least one token", "an empty one"));
  if (options.kind != RowKind::kPrompt && tokens == row.prompt_tokens)
    throw InputError(expectation(place(example), "a completion of at least one token", "an empty one"));
  if (options.max_tokens > 0 && tokens > options.max_tokens)
    throw InputError(expectation(place(example), fmt::format("at most {} tokens", options.max_tokens),
                                 std::to_string(tokens),
                                 options.kind == RowKind::kPrompt ? "a larger rollout.prompt_tokens, or shorter prompts"
                                                                  : "a larger data.max_tokens, or shorter rows"));
}

text::CursorOptions cursor_options(const text::Dataset& dataset, const SourceOptions& options) {
  text::CursorOptions out;
  out.rows = dataset.size();
  out.weights = dataset.weights();
  out.seed = options.seed;
  out.shuffle = options.shuffle;
  out.epochs = options.epochs;
  out.repeats = options.kind == RowKind::kPrompt ? options.samples_per_prompt : 1;
  out.last = options.epochs > 0 ? text::LastRows::kKeep : text::LastRows::kWrap;
  return out;
}

}  // namespace

nlohmann::json example_json(const text::Example& example, const std::string& prompt_text) {
  nlohmann::json out = example.extra;
  out["prompt"] = prompt_text;
  if (!example.ground_truth.is_null()) out["ground_truth"] = example.ground_truth;
  if (example.completion && !out.contains("ground_truth")) out["ground_truth"] = *example.completion;
  return out;
}

RowSource::RowSource(const text::Dataset& dataset, const text::Renderer& renderer, SourceOptions options)
    : options_(std::move(options)), cursor_(cursor_options(dataset, options_)) {
  for (const text::Example& example : dataset.examples()) {
    Rendered rendered{render(example, renderer, options_.kind),
                      example_json(example, renderer.prompt_text(example.prompt))};
    for (const text::RenderedTokens& row : rendered.rows) check(example, row, options_);
    rendered_.push_back(std::move(rendered));
  }
}

int64_t RowSource::rows_per_example() const {
  if (options_.kind == RowKind::kPrompt) return options_.samples_per_prompt;
  return options_.kind == RowKind::kPreference ? 2 : 1;
}

Batch RowSource::next(int64_t rows) {
  if (rows % rows_per_example() != 0)
    throw InputError(
        expectation("data", fmt::format("a multiple of {} rows", rows_per_example()), std::to_string(rows)));
  return make(cursor_.next(rows / rows_per_example()));
}

Batch RowSource::all(int64_t examples) const {
  std::vector<text::Draw> draws;
  const int64_t count = examples > 0 ? std::min(examples, this->examples()) : this->examples();
  for (int64_t row = 0; row < count; ++row)
    for (int64_t repeat = 0; repeat < (options_.kind == RowKind::kPrompt ? options_.samples_per_prompt : 1); ++repeat)
      draws.push_back({row, 0, repeat});
  return make(draws);
}

Batch RowSource::make(const std::vector<text::Draw>& draws) const {
  std::vector<int64_t> uids, groups, pairs, prompt_tokens;
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<uint8_t>> trainable;
  std::vector<nlohmann::json> examples;
  for (const text::Draw& draw : draws) {
    const Rendered& rendered = rendered_[draw.row];
    const int64_t group = batch::make_uid("prompt", options_.name, draw.row, draw.epoch, 0, 0);
    for (size_t i = 0; i < rendered.rows.size(); ++i) {
      uids.push_back(
          batch::make_uid("sample", options_.name, draw.row, draw.epoch, draw.repeat, static_cast<int64_t>(i)));
      groups.push_back(group);
      pairs.push_back(group);
      ids.push_back(rendered.rows[i].ids);
      trainable.push_back(rendered.rows[i].trainable);
      prompt_tokens.push_back(rendered.rows[i].prompt_tokens);
      examples.push_back(rendered.example);
    }
  }
  Batch out;
  if (uids.empty()) return out;
  out.set(batch::kUid, uids);
  out.set(batch::kPromptUid, groups);
  if (options_.kind == RowKind::kPreference) out.set(batch::kPairUid, pairs);
  out.set(batch::kPromptTokens, prompt_tokens);
  out.set_ragged(batch::kIds, ids);
  out.set_ragged(batch::kTrainable, trainable);
  if (options_.kind == RowKind::kPrompt && !options_.sampling.is_null())
    out.set_json(batch::kSampling, std::vector<nlohmann::json>(uids.size(), options_.sampling));
  out.set_json(batch::kExample, std::move(examples));
  return out;
}

void RowSource::save(base::StateWriter& out) const { cursor_.save(out); }
void RowSource::load(base::StateReader& in) { cursor_.load(in); }

}  // namespace collimate::rlhf
