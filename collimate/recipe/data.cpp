#include "collimate/recipe/data.h"

#include <algorithm>
#include <cmath>

#include "collimate/base/error.h"
#include "collimate/host/base_model.h"
#include "collimate/recipe/list.h"
#include "collimate/rlhf/types/ptx.h"
#include "collimate/shape/model_shape.h"
#include "collimate/text/data_formats.h"

namespace collimate::recipe {
namespace {

using base::expectation;
using base::InputError;

constexpr const char *kDataTrain = "data.train", *kDataPtx = "data.ptx";
constexpr const char* kDropBadRows = "data.bad_rows: drop";
constexpr double kMaxWeight = 1e6;  // times that a row is used per epoch

// Describes a source that is not the name of a file alone. Its values have any type, as what reads them says what it
// expects.
struct SourceSection : base::Section {
  COLLIMATE_OPTION(nlohmann::json, path, nullptr, "", "file");
  COLLIMATE_OPTION(nlohmann::json, format, "auto", "", text::format_names());
  COLLIMATE_OPTION(nlohmann::json, weight, 1.0, "", "times that a row is used per epoch");
  COLLIMATE_OPTION(nlohmann::json, columns, nlohmann::json::object(), "", "the file's names with ours");
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

// Reads the texts beside samples (data.ptx), of which every token but the first is trained.
void read_texts(const Config& config, int64_t positions, RunData& data) {
  if (config.data.ptx->is_null()) return;
  const rlhf::ModelOptions& policy = config.model("policy");
  const text::Renderer renderer(
      *data.tokenizer,
      text::make_chat_template(*data.tokenizer, policy.chat_template, policy.chat_template_kwargs.get()),
      text::RenderOptions{.train_on = text::TrainOn::kAllTokens});
  rlhf::SourceOptions options = common_options(config, rlhf::RowKind::kDemonstration, positions, 0);
  options.name = "ptx";
  const text::Dataset texts = text::Dataset::read(data_sources(config.data.ptx, kDataPtx), options.bad_rows);
  data.ptx = std::make_unique<rlhf::RowSource>(texts, renderer, std::move(options));
  data.add(kDataPtx, texts);
  data.add_left_out(left_out_notes(kDataPtx, texts, *data.ptx, data_option_names()));
  data.notes.push_back(fmt::format(
      "ptx: {} × the mean negative log-prob of data.ptx is added to the loss of each update, to which every "
      "sample brings a row of it",
      config.train.ptx_weight.get()));
}

text::DataSource one_source(const nlohmann::json& value, const std::string& key) {
  if (value.is_string()) return {.path = value};
  if (!value.is_object() || !value.contains("path"))
    throw InputError(expectation(key, "a file name or {path: FILE, format, weight, columns}", value.dump()));
  SourceSection given;
  base::apply(value, key, given);
  return {.path = text_of(given.path, key + ".path", "a file name"),
          .format = text_of(given.format, key + ".format", text::format_names()),
          .weight = weight_of(given.weight, key + ".weight"),
          .columns = columns_of(given.columns, key + ".columns")};
}

// Returns the token that pads rows: the tokenizer's own, or the one that ends a text where it has none.
int32_t padding_of(const text::Tokenizer& tokenizer, const Config& config) {
  const std::optional<int32_t> pad = tokenizer.pad_id() ? tokenizer.pad_id() : tokenizer.eos_id();
  if (pad) return *pad;
  throw InputError(expectation("models.policy.path", "a tokenizer with a token for padding, or one that ends a text",
                               config.model("policy").path.get() + " with neither",
                               "\"pad_token\" in its tokenizer_config.json"));
}

rlhf::SourceOptions source_options(const Config& config, const Plan& plan, int64_t positions) {
  const bool drawn = plan.rows == rlhf::RowKind::kPrompt;
  rlhf::SourceOptions options =
      common_options(config, plan.rows, positions, drawn ? config.rollout.completion_tokens.get() : 0);
  options.samples_per_prompt = config.rollout.samples_per_prompt;
  options.prompt_is_trained = plan.prompt_is_trained;
  options.margins = plan.margins;
  options.mismatched = plan.mismatched;
  options.from_difference = config.data.train_from_difference;
  options.last_batch = config.data.last_batch_choice();
  if (!plan.greedy_baseline) return options;
  generate::SamplingParams sampling = config.rollout.params(config.rollout.completion_tokens);
  options.sampling = sampling.to_json();
  sampling.temperature = 0;
  options.last_sampling = sampling.to_json();
  return options;
}

}  // namespace

rlhf::SourceOptions common_options(const Config& config, rlhf::RowKind rows, int64_t positions, int64_t drawn) {
  const bool prompt = rows == rlhf::RowKind::kPrompt && find_recipe(config.recipe).rows == rows;
  return {.kind = rows,
          .max_tokens = prompt ? config.rollout.prompt_tokens : config.data.max_tokens,
          .model_tokens = std::max<int64_t>(1, positions - drawn),
          .long_rows = config.data.long_row_choice(),
          .bad_rows = {.drop = config.data.bad_rows.get() == "drop", .remedy = kDropBadRows},
          .seed = static_cast<uint64_t>(config.run.seed.get()),
          .shuffle = config.data.shuffle,
          .step_separator = config.data.step_separator,
          .limit = prompt ? "rollout.prompt_tokens" : "data.max_tokens"};
}

Batch RunData::rows(int64_t iteration, int64_t rows, int64_t first, int64_t count) const {
  Batch out = train->rows(iteration, rows, first, count);
  if (!ptx || out.rows() == 0) return out;
  const Batch texts = ptx->rows(iteration, rows, first, count);
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<uint8_t>> trainable;
  for (int64_t r = 0; r < texts.rows(); ++r) {
    const auto row = texts.row(batch::kIds, r);
    const auto trained = texts.row(batch::kTrainable, r);
    ids.emplace_back(row.begin(), row.end());
    trainable.emplace_back(trained.begin(), trained.end());
  }
  out.set_ragged(rlhf::kPtxIds, ids);
  out.set_ragged(rlhf::kPtxTrainable, trainable);
  return out;
}

void RunData::add(const std::string& key, const text::Dataset& dataset, const std::string& others) {
  for (const std::string& line : dataset.verdict(others)) notes.push_back(key + ": " + line);
  fingerprints[key] = {{"rows", dataset.size()}, {"fingerprint", fmt::format("{:016x}", dataset.fingerprint())}};
}

void RunData::add_left_out(const std::vector<LeftOutNote>& rows) {
  for (const LeftOutNote& note : rows) {
    left_out.push_back(note.rows);
    notes.push_back((note.warns ? "warning: " : "") + note.rows.text());
  }
}

// Returns no words for pairs, as a pair may have a margin, which training reads.
std::string readers_of_others(const Config& config) {
  const rlhf::RowKind rows = find_recipe(config.recipe).rows;
  if (rows == rlhf::RowKind::kPrompt) return ", which rewards get";
  return rows == rlhf::RowKind::kPreference ? "" : fmt::format(", which {} does not read", config.recipe.get());
}

std::vector<std::string> data_options(rlhf::RowKind rows) {
  std::vector<std::string> options = {"evaluation.examples", "evaluation.measure", "data.long_rows", "data.bad_rows"};
  if (rows != rlhf::RowKind::kPrompt) options.emplace_back("data.max_tokens");
  if (rows == rlhf::RowKind::kDemonstration) options.emplace_back("data.train_on");
  if (rows == rlhf::RowKind::kSteps) options.emplace_back("data.step_separator");
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
        chat->marks_answers({})
            ? "trained turns: what the template's {% generation %} marks as the assistant's"
            : "trained turns: what each turn of the assistant adds to the text of the turns before");
  data.renderer = std::make_unique<text::Renderer>(*data.tokenizer, std::move(chat),
                                                   text::RenderOptions{.train_on = config.data.trained_tokens()});
  const int64_t positions = shape::read_model_shape(host::base_directory(policy.path)).positions();
  rlhf::SourceOptions train = source_options(config, plan, positions);
  if (plan.padded_pairs) train.region_padding = padding_of(*data.tokenizer, config);
  text::Dataset rows = text::Dataset::read(data_sources(config.data.train, kDataTrain), train.bad_rows);
  HeldOutData held_out(config, rows, data);
  data.train = std::make_unique<rlhf::RowSource>(rows, *data.renderer, std::move(train));
  data.train->require_iteration(plan.rows_per_iteration);
  data.add(kDataTrain, rows, readers_of_others(config));
  data.add_left_out(left_out_notes(kDataTrain, rows, *data.train, data_option_names()));
  if (data.train->has_margins())
    data.notes.emplace_back(
        "data.train: column margin is read: by so much the chosen answer of a pair should be worth more");
  read_texts(config, positions, data);
  for (const EvaluationPlan& evaluation : plan.evaluations) held_out.read(evaluation, positions);
  return data;
}

}  // namespace collimate::recipe
