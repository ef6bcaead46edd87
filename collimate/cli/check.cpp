#include "collimate/cli/check.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>

#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/cli/arguments.h"
#include "collimate/cli/auto_placement.h"
#include "collimate/recipe/chatlearn/chatlearn.h"
#include "collimate/recipe/check.h"

namespace collimate::cli {

namespace {

constexpr std::string_view kWarning = "warning: ";

}  // namespace

void show_translation(const std::string& path, const std::vector<std::string>& sets, CheckForm form) {
  if (form == CheckForm::kJson) return;
  for (const std::string& line : recipe::chatlearn_lines(path, sets))
    fmt::print("{}{}\n", form == CheckForm::kAll ? "# " : "", line);
  std::fflush(stdout);
}

int show_check(const recipe::Config& config, CheckForm form) {
  recipe::Findings found = recipe::check(config);
  std::stable_partition(found.lines.begin(), found.lines.end(),
                        [](const std::string& line) { return !line.starts_with(kWarning); });
  if (form == CheckForm::kJson) {
    print_json(recipe::to_json(config, found));
  } else {
    const bool all = form == CheckForm::kAll;
    for (const std::string& line : found.lines) fmt::print("{}{}\n", all ? "# " : "", line);
    if (all) fmt::print("{}\n", found.config);
  }
  std::fflush(stdout);  // so that problems come last on a terminal
  for (const std::string& problem : found.problems) fmt::print(stderr, "{}\n", problem);
  return found.problems.empty() ? 0 : 2;
}

int check(const Arguments& arguments) {
  CLI::App app{
      "shows what would be trained (batches, data, masks, what the rewards give) and trains nothing; exit code 2, with "
      "the reasons, if it would train wrong",
      "check"};
  std::string config_path;
  std::vector<std::string> sets;
  bool download = false, json = false, all = false;
  app.add_option("CONFIG", config_path, "the YAML file of the run")->required();
  app.add_option("--set", sets, "replace the value of one key: a.b=value")->take_all();
  add_plugin_option(app);
  add_download_flag(app, download);
  app.add_flag("--all", all, "also print every key that the run reads, as YAML that trains the same");
  app.add_flag("--json", json, "print one JSON document");
  if (!parse(app, arguments)) return 0;
  if (download) sets.emplace_back("download=true");
  const CheckForm form = json ? CheckForm::kJson : all ? CheckForm::kAll : CheckForm::kShort;
  show_translation(config_path, sets, form);  // before loading, which may fail
  recipe::Config config = recipe::load(config_path, sets);
  choose_placement(config, config_path, sets, "");
  return show_check(config, form);
}

}  // namespace collimate::cli
