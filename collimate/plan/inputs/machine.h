#pragma once

#include <string>
#include <utility>
#include <vector>

#include "collimate/plan/inputs/constants.h"

namespace collimate::plan {

// A Machine is what `collimate calibrate` found on a machine, and how long the rows were of the config that it ran:
//   # comments
//   constants: {train_efficiency: 0.31, phase_seconds: 0.004}
//   lengths: {config: "0123456789abcdef", prompt: "41.5", completion: "histogram:30=0.6,64=0.4"}
struct Machine {
  std::vector<std::pair<const ConstantInfo*, double>> constants;
  std::string config;              // fingerprint of what decides the lengths; "" without lengths
  std::string prompt, completion;  // as Lengths::parse reads them
};

// Writes YAML that begins with a comment line for each of `comments`.
std::string machine_text(const Machine& machine, const std::vector<std::string>& comments);
// Reads such YAML. Throws InputError with `where` and the line, and for a wrong name with the nearest one.
Machine parse_machine(const std::string& text, const std::string& where);
void apply(const Machine& machine, Constants& constants);

}  // namespace collimate::plan
