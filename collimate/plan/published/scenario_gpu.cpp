#include <algorithm>
#include <cstdlib>

#include "collimate/plan/published/scenario_parts.h"
#include "collimate/plan/published/text.h"

namespace collimate::plan::published {
namespace {

// "8/node, 800 Gb RDMA", "8x200Gb RoCE", "400Gb IB", "200 Gbps": bits a second of a node's cards together. A capital B
// is memory.
void read_network(const std::string& text, DeviceKind& gpu) {
  if (const auto in_node = match(text, R"(\b([0-9]+) ?/ ?node)"); in_node && whole((*in_node)[0]) > 0)
    gpu.per_node = whole((*in_node)[0]);
  const auto speed = match_case(text, R"((?:\b([0-9]+) ?(?:x|×) ?|\b)([0-9]+(?:\.[0-9]+)?) ?G(?:b|bps|bit/s)\b)");
  if (!speed) return;
  const double cards = (*speed)[0].empty() ? 1 : std::strtod((*speed)[0].c_str(), nullptr);
  const double bits = cards * std::strtod((*speed)[1].c_str(), nullptr) * 1e9;
  if (bits > 0) gpu.network_bytes_per_second = bits / 8 / gpu.per_node;
}

}  // namespace

DeviceKind gpu_of(const std::string& text, const DeviceKinds& kinds) {
  std::optional<DeviceKind> known = kinds.named(text.substr(0, text.find_first_of(" (,")));
  // "unstated (A100/A800/H800-80GB class)": the first of those that it may be.
  if (const auto named = match(text, R"(\(([A-Z]+[0-9]+))"); !known && named) known = kinds.named((*named)[0]);
  // A family without its model: H100 is the one that is sold most.
  if (!known && has_word(text, "Hopper")) known = kinds.named("H100");
  if (!known) throw NotModelled{"GPU type '" + text + "' is not in the table"};
  DeviceKind gpu = *known;
  read_network(text, gpu);
  return gpu;
}

}  // namespace collimate::plan::published
