#include "collimate/plan/calibrate/observe.h"

#include <fmt/format.h>

#include <algorithm>

#include "collimate/plan/inputs/median.h"

namespace collimate::plan {
namespace {

// Ends tell for each node when the last of its work ended.
using Ends = std::map<int, double>;

std::vector<int> inputs_of(const graph::Graph& graph, int index) {
  std::vector<int> nodes;
  for (const std::string& input : graph.node(index).inputs)
    if (const int producer = graph.producer(input); producer >= 0) nodes.push_back(producer);
  for (const std::string& id : graph.node(index).after) nodes.push_back(graph.node_index(id));
  return nodes;
}

bool is_host(const graph::Graph& graph, int node) { return graph.spec(node).kind == graph::Kind::kHost; }

// Returns the seconds of one iteration by node. `begin` is when the iteration before it ended.
std::map<int, double> seconds_of(const graph::Graph& graph, const Ends& ends, double begin) {
  std::map<int, double> seconds;
  double devices_free = begin;
  for (const int node : graph::topological_order(graph)) {
    const auto end = ends.find(node);
    if (end == ends.end()) continue;
    double from = is_host(graph, node) ? begin : devices_free;
    for (const int input : inputs_of(graph, node))
      if (const auto before = ends.find(input); before != ends.end() && (is_host(graph, node) || is_host(graph, input)))
        from = std::max(from, before->second);
    seconds[node] = std::max(0.0, end->second - from);
    if (!is_host(graph, node)) devices_free = std::max(devices_free, end->second);
  }
  return seconds;
}

}  // namespace

std::map<int, double> node_seconds(const graph::Graph& graph, const std::vector<NodeSpan>& spans) {
  std::map<int64_t, Ends> iterations;
  for (const NodeSpan& span : spans) {
    double& end = iterations[span.iteration].try_emplace(span.node, span.end_seconds).first->second;
    end = std::max(end, span.end_seconds);
  }
  std::map<int, std::vector<double>> all;
  const Ends* before = nullptr;
  for (const auto& [iteration, ends] : iterations) {
    if (before != nullptr) {
      double begin = before->begin()->second;
      for (const auto& [node, end] : *before) begin = std::max(begin, end);
      for (const auto& [node, seconds] : seconds_of(graph, ends, begin)) all[node].push_back(seconds);
    }
    before = &ends;
  }
  std::map<int, double> medians;
  for (const auto& [node, seconds] : all) medians[node] = median_of(seconds);
  return medians;
}

std::string mean_text(double mean) {
  const double below = std::max(1.0, std::floor(mean + 1e-6)), above = mean - below;
  if (above < 1e-6) return fmt::format("{:.0f}", below);
  return fmt::format("histogram:{:.0f}={:.6g},{:.0f}={:.6g}", below, 1 - above, below + 1, above);
}

std::string lengths_text(double mean, double longest, double share_of_longest, double rows) {
  const double share = std::max(share_of_longest, 1 / std::clamp(rows, 1.0, 128.0));
  if (mean >= longest * 0.999 || share >= 0.999) return mean_text(longest);
  const double rest = std::max(1.0, (mean - share * longest) / (1 - share));
  return fmt::format("histogram:{:.6g}={:.4g},{:.6g}={:.4g}", rest, 1 - share, longest, share);
}

}  // namespace collimate::plan
