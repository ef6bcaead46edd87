#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collimate/graph/graph.h"
#include "collimate/graph/placement.h"
#include "collimate/plan/inputs/cluster.h"
#include "collimate/plan/inputs/constants.h"
#include "collimate/plan/inputs/workload.h"
#include "collimate/shape/outline.h"

namespace collimate::plan {

// A FixedLayout is what the user fixes of one function's layout, in the words of a placement file. The search is free
// in the rest.
struct FixedLayout {
  int tp = 0, pp = 0, ep = 0, dp = 0;  // 0: free. dp: copies of the model on all of its group's devices
  int virtual_stages = 0;              // stages of each of the pp ranks; 0: one
  std::vector<int64_t> stages;         // layers of each stage; empty: equal ones
  int zero = -1;                       // stage; -1: free
  int64_t micro_batch = 0;             // rows, of a generator those that decode at once; 0: free
  std::optional<bool> recompute, offload;
  bool operator==(const FixedLayout&) const = default;
};

// An excess is what a placement needs beyond a limit that the program counts itself.
struct Excess {
  double bytes = 0;       // on the device that lacks most; 0: the placement can run
  std::string why;        // "" where it can run
  std::set<int> devices;  // all devices that lack memory
};

// A request says what is to be planned.
struct Request {
  graph::Graph graph;
  // Outlines are by model. A model without an outline has that of the model to which it gives weights, else the
  // policy's.
  std::map<std::string, shape::Outline> models;
  DeviceKinds kinds;  // that the request may name
  Cluster cluster;
  Workload load;
  Constants constants;
  std::string software;                      // where the constants come from: a back end or a file; "": the defaults
  int64_t micro_batch = 0;                   // rows; 0: free
  std::map<std::string, FixedLayout> fixed;  // by "model.function"
  std::map<std::string, int64_t> lora;       // rank, by model that trains; its other weights are frozen
  // Names of frozen weights, by model: models with one name share these weights, and a model that trains adapters of
  // them holds them for those that read them. Models without an outline of their own that give log-probs share the
  // policy's.
  std::map<std::string, std::string> bases;
  bool whole = false;       // every rank holds all of its model, as the recipes' modules do: only dp and ZeRO 0 to 2
  bool recomputes = false;  // if whole: what train.recompute says for models that train
  bool selective = false;   // or it says so for attention and activations alone
  bool offloads = false;    // if whole: what train.offload says for the optimizer
  int sum_chunks = 0;       // only tp that divide these give one rank's bits and are looked at; 0: all are
  bool cut_rows = false;    // cp may cut rows of any length; a search tries it where nothing fits without
  int keep = 6;             // plans of different forms to report
  std::string form;         // one of form_names(); "": any
  std::function<Excess(const graph::Placement&)> excess;  // a limit beside the cost model's bounds; empty: none
  bool turns = false;  // without staleness, models on devices that lack memory by `excess` may take turns
  // Placements of more models are not all looked at but found by local search.
  int enumerated_models = 5;

  std::string device_kind() const;  // "cpu" or "cuda", as in a placement
};

// Throws InputError for a cluster without devices or of CPUs and GPUs, a workload without rows, adapters of a model
// that does not train, and loops.
void check(const Request& request);
// Throws InputError, with the nearest valid choice, for more optimizer steps or larger micro-batches than there are
// rows.
void check_workload(const Request& request);
// Throws InputError for rows longer than a model's table of positions.
void check_positions(const Request& request);
// Returns the shape of a model of the graph, as Request::models says. Throws InputError naming the model where there is
// none.
const shape::Outline& outline_of(const Request& request, const std::string& model);

}  // namespace collimate::plan
