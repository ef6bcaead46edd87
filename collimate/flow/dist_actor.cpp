#include "collimate/flow/dist_actor.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/flow/balance.h"

namespace collimate::flow {
namespace {

comm::Mesh make_mesh(const graph::Layout& layout, std::vector<int> workers) {
  int inner = layout.tp * layout.pp * layout.cp;
  int total = static_cast<int>(workers.size());
  int dp = layout.dp > 0 ? layout.dp : std::max(1, total / inner);
  if (dp * inner != total) dp = total / std::max(1, inner);
  return comm::Mesh({{"dp", dp}, {"cp", layout.cp}, {"pp", layout.pp}, {"tp", layout.tp}}, std::move(workers));
}

std::vector<int64_t> unit_tokens(const Batch& rows, int64_t unit) {
  std::vector<int64_t> tokens(static_cast<size_t>(rows.rows() / unit));
  for (int64_t r = 0; r < rows.rows(); ++r) base::at(tokens, r / unit) += std::ssize(rows.row(batch::kIds, r));
  return tokens;
}

// Sorts rows stably by the uids of their prompts, so that the rows of one prompt are side by side.
Batch by_prompt(const Batch& rows) {
  const std::vector<int64_t> prompts = rows.all(batch::kPromptUid);
  std::vector<int64_t> order(prompts.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int64_t row) { return base::at(prompts, row); });
  return rows.gather(order);
}

}  // namespace

DistActor::DistActor(const graph::FunctionSpec& spec, const graph::Layout& layout, std::vector<int> workers)
    : granularity_(spec.granularity), dispatch_(spec.dispatch), mesh_(make_mesh(layout, std::move(workers))) {
  int last_stage = mesh_.size("pp") - 1;
  for (int i = 0; i < mesh_.size(); ++i) {
    int rank = base::at(mesh_.ranks(), i);
    bool speaks = mesh_.coordinate(rank, "tp") == 0 && mesh_.coordinate(rank, "cp") == 0 &&
                  mesh_.coordinate(rank, "pp") == last_stage;
    if (speaks) reporting_.push_back(i);
  }
  collecting_ = reporting_;
  bool first_only = spec.collect == graph::Collect::kFirst || dispatch_ != graph::Dispatch::kSplit;
  if (first_only) collecting_.resize(1);
  if (spec.collect == graph::Collect::kNone) collecting_.clear();
}

std::vector<Batch> DistActor::split(const Batch& rows, std::span<const int64_t> numbers, int64_t group_size) const {
  COLLIMATE_CHECK(std::ssize(numbers) == rows.rows(), "{} numbers of {} rows", numbers.size(), rows.rows());
  const int64_t unit = granularity_ == graph::Granularity::kGroup ? group_size : 1;
  std::vector<int64_t> begins;
  for (int64_t row = 0; row < rows.rows(); ++row)
    if (row == 0 || base::at(numbers, row) / unit != base::at(numbers, row - 1) / unit) begins.push_back(row);
  begins.push_back(rows.rows());
  return split_units(rows, begins);
}

std::vector<Batch> DistActor::split_units(const Batch& rows, std::span<const int64_t> begins) const {
  const int64_t units = std::ssize(begins) - 1, dp = mesh_.size("dp");
  std::vector<Batch> parts;
  for (int rank : mesh_.ranks()) {
    int64_t at = mesh_.coordinate(rank, "dp");
    if (dispatch_ == graph::Dispatch::kBroadcast || dp == 1)
      parts.push_back(rows);
    else if (dispatch_ == graph::Dispatch::kWhole)
      parts.push_back(at == 0 ? rows : rows.slice(0, 0));
    else
      parts.push_back(rows.slice(base::at(begins, units * at / dp), base::at(begins, units * (at + 1) / dp)));
  }
  return parts;
}

std::vector<Batch> DistActor::split_update(const Batch& rows, int64_t unit) const {
  const int64_t dp = mesh_.size("dp");
  if (dp == 1 || dispatch_ != graph::Dispatch::kSplit || !rows.has(batch::kIds.name)) {
    std::vector<int64_t> begins;
    for (int64_t row = 0; row < rows.rows(); row += unit) begins.push_back(row);
    begins.push_back(rows.rows());
    return split_units(rows, begins);
  }
  const Batch sorted = unit == 1 && rows.has(batch::kPromptUid.name) ? by_prompt(rows) : rows;
  const std::vector<int64_t> ends = balanced_ends(unit_tokens(sorted, unit), dp);
  std::vector<Batch> by_dp;
  int64_t begin = 0;
  for (const int64_t end : ends) by_dp.push_back(sorted.slice(std::exchange(begin, end) * unit, end * unit));
  std::vector<Batch> parts;
  for (const int rank : mesh_.ranks()) parts.push_back(base::at(by_dp, mesh_.coordinate(rank, "dp")));
  return parts;
}

Batch DistActor::collect(std::span<const Batch> parts) const {
  COLLIMATE_CHECK(parts.size() == collecting_.size(), "{} parts for {} ranks", parts.size(), collecting_.size());
  std::vector<Batch> filled;
  for (const Batch& part : parts)
    if (!part.empty()) filled.push_back(part);
  if (filled.size() == 1) return filled.front();
  return Batch::concatenate(filled);
}

std::map<std::string, comm::Mesh> meshes_of(const graph::Graph& graph, const graph::Placement& placement,
                                            const std::string& model, int worker) {
  std::map<std::string, comm::Mesh> meshes;
  if (placement.group_of(model) == nullptr) return meshes;
  for (const graph::FunctionSpec& function : graph.models.at(model).functions)
    for (const graph::Replica& replica : graph::replicas(graph, placement, model, function))
      if (std::find(replica.begin(), replica.end(), worker) != replica.end())
        meshes.emplace(function.name, make_mesh(placement.layout(model, function.name), replica));
  return meshes;
}

}  // namespace collimate::flow
