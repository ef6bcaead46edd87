#include "collimate/recipe/check_models.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/host/base_model.h"
#include "collimate/host/hub_cache.h"
#include "collimate/recipe/attempt.h"
#include "collimate/recipe/run_inputs.h"
#include "collimate/rlhf/modules/decoder.h"
#include "collimate/shape/model_shape.h"

namespace collimate::recipe {
namespace {

using base::expectation;

// Returns the largest id that is no special token. Special ones may have been added for the policy alone, and are drawn
// by none.
int32_t largest_ordinary_id(const text::Tokenizer& tokenizer) {
  int32_t id = tokenizer.vocab_size() - 1;
  while (id > 0 && (tokenizer.is_special(id) || tokenizer.token_bytes(id).empty())) --id;
  return id;
}

std::string quoted_token(const text::Tokenizer& tokenizer, int32_t id) {
  return nlohmann::json(tokenizer.token_bytes(id)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void check_size(const std::string& directory, const shape::ModelShape& shape, const RowExtent& rows,
                std::vector<std::string>& problems) {
  const std::string where = "model " + directory;
  if (rows.tokens > shape.positions())
    problems.push_back(
        expectation(where, fmt::format("rows of at most its {} positions", shape.positions()),
                    fmt::format("{} tokens", rows.tokens),
                    !rows.drawn_by.empty()
                        ? "shorter prompts or rows, or a smaller " + rows.drawn_by
                        : fmt::format("data.max_tokens: {} with data.long_rows: drop or truncate", shape.positions())));
  if (rows.largest_id >= shape.vocabulary)
    problems.push_back(expectation(where, fmt::format("token ids below its vocabulary of {}", shape.vocabulary),
                                   std::to_string(rows.largest_id), "the tokenizer that belongs to the model"));
}

void check_tokenizer(const std::string& directory, const text::Tokenizer& policy, std::vector<std::string>& problems) {
  if (!text::has_tokenizer(directory)) return;
  const auto own = text::load_tokenizer(directory);
  const std::optional<int32_t> id = text::first_difference(policy, *own);
  if (!id) return;
  problems.push_back(expectation("model " + directory,
                                 fmt::format("the tokenizer of the policy {}, whose ids it reads: id {} is {} there",
                                             policy.info().directory, *id, quoted_token(policy, *id)),
                                 fmt::format("{} for id {}", quoted_token(*own, *id), *id),
                                 "a model of the policy's tokenizer"));
}

// Adds a problem where the teacher's distributions are not of the policy's vocabulary.
void check_teacher(const Plan& plan, const std::string& policy, std::vector<std::string>& problems) {
  const auto teacher = plan.modules.find("teacher");
  if (teacher == plan.modules.end() || !plan.calls("teacher", "teacher_lists")) return;
  const std::string path = teacher->second.parameters.at("path");
  const auto vocabulary = [](const std::string& directory) {
    return shape::read_model_shape(host::base_directory(directory)).vocabulary;
  };
  const int64_t own = vocabulary(policy), other = vocabulary(path);
  if (own != other)
    problems.push_back(expectation(
        "model " + path, fmt::format("a teacher of the policy's vocabulary of {} tokens", own), fmt::to_string(other),
        "a model with the same vocab_size in its config.json, as sizes of one family may have "
        "other numbers of unused tokens behind the tokenizer's"));
}

// Adds a problem for each model whose tokens count and whose directory has a head that gives a score.
void check_heads(const Plan& plan, std::vector<std::string>& problems) {
  std::set<std::string> told;
  for (const auto& [name, module] : plan.modules) {
    const nlohmann::json& parameters = module.parameters;
    if (parameters.value("head", "") != "lm" || parameters.value("from_scratch", false)) continue;
    const std::string path = parameters.value("path", "");
    if (path.empty() || told.contains(path)) continue;
    attempt(problems, [&] {
      if (shape::read_model_shape(host::base_directory(path)).head == shape::Head::kLanguageModel) return;
      told.insert(path);
      problems.push_back(expectation("model " + path, "a language model", "a reward model, which scores answers",
                                     "the model that it was trained from"));
    });
  }
}

}  // namespace

void RowExtent::include(const Batch& rows, int64_t more, const std::string& option) {
  for (int64_t r = 0; r < rows.rows(); ++r) {
    if (const int64_t length = rows.length(batch::kIds.name, r) + more; length > tokens) {
      tokens = length;
      drawn_by = more > 0 ? option : "";
    }
    for (const int32_t id : rows.row(batch::kIds, r)) largest_id = std::max(largest_id, id);
  }
}

ModelFindings inspect_models(const Plan& plan, const text::Tokenizer& policy, const RowExtent& rows) {
  ModelFindings found;
  const bool drawn = plan.rows == rlhf::RowKind::kPrompt;
  RowExtent others = rows;  // models other than the policy also read what it draws
  if (drawn) others.largest_id = std::max(rows.largest_id, largest_ordinary_id(policy));
  for (const auto& [directory, reads] : model_directories(plan)) {
    const bool own = directory == policy.info().directory;
    attempt(found.problems, [&, path = directory] {
      const shape::ModelShape shape = shape::read_model_shape(host::base_directory(path));
      check_size(path, shape, own ? rows : others, found.problems);
      if (!shape.text_part_of.empty())
        found.lines.push_back(
            fmt::format("text: of {}, a {}, the language model alone is read and saved, without what reads images",
                        path, shape.text_part_of));
    });
    if (!own) attempt(found.problems, [&, path = directory] { check_tokenizer(path, policy, found.problems); });
  }
  attempt(found.problems, [&] { check_teacher(plan, policy.info().directory, found.problems); });
  check_heads(plan, found.problems);
  return found;
}

std::vector<std::string> missing_models(const Config& config) {
  std::vector<std::string> problems;
  for (const auto& [role, model] : config.models) {
    const std::string& path = model.path;
    if (path.empty() && role == "policy")
      problems.push_back(base::expectation("models.policy.path", "a model directory", "nothing", "policy: DIRECTORY"));
    if (path.empty() || std::filesystem::is_directory(path)) continue;
    const bool file = std::filesystem::exists(path);
    problems.push_back(base::expectation(
        fmt::format("models.{}.path", role), "a model directory",
        path + (file ? ", which is a file" : ", which is not there; nothing is downloaded without being asked"),
        file ? "the directory that has config.json, a tokenizer and such files" : host::hub_remedy(path)));
  }
  return problems;
}

std::vector<std::string> adapter_lines(const Plan& plan) {
  std::vector<std::string> lines;
  for (const std::string& trainer : plan.trainers) {
    rlhf::DecoderOptions options;
    base::apply(plan.modules.at(trainer).parameters, "models", options);
    if (const std::string adapters = rlhf::adapters_text(options); !adapters.empty())
      lines.push_back("lora: " + adapters);
  }
  return lines;
}

}  // namespace collimate::recipe
