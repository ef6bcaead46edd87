#include "collimate/cluster/reparse.h"

#include <atomic>

namespace collimate::cluster {
namespace {

std::atomic<int64_t> g_reparsed_specs{0};
std::atomic<int64_t> g_reparsed_of_driver{0};
std::atomic<int64_t> g_reparsed_of_workers{0};

}  // namespace

Message reparse(const Message& message) {
  Wire wire = to_wire(message);
  wire.header = nlohmann::json::parse(wire.header.dump());
  ++(message.sender < 0 ? g_reparsed_of_driver : g_reparsed_of_workers);
  return from_wire(std::move(wire));
}

WorkerSpec reparse(const WorkerSpec& spec) {
  ++g_reparsed_specs;
  return WorkerSpec::from_json(nlohmann::json::parse(spec.to_json().dump()));
}

Reparsed reparsed() { return {g_reparsed_specs, g_reparsed_of_driver, g_reparsed_of_workers}; }

}  // namespace collimate::cluster
