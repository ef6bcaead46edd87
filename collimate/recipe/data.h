#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/recipe/config.h"
#include "collimate/recipe/option_names.h"
#include "collimate/recipe/page.h"
#include "collimate/rlhf/prompt/source.h"
#include "collimate/text/dataset.h"
#include "collimate/text/tokenizer.h"

namespace collimate::recipe {

// A config's data sets and tokenizer, read once.
struct RunData {
  std::unique_ptr<text::Tokenizer> tokenizer;
  std::unique_ptr<text::Renderer> renderer;
  std::unique_ptr<rlhf::RowSource> train;
  std::unique_ptr<rlhf::RowSource> eval;                   // null without held-out rows
  std::vector<std::string> notes;                          // shapes recognised, template chosen: for a person
  nlohmann::json fingerprints = nlohmann::json::object();  // {"data.train": {"rows", "fingerprint"}, …}
};

// InputError: no data, files missing or malformed, rows that the recipe cannot use.
RunData read_data(const Config& config, const Plan& plan);

// How held-out rows of a kind are read: prompts with the samples and the sampling of `evaluation`, whatever the
// training does. InputError, by those names, for several samples of a prompt that would all be equal.
rlhf::SourceOptions held_out_options(const Config& config, rlhf::RowKind rows, const OptionNames& names = {});

// All held-out rows that are measured; where the evaluation's model answers, its first examples ask it to
// (rlhf::kAsked): of a pair its first row, and no row without a prompt or without an answer.
Batch held_out_rows(const Config& config, const Plan& plan, const RunData& data);

// Returns, for Plan::read_options, those that data is read and rendered by where a recipe's rows are of this kind.
std::vector<std::string> data_options(rlhf::RowKind rows);

// InputError, naming its place, for a key of a source that sources do not have; `key` is what holds them.
void check_source_keys(const base::ConfigNode& sources, const std::string& key);

// "file", ["a", {path: b, weight: 2}] or {path: …} as sources. InputError naming `key`.
std::vector<text::DataSource> data_sources(const nlohmann::json& value, const std::string& key);

}  // namespace collimate::recipe
