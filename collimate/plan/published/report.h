#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "collimate/plan/published/fit.h"

namespace collimate::plan::published {

// Every row, the rows that are not modelled by reason, medians by source, held-out errors where there are any.
std::string report_text(const std::vector<Result>& results, const std::vector<HeldOut>& held_out);
// Each back end as plan/inputs/backends.cpp has it.
std::string fits_text(const std::vector<FittedBackend>& fits);
// One line a row, as plan/published/fitted_rows_table.cpp has them.
std::string rows_to_fit_text(const std::vector<FittedRow>& rows);
nlohmann::ordered_json fits_json(const std::vector<FittedBackend>& fits);
nlohmann::ordered_json report_json(const std::vector<Result>& results, const std::vector<HeldOut>& held_out);

}  // namespace collimate::plan::published
