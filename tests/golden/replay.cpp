#include "tests/golden/replay.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "collimate/base/error.h"

namespace collimate::golden {
namespace {

using Replay = std::vector<Outcome> (*)(const std::string&, const json&, const ModelShelf&);

// By shape: which replay reads a file.
Replay find_replay(const json& golden) {
  if (golden.contains("updates")) return replay_ppo;
  if (golden.contains("inputs") && golden.contains("cases")) return replay_ppo_arrays;
  if (golden.contains("inputs") && golden.contains("variants")) return replay_policy_variants;
  if (golden.contains("batches") && golden.contains("variants")) return replay_dpo_variants;
  if (golden.contains("steps") && golden["steps"].is_array() && !golden["steps"].empty()) {
    const json& step = golden["steps"][0];
    const bool policy = step.contains("batch") || trainer_kind(golden) == "grpo";
    return policy ? replay_rollouts : replay_steps;
  }
  throw UnknownKind("no replay for a file of this shape", false);
}

// Numbers that differ in a file with options that nothing here knows say nothing of what we have.
void doubt(const json& golden, std::vector<Outcome>& outcomes) {
  const auto names = unread_options(golden.value("hyper", json::object()));
  if (names.empty()) return;
  for (Outcome& outcome : outcomes) {
    if (outcome.verdict == Verdict::kWithin) continue;
    if (outcome.verdict == Verdict::kOutside) outcome.verdict = Verdict::kUnknown;
    outcome.text += fmt::format("; its hyper has options that are not known here: {}", fmt::join(names, ", "));
  }
}

}  // namespace

std::vector<Outcome> replay_golden(const std::string& name, json golden, const ModelShelf& shelf) {
  try {
    if (!golden.contains("hyper") || golden["hyper"].is_null()) golden["hyper"] = json::object();
    std::vector<Outcome> outcomes = find_replay(golden)(name, golden, shelf);
    doubt(golden, outcomes);
    return outcomes;
  } catch (const UnknownKind& unknown) {
    return {{name, Verdict::kUnknown, unknown.what(), unknown.required}};
  } catch (const std::exception& error) {
    return {{name, Verdict::kOutside, std::string("error: ") + error.what()}};
  }
}

std::vector<Outcome> replay_file(const std::string& path, const ModelShelf& shelf) {
  const std::string name = std::filesystem::path(path).stem().string();
  std::ifstream file(path);
  const json golden = json::parse(file, nullptr, false);
  if (golden.is_discarded()) return {{name, Verdict::kOutside, "error: no readable JSON"}};
  return replay_golden(name, golden, shelf);
}

std::vector<Outcome> replay_folder(const std::string& folder, const std::function<void(const Outcome&)>& done) {
  std::vector<std::string> paths;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(folder, missing))
    if (entry.path().extension() == ".json") paths.push_back(entry.path().string());
  if (paths.empty())
    throw base::InputError(base::expectation("goldens", "*.json files in " + folder, "none", "GOLDENS=DIR"));
  std::sort(paths.begin(), paths.end());
  std::vector<Outcome> all;
  for (const std::string& path : paths) {
    for (const Outcome& outcome : replay_file(path, ModelShelf(folder))) {
      if (done) done(outcome);
      all.push_back(outcome);
    }
  }
  return all;
}

Totals totals_of(const std::vector<Outcome>& outcomes) {
  Totals totals;
  for (const Outcome& outcome : outcomes) {
    totals.within += outcome.verdict == Verdict::kWithin;
    totals.outside += outcome.verdict == Verdict::kOutside;
    totals.unknown += outcome.verdict == Verdict::kUnknown;
    totals.failed |= outcome.verdict == Verdict::kOutside;
    totals.failed |= outcome.verdict == Verdict::kUnknown && outcome.required;
  }
  return totals;
}

std::string line_of(const Outcome& outcome) {
  static constexpr const char* kNames[] = {"within", "outside", "unknown"};
  return fmt::format("{:7} {}: {}", kNames[static_cast<int>(outcome.verdict)], outcome.name, outcome.text);
}

std::string line_of(const Totals& totals) {
  return fmt::format("{} within, {} outside, {} unknown", totals.within, totals.outside, totals.unknown);
}

}  // namespace collimate::golden
