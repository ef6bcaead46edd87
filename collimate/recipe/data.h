#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/recipe/config.h"
#include "collimate/recipe/evaluation/held_out.h"
#include "collimate/recipe/left_out.h"
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
  std::unique_ptr<rlhf::RowSource> ptx;                    // of data.ptx; null without
  std::vector<HeldOutRows> held_out;                       // of each of the plan's evaluations
  std::vector<std::string> notes;                          // shapes recognised, template chosen: for a person
  std::vector<LeftOutRows> left_out;                       // the notes of rows left out or truncated
  nlohmann::json fingerprints = nlohmann::json::object();  // {"data.train": {"rows", "fingerprint"}, …}

  // Rows of an iteration as RowSource::rows, each with a row of data.ptx where there is that.
  Batch rows(int64_t iteration, int64_t rows, int64_t first, int64_t count) const;
  // Adds what was recognised, and the fingerprint; `others` as in Dataset::verdict().
  void add(const std::string& key, const text::Dataset& dataset, const std::string& others = "");
  void add_left_out(const std::vector<LeftOutNote>& rows);
};

// InputError: no data, files missing or malformed, rows that the recipe cannot use.
RunData read_data(const Config& config, const Plan& plan);

// Returns the options that training and held-out rows share, of a model with so many positions: beside a row it has
// some for what is `drawn`.
rlhf::SourceOptions common_options(const Config& config, rlhf::RowKind rows, int64_t positions, int64_t drawn);

// Says who reads the columns of a recipe's rows that have no part in training.
std::string readers_of_others(const Config& config);

// Returns, for Plan::read_options, those that data is read and rendered by where a recipe's rows are of this kind.
std::vector<std::string> data_options(rlhf::RowKind rows);

// InputError, naming its place, for a key of a source that sources do not have; `key` is what holds them.
void check_source_keys(const base::ConfigNode& sources, const std::string& key);

// "file", ["a", {path: b, weight: 2}] or {path: …} as sources. InputError naming `key`.
std::vector<text::DataSource> data_sources(const nlohmann::json& value, const std::string& key);

}  // namespace collimate::recipe
