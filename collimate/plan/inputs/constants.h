#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace collimate::plan {

enum class Algorithm { kRing, kTree };
enum class Protocol { kLl, kLl128, kSimple };

// NcclConstants are NCCL's own latencies and efficiency for one algorithm and protocol.
struct NcclConstants {
  double base_seconds = 0;
  double link_seconds = 0;     // a hop inside a node
  double network_seconds = 0;  // a hop between nodes
  double efficiency = 1;       // of the bandwidth
};

// Constants say what software reaches of the hardware, and which costs it adds, in seconds, bytes or shares.
// constant_table() says what each one is and where its value comes from.
struct Constants {
  double train_efficiency = 0, score_efficiency = 0, memory_efficiency = 0;
  double link_efficiency = 0, network_efficiency = 0;
  double decode_layer_seconds = 0, decode_tp_layer_seconds = 0, decode_step_seconds = 0, decode_row_seconds = 0;
  double decode_expert_seconds = 0, tensor_seconds = 0, queue_seconds = 0, own_training = 0;
  double layer_seconds = 0, update_seconds = 0, phase_seconds = 0, host_row_seconds = 0;
  double serial_pipeline = 0, overlap = 0;
  double usable_memory = 0, workspace_bytes = 0, cpu_workspace_bytes = 0, kv_share = 0;
  double gradient_bytes = 0, optimizer_bytes = 0;
  double length_sigma = 0, mean_tokens = 0, batch_rows = 0, hiding_staleness = 0;
  std::array<NcclConstants, 6> nccl = {};  // by nccl_index

  static size_t nccl_index(Algorithm algorithm, Protocol protocol) {
    return static_cast<size_t>(algorithm) * 3 + static_cast<size_t>(protocol);
  }
};

// A ConstantInfo is one line of the table of constants.
struct ConstantInfo {
  std::string name;
  double Constants::*member;
  double value;  // the default, unless a back end has another one
  double low, high;
  std::string unit;
  std::string help;
  std::string source;
};
const std::vector<ConstantInfo>& constant_table();
// Finds a constant by its member, which must be in the table, or by its name. Throws InputError at `where`, with the
// nearest name, for an unknown name.
const ConstantInfo& constant_info(double Constants::*member);
const ConstantInfo& constant_info(const std::string& name, const std::string& where);
bool within_limits(const ConstantInfo& info, double value);
// Sets a constant that a user gives. `workspace_bytes` sets `cpu_workspace_bytes` too, which may be given after it.
void give(Constants& constants, const ConstantInfo& info, double value);
std::string limits_text(const ConstantInfo& info);  // "a number from 0 to 600 s"
// Returns the table's values with those of a back end (inputs/backends.h) in place of some; "" gives the defaults.
// Throws InputError with the nearest name.
Constants constants_of(std::string_view backend);
// Sets `NAME=VALUE`. NCCL's names are `nccl.ring_ll.base_seconds` and so on (ring or tree; ll, ll128 or simple;
// base_seconds, link_seconds, network_seconds, efficiency). Throws InputError with the nearest name or the limits.
void set_constant(Constants& constants, const std::string& assignment);

}  // namespace collimate::plan
