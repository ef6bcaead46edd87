#include "collimate/cli/plan_request.h"

#include <fmt/ranges.h>

#include <sstream>

#include "collimate/base/edit_distance.h"
#include "collimate/base/error.h"
#include "collimate/host/file_io.h"
#include "collimate/plan/flows.h"

namespace collimate::cli {
namespace {

namespace plan = collimate::plan;

constexpr const char* kComment = "# collimate plan";

// One list for the app, the comment and its reading: text options by name.
std::vector<std::pair<const char*, std::string PlanOptions::*>> text_options() {
  return {{"--flow", &PlanOptions::flow},       {"--cluster", &PlanOptions::cluster},
          {"--prompt", &PlanOptions::prompt},   {"--completion", &PlanOptions::completion},
          {"--backend", &PlanOptions::backend}, {"--layouts", &PlanOptions::layouts}};
}
std::vector<std::pair<const char*, std::vector<std::string> PlanOptions::*>> list_options() {
  return {{"--models", &PlanOptions::models}, {"--set", &PlanOptions::sets}, {"--constant", &PlanOptions::constants}};
}
std::vector<std::pair<const char*, int64_t PlanOptions::*>> number_options() {
  return {{"--rows", &PlanOptions::rows},
          {"--updates", &PlanOptions::updates},
          {"--iterations", &PlanOptions::iterations},
          {"--micro-batch", &PlanOptions::micro_batch}};
}

std::string text_help(const std::string& name) {
  if (name == "--flow") return "ppo, grpo or a graph's JSON file, without a config";
  if (name == "--cluster") return "NODESxDEVICESxKIND: 16x8xA100-80, 8xH100, 2xcpu; @400Gb for its network";
  if (name == "--prompt") return "tokens of a prompt: 512, mean:MEAN,SIGMA,CAP, lognormal:…, histogram:…";
  if (name == "--completion") return "the same of a completion";
  if (name == "--backend") return "whose software's constants to use (default: generic ones)";
  return "any, or dp: every rank holds all of its model (default: dp with a config, as the recipes run; any without)";
}

std::string role_of(const std::string& text, const graph::Graph& graph) {
  const size_t equals = text.find('=');
  const std::string role = equals == std::string::npos ? "policy" : text.substr(0, equals);
  if (!graph.models.contains(role)) {
    std::vector<std::string> known;
    for (const auto& [name, model] : graph.models) known.push_back(name);
    base::throw_unknown_name("--models", role, known);
  }
  return role;
}

void read_models(const PlanOptions& options, plan::Request& request) {
  for (const std::string& text : options.models) {
    const size_t equals = text.find('=');
    request.models[role_of(text, request.graph)] =
        shape::find_outline(equals == std::string::npos ? text : text.substr(equals + 1));
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
  made.request.load.algorithm = made.request.graph.name;
  for (const auto& [name, missing] :
       {std::pair("--models", options.models.empty()), std::pair("--cluster", options.cluster.empty())})
    if (missing)
      throw base::InputError(
          base::expectation(name, "a value with --flow", "none", "--models llama2-7b --cluster 8xA100"));
}

void read_lengths(const PlanOptions& options, plan::Workload& load) {
  if (options.rows > 0) load.rows = static_cast<double>(options.rows);
  if (options.updates > 0) load.updates = static_cast<int>(options.updates);
  if (!options.prompt.empty()) load.prompt = plan::Lengths::parse(options.prompt, "--prompt");
  if (!options.completion.empty()) load.completion = plan::Lengths::parse(options.completion, "--completion");
  load.staleness = options.staleness;
}

}  // namespace

void add_plan_options(CLI::App& app, PlanOptions& options) {
  for (const auto& [name, member] : text_options()) app.add_option(name, options.*member, text_help(name));
  app.add_option("--models", options.models, "MODEL=NAME or DIRECTORY, …; a name alone is the policy's")
      ->delimiter(',');
  app.add_option("--set", options.sets, "override one key of the config: a.b=value")->take_all();
  app.add_option("--constant", options.constants, "NAME=VALUE of the cost model")->take_all();
  app.add_option("--rows", options.rows, "completions per iteration (1024)")->check(at_least(1));
  app.add_option("--updates", options.updates, "optimizer steps per iteration (8)")->check(at_least(1));
  app.add_option("--iterations", options.iterations, "of the run whose cost is shown (100)")->check(at_least(1));
  app.add_option("--micro-batch", options.micro_batch, "rows, fixed (default: free)")->check(at_least(1));
  app.add_option("--staleness", options.staleness, "iterations that a rollout may run ahead")->check(CLI::Range(0, 16));
}

PlanRequest plan_request(const PlanOptions& options) {
  PlanRequest made;
  if (options.config.empty())
    read_flow(options, made);
  else
    read_plan_config(options, made);
  plan::Request& request = made.request;
  read_models(options, request);
  read_lengths(options, request.load);
  if (!options.cluster.empty()) request.cluster = plan::parse_cluster(options.cluster);
  request.constants = plan::constants_of(options.backend);
  for (const std::string& text : options.constants) plan::set_constant(request.constants, text);
  request.micro_batch = options.micro_batch;
  if (options.iterations > 0) made.iterations = options.iterations;
  if (options.layouts.empty()) return made;
  if (options.layouts != "any" && options.layouts != "dp")
    base::throw_unknown_name("--layouts", options.layouts, {"any", "dp"});
  request.whole = options.layouts == "dp";
  return made;
}

std::string plan_comment(const PlanOptions& options) {
  std::string text = kComment;
  if (!options.config.empty()) text += " " + options.config;
  for (const auto& [name, member] : text_options())
    if (!(options.*member).empty()) text += fmt::format(" {} {}", name, options.*member);
  for (const auto& [name, member] : list_options())
    if (!(options.*member).empty())
      for (const std::string& value : options.*member) text += fmt::format(" {} {}", name, value);
  for (const auto& [name, member] : number_options())
    if (options.*member > 0) text += fmt::format(" {} {}", name, options.*member);
  if (options.staleness > 0) text += fmt::format(" --staleness {}", options.staleness);
  return text + "\n";
}

PlanOptions options_of_file(const std::string& text, const PlanOptions& given) {
  PlanOptions options;
  if (text.starts_with(kComment)) {
    CLI::App app{"the comment of a plan file", "plan"};
    app.add_option("CONFIG", options.config, "");
    add_plan_options(app, options);
    std::istringstream words(text.substr(std::string(kComment).size(), text.find('\n') - std::string(kComment).size()));
    Arguments arguments;
    for (std::string word; words >> word;) arguments.push_back(word);
    parse(app, arguments);
  }
  if (!given.config.empty()) options.config = given.config;
  for (const auto& [name, member] : text_options())
    if (!(given.*member).empty()) options.*member = given.*member;
  for (const auto& [name, member] : list_options())
    if (!(given.*member).empty()) options.*member = given.*member;
  for (const auto& [name, member] : number_options())
    if (given.*member > 0) options.*member = given.*member;
  if (given.staleness > 0) options.staleness = given.staleness;
  return options;
}

}  // namespace collimate::cli
