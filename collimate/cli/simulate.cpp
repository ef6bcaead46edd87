#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "collimate/base/error.h"
#include "collimate/cli/arguments.h"
#include "collimate/cli/plan_request.h"
#include "collimate/host/atomic_file.h"
#include "collimate/host/file_io.h"
#include "collimate/plan/plan_text.h"

namespace collimate::cli {

int simulate(const Arguments& arguments) {
  namespace plan_ = collimate::plan;
  CLI::App app{"period, timeline, idle time and memory of a placement, in the runtime's own schedule", "simulate"};
  PlanOptions given;
  std::string path, trace;
  bool json = false;
  app.add_option("PLAN", path, "a placement file; one that plan wrote says what it is for")->required();
  app.add_option("--config", given.config, "YAML file of the run, where the plan does not say it");
  add_plan_options(app, given);
  app.add_option("--trace", trace, "writes every device's timeline for chrome://tracing or Perfetto");
  app.add_flag("--json", json, "one JSON document");
  if (!parse(app, arguments)) return 0;
  const std::string text = host::read_file(path);
  const graph::Placement placement = graph::parse_placement(text, path);
  const PlanRequest made = plan_request(options_of_file(text, given));
  plan_::Plan plan = plan_::cost_placement(made.request, placement);
  const plan_::PlanSimulation simulated = plan_::simulate_plan(made.request, plan);
  plan.seconds = simulated.period_seconds;
  if (!trace.empty())
    host::write_file_atomically(trace, plan_::chrome_trace(made.request, plan, simulated).dump() + "\n");
  const plan_::Timeline timeline = plan_::timeline_of(made.request, plan, simulated);
  const std::string misfit = plan_::misfit_of(made.request, plan);
  if (json) {
    nlohmann::ordered_json document = plan_::plan_json(made.request, plan, timeline);
    document["misfit"] = misfit;
    print_json(document);
  } else {
    fmt::print("{}: {}\n{:.2f} s an iteration (simulated), {:.0f} tokens/s\n\n{}", plan.form, plan.parts, plan.seconds,
               made.request.load.tokens() / plan.seconds, plan_::plan_text(made.request, plan, timeline));
  }
  if (!misfit.empty())
    throw base::InputError(
        base::expectation(path, "a placement that fits the devices", misfit, "collimate plan for one that does"));
  return 0;
}

}  // namespace collimate::cli
