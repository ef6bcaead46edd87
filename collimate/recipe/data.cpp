#include "collimate/recipe/data.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/rlhf/types/model_answer.h"
#include "collimate/shape/model_shape.h"

namespace collimate::recipe {
namespace {

using base::expectation;
using base::InputError;

constexpr const char* kDropBadRows = "data.bad_rows: drop";
constexpr double kMaxWeight = 1e6;  // times that a row is used per epoch

// A source that is not the name of a file alone. Values of any type: what reads them says what it expects.
struct SourceSection : base::Section {
  base::Option<nlohmann::json> path{this, "path", nullptr, "", "file"};
  base::Option<nlohmann::json> format{this, "format", "auto", "", "auto, jsonl, json, parquet or text"};
  base::Option<nlohmann::json> weight{this, "weight", 1.0, "", "times that a row is used per epoch"};
  base::Option<nlohmann::json> columns{this, "columns", nlohmann::json::object(), "", "the file's names with ours"};
};

std::string text_of(const nlohmann::json& value, const std::string& where, const std::string& expected) {
  if (!value.is_string()) throw InputError(expectation(where, expected, value.dump()));
  return value;
}

double weight_of(const nlohmann::json& value, const std::string& where) {
  const double weight = value.is_number() ? value.get<double>() : 0;
  if (!(weight > 0 && weight <= kMaxWeight))
    throw InputError(expectation(where, fmt::format("a number above 0, at most {}", kMaxWeight),
                                 value.is_number() ? fmt::to_string(weight) : value.dump()));
  return weight;
}

std::map<std::string, std::string> columns_of(const nlohmann::json& value, const std::string& where) {
  const auto is_text = [](const nlohmann::json& name) { return name.is_string(); };
  if (!value.is_object() || !std::ranges::all_of(value, is_text))
    throw InputError(
        expectation(where, "the file's names with those to read them as", value.dump(), "{problem: prompt}"));
  return value.get<std::map<std::string, std::string>>();
}

text::DataSource one_source(const nlohmann::json& value, const std::string& key) {
  if (value.is_string()) return {.path = value};
  if (!value.is_object() || !value.contains("path"))
    throw InputError(expectation(key, "a file name or {path: FILE, format, weight, columns}", value.dump()));
  SourceSection given;
  base::apply(value, key, given);
  return {.path = text_of(given.path, key + ".path", "a file name"),
          .format = text_of(given.format, key + ".format", "auto, jsonl, json, parquet or text"),
          .weight = weight_of(given.weight, key + ".weight"),
          .columns = columns_of(given.columns, key + ".columns")};
}

// The longest row that the model has positions for; of a prompt, beside a whole completion.
int64_t model_tokens(const Config& config, rlhf::RowKind rows) {
  const int64_t positions = shape::read_model_shape(config.model("policy").path).max_positions;
  const int64_t drawn = rows == rlhf::RowKind::kPrompt ? config.rollout.completion_tokens.get() : 0;
  return std::max<int64_t>(1, positions - drawn);
}

// Returns the options that training and held-out rows share.
rlhf::SourceOptions common_options(const Config& config, rlhf::RowKind rows) {
  return {.kind = rows,
          .max_tokens = rows == rlhf::RowKind::kPrompt ? config.rollout.prompt_tokens : config.data.max_tokens,
          .model_tokens = model_tokens(config, rows),
          .long_rows = config.data.long_row_choice(),
          .bad_rows = {.drop = config.data.bad_rows.get() == "drop", .remedy = kDropBadRows},
          .seed = static_cast<uint64_t>(config.run.seed.get()),
          .shuffle = config.data.shuffle};
}

rlhf::SourceOptions source_options(const Config& config, const Plan& plan) {
  rlhf::SourceOptions options = common_options(config, plan.rows);
  options.samples_per_prompt = config.rollout.samples_per_prompt;
  options.prompt_is_trained = plan.prompt_is_trained;
  options.margins = plan.margins;
  return options;
}

// Greedy samples of a prompt are all equal.
void check_samples(const EvaluationOptions& evaluation, const OptionNames& names) {
  const int64_t samples = evaluation.samples_per_prompt;
  if (samples == 1 || evaluation.values().temperature > 0) return;
  throw InputError(expectation(names.of("temperature"),
                               fmt::format("above 0, as {} samples of a prompt would else be equal", samples), "0",
                               "1, or " + names.with("samples_per_prompt", "1")));
}

// Tells of the rows that the data set has left out, and then of those that the source has.
std::vector<std::string> left_out_lines(const std::string& key, const text::Dataset& dataset,
                                        const rlhf::RowSource& source) {
  std::vector<std::string> lines;
  const auto add = [&](const text::LeftOut& out, const std::string& option) {
    if (out.rows > 0)
      lines.push_back(fmt::format("warning: {}: {} of {} rows left out ({}); the first: {}", key, out.rows,
                                  dataset.size() + dataset.left_out().rows, option, out.first));
  };
  add(dataset.left_out(), kDropBadRows);
  add(source.bad(), kDropBadRows);
  add(source.too_long(), "data.long_rows");
  if (source.truncated() > 0)
    lines.push_back(fmt::format("{}: {} of {} rows truncated (data.long_rows: truncate)", key, source.truncated(),
                                dataset.size() + dataset.left_out().rows));
  return lines;
}

// How many of the rows are held out. InputError for a number that is none, leaves none to train on, or stands beside
// data.eval.
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

void add_notes(const std::string& key, const text::Dataset& dataset, const rlhf::RowSource& source, RunData& data) {
  for (const std::string& line : dataset.verdict()) data.notes.push_back(key + ": " + line);
  for (std::string& line : left_out_lines(key, dataset, source)) data.notes.push_back(std::move(line));
  data.fingerprints[key] = {{"rows", dataset.size()}, {"fingerprint", fmt::format("{:016x}", dataset.fingerprint())}};
}

}  // namespace

rlhf::SourceOptions held_out_options(const Config& config, rlhf::RowKind rows, const OptionNames& names) {
  rlhf::SourceOptions options = common_options(config, rows);
  options.name = "eval";
  if (rows != rlhf::RowKind::kPrompt) return options;
  check_samples(config.evaluation, names);
  options.samples_per_prompt = config.evaluation.samples_per_prompt;
  options.sampling = config.evaluation.params(config.rollout.completion_tokens).to_json();
  return options;
}

Batch held_out_rows(const Config& config, const Plan& plan, const RunData& data) {
  constexpr int64_t kAskedExamples = 8;  // as many as a report shows
  Batch rows = data.eval->all(config.evaluation.examples);
  if (!plan.evaluation->answers) return rows;
  const int64_t rows_of_each = data.eval->rows_per_example();
  std::vector<uint8_t> asked(static_cast<size_t>(rows.rows()));
  for (int64_t r = 0; r < std::min(rows.rows(), kAskedExamples * rows_of_each); r += rows_of_each) {
    const int64_t prompt = rows.get(batch::kPromptTokens, r);  // the whole of a row that was truncated within it
    asked[static_cast<size_t>(r)] = prompt > 0 && prompt < rows.length(batch::kIds.name, r) ? 1 : 0;
  }
  rows.set(rlhf::kAsked, std::move(asked));
  return rows;
}

std::vector<std::string> data_options(rlhf::RowKind rows) {
  std::vector<std::string> options = {"evaluation.examples", "data.long_rows", "data.bad_rows"};
  if (rows != rlhf::RowKind::kPrompt) options.emplace_back("data.max_tokens");
  if (rows == rlhf::RowKind::kDemonstration) options.emplace_back("data.train_on");
  return options;
}

void check_source_keys(const base::ConfigNode& sources, const std::string& key) {
  const bool many = sources.kind == base::ConfigNode::Kind::kList;
  int64_t index = 0;
  for (const base::ConfigNode* source : base::list_entries(sources)) {
    SourceSection given;
    const std::string path = many ? fmt::format("{}.{}", key, index++) : key;
    if (source->kind == base::ConfigNode::Kind::kMap) base::apply(*source, path, given);
  }
}

std::vector<text::DataSource> data_sources(const nlohmann::json& value, const std::string& key) {
  if (value.is_null()) throw InputError(expectation(key, "a data file", "nothing", key + ": FILE.jsonl"));
  std::vector<text::DataSource> sources;
  if (!value.is_array()) return {one_source(value, key)};
  for (const nlohmann::json& entry : value) sources.push_back(one_source(entry, key));
  return sources;
}

RunData read_data(const Config& config, const Plan& plan) {
  RunData data;
  const rlhf::ModelOptions& policy = config.model("policy");
  data.tokenizer = text::load_tokenizer(policy.path);
  auto chat = text::make_chat_template(*data.tokenizer, policy.chat_template, policy.chat_template_kwargs.get());
  data.notes.push_back("template: " + chat->description());
  if (config.data.trained_tokens() == text::TrainOn::kAssistantTurns)
    data.notes.emplace_back(
        chat->marks_answers() ? "trained turns: what the template's {% generation %} marks as the assistant's"
                              : "trained turns: what each turn of the assistant adds to the text of the turns before");
  data.renderer = std::make_unique<text::Renderer>(*data.tokenizer, std::move(chat),
                                                   text::RenderOptions{.train_on = config.data.trained_tokens()});
  const auto add = [&](const std::string& key, const text::Dataset& dataset, rlhf::SourceOptions options) {
    auto source = std::make_unique<rlhf::RowSource>(dataset, *data.renderer, std::move(options));
    add_notes(key, dataset, *source, data);
    return source;
  };
  const bool evaluates = plan.evaluation && config.data.holds_out();
  rlhf::SourceOptions train = source_options(config, plan);
  text::Dataset rows = text::Dataset::read(data_sources(config.data.train, "data.train"), train.bad_rows);
  std::optional<text::Dataset> held_out;
  if (const int64_t count = val_rows(config.data, rows.size()); count > 0) {
    data.notes.push_back(
        fmt::format("data.eval: {} of the {} rows of data.train, drawn by run.seed, which are not "
                    "trained on (data.val_size)",
                    count, rows.size()));
    held_out = rows.hold_out(count, static_cast<uint64_t>(config.run.seed.get()));
  }
  data.train = add("data.train", rows, std::move(train));
  if (data.train->has_margins())
    data.notes.emplace_back("data.train: column margin is read: a pair's loss is -log σ(chosen - rejected - margin)");
  if (!evaluates) return data;
  rlhf::SourceOptions options = held_out_options(config, plan.evaluation->rows);
  if (!held_out) held_out = text::Dataset::read(data_sources(config.data.eval, "data.eval"), options.bad_rows);
  data.eval = add("data.eval", *held_out, std::move(options));
  return data;
}

}  // namespace collimate::recipe
