#include "collimate/cli/bench_planner.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "collimate/cli/arguments.h"
#include "collimate/plan/inputs/device_kind.h"
#include "collimate/plan/published/report.h"

namespace collimate::cli {

int bench_planner(const Arguments& arguments) {
  namespace published = collimate::plan::published;
  CLI::App app{"published results against the planner's cost model, row by row", "bench planner"};
  std::string path;
  std::vector<std::string> sets, devices, fitted_backends;
  bool json = false, held_out = false, fit = false, fit_rows = false;
  app.add_option("--results", path, "comma-separated rows of published results")->required();
  app.add_option("--set", sets, "CONSTANT=VALUE for every back end")->take_all();
  app.add_option("--device", devices, "KIND.KEY=NUMBER of the device table, or NEW=KIND, as for plan")->take_all();
  app.add_flag("--held-out", held_out, "also fits again without one paper or one size at a time (minutes)");
  app.add_flag("--fit", fit, "also fits every back end's constants to the rows that may be fitted (minutes)");
  app.add_flag("--fit-rows", fit_rows, "also lists the rows that a fit takes");
  app.add_option("--fit-backend", fitted_backends, "fits only these back ends")->take_all();
  app.add_flag("--json", json, "one JSON document");
  if (!parse(app, arguments)) return 0;
  collimate::plan::DeviceKinds kinds;
  for (const std::string& device : devices) kinds.set(device);
  const std::vector<published::Row> rows = published::read_rows(path, kinds);
  const auto constants = [&](const std::string& backend) {
    collimate::plan::Constants made = collimate::plan::constants_of(backend);
    for (const std::string& set : sets) collimate::plan::set_constant(made, set);
    return made;
  };
  const std::vector<published::Result> results = published::evaluate(rows, constants);
  const std::vector<published::HeldOut> left_out =
      held_out ? published::held_out(rows) : std::vector<published::HeldOut>();
  const std::vector<published::FittedBackend> fits = fit || !fitted_backends.empty()
                                                         ? published::fit_all(rows, fitted_backends)
                                                         : std::vector<published::FittedBackend>();
  if (json) {
    nlohmann::ordered_json document = published::report_json(results, left_out);
    if (!fits.empty()) document["fits"] = published::fits_json(fits);
    print_json(document);
  } else {
    fmt::print("{}{}", published::report_text(results, left_out), fits.empty() ? "" : published::fits_text(fits));
    if (fit || fit_rows) fmt::print("{}", published::rows_to_fit_text(published::rows_to_fit(rows)));
  }
  return 0;
}

}  // namespace collimate::cli
