#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "collimate/base/error.h"
#include "collimate/cli/arguments.h"
#include "collimate/cli/machine_file.h"
#include "collimate/cli/plan_file.h"
#include "collimate/cli/plan_search.h"
#include "collimate/cli/plan_transfers.h"
#include "collimate/host/atomic_file.h"
#include "collimate/host/file_io.h"
#include "collimate/plan/show/comparison.h"
#include "collimate/plan/show/plan_html.h"
#include "collimate/plan/show/plan_text.h"
#include "collimate/plan/show/sweep.h"
#include "collimate/plan/show/tables.h"

namespace collimate::cli {
namespace {

namespace plan_ = collimate::plan;

struct Outputs {
  std::string yaml, html, sweep, why_not, list;
  int runner_ups = 5;
  bool json = false, explain = false, transfers = false;
};

void add_outputs(CLI::App& app, Outputs& outputs) {
  app.add_option("--output", outputs.yaml, "the placement file to write, which a config's key placement reads");
  app.add_option("--html", outputs.html, "the HTML page to write, with the timeline and memory");
  app.add_option("--sweep", outputs.sweep, "compare values: devices=32,64 or gpu=A100-80,H100-80 or staleness=0,1");
  app.add_option("--runner-ups", outputs.runner_ups,
                 "how many placements of other forms are shown beside the choice (5)")
      ->check(at_least(0));
  app.add_flag("--explain", outputs.explain, "also show memory by phase and item, and the runner-ups in full");
  app.add_option("--why-not", outputs.why_not,
                 "a placement file: it is simulated beside the choice, and the report says why it is not chosen");
  app.add_option(
      "--list", outputs.list,
      "plan nothing; list what a plan may name and where it comes from: devices, device_keys (of --device), models, "
      "backends or constants (as --backend, --constants and --constant set them)");
  app.add_flag(
      "--transfers", outputs.transfers,
      "print, in place of the plan, what its weight links move; with a config and neither --cluster nor --form, of the "
      "placement that the config says");
  app.add_flag("--json", outputs.json, "print one JSON document");
}

int list(const PlanOptions& options, const Outputs& outputs) {
  const nlohmann::ordered_json rows =
      plan_::table_json(outputs.list, constants_of(options, machine_of(options)), device_kinds_of(options));
  if (outputs.json)
    print_json({{outputs.list, rows}});
  else
    fmt::print("{}", plan_::table_text(rows, isatty(STDOUT_FILENO) == 1 ? output_columns() : 0));
  return 0;
}

void show_in_full(const plan_::Request& request, const plan_::SearchResult& result) {
  const int columns = output_columns();
  fmt::print("{}", phase_memory_text(request, result.plans[0], columns));
  for (size_t i = 1; i < result.plans.size(); ++i) {
    const plan_::Plan& plan = result.plans[i];
    fmt::print("\n{}\n{}{}",
               plan_::hanging("",
                              fmt::format("{}: {}, {:.2f} s, is not chosen because {}", plan.form, plan.parts,
                                          plan.seconds, objection(request, result.plans[0], plan)),
                              columns),
               plan_text(request, plan, timeline_of(request, plan, simulate_plan(request, plan)), columns),
               phase_memory_text(request, plan, columns));
  }
}

// Prints only the sweep's rows, for a request that has no placement that fits.
void print_sweep(const std::vector<plan_::Variant>& variants, int64_t iterations, bool json) {
  if (json)
    print_json({{"sweep", plan_::sweep_json(variants, iterations)}});
  else
    fmt::print("{}", plan_::sweep_text(variants, iterations, output_columns()));
}

std::optional<SimulatedFile> other_of_file(const plan_::Request& request, const std::string& file) {
  if (file.empty()) return std::nullopt;
  return simulate_file(request, graph::parse_placement(host::read_file(file), file), file);
}

void check_files(const PlanOptions& options, const Outputs& outputs) {
  std::vector<NamedFile> read = files_of(options);
  read.push_back({"the placement of --why-not", outputs.why_not});
  check_outputs({{"--output", outputs.yaml}, {"--html", outputs.html}}, read);
}

void write_files(const PlanOptions& options, const Outputs& outputs, const PlanRequest& made,
                 const plan_::SearchResult& result) {
  if (!outputs.yaml.empty())
    host::write_file_atomically(outputs.yaml,
                                request_text(options, outputs.yaml) + graph::yaml_text(result.plans[0].placement));
  if (!outputs.html.empty())
    host::write_file_atomically(outputs.html, plan_::search_html(made.request, result, made.iterations));
}

void print_text(const PlanRequest& made, const plan_::SearchResult& result, const Outputs& outputs,
                const std::optional<SimulatedFile>& other, const std::vector<plan_::Variant>& variants) {
  const int columns = output_columns();
  fmt::print("{}", plan_::search_text(made.request, result, made.iterations, columns));
  if (outputs.explain) show_in_full(made.request, result);
  if (other)
    fmt::print("{}", plan_::comparison_text(
                         made.request, result.plans[0],
                         {other->plan, other->simulated, std::filesystem::path(outputs.why_not).filename().string()},
                         columns));
  if (!variants.empty()) fmt::print("{}", plan_::sweep_text(variants, made.iterations, columns));
}

nlohmann::ordered_json document_of(const PlanRequest& made, const plan_::SearchResult& result, const Outputs& outputs,
                                   const std::optional<SimulatedFile>& other,
                                   const std::vector<plan_::Variant>& variants) {
  nlohmann::ordered_json document = plan_::search_json(made.request, result, made.iterations);
  if (other)
    document["why_not"] =
        plan_::comparison_json(made.request, result.plans[0], {other->plan, other->simulated, outputs.why_not});
  if (!variants.empty()) document["sweep"] = plan_::sweep_json(variants, made.iterations);
  return document;
}

}  // namespace

int plan(const Arguments& arguments) {
  CLI::App app{
      "finds which model goes on which devices of a cluster and how each is split, and predicts time, memory and cost; "
      "you "
      "need not own the cluster",
      "plan"};
  PlanOptions options;
  Outputs outputs;
  add_config(app, options, "CONFIG", "the YAML file of a run; without one, give --flow, --models and --cluster");
  add_plan_options(app, options);
  add_outputs(app, outputs);
  if (!parse(app, arguments)) return 0;
  if (!outputs.list.empty()) return list(options, outputs);
  check_files(options, outputs);
  if (outputs.transfers) {
    print_transfers(options, outputs.json);
    return 0;
  }
  PlanRequest made = plan_request(options);
  plan_::Request& request = made.request;
  request.keep = outputs.runner_ups + 1;
  const std::optional<SimulatedFile> other = other_of_file(request, outputs.why_not);
  std::vector<plan_::Variant> variants;
  if (!outputs.sweep.empty()) variants = plan_::sweep(request, outputs.sweep);
  const plan_::SearchResult result = search_plans(options, made);
  if (variants.empty() || !outputs.yaml.empty() || !outputs.html.empty() || other) plan_::require_plan(request, result);
  if (result.plans.empty()) {
    print_sweep(variants, made.iterations, outputs.json);
    return 0;
  }
  write_files(options, outputs, made, result);
  if (outputs.json) {
    print_json(document_of(made, result, outputs, other, variants));
    return 0;
  }
  print_text(made, result, outputs, other, variants);
  return 0;
}

}  // namespace collimate::cli
