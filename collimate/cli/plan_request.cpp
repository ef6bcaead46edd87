#include "collimate/cli/plan_request.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <set>
#include <sstream>

#include "collimate/base/edit_distance.h"
#include "collimate/base/error.h"
#include "collimate/base/nearest_number.h"
#include "collimate/cli/machine_file.h"
#include "collimate/cli/shell_words.h"
#include "collimate/host/file_io.h"
#include "collimate/plan/form.h"
#include "collimate/plan/inputs/flows.h"
#include "collimate/plan/inputs/shadow.h"
#include "collimate/plan/layout/fixed.h"

namespace collimate::cli {
namespace {

namespace plan = collimate::plan;
namespace fs = std::filesystem;

constexpr const char* kCommand = "collimate plan";

// One list for the app, the comment and its reading: text options by name.
std::vector<std::pair<const char*, std::string PlanOptions::*>> text_options() {
  return {{"--flow", &PlanOptions::flow},         {"--cluster", &PlanOptions::cluster},
          {"--prompt", &PlanOptions::prompt},     {"--completion", &PlanOptions::completion},
          {"--backend", &PlanOptions::backend},   {"--layouts", &PlanOptions::layouts},
          {"--constants", &PlanOptions::machine}, {"--price", &PlanOptions::price},
          {"--form", &PlanOptions::form}};
}
std::vector<std::pair<const char*, std::vector<std::string> PlanOptions::*>> list_options() {
  return {{"--models", &PlanOptions::models},  {"--set", &PlanOptions::sets},  {"--constant", &PlanOptions::constants},
          {"--device", &PlanOptions::devices}, {"--fix", &PlanOptions::fixed}, {"--lora", &PlanOptions::lora},
          {"--shadow", &PlanOptions::shadows}};
}
std::vector<std::pair<const char*, int64_t PlanOptions::*>> number_options() {
  return {{"--rows", &PlanOptions::rows},
          {"--updates", &PlanOptions::updates},
          {"--iterations", &PlanOptions::iterations},
          {"--micro-batch", &PlanOptions::micro_batch}};
}

std::string text_help(const std::string& name) {
  if (name == "--flow") return "ppo, grpo or a graph's JSON file, without a config";
  if (name == "--cluster")
    return "NODESxDEVICESxKIND: 16x8xA100-80, 8xH100, 2xcpu; @400Gb for its network; several kinds joined by +";
  if (name == "--prompt") return "tokens of a prompt: 512, mean:MEAN,SIGMA,CAP, lognormal:…, histogram:…";
  if (name == "--completion") return "the same of a completion";
  if (name == "--price") return "dollars of one device for an hour, or KIND=DOLLARS,… (default: assumed ones)";
  if (name == "--form") return "only placements of it: flattening, interleaving, nested, separation, split, standalone";
  if (name == "--constants") return "a file of constants, as collimate calibrate writes; --constant overrides";
  if (name == "--backend") return "whose software's constants to use (default: generic ones)";
  return "any, or dp: every rank holds all of its model (default: dp with a config, as the recipes run; any without)";
}

std::string role_of(const std::string& text, const graph::Graph& graph) {
  const size_t equals = text.find('=');
  const std::string role = equals == std::string::npos ? "policy" : text.substr(0, equals);
  std::vector<std::string> known;
  for (const auto& [name, model] : graph.models)
    if (std::any_of(model.functions.begin(), model.functions.end(),
                    [](const graph::FunctionSpec& spec) { return spec.kind != graph::Kind::kHost; }))
      known.push_back(name);
  if (std::find(known.begin(), known.end(), role) != known.end()) return role;
  if (graph.models.contains(role))
    throw base::InputError(base::expectation("--models", fmt::format("one of {}", fmt::join(known, ", ")),
                                             "'" + role + "', which runs on the host and has no weights"));
  for (const auto& [other, name] : {std::pair("actor", "policy"), std::pair("critic", "value"),
                                    std::pair("ref", "reference"), std::pair("rm", "reward")})
    if (role == other && std::find(known.begin(), known.end(), name) != known.end())
      throw base::InputError(base::expectation("--models", fmt::format("one of {}", fmt::join(known, ", ")),
                                               "'" + role + "'", fmt::format("'{}'", name)));
  base::throw_unknown_choice("--models", role, known);
}

// "policy_trainer=64", of a model that trains.
void read_lora(const PlanOptions& options, plan::Request& request) {
  std::vector<std::string> trains;
  for (const auto& [name, model] : request.graph.models)
    if (request.graph.trains(name)) trains.push_back(name);
  for (const std::string& text : options.lora) {
    const size_t equals = std::min(text.find('='), text.size());
    const std::string name = text.substr(0, equals);
    if (std::find(trains.begin(), trains.end(), name) == trains.end())
      base::throw_unknown_choice("--lora", name, trains);
    char* end = nullptr;
    const std::string rank = text.substr(std::min(equals + 1, text.size()));
    const long value = std::strtol(rank.c_str(), &end, 10);
    if (rank.empty() || *end != '\0' || value < 1 || value > 65536)
      throw base::InputError(base::expectation("--lora " + name, "a rank from 1 to 65536", "'" + rank + "'",
                                               name + "=" + base::nearest_number(rank, 1, 65536, "64", true)));
    request.lora[name] = value;
  }
}

// "reward=opt-350m" as ("reward=", "opt-350m").
std::pair<std::string, std::string> split_model(const std::string& text) {
  const size_t equals = text.find('=');
  const size_t begin = equals == std::string::npos ? 0 : equals + 1;
  return {text.substr(0, begin), text.substr(begin)};
}

void read_models(const PlanOptions& options, plan::Request& request) {
  std::set<std::string> seen;
  for (const std::string& text : options.models) {
    const std::string role = role_of(text, request.graph);
    if (!seen.insert(role).second)
      throw base::InputError(base::expectation("--models", "each model once", "'" + role + "' twice",
                                               "MODEL=NAME for each; a name alone is the policy's"));
    request.models[role] = shape::find_outline(split_model(text).second);
  }
}

void read_flow(const PlanOptions& options, PlanRequest& made) {
  if (options.flow.empty())
    throw base::InputError(base::expectation("plan", "CONFIG.yaml, or --flow with --models and --cluster", "neither",
                                             "--flow ppo --models llama2-7b --cluster 8xA100"));
  if (!options.sets.empty())
    throw base::InputError(base::expectation("--set", "a config whose keys it overrides", "none", "--constant"));
  made.request.graph =
      options.flow.ends_with(".json") ? graph::parse(host::read_file(options.flow)) : plan::flow_of(options.flow);
  for (const auto& [name, missing] :
       {std::pair("--models", options.models.empty()), std::pair("--cluster", options.cluster.empty())})
    if (missing)
      throw base::InputError(
          base::expectation(name, "a value with --flow", "none", "--models llama2-7b --cluster 8xA100"));
}

// A fixed length is of whole tokens.
plan::Lengths lengths_of(const std::string& text, const std::string& option) {
  const plan::Lengths lengths = plan::Lengths::parse(text, option);
  const double whole = std::max(std::nearbyint(lengths.mean()), 1.0);
  if (text.find(':') == std::string::npos && lengths.mean() != whole)
    throw base::InputError(
        base::expectation(option, "whole tokens", "'" + text + "'", fmt::format("{} {:.0f}", option, whole)));
  return lengths;
}

void read_lengths(const PlanOptions& options, plan::Workload& load) {
  if (options.rows > 0) load.rows = static_cast<double>(options.rows);
  if (options.updates > 0)
    load.updates = static_cast<int>(std::min<int64_t>(options.updates, std::numeric_limits<int>::max()));
  else if (options.config.empty())
    load.updates = static_cast<int>(std::min<double>(load.updates, load.rows));
  if (!options.prompt.empty()) load.prompt = lengths_of(options.prompt, "--prompt");
  if (!options.completion.empty()) load.completion = lengths_of(options.completion, "--completion");
  load.staleness = options.staleness.value_or(0);
}

double price_of(const std::string& text) {
  char* end = nullptr;
  const double price = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(price) || price < 0)
    throw base::InputError(base::expectation("--price", "dollars of one device for an hour", "'" + text + "'",
                                             "--price 1.6, or A100-80=1.6,H100-80=2.5"));
  return price;
}

// "1.6" of every kind, or "KIND=1.6,…".
void set_prices(const std::string& text, plan::Request& request) {
  std::istringstream list(text + ",");
  for (std::string part; std::getline(list, part, ',');) {
    const size_t equals = part.find('=');
    const double price = price_of(part.substr(equals == std::string::npos ? 0 : equals + 1));
    const std::string kind = equals == std::string::npos ? "" : request.kinds.find(part.substr(0, equals)).name;
    bool known = false;
    for (plan::NodeGroup& group : request.cluster.groups)
      if (kind.empty() || kind == group.gpu.name) {
        group.gpu.dollars_per_hour = price;
        group.gpu.price_given = true;
        known = true;
      }
    if (!known)
      throw base::InputError(
          base::expectation("--price", fmt::format("kinds of device of {}", plan::cluster_text(request.cluster)),
                            "'" + kind + "'", fmt::format("{}={}", request.cluster.groups.front().gpu.name, price)));
  }
}

bool is_model_directory(const std::string& value) {
  return shape::outline_named(value) == nullptr && !shape::sized_outline(value);
}

bool names_files(const PlanOptions& options) {
  return !options.config.empty() || !options.machine.empty() || options.flow.ends_with(".json") ||
         std::any_of(options.models.begin(), options.models.end(),
                     [](const std::string& text) { return is_model_directory(split_model(text).second); });
}

// The same files as seen from `directory`, so that they hold anywhere.
PlanOptions seen_from(const fs::path& directory, PlanOptions options) {
  const auto from = [&](const std::string& path) { return (directory / path).lexically_normal().string(); };
  if (!options.config.empty()) options.config = from(options.config);
  if (!options.machine.empty()) options.machine = from(options.machine);
  if (options.flow.ends_with(".json")) options.flow = from(options.flow);
  for (std::string& text : options.models)
    if (const auto [role, value] = split_model(text); is_model_directory(value) && fs::exists(directory / value))
      text = role + from(value);
  return options;
}

fs::path directory_of(const std::string& file) { return fs::weakly_canonical(fs::absolute(file).parent_path()); }

// What the first line of a plan file says; nothing where it is none of plan's.
PlanOptions command_of(const std::string& line, const std::string& file) {
  PlanOptions options;
  const bool moves = line.starts_with("# cd ") && line.find(kCommand) != std::string::npos;
  if (!moves && !line.starts_with("# " + std::string(kCommand))) return options;
  Arguments words = shell_words(line.substr(2), file);
  fs::path directory = directory_of(file);
  if (moves && words.size() > 3 && words[2] == "&&") {
    directory /= words[1];
    words.erase(words.begin(), words.begin() + 3);
  }
  if (words.size() < 2 || words[0] + " " + words[1] != kCommand) return options;
  words.erase(words.begin(), words.begin() + 2);
  CLI::App app{"the first line of " + file, "plan"};
  app.add_option("CONFIG", options.config, "");
  add_plan_options(app, options);
  parse(app, words);
  options = seen_from(directory, std::move(options));
  options.directory = directory.lexically_normal().string();
  return options;
}

// Paths are seen from another directory while it lives.
class InDirectory {
 public:
  explicit InDirectory(const std::string& directory) : before_(fs::current_path()) {
    std::error_code error;
    if (!directory.empty()) fs::current_path(directory, error);
    if (error)
      throw base::InputError(base::expectation(directory, "the directory in which the plan was made", error.message(),
                                               "--config with the run's YAML file"));
  }
  ~InDirectory() {
    std::error_code ignored;  // it was there before
    fs::current_path(before_, ignored);
  }
  InDirectory(const InDirectory&) = delete;
  InDirectory& operator=(const InDirectory&) = delete;

 private:
  fs::path before_;
};

void read_config(const PlanOptions& options, PlanRequest& made) {
  const InDirectory scope(options.directory);
  read_plan_config(options, made);
}

void read_layouts(const PlanOptions& options, plan::Request& request) {
  request.form = options.form;
  if (const auto& forms = plan::form_names();
      !request.form.empty() && std::find(forms.begin(), forms.end(), request.form) == forms.end())
    base::throw_unknown_choice("--form", request.form, forms);
  request.micro_batch = options.micro_batch;
  if (!options.layouts.empty()) {
    if (options.layouts != "any" && options.layouts != "dp")
      base::throw_unknown_choice("--layouts", options.layouts, {"any", "dp"});
    request.whole = options.layouts == "dp";
  }
  for (const std::string& text : options.fixed) plan::fix_layout(request, text);
  // A config's updates may be of several epochs of the rows.
  if (options.config.empty() || options.rows > 0 || options.updates > 0) plan::check_workload(request);
  plan::check_fixed(request);
}

}  // namespace

void add_plan_options(CLI::App& app, PlanOptions& options) {
  for (const auto& [name, member] : text_options()) app.add_option(name, options.*member, text_help(name));
  app.add_option("--models", options.models, "MODEL=NAME or DIRECTORY, …; a name alone is the policy's")
      ->delimiter(',');
  app.add_option("--set", options.sets, "override one key of the config: a.b=value")->take_all();
  app.add_option("--constant", options.constants, "NAME=VALUE of the cost model")->take_all();
  app.add_option("--device", options.devices,
                 "KIND.KEY=NUMBER of the device table (memory_bytes, flops, per_node, …), or NEW=KIND, a kind like it")
      ->take_all();
  app.add_option("--lora", options.lora, "MODEL=RANK, …: of a model that trains, whose other weights are frozen")
      ->delimiter(',');
  app.add_option("--shadow", options.shadows,
                 "MODEL, …: its training becomes MODEL_trainer, with devices and layouts of its own")
      ->delimiter(',');
  app.add_option("--rows", options.rows, "completions per iteration (1024)")->check(at_least(1));
  app.add_option("--updates", options.updates, "optimizer steps per iteration (8, or the rows where they are fewer)")
      ->check(at_least(1));
  app.add_option("--iterations", options.iterations, "of the run whose cost is shown (100)")->check(at_least(1));
  app.add_option("--micro-batch", options.micro_batch, "rows, fixed (default: free)")->check(at_least(1));
  app.add_option("--staleness", options.staleness, "iterations that a rollout may run ahead, at most (0)")
      ->check(from_to(0, plan::kMostStaleness));
  app.add_option("--fix", options.fixed, "MODEL.FUNCTION=tp:4,pp:2,…: its layout, in a placement file's words")
      ->allow_extra_args(false);
}

plan::Constants constants_of(const PlanOptions& options, const plan::Machine& machine) {
  plan::Constants constants = plan::constants_of(options.backend);
  plan::apply(machine, constants);
  for (const std::string& text : options.constants) plan::set_constant(constants, text);
  return constants;
}

plan::DeviceKinds device_kinds_of(const PlanOptions& options) {
  plan::DeviceKinds kinds;
  for (const std::string& text : options.devices) kinds.set(text);
  return kinds;
}

std::vector<NamedFile> files_of(const PlanOptions& options) {
  std::vector<NamedFile> files = {{"the config", options.config}, {"the file of --constants", options.machine}};
  if (options.flow.ends_with(".json")) files.push_back({"the graph of --flow", options.flow});
  for (const std::string& text : options.models)
    if (const std::string value = split_model(text).second; is_model_directory(value))
      files.push_back({"a model's config", value + "/config.json"});
  return files;
}

PlanRequest plan_request(const PlanOptions& options) {
  PlanRequest made;
  made.request.kinds = device_kinds_of(options);
  if (!options.config.empty() && !options.flow.empty())
    throw base::InputError(base::expectation("plan", "CONFIG.yaml or --flow", "both", "leaving one of them out"));
  if (options.config.empty())
    read_flow(options, made);
  else
    read_config(options, made);
  plan::Request& request = made.request;
  const plan::Machine machine = machine_of(options);
  use_lengths(machine, options, made);
  for (const std::string& model : options.shadows) plan::add_shadow(request, model);
  read_models(options, request);
  read_lora(options, request);
  read_lengths(options, request.load);
  if (!options.cluster.empty()) request.cluster = plan::parse_cluster(options.cluster, request.kinds);
  request.constants = constants_of(options, machine);
  if (!options.price.empty()) set_prices(options.price, request);
  if (options.iterations > 0) made.iterations = options.iterations;
  read_layouts(options, request);
  if (options.config.empty() || !options.prompt.empty() || !options.completion.empty()) plan::check_positions(request);
  use_module_settings(made);
  use_memory_budget(options, made);
  return made;
}

std::string plan_comment(const PlanOptions& options, const std::string& file) {
  std::string text = "# ";
  const fs::path here = fs::current_path(), there = directory_of(file);
  if (names_files(options) && there != here) {
    const fs::path below = there.lexically_relative(here);
    const fs::path back = *below.begin() == ".." ? here : here.lexically_relative(there);
    text += fmt::format("cd {} && ", shell_word(back.string()));
  }
  text += kCommand;
  if (!options.config.empty()) text += " " + shell_word(options.config);
  const auto add = [&](const char* name, const std::string& value) {
    text += fmt::format(" {} {}", name, shell_word(value));
  };
  for (const auto& [name, member] : text_options())
    if (!(options.*member).empty()) add(name, options.*member);
  for (const auto& [name, member] : list_options())
    for (const std::string& value : options.*member) add(name, value);
  for (const auto& [name, member] : number_options())
    if (options.*member > 0) add(name, std::to_string(options.*member));
  if (options.staleness) add("--staleness", std::to_string(*options.staleness));
  return text + "\n";
}

PlanOptions options_of_file(const std::string& text, const std::string& file, const PlanOptions& given) {
  PlanOptions options = command_of(text.substr(0, text.find('\n')), file);
  const PlanOptions seen = seen_from(fs::current_path(), given);
  if (!given.config.empty() || !given.flow.empty()) {  // instead of those of the file
    options.config = seen.config;
    options.flow = options.directory = options.prompt = options.completion = "";
    options.sets.clear();
    options.models.clear();
    options.lora.clear();
    options.shadows.clear();
    options.rows = options.updates = options.iterations = 0;
  }
  if (!given.cluster.empty()) options.price = "";  // that of the file's devices
  for (const auto& [name, member] : text_options())
    if (!(seen.*member).empty()) options.*member = seen.*member;
  for (const auto& [name, member] : list_options())
    if (!(seen.*member).empty()) options.*member = seen.*member;
  for (const auto& [name, member] : number_options())
    if (seen.*member > 0) options.*member = seen.*member;
  if (seen.staleness) options.staleness = seen.staleness;
  return options;
}

}  // namespace collimate::cli
