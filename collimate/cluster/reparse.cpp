#include "collimate/cluster/reparse.h"

#include "collimate/base/fault.h"

namespace collimate::cluster {

Message reparse(const Message& message) {
  Wire wire = to_wire(message);
  wire.header = nlohmann::json::parse(wire.header.dump());
  base::fault_count(message.sender < 0 ? "reparse.of_driver" : "reparse.of_worker", 1);
  return from_wire(std::move(wire));
}

WorkerSpec reparse(const WorkerSpec& spec) {
  base::fault_count("reparse.spec", 1);
  return nlohmann::json::parse(nlohmann::json(spec).dump()).get<WorkerSpec>();
}

}  // namespace collimate::cluster
