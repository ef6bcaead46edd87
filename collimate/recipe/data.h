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

// Holds a config's data sets and its tokenizer, each read once.
struct RunData {
  std::unique_ptr<text::Tokenizer> tokenizer;
  std::unique_ptr<text::Renderer> renderer;
  std::unique_ptr<rlhf::RowSource> train;
  std::unique_ptr<rlhf::RowSource> ptx;                    // rows of data.ptx; null without data.ptx
  std::vector<HeldOutRows> held_out;                       // one of each of the plan's evaluations
  std::vector<std::string> notes;                          // shapes recognised, template chosen: for a person
  std::vector<LeftOutRows> left_out;                       // the notes of rows left out or truncated
  nlohmann::json fingerprints = nlohmann::json::object();  // {"data.train": {"rows", "fingerprint"}, …}

  // Returns rows of an iteration as RowSource::rows does, each with a row of data.ptx beside it where that is set.
  Batch rows(int64_t iteration, int64_t rows, int64_t first, int64_t count) const;
  // Adds to `notes` what was recognised in a data set, and its fingerprint to `fingerprints`. `others` is as in
  // Dataset::verdict().
  void add(const std::string& key, const text::Dataset& dataset, const std::string& others = "");
  void add_left_out(const std::vector<LeftOutNote>& rows);
};

// Reads the data of a config. Throws InputError when there is no data, when files are missing or malformed, or when the
// recipe cannot use the rows.
RunData read_data(const Config& config, const Plan& plan);

// Returns the options that training and held-out rows share. The model has so many `positions`, of which a row leaves
// `drawn` to the tokens that are drawn behind it.
rlhf::SourceOptions common_options(const Config& config, rlhf::RowKind rows, int64_t positions, int64_t drawn);

// Returns words that say who reads the columns that have no part in training: ", which rewards get".
std::string readers_of_others(const Config& config);

// Returns the options by which data is read and rendered where a recipe's rows are of this kind, for
// Plan::read_options.
std::vector<std::string> data_options(rlhf::RowKind rows);

// Throws InputError, naming its place, for a key of a source that sources do not have. `key` names the option that
// holds the sources.
void check_source_keys(const base::ConfigNode& sources, const std::string& key);

// Returns the sources that "file", ["a", {path: b, weight: 2}] or {path: …} stands for. Throws InputError naming
// `key`.
std::vector<text::DataSource> data_sources(const nlohmann::json& value, const std::string& key);

}  // namespace collimate::recipe
