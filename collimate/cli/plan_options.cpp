#include "collimate/cli/plan_options.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "collimate/base/config.h"
#include "collimate/base/config_text.h"
#include "collimate/base/terminal.h"
#include "collimate/plan/show/columns.h"
#include "collimate/shape/outline.h"

namespace collimate::cli {
namespace {

namespace fs = std::filesystem;
using base::ConfigNode;
using Words = std::vector<std::string>;

// Adds the flag of an option, --micro-batch for micro_batch, which takes one value.
template <class Value, class T>
CLI::Option* add_flag(CLI::App& app, base::Option<T>& option) {
  std::string flag = "--" + option.item_name();
  std::replace(flag.begin(), flag.end(), '_', '-');
  return app.add_option_function<Value>(
      flag, [&option](const Value& given) { option = given; }, option.item_help());
}

// Puts `prefix` before the relative paths. A model's value counts as a path if it exists relative to `here`.
void prefix_paths(PlanOptions& options, const fs::path& here, const fs::path& prefix) {
  const auto changed = [&](const std::string& path) { return (prefix / path).lexically_normal().string(); };
  for (PlanOptions::Text* file : {&options.config, &options.machine})
    if (!(*file)->empty()) *file = changed(*file);
  if (options.flow->ends_with(".json")) options.flow = changed(options.flow);
  Words models = options.models;
  for (std::string& text : models)
    if (const auto [role, value] = split_model(text); is_model_directory(value) && fs::exists(here / value))
      text = role + changed(value);
  options.models = models;
}

fs::path directory_of(const std::string& file) { return fs::weakly_canonical(fs::absolute(file).parent_path()); }

// Returns the options that differ from their defaults.
ConfigNode said_by(const PlanOptions& options) {
  const ConfigNode all = options.section_value(), standard = PlanOptions().section_value();
  ConfigNode said{.kind = ConfigNode::Kind::kMap};
  for (size_t i = 0; i < all.keys.size(); ++i)
    if (base::flow_yaml(all.children[i]) != base::flow_yaml(standard.children[i]))
      said.child(all.keys[i]) = all.children[i];
  return said;
}

// Reads a request and makes its paths absolute.
PlanOptions request_in(const std::string& text, const std::string& file) {
  PlanOptions options;
  const ConfigNode root = base::parse_config(text, file).root;
  if (const ConfigNode* request = root.find("request")) base::apply(*request, "request", options);
  const fs::path there = directory_of(file);
  prefix_paths(options, there, there);
  if (!options.config->empty()) options.directory = (there / options.directory.get()).lexically_normal().string();
  return options;
}

}  // namespace

void add_config(CLI::App& app, PlanOptions& options, const std::string& name, const std::string& help) {
  app.add_option_function<std::string>(
      name, [&options](const std::string& file) { options.config = file; }, help);
}

void add_plan_options(CLI::App& app, PlanOptions& options) {
  for (PlanOptions::Text* text : {&options.flow, &options.cluster, &options.prompt, &options.completion,
                                  &options.backend, &options.layouts, &options.machine, &options.price, &options.form})
    add_flag<std::string>(app, *text);
  add_flag<Words>(app, options.models)->delimiter(',');
  for (PlanOptions::Texts* list : {&options.sets, &options.constants, &options.devices})
    add_flag<Words>(app, *list)->take_all();
  for (PlanOptions::Texts* list : {&options.lora, &options.shadows}) add_flag<Words>(app, *list)->delimiter(',');
  for (PlanOptions::Number* number : {&options.rows, &options.updates, &options.iterations, &options.micro_batch})
    add_flag<int64_t>(app, *number)->check(at_least(1));
  add_flag<int64_t>(app, options.staleness)->check(from_to(0, collimate::plan::kMostStaleness));
  add_flag<Words>(app, options.fixed)->allow_extra_args(false);
}

std::pair<std::string, std::string> split_model(const std::string& text) {
  const size_t equals = text.find('=');
  const size_t begin = equals == std::string::npos ? 0 : equals + 1;
  return {text.substr(0, begin), text.substr(begin)};
}

bool is_model_directory(const std::string& value) {
  return shape::outline_named(value) == nullptr && !shape::sized_outline(value);
}

std::vector<NamedFile> files_of(const PlanOptions& options) {
  std::vector<NamedFile> files = {{"the config", options.config}, {"the file of --constants", options.machine}};
  if (options.flow->ends_with(".json")) files.push_back({"the graph of --flow", options.flow});
  for (const std::string& text : options.models)
    if (const std::string value = split_model(text).second; is_model_directory(value))
      files.push_back({"a model's config", value + "/config.json"});
  return files;
}

std::string request_text(PlanOptions options, const std::string& file) {
  const fs::path here = fs::current_path(), there = directory_of(file), below = there.lexically_relative(here);
  const fs::path back = *below.begin() == ".." ? here : here.lexically_relative(there);
  prefix_paths(options, here, back);
  if (!options.config->empty() && back != ".") options.directory = back.string();
  ConfigNode root{.kind = ConfigNode::Kind::kMap};
  root.child("request") = said_by(options);
  return base::block_yaml(root);
}

PlanOptions options_of_file(const std::string& text, const std::string& file, PlanOptions given) {
  prefix_paths(given, fs::current_path(), fs::current_path());
  const ConfigNode said = said_by(given), request = said_by(request_in(text, file));
  const bool other_run = !given.config->empty() || !given.flow->empty();  // instead of the file's run
  ConfigNode both{.kind = ConfigNode::Kind::kMap};
  for (size_t i = 0; i < request.keys.size(); ++i) {
    const std::string& key = request.keys[i];
    const Words run = {"config", "directory",  "set",  "flow",    "models", "lora",
                       "shadow", "completion", "rows", "updates", "prompt", "iterations"};
    const bool dropped = other_run && std::find(run.begin(), run.end(), key) != run.end();
    const bool price_of_other_devices = key == "price" && !given.cluster->empty();
    if (!dropped && !price_of_other_devices) both.child(key) = request.children[i];
  }
  for (size_t i = 0; i < said.keys.size(); ++i) both.child(said.keys[i]) = said.children[i];
  PlanOptions options;
  base::apply(both, "", options);
  if (said.keys.empty() && !request.keys.empty()) options.file = file;
  return options;
}

int output_columns() {
  constexpr int kLeast = 80;
  return std::max(kLeast, base::terminal_columns(STDOUT_FILENO, plan::kTextColumns));
}

}  // namespace collimate::cli
