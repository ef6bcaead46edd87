#pragma once

#include "collimate/graph/placement.h"
#include "collimate/plan/inputs/constants.h"
#include "collimate/plan/inputs/device_kind.h"
#include "collimate/plan/inputs/workload.h"
#include "collimate/shape/outline.h"

namespace collimate::plan {

enum class Work { kGenerate, kScore, kTrain };

// One function of a model in one iteration, on `devices` devices in step: what the cost model is asked about.
struct Job {
  shape::Outline model;
  Work work = Work::kTrain;
  bool language_head = true;  // else a score or value per token
  DeviceKind gpu;
  int per_node = 8;
  int devices = 8;
  Workload load;
  bool passes = false;  // gives new weights to another model, or takes them
};

// How it is cut, and what is done to save memory. A layout's dp is what the other sizes leave of the devices.
struct Execution {
  graph::Layout layout;
  int64_t lora_rank = 0;   // of adapters beside frozen weights; 0: none, and all weights are trained
  bool selective = false;  // training computes what attention and activations give again, where not all
  bool fp8 = false;
  double decoding_rows = 0;  // of a replica that generates, at once; 0: as memory allows
  bool operator==(const Execution&) const = default;
};

// Matrices and vectors of a checkpoint: of a layer four of attention, two norms, and those of its MLP or of each
// expert.
double weight_tensors(const shape::Outline& model);
// Copies of the cut model that share the rows.
inline double replicas(const Job& job, const Execution& how) {
  return static_cast<double>(job.devices) / (how.layout.tp * how.layout.pp * how.layout.cp);
}

// Elements on one device: dense ones, which all data-parallel ranks hold alike, and experts, which only those of them
// hold alike that ep has not cut.
struct Held {
  double dense = 0, experts = 0;
  double all() const { return dense + experts; }
};
// The weights, ZeRO aside: matrices over tp, experts over the larger of ep and tp, layers over pp, tables over tp.
Held held_parameters(const Job& job, const Execution& how);
// Gives those that an optimizer step changes: adapters, where they are beside frozen ones.
Held held_trained_parameters(const Job& job, const Execution& how);
// Counts those of adapters, both of whose matrices tp cuts; 0 without.
double adapter_parameters(const Job& job, const Execution& how);
// Ranks that hold the same of either.
struct Holders {
  double dense = 1, experts = 1;
};
Holders holders(const Job& job, const Execution& how);

double device_parameters(const Job& job, const Execution& how);
double trained_parameters(const Job& job, const Execution& how);
// Gives what is left of both on a device where ZeRO spreads them over the ranks that hold the same.
double sharded_parameters(const Job& job, const Execution& how);
double sharded_trained_parameters(const Job& job, const Execution& how);

// Floating-point operations of one row's forward: of so many tokens, or on average of rows whose tokens have these
// moments. A multiply-add is two; attention is causal, of half the square of the tokens.
double forward_flops(const shape::Outline& model, double tokens, bool language_head);
double forward_flops(const shape::Outline& model, const Moments& tokens, bool language_head);
// Gives the passes of training over one forward: 3 with backward, 4 where it is recomputed, 2 and 3 with LoRA (no
// gradient of frozen weights).
double train_passes(const Execution& how);
// Rows of the replica that has most of an iteration's, or of an update's where it trains: rows are not divided.
double replica_rows(const Job& job, const Execution& how);
// Rows of one micro-batch: the layout's, or as many as come to the tokens that are set.
double micro_batch_rows(const Job& job, const Execution& how);

}  // namespace collimate::plan
