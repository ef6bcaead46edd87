#pragma once

#include "collimate/plan/phase.h"

// What the phases share; not for others.
namespace collimate::plan {

// The forward of one micro-batch through one pipeline stage.
struct StageTime {
  double compute = 0;
  double tensor = 0;
  double send = 0;
  double total() const { return compute + tensor + send; }
};
StageTime stage_time(const Job& job, const Execution& how, const Constants& constants, double rows, double efficiency);
// One gather of a stage's weights from its ZeRO shards.
double gather_seconds(const Job& job, const Execution& how, const Constants& constants);

}  // namespace collimate::plan
