#include "tests/golden/replay.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "collimate/base/error.h"
#include "tests/golden/check.h"
#include "tests/golden/place.h"

namespace collimate::golden {
namespace {

// A Shape reads the files of one shape.
struct Shape {
  const char* kinds;     // of trainers that it has
  const char* nameless;  // the kind of a file that names no trainer; null: unknown
  void (*check)(const json&, const std::string& kind, int64_t vocabulary);
  std::vector<Outcome> (*replay)(const std::string&, const json&, const ModelShelf&);
};

Shape shape_of(const json& golden) {
  const auto has = [&](const char* key) { return golden.contains(key) && !golden[key].is_null(); };
  if (has("updates")) return {" ppo ", "ppo", check_ppo, replay_ppo};
  if (has("inputs") && has("cases")) return {" ppo ", "ppo", check_ppo_arrays, replay_ppo_arrays};
  if (has("inputs") && has("variants")) return {" grpo ", "grpo", check_policy_variants, replay_policy_variants};
  if (has("batches") && has("variants")) return {" dpo ", nullptr, check_dpo_variants, replay_dpo_variants};
  if (!has("steps")) throw UnknownKind("no replay for a file of this shape", false);
  const json& steps = golden["steps"];
  const bool batch = steps.is_array() && !steps.empty() && steps[0].contains("batch");
  if (batch || trainer_kind(golden) == "grpo") return {" grpo ", "grpo", check_rollouts, replay_rollouts};
  return {" sft dpo reward process_reward kto orpo cpo distill ", nullptr, check_steps, replay_steps};
}

// Names what the file's trainer is here. UnknownKind, with its name, where that has no files of this shape.
std::string kind_of(const json& golden, const Shape& shape) {
  const std::string trainer = trainer_class(golden), kind = trainer_kind(golden);
  if (trainer.empty() && shape.nameless != nullptr) return shape.nameless;
  if (kind.empty() || std::string(shape.kinds).find(" " + kind + " ") == std::string::npos)
    throw UnknownKind("trainer " + (trainer.empty() ? "without a name" : trainer), false);
  return kind;
}

// Throws before anything is computed where the file cannot be replayed.
void check(const json& golden, const Shape& shape, const ModelShelf& shelf) {
  const Place hyper(golden["hyper"], "hyper");
  hyper.entries();
  const std::string kind = kind_of(golden, shape);
  const bool has_model = shape.check != check_ppo_arrays;
  if (has_model && !hyper.at("model").value().is_string()) hyper.at("model").fail("the name of a model", "no text");
  shape.check(golden, kind, has_model ? shelf.vocabulary(hyper.at("model").value()) : 0);
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
    Place(golden).entries();
    if (!golden.contains("hyper") || golden["hyper"].is_null()) golden["hyper"] = json::object();
    const Shape shape = shape_of(golden);
    check(golden, shape, shelf);
    std::vector<Outcome> outcomes = shape.replay(name, golden, shelf);
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
  try {
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    return replay_golden(name, parse_python(text, name + ".json"), shelf);
  } catch (const base::InputError& error) {
    return {{name, Verdict::kOutside, std::string("error: ") + error.what()}};
  }
}

std::vector<Outcome> replay_folder(const std::string& folder, const std::function<void(const Outcome&)>& done,
                                   const std::string& models) {
  std::vector<std::string> paths;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(folder, missing))
    if (entry.path().extension() == ".json") paths.push_back(entry.path().string());
  if (paths.empty())
    throw base::InputError(base::expectation("goldens", "*.json files in " + folder, "none", "GOLDENS=DIR"));
  std::sort(paths.begin(), paths.end());
  std::vector<Outcome> all;
  for (const std::string& path : paths) {
    for (const Outcome& outcome : replay_file(path, ModelShelf(folder, models))) {
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
