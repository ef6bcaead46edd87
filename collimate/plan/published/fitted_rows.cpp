#include "collimate/plan/published/fitted_rows.h"

#include <algorithm>
#include <cmath>

namespace collimate::plan::published {
namespace {

std::string measured_by(const Row& row) { return row["metric"] + " " + row["value"] + " " + row["unit"]; }

// How alike two runs are: sizes by their logarithms, software and GPU above all.
double distance(const FittedRow& a, const FittedRow& b) {
  const auto gap = [](double x, double y) { return std::abs(std::log(x / y)); };
  return (a.backend == b.backend ? 0 : 100) + (a.gpu == b.gpu ? 0 : 10) + gap(a.devices, b.devices) +
         gap(a.parameters, b.parameters) + gap(a.completion, b.completion) + gap(a.rows, b.rows) +
         (a.sharing == b.sharing ? 0 : 1);
}

// The table's numbers are printed ones.
bool same_run(const FittedRow& a, const FittedRow& b) {
  const auto alike = [](double x, double y) { return std::abs(x - y) <= 1e-3 * std::max(x, y); };
  return a.backend == b.backend && a.gpu == b.gpu && a.devices == b.devices && a.sharing == b.sharing &&
         alike(a.parameters, b.parameters) && alike(a.completion, b.completion) && alike(a.rows, b.rows);
}

}  // namespace

FittedRow fitted_row(const Row& row, const Scenario& s) {
  return {row["id"],
          measured_by(row),
          s.backend,
          s.gpu.name,
          s.devices,
          shape::total_parameters(s.models.at("actor")),
          s.load.completion.mean(),
          s.load.rows,
          static_cast<int>(s.sharing)};
}

bool is_fitted(const Row& row, const Scenario& scenario) {
  const FittedRow wanted = fitted_row(row, scenario);
  return std::any_of(fitted_rows().begin(), fitted_rows().end(), [&](const FittedRow& fitted) {
    return fitted.id == wanted.id && fitted.measured == wanted.measured && same_run(fitted, wanted);
  });
}

std::string nearest_fitted(const Scenario& scenario) {
  const FittedRow wanted = fitted_row(Row{}, scenario);
  const auto best = std::min_element(
      fitted_rows().begin(), fitted_rows().end(),
      [&](const FittedRow& a, const FittedRow& b) { return distance(wanted, a) < distance(wanted, b); });
  return best == fitted_rows().end() ? "" : best->id;
}

}  // namespace collimate::plan::published
