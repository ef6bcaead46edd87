#include "collimate/plan/inputs/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "collimate/base/error.h"

namespace collimate::plan {
namespace {

bool is_cpu(const NodeGroup& group) { return group.gpu.cpu; }

// A placement names one sort, CPU or GPU, for all of its devices.
void check_cluster(const Cluster& cluster) {
  if (cluster.groups.empty()) throw base::InputError(base::expectation("cluster", "at least one device", "none"));
  const auto cpus = std::count_if(cluster.groups.begin(), cluster.groups.end(), is_cpu);
  if (cpus > 0 && cpus < std::ssize(cluster.groups))
    throw base::InputError(base::expectation("cluster", "GPUs alone or CPUs alone",
                                             fmt::format("'{}'", cluster_text(cluster)), "a plan for each"));
}

}  // namespace

std::string Request::device_kind() const { return is_cpu(cluster.groups.at(0)) ? "cpu" : "cuda"; }

void check(const Request& request) {
  check_cluster(request.cluster);
  if (request.load.rows < 1) throw base::InputError(base::expectation("workload", "at least one row", "none"));
  for (const auto& [model, rank] : request.lora)
    if (!request.graph.trains(model) || rank < 1)
      throw base::InputError(base::expectation("--lora " + model, "a model that trains, and a rank from 1",
                                               fmt::format("rank {}", rank), "policy_trainer=64"));
  for (const graph::Node& node : request.graph.nodes)
    if (!node.services.empty())
      throw base::InputError(base::expectation("plan", "a graph without loops over services", "loop " + node.id,
                                               "a plan of its services as a flow of their own"));
}

void check_workload(const Request& request) {
  const auto rows = static_cast<int64_t>(request.load.rows);
  for (const auto& [option, value] : {std::pair("--updates", static_cast<int64_t>(request.load.updates)),
                                      std::pair("--micro-batch", request.micro_batch)})
    if (value > rows)
      throw base::InputError(base::expectation(option, fmt::format("at most the {} rows of an iteration", rows),
                                               std::to_string(value), fmt::format("{} {}", option, rows)));
}

void check_positions(const Request& request) {
  const double prompt = request.load.prompt.largest(), completion = request.load.completion.largest();
  for (const graph::Node& node : request.graph.nodes) {
    const graph::FunctionSpec* spec = request.graph.find_function(node.model, node.function);
    if (spec == nullptr || spec->kind == graph::Kind::kHost) continue;
    const shape::Outline& model = outline_of(request, node.model);
    const double positions = static_cast<double>(model.positions);
    if (positions == 0 || prompt + completion <= positions) continue;
    const std::string remedy = prompt < positions
                                   ? fmt::format("--completion {}", std::floor(positions - prompt))
                                   : fmt::format("--prompt {0} --completion {0}", std::floor(positions / 2));
    throw base::InputError(base::expectation(
        "--completion", fmt::format("rows of at most the {} positions of {} ({})", positions, node.model, model.name),
        fmt::format("{} + {} tokens", prompt, completion), remedy));
  }
}

const shape::Outline& outline_of(const Request& request, const std::string& model) {
  std::vector<std::string> names = {model};
  for (const graph::WeightLink& link : request.graph.links)
    if (link.source == model) names.push_back(link.destination);
  names.emplace_back("policy");
  for (const std::string& name : names)
    if (const auto found = request.models.find(name); found != request.models.end()) return found->second;
  throw base::InputError(
      base::expectation("plan", "the shape of model " + model, "none", "--models " + model + "=NAME"));
}

}  // namespace collimate::plan
