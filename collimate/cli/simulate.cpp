#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "collimate/base/error.h"
#include "collimate/cli/arguments.h"
#include "collimate/cli/plan_file.h"
#include "collimate/cli/plan_request.h"
#include "collimate/host/atomic_file.h"
#include "collimate/host/file_io.h"
#include "collimate/plan/show/plan_text.h"

namespace collimate::cli {
namespace {

// Returns the request for a placement file. Throws InputError for options that would change its layouts, and drops the
// options of the file's own request by which plan found them.
PlanRequest request_of_file(const std::string& text, const std::string& path, const PlanOptions& given,
                            const std::string& trace) {
  for (const auto& [name, said] :
       {std::pair("--layouts", !given.layouts->empty()), std::pair("--micro-batch", given.micro_batch->has_value()),
        std::pair("--fix", !given.fixed->empty()), std::pair("--form", !given.form->empty())})
    if (said)
      throw base::InputError(base::expectation(name, "no other layouts than those of " + path, "an option for plan",
                                               "collimate plan, or an edit of the file"));
  PlanOptions options = options_of_file(text, path, given);
  options.layouts = "";
  options.form = "";
  options.micro_batch = std::nullopt;
  options.fixed = {};
  check_outputs({{"--trace", trace}}, files_of(options));
  return plan_request(options);
}

}  // namespace

int simulate(const Arguments& arguments) {
  namespace plan_ = collimate::plan;
  CLI::App app{"shows the time of an iteration, the timeline, idle time and memory of a placement, without running it",
               "simulate"};
  PlanOptions given;
  std::string path, trace;
  bool json = false;
  app.add_option("PLAN", path, "the placement file; one that plan wrote says which run it is for")->required();
  add_config(app, given, "--config", "the YAML file of the run, if the placement file does not name it");
  add_plan_options(app, given);
  app.add_option("--trace", trace, "write every device's timeline for chrome://tracing or Perfetto");
  app.add_flag("--json", json, "print one JSON document");
  if (!parse(app, arguments)) return 0;
  check_outputs({{"--trace", trace}}, {{"the placement to simulate", path}});
  const std::string text = host::read_file(path);
  graph::Placement placement = graph::parse_placement(text, path);
  if (given.staleness.get()) placement.staleness = **given.staleness;
  const PlanRequest made = request_of_file(text, path, given, trace);
  const auto [plan, simulated] = simulate_file(made.request, placement, path);
  if (!trace.empty())
    host::write_file_atomically(trace, plan_::chrome_trace(made.request, plan, simulated).dump() + "\n");
  const plan_::Timeline timeline = plan_::timeline_of(made.request, plan, simulated);
  const std::string misfit = plan_::misfit_of(made.request, plan);
  if (json) {
    nlohmann::ordered_json document = plan_::plan_json(made.request, plan, timeline);
    document["cluster"] = plan_::cluster_text(made.request.cluster);
    document["run"] = plan_::run_json(made.request, plan.seconds, made.iterations);
    document["misfit"] = misfit;
    print_json(document);
  } else {
    const int columns = output_columns();
    fmt::print("{}{}", plan_::heading_text(made.request, plan, made.iterations, columns),
               plan_::plan_text(made.request, plan, timeline, columns));
  }
  if (!misfit.empty())
    throw base::InputError(
        base::expectation(path, "a placement that fits the devices", misfit, "collimate plan for one that does"));
  return 0;
}

}  // namespace collimate::cli
