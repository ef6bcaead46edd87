#include "collimate/plan/show/tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "collimate/plan/inputs/device_kind.h"
#include "tests/support/base/error_of.h"

namespace collimate::plan {
namespace {

TEST(Tables, SayWhereEveryNumberComesFrom) {
  Constants constants = constants_of("");
  set_constant(constants, "phase_seconds=0.25");
  const auto rows = table_json("constants", constants);
  EXPECT_EQ(rows.size(), constant_table().size());
  for (const auto& row : rows) {
    EXPECT_NE(row.at("source"), "") << row.dump();
    if (row.at("constant") == "phase_seconds") {
      EXPECT_EQ(row.at("value"), 0.25);
    }
  }
  const auto devices = table_json("devices", constants);
  ASSERT_EQ(devices.size(), known_device_kinds().size());
  for (size_t i = 0; i < devices.size(); ++i) {
    EXPECT_EQ(devices[i].size(), device_keys().size() + 2);  // name and source
    for (const DeviceKey& key : device_keys())
      std::visit([&](auto member) { EXPECT_EQ(devices[i].at(key.name), known_device_kinds()[i].*member) << key.name; },
                 key.member);
  }
  EXPECT_EQ(table_json("device_keys", constants).size(), device_keys().size());
  for (const char* table : {"devices", "backends"})
    for (const auto& row : table_json(table, constants)) EXPECT_NE(row.at("source"), "") << row.dump();
  EXPECT_THAT(table_text(table_json("devices", constants)), testing::HasSubstr("\nA100-80    3.12e+14"));
  EXPECT_THAT(table_text(table_json("models", constants)), testing::HasSubstr("llama2-70b"));
  EXPECT_THAT(table_text(table_json("devices", constants), 80), testing::HasSubstr("\nA100-80\n  flops: 3.12e+14\n"));
  EXPECT_THAT(base::message_of([&] { table_json("device", constants); }), testing::HasSubstr("try 'devices'"));
}

}  // namespace
}  // namespace collimate::plan
