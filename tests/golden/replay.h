#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/golden/compare.h"
#include "tests/golden/trainee.h"

namespace collimate::golden {

// One replay per shape of golden. Each throws UnknownKind for what we do not have and InputError for a file or model
// that cannot be read.
std::vector<Outcome> replay_steps(const std::string& name, const json& golden, const ModelShelf& shelf);
std::vector<Outcome> replay_dpo_variants(const std::string& name, const json& golden, const ModelShelf& shelf);
std::vector<Outcome> replay_rollouts(const std::string& name, const json& golden, const ModelShelf& shelf);
std::vector<Outcome> replay_policy_variants(const std::string& name, const json& golden, const ModelShelf& shelf);
std::vector<Outcome> replay_ppo(const std::string& name, const json& golden, const ModelShelf& shelf);
std::vector<Outcome> replay_ppo_arrays(const std::string& name, const json& golden, const ModelShelf& shelf);

// Replays what a file holds; errors become an outcome of their own.
std::vector<Outcome> replay_golden(const std::string& name, json golden, const ModelShelf& shelf);
// Replays one file; errors likewise.
std::vector<Outcome> replay_file(const std::string& path, const ModelShelf& shelf);
// Replays every *.json file of a folder in order of name; `models`: where models lie that are not beside it. InputError
// when there is none.
std::vector<Outcome> replay_folder(const std::string& folder, const std::function<void(const Outcome&)>& done = {},
                                   const std::string& models = "");

struct Totals {
  int within = 0, outside = 0, unknown = 0;
  bool failed = false;  // something is outside, or unknown though required
};
Totals totals_of(const std::vector<Outcome>& outcomes);
std::string line_of(const Outcome& outcome);
std::string line_of(const Totals& totals);

}  // namespace collimate::golden
