#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "bench/published/predict.h"

namespace collimate::plan::published {

using ConstantsOf = std::function<Constants(const std::string& backend)>;

// A Measure says what a row measured of an iteration. measures.py writes it.
struct Measure {
  std::string kind;                    // time, throughput, MFU, share, status, speed-up
  std::vector<std::string> parts;      // step, waiting, transfer, tail, generation, training, or a phase's name
  std::string unit, phase;             // unit of a time: s, ms, h, min; of a rate: as published
  double iterations = 0, rows = 0;     // a time is for so many iterations, or else rows; both 0: one iteration
  std::shared_ptr<Scenario> baseline;  // for a speed-up
};
Measure measure_of(const nlohmann::json& measure, const DeviceKinds& kinds);

// Returns the predicted number in the measure's own unit, or the reason why it is not modelled. A status is 0 if the
// run fits into memory and 1 if it does not.
std::variant<double, std::string> value_of(const Measure& measure, const Scenario& scenario,
                                           const Prediction& prediction, const ConstantsOf& constants);

}  // namespace collimate::plan::published
