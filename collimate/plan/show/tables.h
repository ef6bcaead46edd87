#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "collimate/plan/inputs/constants.h"
#include "collimate/plan/inputs/device_kind.h"

namespace collimate::plan {

// Returns the rows of a table of what a request may name, with where it comes from: backends, constants, devices or
// models. Constants and devices have the values given. Throws InputError with the nearest name of a table.
nlohmann::ordered_json table_json(const std::string& name, const Constants& constants, const DeviceKinds& kinds = {});
// Writes rows in columns, each on a line. Where a line would have more than `columns` characters (0: no limit), each
// row becomes lines of its own.
std::string table_text(const nlohmann::ordered_json& rows, int columns = 0);

}  // namespace collimate::plan
