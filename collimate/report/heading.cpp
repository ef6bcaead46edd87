#include "collimate/report/heading.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "collimate/report/html.h"

namespace collimate::report {

namespace {

namespace fs = std::filesystem;

std::string recipe_words(const std::string& recipe) {
  if (recipe == "reward") return "Reward model";
  if (recipe == "distill") return "Distillation";
  std::string upper = recipe;
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  return upper;
}

// Returns the last two directories of a model's path, of which the last alone is often "model".
std::string model_words(const std::string& path) {
  const fs::path normal = fs::path(path).lexically_normal();
  const std::string parent = normal.parent_path().filename().string();
  return parent.empty() || parent == ".." ? normal.filename().string() : parent + "/" + normal.filename().string();
}

std::string text_at(const nlohmann::json& tree, const char* pointer) {
  const nlohmann::json::json_pointer where(pointer);
  if (!tree.is_object() || !tree.contains(where) || !tree.at(where).is_string()) return "";
  return tree.at(where).get<std::string>();
}

// Returns the names of data files; `value` is a text, a {path: …}, or a list of these.
std::string data_words(const nlohmann::json& value) {
  if (value.is_string()) return fs::path(value.get<std::string>()).filename().string();
  if (value.is_object()) return data_words(value.value("path", nlohmann::json()));
  std::string out;
  if (value.is_array())
    for (const nlohmann::json& source : value) out += (out.empty() ? "" : " and ") + data_words(source);
  return out;
}

// Writes "2026-11-24T19:36:22Z" as "2026-11-24 19:36 UTC"; "" for a shorter text.
std::string time_words(const std::string& ended) {
  constexpr size_t kDate = 10, kMinutes = 16;
  return ended.size() < kMinutes ? "" : ended.substr(0, kDate) + " " + ended.substr(kDate + 1, 5) + " UTC";
}

}  // namespace

std::string Heading::title(const std::string& otherwise) const {
  if (recipe.empty()) return otherwise;
  return recipe + (model.empty() ? "" : " of " + model) + (data.empty() ? "" : " on " + data);
}

std::string trial_command(const std::string& recipe, bool generates, const std::string& run) {
  if (generates) return fmt::format("collimate chat {}/model", run);
  return recipe == "reward" ? fmt::format("collimate eval {}/model --data PAIRS.jsonl", run) : "";
}

Heading heading_of(const RunData& run) {
  const nlohmann::json summary = run.summary.is_object() ? nlohmann::json(run.summary) : nlohmann::json::object();
  Heading heading;
  const std::string recipe = text_at(run.settings, "/recipe");
  heading.recipe = recipe_words(recipe.empty() ? text_at(summary, "/recipe") : recipe);
  heading.model = model_words(text_at(run.settings, "/models/policy/path"));
  if (run.settings.is_object())
    heading.data = data_words(run.settings.value("/data/train"_json_pointer, nlohmann::json()));
  heading.ended = time_words(text_at(run.summary.is_null() ? nlohmann::json(run.stopped) : summary, "/ended"));
  if (run.has_model)
    heading.command = trial_command(recipe.empty() ? text_at(summary, "/recipe") : recipe,
                                    summary.value("generates", false), run.directory);
  return heading;
}

std::string draw_heading(const RunData& run) {
  const Heading heading = heading_of(run);
  const bool stopped = run.summary.is_null() && run.stopped.is_object();
  std::string facts = "Run " + run.name;
  if (run.summary.is_null() && !stopped)
    facts += ", which has not ended";
  else if (!heading.ended.empty())
    facts += (stopped ? ", stopped " : ", ended ") + heading.ended;
  const std::string extent = run.metrics.empty() ? "no iteration was finished"
                                                 : fmt::format("iterations {} to {} · {}", run.first_step,
                                                               run.last_step, duration(run.seconds));
  std::string out =
      fmt::format(R"(<h1>{}</h1><p class="soft">{} · {}</p>)", escape(heading.title(run.name)), escape(facts), extent);
  if (!heading.command.empty())
    out += fmt::format(R"(<p>To try the model: <code>{}</code></p>)", escape(heading.command));
  return out;
}

}  // namespace collimate::report
