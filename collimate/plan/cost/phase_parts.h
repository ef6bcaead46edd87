#pragma once

#include "collimate/plan/cost/collective.h"
#include "collimate/plan/cost/phase.h"

// The phases share this; it is not for others.
namespace collimate::plan {

// Exchanges of one layer's forward of `tokens` tokens: two all-reduces over tp and, where ep cuts experts, two
// all-to-alls of what is routed. Leading dense layers have none of the latter: the mean of all layers.
double exchange_seconds(const Job& job, const Execution& how, const Constants& constants, double tokens);
// The parts of a row exchange this in one layer's forward of `tokens` tokens of each: keys and values go around the
// ring of cp ranks, some of it behind the attention; 0 where there is one part.
double ring_seconds(const Job& job, const Execution& how, const Constants& constants, double tokens);
// Sending from one pipeline stage to the next takes this long; 0 where there is one.
double stage_send_seconds(const Job& job, const Execution& how, const Constants& constants, double tokens);

// The forward of one micro-batch through one pipeline stage.
struct StageTime {
  double compute = 0;
  double tensor = 0;
  double send = 0;
  double total() const { return compute + tensor + send; }
};
StageTime stage_time(const Job& job, const Execution& how, const Constants& constants, double rows, double efficiency);

// One collective of elements in bf16 among those that hold the same: dense ones over the data-parallel ranks, experts
// over the ranks that have these.
double held_seconds(Collective kind, const Held& elements, const Job& job, const Execution& how,
                    const Constants& constants);
// One gather of a stage's weights from its ZeRO shards.
double gather_seconds(const Job& job, const Execution& how, const Constants& constants);

}  // namespace collimate::plan
