#include "collimate/rlhf/modules/mixed_groups.h"

#include <map>
#include <set>

#include "collimate/batch/standard_keys.h"
#include "collimate/flow/host_module.h"

namespace collimate::rlhf {
namespace {

Batch keep_mixed(const Batch& rows, const flow::CallInfo&, std::vector<flow::Metric>& metrics) {
  std::map<int64_t, std::set<float>> rewards;
  for (int64_t r = 0; r < rows.rows(); ++r) rewards[rows.get(batch::kPromptUid, r)].insert(rows.get(batch::kReward, r));
  double dropped = 0;
  for (const auto& [uid, values] : rewards) dropped += values.size() < 2 ? 1 : 0;
  metrics.push_back({"rollout/groups_replaced", dropped, flow::Reduce::kSum});
  std::vector<int64_t> kept;
  for (int64_t r = 0; r < rows.rows(); ++r)
    if (rewards.at(rows.get(batch::kPromptUid, r)).size() > 1) kept.push_back(r);
  return rows.gather(kept);
}

}  // namespace

std::unique_ptr<flow::Module> mixed_groups_module() {
  auto module = std::make_unique<flow::HostModule>();
  module->add({.name = "keep",
               .kind = graph::Kind::kHost,
               .needs = {"uid", "prompt_uid", "reward"},
               .granularity = graph::Granularity::kGroup,
               .drops_rows = true},
              keep_mixed);
  return module;
}

}  // namespace collimate::rlhf
