#pragma once

#include <string>
#include <vector>

#include "collimate/plan/published/row.h"
#include "collimate/plan/published/scenario.h"

namespace collimate::plan::published {

// A row that the constants of plan/inputs/backends.cpp were fitted to, whatever file is read now: what was measured,
// and of the run what the nearest such row is found by.
struct FittedRow {
  std::string id, measured;  // measured: metric, value and unit as the row has them
  std::string backend, gpu;
  int devices = 0;
  double parameters = 0, completion = 0, rows = 0;  // the actor's, tokens of the mean, of an iteration
  int sharing = 0;
  bool operator==(const FittedRow&) const = default;
};

// Those of the fit that is shipped; `collimate bench planner --fit-rows` prints fitted_rows_table.cpp's lines.
const std::vector<FittedRow>& fitted_rows();
FittedRow fitted_row(const Row& row, const Scenario& scenario);
// Whether it is one of them: of the same id, the same was measured, and what is read of the run is the same.
bool is_fitted(const Row& row, const Scenario& scenario);
// The id of the one whose run is most like this one; "" where there are none.
std::string nearest_fitted(const Scenario& scenario);

}  // namespace collimate::plan::published
