#pragma once

#include <string>

#include "collimate/plan/published/scenario.h"

// Parts of reading a row; not for others.
namespace collimate::plan::published {

// Thrown while a row is read, caught in scenario_of.
struct NotModelled {
  std::string reason;
};

// Batch, prompt and completion lengths.
void read_load(const Row& row, Scenario& scenario);
// Which devices do what, from the text of a placement and the system's name.
void read_sharing(const Row& row, Scenario& scenario);
// A fourth of the devices each for generation, actor and critic, an eighth each for reference and reward.
void share_in_groups(Scenario& scenario);
// The kind of device, with as many in a node and the network that the text states.
DeviceKind gpu_of(const std::string& text, const DeviceKinds& kinds);
// Layouts of roles.
void read_layouts(const std::string& text, Scenario& scenario);
// NotModelled where tensor parallelism does not divide the devices that it is on.
void require_whole_replicas(const std::string& text, const Scenario& scenario);
// NotModelled, with column and text, where a column says what is not read (known_words.cpp).
void require_known_words(const Row& row);

}  // namespace collimate::plan::published
