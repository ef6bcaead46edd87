#include "collimate/recipe/starter.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "collimate/base/config_node.h"
#include "collimate/base/config_yaml.h"
#include "collimate/base/error.h"
#include "collimate/host/base_model.h"
#include "collimate/recipe/arithmetic.h"
#include "collimate/recipe/data.h"
#include "collimate/recipe/list.h"
#include "collimate/recipe/plugins.h"
#include "collimate/recipe/prepare.h"
#include "collimate/recipe/registry.h"
#include "collimate/rlhf/prompt/source.h"
#include "collimate/shape/model_shape.h"
#include "collimate/text/chat_template.h"
#include "collimate/text/dataset.h"

namespace collimate::recipe {
namespace {

constexpr const char* kHead =
    "# {summary}.\n"
    "# collimate check {file} shows what would be trained; collimate train {file} trains it.\n"
    "recipe: {recipe}\n{plugins}"
    "models:\n"
    "  policy:\n"
    "    path: {model}  # a directory with config.json, safetensors and a tokenizer\n{template}{teacher}"
    "data:\n"
    "  train: {data}  # collimate help data shows the shapes of rows\n"
    "  # eval: held_out.jsonl       # is measured and never trained on; or val_size: 0.05, a part of train\n";

constexpr const char* kTeacher =
    "  teacher: TEACHER             # the model whose distributions are learned: a directory of the same tokenizer\n";

constexpr const char* kOptions = "options: {options}\n";

constexpr const char* kRows =
    "  max_tokens: {row:<16} # the longest row\n"
    "  long_rows: drop              # what happens to longer rows: drop, truncate or stop\n";

constexpr const char* kPrompts =
    "  long_rows: drop              # what happens to longer prompts: drop, truncate or stop\n";

constexpr const char* kRollout =
    "reward:\n{reward}"
    "rollout:\n"
    "  prompts_per_iteration: {prompts}\n"
    "  samples_per_prompt: 8        # answers to each prompt\n"
    "  prompt_tokens: {half:<13} # the longest prompt\n"
    "  completion_tokens: {half:<9} # the longest answer\n";

constexpr const char* kRule =
    "  - {rule: exact}              # or {python: reward.py:score}; collimate help rewards lists the rules\n";
constexpr const char* kGsm8k =
    "  - {rule: gsm8k}              # the number behind ####; collimate help rewards lists the rules\n";
constexpr const char* kOwnReward =
    "  - {python: reward.py:score}  # the data has no ground_truth; def score(prompts, completions, **columns)\n";

constexpr const char* kBeta = "algorithm:\n  beta: 0.1\n";

constexpr const char* kTemplate = "    chat_template: chatml      # the model has none; the data has conversations\n";

constexpr const char* kTail =
    "train:\n"
    "  samples_per_update: {update:<8} # rows of one optimizer step{unit}\n"
    "  learning_rate: {rate:<13} # for billions of parameters; small models and LoRA take ten times or more\n"
    "run:\n"
    "  epochs: {epochs:<20} # passes over data.train{updates}\n"
    "  save_every: {every:<16} # a checkpoint every {iterations}\n"
    "  # evaluate_every: {every:<10} # measure the held-out rows every {iterations}\n";

// Holds what stands between the head and the tail: lines of the head's section `data`, and text behind it. `update` is
// the number of rows of an update, and `rows_per_example` how many of them an example has.
struct Middle {
  std::string data, text;
  int64_t update = 32, rows_per_example = 1;
};

Middle middle_of(const RecipeEntry& entry) {
  if (entry.rows == rlhf::RowKind::kPrompt) return {kPrompts, kRollout, 128, 8};
  if (entry.rows == rlhf::RowKind::kDemonstration || entry.rows == rlhf::RowKind::kSteps) return {kRows};
  if (entry.rows == rlhf::RowKind::kMarked) return {kRows, kBeta};
  return {kRows, entry.name == "dpo" ? kBeta : "", 32, 2};
}

// Holds the length of the run, with as many passes over the data as change a model, and updates as small as that takes.
struct Length {
  int64_t update = 32;  // rows of one
  int64_t epochs = 1;
  std::string updates;  // says how many they are, "" where the data is not there or cannot be read
  int64_t every = 50;   // iterations from one checkpoint to the next, a quarter of a short run
};

// Counts the rows of a file, and those of them that a run would use.
struct RowCount {
  int64_t in_file = 0, used = 0;

  // "3 rows are", "1 of 3 rows fits and is".
  std::string text(const std::string& noun) const {
    const std::string are = used == 1 ? "is" : "are";
    if (used == in_file) return counted(used, noun) + " " + are;
    return fmt::format("{} of {} {} and {}", used, counted(in_file, noun), used == 1 ? "fits" : "fit", are);
  }
};

// Counts rows as a run of this config, a starter, would read them. Where its model is not there or has no tokenizer,
// all count as used.
RowCount count_used(const std::string& yaml, const std::string& data, int64_t most) {
  const int64_t rows = text::count_rows(data, most);
  if (rows == most) return {rows, rows};
  try {
    Config config = load_values(base::to_json(base::parse_yaml_value(yaml, "starter")), {});
    if (!std::filesystem::is_directory(config.model("policy").path.get())) return {rows, rows};
    return {rows, read_data(config, complete_plan(config, module_registry())).train->epoch_examples()};
  } catch (const base::Error&) {
    return {rows, rows};
  }
}

Length length_of(const Middle& middle, const std::string& data, const std::string& yaml) {
  constexpr int64_t kMostEpochs = 10, kLeftOut = 20;  // so many times the needed rows suffice, whatever is left out
  int64_t examples = middle.update / middle.rows_per_example;  // of an update
  Length length{.update = middle.update};
  if (!std::filesystem::is_regular_file(data)) return length;
  try {
    const RowCount count = count_used(yaml, data, kLeftOut * kFewUpdates * examples);
    const int64_t rows = count.used;
    if (rows == 0 || rows >= kFewUpdates * examples) return length;
    const auto updates = [&](int64_t epochs) { return (epochs * rows + examples - 1) / examples; };
    while (examples > 1 && (examples > rows || updates(kMostEpochs) < kFewUpdates)) examples /= 2;
    while (updates(length.epochs) < kFewUpdates && length.epochs < kMostEpochs) ++length.epochs;
    length.update = examples * middle.rows_per_example;
    length.updates = fmt::format("; {} {}", count.text(middle.rows_per_example == 2 ? "pair" : "row"),
                                 counted(updates(length.epochs), "update"));
    length.every = std::clamp<int64_t>(updates(length.epochs) / 4, 1, length.every);
  } catch (const base::Error&) {
    return {.update = middle.update};
  }
  return length;
}

// Returns the options of a recipe that has some of its own, at their defaults.
std::string own_options(const RecipeEntry& entry) { return entry.options.empty() ? "" : kOptions; }

constexpr const char* kNoShape = "no known shape";

// Returns a path as YAML reads it back.
std::string yaml_word(const std::string& path) {
  constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/+-";
  return path.find_first_not_of(kPlain) == std::string::npos ? path : nlohmann::json(path).dump();
}

// Returns a line with the plugins that this process has been told of, one of which may bring the recipe.
std::string plugins_line() {
  std::vector<std::string> files;
  for (const std::string& file : added_plugins()) files.push_back(yaml_word(file));
  return files.empty() ? "" : fmt::format("plugins: [{}]\n", fmt::join(files, ", "));
}

[[noreturn]] void refuse_row(const RecipeEntry& entry, const std::string& data, const std::string& columns,
                             const std::string& instead) {
  const std::string shapes = data_shapes(entry.name);
  const std::string renaming =
      fmt::format("data.columns: {{YOURS: OURS}} in what collimate init {} MODEL writes", entry.name);
  throw base::InputError(base::expectation(
      data + ":1", fmt::format("a row that recipe {} reads, as {}", entry.name, shapes.substr(0, shapes.find('\n'))),
      fmt::format("the columns {}: {}", columns, instead),
      fmt::format("{}, or collimate help data",
                  instead == kNoShape ? renaming : "that recipe, or a file of other rows")));
}

// Returns the first row of a file, and nothing where there is none. Throws InputError where the recipe cannot use it.
std::optional<text::Example> first_example(const RecipeEntry& entry, const std::string& data) {
  if (!std::filesystem::is_regular_file(data)) return std::nullopt;
  std::optional<text::Row> row = text::first_row(data);
  if (!row) return std::nullopt;
  std::vector<std::string> names;
  for (const auto& [name, value] : row->items()) names.push_back(name);
  const std::string columns = fmt::format("{}", fmt::join(names, ", "));
  const auto shape = text::recognise_shape(*row);
  if (!shape) refuse_row(entry, data, columns, kNoShape);
  text::Example example = text::to_example(*shape, std::move(*row), {data, 1});
  if (const std::string instead = rlhf::other_than(example, entry.rows); !instead.empty())
    refuse_row(entry, data, columns, instead);
  return example;
}

// Returns whether the model directory has no chat template and the data begins with a conversation.
bool lacks_template(const std::string& model, const std::optional<text::Example>& first) {
  return first && std::filesystem::is_directory(model) && text::turns_of(first->prompt) != nullptr &&
         text::load_tokenizer(model)->info().chat_template.empty();
}

// Returns the lines of a reward that fits the data. Rules compare with a ground truth, in GSM8K with the number behind
// its marks. Without a ground truth only a reward of one's own can judge.
const char* reward_of(const std::optional<text::Example>& first) {
  if (!first) return kRule;
  const nlohmann::json& truth = first->ground_truth;
  if (truth.is_null()) return kOwnReward;
  return truth.is_string() && truth.get<std::string>().find("\n#### ") != std::string::npos ? kGsm8k : kRule;
}

int64_t positions_of(const std::string& model, int64_t most) {
  if (!std::filesystem::is_directory(model)) return most;
  return std::min(most, shape::read_model_shape(host::base_directory(model)).positions());
}

}  // namespace

std::string starter(const std::string& recipe, const std::string& model, const std::string& data,
                    const std::string& file) {
  const RecipeEntry& entry = find_recipe(recipe);
  const Middle middle = middle_of(entry);
  const std::optional<text::Example> first = first_example(entry, data);
  const int64_t row = positions_of(model, 1024);
  std::string summary = entry.summary;
  summary[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(summary[0])));
  const auto written = [&](const Length& length) {
    return fmt::format(
        fmt::runtime(kHead + middle.data + own_options(entry) + middle.text + kTail), fmt::arg("summary", summary),
        fmt::arg("recipe", recipe), fmt::arg("plugins", plugins_line()), fmt::arg("options", entry.options.dump()),
        fmt::arg("file", file.empty() ? recipe + ".yaml" : file),
        fmt::arg("teacher", needs_teacher(entry) ? kTeacher : ""),
        fmt::arg("template", lacks_template(model, first) ? kTemplate : ""), fmt::arg("reward", reward_of(first)),
        fmt::arg("row", row), fmt::arg("half", row / 2), fmt::arg("model", yaml_word(model)),
        fmt::arg("data", yaml_word(data)), fmt::arg("update", length.update),
        fmt::arg("prompts", length.update / middle.rows_per_example),
        fmt::arg("unit", middle.rows_per_example == 2 ? "; a pair has two" : ""), fmt::arg("epochs", length.epochs),
        fmt::arg("updates", length.updates), fmt::arg("every", length.every),
        fmt::arg("iterations", length.every == 1 ? "iteration" : fmt::format("{} iterations", length.every)),
        fmt::arg("rate", fmt::format("{:.1e}", entry.learning_rate)));
  };
  return written(length_of(middle, data, written({.update = middle.update})));
}

std::string data_shapes(const std::string& recipe) {
  switch (find_recipe(recipe).rows) {
    case rlhf::RowKind::kDemonstration:
      return "{\"prompt\": \"2+2=\", \"completion\": \"4\"}\n"
             "{\"messages\": [{\"role\": \"user\", \"content\": \"2+2?\"}, {\"role\": \"assistant\", \"content\": "
             "\"4\"}]}\n"
             "{\"text\": \"plain text, of which every token is trained\"}\n";
    case rlhf::RowKind::kPreference:
      return "{\"prompt\": \"2+2=\", \"chosen\": \"4\", \"rejected\": \"5\"}\n"
             "{\"chosen\": [{\"role\": \"user\", …}, {\"role\": \"assistant\", …}], \"rejected\": […]}\n";
    case rlhf::RowKind::kMarked:
      return "{\"prompt\": \"2+2=\", \"completion\": \"4\", \"label\": true}\n"
             "{\"messages\": [{\"role\": \"user\", …}, {\"role\": \"assistant\", …}], \"label\": false}\n";
    case rlhf::RowKind::kSteps:
      return "{\"prompt\": \"2*3+1=?\", \"completions\": [\"2*3 is 6.\", \"6+1 is 8.\"], \"labels\": [true, false]}\n";
    case rlhf::RowKind::kPrompt:
      break;
  }
  return "{\"prompt\": \"2+2=\", \"ground_truth\": \"4\"}\n"
         "{\"prompt\": [{\"role\": \"user\", \"content\": \"2+2?\"}], \"ground_truth\": \"4\"}\n";
}

}  // namespace collimate::recipe
