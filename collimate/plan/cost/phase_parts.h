#pragma once

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
// Returns the seconds of sending from one pipeline stage to the next; 0 where there is one stage.
double stage_send_seconds(const Job& job, const Execution& how, const Constants& constants, double tokens);

// StageTime has the seconds of one micro-batch's forward through one pipeline stage.
struct StageTime {
  double compute = 0;
  double tensor = 0;
  double send = 0;
  double total() const { return compute + tensor + send; }
};
StageTime stage_time(const Job& job, const Execution& how, const Constants& constants, double rows, double efficiency);

// Returns the seconds of one collective of elements in bf16 among the ranks that hold the same: the data-parallel ranks
// for dense elements, the ranks with the same experts for those of experts.
double held_seconds(Collective kind, const Held& elements, const Job& job, const Execution& how,
                    const Constants& constants);
// Returns the seconds of one gather of a stage's weights from its ZeRO shards.
double gather_seconds(const Job& job, const Execution& how, const Constants& constants);

}  // namespace collimate::plan
