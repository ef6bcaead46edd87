#pragma once

#include "collimate/graph/placement.h"
#include "collimate/plan/inputs/constants.h"
#include "collimate/plan/inputs/device_kind.h"
#include "collimate/plan/inputs/workload.h"
#include "collimate/shape/outline.h"

namespace collimate::plan {

enum class Work { kGenerate, kScore, kTrain };

// A Job is one function of a model in one iteration, on `devices` devices in step: what the cost model is asked about.
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

// An Execution says how a job is cut, and what is done to save memory. A layout's dp is devices / (tp · pp · cp).
struct Execution {
  graph::Layout layout;
  int64_t lora_rank = 0;   // of adapters beside frozen weights; 0: none, and all weights are trained
  bool selective = false;  // training recomputes attention and activations, if not all
  bool fp8 = false;
  double decoding_rows = 0;  // at once, of a replica that generates; 0: as memory allows
  int stage = -1;  // the rank of a pipeline whose weights and memory are meant, where layout.stages says the layers;
                   // -1: the one with most
  bool operator==(const Execution&) const = default;
};

// Returns the number of matrices and vectors of a checkpoint: of a layer four of attention, two norms, and those of its
// MLP or of each expert.
double weight_tensors(const shape::Outline& model);
// Returns how many copies of the cut model share the rows.
inline double replicas(const Job& job, const Execution& how) {
  return static_cast<double>(job.devices) / (how.layout.tp * how.layout.pp * how.layout.cp);
}

// Held has the elements on one device: dense ones, which all data-parallel ranks hold alike, and experts, which only
// the ranks with the same experts hold alike.
struct Held {
  double dense = 0, experts = 0;
  double all() const { return dense + experts; }
};
// Returns the weights on one device, ZeRO aside: matrices over tp, experts over the larger of ep and tp, layers over
// pp or as the layout says, tables over tp. With pp, the first stage has one of two tables that are not tied, and the
// last one the other.
Held held_parameters(const Job& job, const Execution& how);
// Returns the elements that an optimizer step changes: adapters, where they are beside frozen weights.
Held held_trained_parameters(const Job& job, const Execution& how);
// Returns the elements of adapters, both of whose matrices tp cuts; 0 without adapters.
double adapter_parameters(const Job& job, const Execution& how);
// Holders has the number of ranks that hold the same dense elements, and of those that hold the same experts.
struct Holders {
  double dense = 1, experts = 1;
};
Holders holders(const Job& job, const Execution& how);

double device_parameters(const Job& job, const Execution& how);
double trained_parameters(const Job& job, const Execution& how);
// These return what is left of all and of trained parameters on a device where ZeRO spreads them over the ranks that
// hold the same.
double sharded_parameters(const Job& job, const Execution& how);
double sharded_trained_parameters(const Job& job, const Execution& how);

// Returns the floating-point operations of one row's forward: of so many tokens, or on average of rows whose tokens
// have these moments. A multiply-add is two; attention is causal, of half the square of the tokens.
double forward_flops(const shape::Outline& model, double tokens, bool language_head);
double forward_flops(const shape::Outline& model, const Moments& tokens, bool language_head);
// Returns those of its products of queries and keys, and of scores and values.
double attention_flops(const shape::Outline& model, const Moments& tokens);
// Returns the passes of training over one forward: 3 with backward, 4 where the forward is recomputed, 2 and 3 with
// LoRA (no gradient of frozen weights).
double train_passes(const Execution& how);
// Returns the values of each token of a whole row that a rank has while it attends, where ranks share the tokens of
// rows (cp): keys and values of the heads of its tensor rank or, with ulysses, queries, keys, values and results of its
// own.
double attended_values(const shape::Outline& model, const graph::Layout& layout);
// Returns the rows of the replica that has most of an iteration's rows, or of an update's where it trains. Rows are not
// divided.
double replica_rows(const Job& job, const Execution& how);
// Returns the rows of one micro-batch: the layout's, or as many as come to Settings::micro_batch_tokens.
double micro_batch_rows(const Job& job, const Execution& how);

}  // namespace collimate::plan
