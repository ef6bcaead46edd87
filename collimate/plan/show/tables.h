#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "collimate/plan/inputs/constants.h"
#include "collimate/plan/inputs/device_kind.h"

namespace collimate::plan {

// Lists what a request may name, with where it comes from: backends, constants, devices, models.
// Rows of one table; constants and devices have the values given. InputError with the nearest name.
nlohmann::ordered_json table_json(const std::string& name, const Constants& constants, const DeviceKinds& kinds = {});
// Writes columns, a row a line; where a line would have more than `columns` characters (0: as many as it has), each row
// as lines of its own.
std::string table_text(const nlohmann::ordered_json& rows, int columns = 0);

}  // namespace collimate::plan
