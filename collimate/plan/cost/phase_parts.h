#pragma once

#include <vector>

#include "collimate/plan/cost/collective.h"
#include "collimate/plan/cost/phase.h"

// The phases share these functions, which are not for others.
namespace collimate::plan {

// Returns the seconds of exchanges in one layer's forward of `tokens` tokens: two all-reduces over tp and, where ep
// cuts experts, two all-to-alls of the routed tokens. Leading dense layers have no all-to-all: this is the mean of all
// layers.
double exchange_seconds(const Job& job, const Execution& how, const Constants& constants, double tokens);
// Returns the seconds in which the parts of a row exchange what attention reads in one layer's forward of `tokens`
// tokens of each part. Gathered keys and values go around the ring of cp ranks, some of it behind the attention. With
// ulysses an all-to-all ahead of the attention and one behind it exchange tokens for heads, which nothing hides.
// Returns 0 where there is one part.
double context_seconds(const Job& job, const Execution& how, const Constants& constants, double tokens);
// Returns the seconds of sending from one rank of a pipeline to the next, once for each of its runs; 0 where there is
// one rank.
double stage_send_seconds(const Job& job, const Execution& how, const Constants& constants, double tokens);

// StageTime has the seconds of one micro-batch's forward through one pipeline stage.
struct StageTime {
  double compute = 0;
  double tensor = 0;
  double send = 0;
  double total() const { return compute + tensor + send; }
};
// Returns those of every stage. The last one has the head, unless all stages are cut to cost the same.
std::vector<StageTime> stage_times(const Job& job, const Execution& how, const Constants& constants, double rows,
                                   double efficiency);

// PipelineTime has the slowest rank of a pipeline, for which the others wait with each micro-batch, and one
// micro-batch's seconds in all others: it waits for these or, with several runs, for one of them
// (arXiv 2104.04473, section 2.2: 1 / v of the bubble).
struct PipelineTime {
  StageTime slowest;
  double others = 0;
};
// `seconds_of` gives the seconds of one micro-batch in a stage.
template <class SecondsOf>
PipelineTime pipeline_time(const std::vector<StageTime>& stages, const SecondsOf& seconds_of) {
  PipelineTime time{stages.front()};
  for (const StageTime& stage : stages) {
    time.others += seconds_of(stage);
    if (seconds_of(stage) > seconds_of(time.slowest)) time.slowest = stage;
  }
  time.others -= seconds_of(time.slowest);
  return time;
}

// Returns the seconds of one collective of elements in bf16 among the ranks that hold the same: the data-parallel ranks
// for dense elements, the ranks with the same experts for those of experts.
double held_seconds(Collective kind, const Held& elements, const Job& job, const Execution& how,
                    const Constants& constants);
// Returns the seconds of one gather of a stage's weights from its ZeRO shards.
double gather_seconds(const Job& job, const Execution& how, const Constants& constants);

}  // namespace collimate::plan
