#include "collimate/rlhf/modules/finished_samples.h"

#include <algorithm>
#include <string>
#include <vector>

#include "collimate/batch/standard_keys.h"
#include "collimate/flow/host_module.h"
#include "collimate/generate/service.h"
#include "collimate/rlhf/types/rounds.h"

namespace collimate::rlhf {
namespace {

static_assert(kUnfinished == static_cast<int32_t>(generate::Finish::kRunning));

// Counts what the rows say of their rounds: prompts that begin, samples that go on, and finished ones that wait for
// others of their prompt.
std::vector<flow::Metric> round_metrics(const Batch& rows, const Parted& parted) {
  double unfinished = 0, waiting = 0;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    if (rows.get(batch::kFinish, r) == kUnfinished)
      ++unfinished;
    else if (rows.get(kTrainedBefore, r) == 0 && !std::ranges::binary_search(parted.given, r))
      ++waiting;
  }
  return {{"rollout/prompts_begun", static_cast<double>(prompts_begun(rows)), flow::Reduce::kSum},
          {"rollout/unfinished_samples", unfinished, flow::Reduce::kSum},
          {"rollout/waiting_samples", waiting, flow::Reduce::kSum}};
}

}  // namespace

std::unique_ptr<flow::Module> finished_samples_module(int64_t min_samples) {
  auto module = std::make_unique<flow::HostModule>();
  module->add({.name = "keep",
               .kind = graph::Kind::kHost,
               .needs = {"uid", "prompt_uid", "finish", kRound.name, kTrainedBefore.name},
               .granularity = graph::Granularity::kGroup},
              [min_samples](const Batch& rows, const flow::CallInfo&, std::vector<flow::Metric>& metrics) {
                const Parted parted = part_rows(rows, min_samples);
                for (flow::Metric& metric : round_metrics(rows, parted)) metrics.push_back(std::move(metric));
                const std::vector<std::string> names = {batch::kUid.name};
                return rows.gather(parted.given).select_columns(names);
              });
  return module;
}

}  // namespace collimate::rlhf
