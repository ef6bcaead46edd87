#include "collimate/recipe/placement.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "collimate/base/config.h"
#include "collimate/base/edit_distance.h"
#include "collimate/base/error.h"
#include "collimate/flow/link_check.h"
#include "collimate/graph/whole_layout.h"
#include "collimate/host/atomic_file.h"
#include "collimate/host/cpu.h"
#include "collimate/recipe/own_copies.h"
#include "collimate/recipe/placement_context.h"
#include "collimate/recipe/placement_forms.h"
#include "collimate/rlhf/modules/decoder.h"
#include "collimate/shape/mixture.h"

namespace collimate::recipe {

void require_divisors(int devices, const std::vector<comm::Axis>& axes) {
  int taken = 1;
  std::vector<std::string> by;
  for (const comm::Axis& axis : axes) {
    const int rest = devices / taken;
    if (rest % axis.size != 0)
      throw base::InputError(base::expectation(
          axis.name,
          by.empty() ? fmt::format("a divisor of the {} devices", devices)
                     : fmt::format("a divisor of {}, the devices by {}", rest, fmt::join(by, " and ")),
          std::to_string(axis.size), fmt::format("devices: {}", taken * axis.size)));
    taken *= axis.size;
    if (axis.size > 1) by.push_back(fmt::format("{} {}", axis.name, axis.size));
  }
}

int64_t sum_parts(int64_t chunks, int tp) { return chunks % tp == 0 ? chunks : chunks * tp; }

namespace {

// Checks `devices`, which is read where the placement is a name: a placement with a number of its own may leave some of
// them unused. Checks that `zero` is set of names alone, and the other axes of flattening alone.
void check_devices(const Config& config, const graph::Placement& placement) {
  for (const auto& [name, size, usual] : {std::tuple("tp", config.tp.get(), int64_t{1}),
                                          {"pp", config.pp.get(), 1},
                                          {"cp", config.cp.get(), 1},
                                          {"ep", config.ep.get(), 1},
                                          {"zero", config.zero.get(), Config().zero.get()}})
    if (size != usual && config.placement.get() != "flattening" && !(is_form(config) && name == std::string("zero")))
      throw base::InputError(base::expectation(name, fmt::format("{} where a placement says it by function", usual),
                                               std::to_string(size),
                                               fmt::format("{} in the placement's layouts", name)));
  if (config.cp_kind.get() != Config().cp_kind.get() && (config.cp == 1 || config.placement.get() != "flattening"))
    throw base::InputError(
        base::expectation("cp_kind", "it beside cp, where placement is flattening", config.cp_kind.get(),
                          config.placement.get() == "flattening" ? "cp: 2, or leaving it out"
                                                                 : "cp and cp_kind in the placement's layouts"));
  const int64_t devices = config.devices;
  if (devices >= placement.devices || devices == Config().devices.get()) return;
  throw base::InputError(base::expectation("devices",
                                           fmt::format("at least the {} of the placement", placement.devices),
                                           std::to_string(devices), "leaving it out, or another placement"));
}

// Returns a model's experts, and nothing for one that has none or that is no model but code.
std::optional<shape::Experts> experts_in(const Plan& plan, const std::string& model) {
  const auto module = plan.modules.find(model);
  if (module == plan.modules.end() || !module->second.parameters.contains("weights")) return std::nullopt;
  rlhf::DecoderOptions options;
  base::apply(module->second.parameters, "models", options);
  const shape::ModelShape shape = rlhf::decoder_shape(options);
  const shape::Experts* experts = shape::experts_of(shape);
  return experts == nullptr ? std::nullopt : std::optional(*experts);
}

// Returns whether groups of ranks that share experts and groups that share the tokens of a row lie one within the
// other.
bool fits_context(int ep, int cp) { return ep % cp == 0 || cp % ep == 0; }

// Lets ranks share experts, which mixtures alone have. A function that does not train has as many replicas as there are
// groups of ranks that share experts, or one where all ranks share the weights.
void share_experts(const Plan& plan, int ep, graph::Placement& placement) {
  const auto fail = [&](const std::string& expected, const std::string& instead) {
    throw base::InputError(base::expectation("ep", expected, std::to_string(ep), instead));
  };
  bool shared = false;
  for (const auto& [name, group] : placement.groups)
    for (const std::string& model : group.models) {
      const std::optional<shape::Experts> experts = experts_in(plan, model);
      if (!experts) continue;
      if (experts->count < ep) fail(fmt::format("at most the {} experts of {}", experts->count, model), "a smaller ep");
      shared = true;
      for (const graph::FunctionSpec& spec : plan.graph.models.at(model).functions) {
        if (spec.kind == graph::Kind::kHost) continue;
        graph::Layout& layout = placement.layouts[model][spec.name];
        if (!fits_context(ep, layout.cp))
          fail(fmt::format("a divisor or a multiple of cp {}", layout.cp), fmt::format("ep: {}", layout.cp));
        layout.ep = ep;
        if (spec.kind == graph::Kind::kTrain) continue;
        const int all = static_cast<int>(group.devices.size()) / (layout.tp * layout.pp * layout.cp);
        layout.dp = layout.zero > graph::kMostWholeZero ? all : std::max(1, ep / layout.cp);
      }
    }
  if (!shared) fail("1, as no model of the run has experts", "tp, pp or cp, or leaving it out");
}

// Places all models on all devices. Where several devices train the same pieces together they share the optimizer,
// which costs nothing, or what else `zero` says. At its stage 3 the weights of all models are shared, frozen ones too.
graph::Placement flattened(const Config& config, const Plan& plan) {
  const int devices = static_cast<int>(config.devices.get()), tp = static_cast<int>(config.tp.get()),
            pp = static_cast<int>(config.pp.get()), cp = static_cast<int>(config.cp.get()),
            ep = static_cast<int>(config.ep.get()), zero = static_cast<int>(config.zero.get());
  const auto kind = words_of(shape::ContextKind()).parse("cp_kind", config.cp_kind.get());
  require_divisors(devices, {{"tp", tp}, {"pp", pp}, {"cp", cp}});
  require_divisors(devices, {{"tp", tp}, {"pp", pp}, {"ep", ep}});
  graph::Placement placement = graph::flattening(plan.graph, devices);
  for (const auto& [name, group] : placement.groups)
    for (const std::string& model : group.models)
      for (const graph::FunctionSpec& spec : plan.graph.models.at(model).functions) {
        if (tp * pp > 1 && spec.kind != graph::Kind::kHost)
          placement.layouts[model][spec.name].tp = tp, placement.layouts[model][spec.name].pp = pp;
        if (cp > 1 && rlhf::shares_tokens(spec))
          placement.layouts[model][spec.name].cp = cp, placement.layouts[model][spec.name].cp_kind = kind;
        if (zero > graph::kMostWholeZero && devices > tp * pp && spec.kind != graph::Kind::kHost)
          placement.layouts[model][spec.name].zero = zero;
      }
  if (ep > 1) share_experts(plan, ep, placement);
  if (devices > tp * pp)
    for (const std::string& model : plan.trainers) placement.layouts[model]["train"].zero = zero;
  return placement;
}

graph::Placement named_placement(const Config& config, const Plan& plan, const std::string& name) {
  if (name == "flattening") return flattened(config, plan);
  const bool word = name.find_first_of("./") == std::string::npos;
  if (word && !std::filesystem::exists(name))
    base::throw_unknown_choice("placement", name, {"flattening", "interleaving", "separation", "auto", "a file"});
  return graph::parse_placement(host::read_file(name), name);
}

graph::Placement placement_of(const Config& config, const Plan& plan) {
  if (auto form = placement_of_form(config, plan)) return std::move(*form);
  const nlohmann::json& value = config.placement;
  return value.is_string() ? named_placement(config, plan, value.get<std::string>())
                           : graph::parse_placement(value.dump(), "placement");
}

// Checks layouts with ep. Experts are shared by neighbours among the ranks that have copies of the rest, each with rows
// or tokens of its own. The ranks of a row are together in such a group, or share their experts with nobody else.
void check_experts(const graph::Placement& placement, const Plan& plan) {
  for (const auto& [model, functions] : placement.layouts)
    for (const auto& [function, layout] : functions) {
      if (layout.ep == 1) continue;
      const std::string where = fmt::format("placement.layouts.{}.{}.ep", model, function);
      const auto fail = [&, ep = layout.ep](const std::string& expected, const std::string& instead) {
        throw base::InputError(base::expectation(where, expected, std::to_string(ep), instead));
      };
      const std::optional<shape::Experts> experts = experts_in(plan, model);
      if (!experts) fail("1 of a model without experts", "leaving it out");
      if (experts->count < layout.ep) fail(fmt::format("at most the {} experts", experts->count), "a smaller ep");
      const int replica = static_cast<int>(
          graph::replicas(plan.graph, placement, model, *plan.graph.find_function(model, function)).front().size());
      const int copies = replica / (layout.tp * layout.pp);
      if (copies % layout.ep != 0)
        fail(fmt::format("a divisor of dp {} times cp {}", copies / layout.cp, layout.cp),
             fmt::format("dp: {}", std::max(1, layout.ep / layout.cp)));
      if (!fits_context(layout.ep, layout.cp))
        fail(fmt::format("a divisor or a multiple of cp {}", layout.cp), fmt::format("ep: {}", layout.cp));
    }
}

// Checks staleness. Weights older than those of training exist only on other devices than these.
void check_staleness(const graph::Placement& placement, const Plan& plan) {
  if (placement.staleness == 0) return;
  const auto fail = [&](const std::string& expected, const std::string& instead) {
    throw base::InputError(
        base::expectation("placement.staleness", expected, std::to_string(placement.staleness), instead));
  };
  if (plan.graph.links.empty()) fail("0 of a recipe that generates nothing", "leaving it out");
  if (plan.draws_in_rounds)
    fail("0 beside rollout.round_shares, as an iteration goes on with what the one before has left", "one of the two");
  for (const graph::WeightLink& link : plan.graph.links) {
    const std::vector<int> trained = graph::workers_of(plan.graph, placement, link.source);
    for (const int worker : graph::workers_of(plan.graph, placement, link.destination))
      if (std::ranges::find(trained, worker) != trained.end())
        fail(fmt::format("0, as {} and {} are both on device {}", link.destination, link.source, worker),
             fmt::format("a group of other devices for {}", link.destination));
  }
}

// Throws InputError for a placement that names a reference where the loss reads none, as then the run has no such
// model.
void check_reference(const graph::Placement& placement, const Plan& plan) {
  constexpr const char* kReference = "reference";
  if (plan.graph.models.contains(kReference)) return;
  for (const auto& [name, group] : placement.groups)
    if (std::ranges::find(group.models, kReference) != group.models.end())
      throw base::InputError(base::expectation(
          "placement.groups." + name, "models of this run", "reference, which this config does not read",
          plan.graph.name == "grpo" ? "algorithm.beta: 0.04, which reads it, or leaving it out" : "leaving it out"));
}

// Refuses what a placement says beyond what the recipes' modules do, which would otherwise be ignored.
void check_supported(const graph::Placement& placement, const Plan& plan) {
  check_staleness(placement, plan);
  for (const auto& [model, residency] : placement.residency) {
    const auto module = plan.modules.find(model);
    if (residency == graph::Residency::kDevice || module == plan.modules.end()) continue;
    if (!module->second.parameters.contains("weights"))
      throw base::InputError(base::expectation("placement.residency." + model, "device of what has no weights", "swap",
                                               "leaving it out: it takes no memory of a device"));
  }
  for (const auto& [model, functions] : placement.layouts)
    for (const auto& [function, layout] : functions) {
      if (!layout.offload || plan.graph.find_function(model, function)->kind == graph::Kind::kTrain) continue;
      throw base::InputError(base::expectation(fmt::format("placement.layouts.{}.{}.offload", model, function),
                                               "false of a function that has no optimizer", "true", "leaving it out"));
    }
}

// Holds a function of a model in a placement.
struct Placed {
  std::string model, function;
  graph::Layout layout;
};

// Returns the functions that are called of models with these weights, on one of the devices.
std::vector<Placed> functions_of(const nlohmann::json& weights, const graph::Company& company, const Plan& plan,
                                 const graph::Placement& placement) {
  std::vector<Placed> found;
  for (const std::string& model : company.models) {
    const auto module = plan.modules.find(model);
    if (module == plan.modules.end() || module->second.parameters.value("weights", nlohmann::json()) != weights)
      continue;
    for (const graph::FunctionSpec& spec : plan.graph.models.at(model).functions)
      if (plan.calls(model, spec.name)) found.push_back({model, spec.name, placement.layout(model, spec.name)});
  }
  return found;
}

// Visits, on each device, the functions that read one copy of weights, for each model whose copy it is.
void each_copy(const graph::Placement& placement, const Plan& plan, const auto& visit) {
  for (const graph::Company& company : graph::companies(plan.graph, placement))
    for (const std::string& model : company.models) {
      const auto module = plan.modules.find(model);
      if (module == plan.modules.end() || !module->second.parameters.contains("weights")) continue;
      visit(company.device, functions_of(module->second.parameters.at("weights"), company, plan, placement));
    }
}

// Checks that a device holds the weights of an identity once: whole, or the pieces of one tp, pp, ep and stages.
void check_pieces(const graph::Placement& placement, const Plan& plan) {
  each_copy(placement, plan, [](int device, const std::vector<Placed>& placed) {
    const Placed& first = placed.front();
    for (const Placed& other : placed)
      if (const auto unlike = flow::unlike_cut(first.layout, other.layout))
        throw base::InputError(base::expectation(
            fmt::format("placement.layouts.{}.{}.{}", other.model, other.function, unlike->axis),
            fmt::format("{}, as {}.{} has, since both read one copy of the weights on device {}", unlike->first,
                        first.model, first.function, device),
            unlike->second, fmt::format("one {} for all functions of models that share weights", unlike->axis)));
  });
}

// Checks that generation and training add up alike, as only then log-probs of training are those of sampling to the
// last bit. A run that allows no difference would stop in its first update.
void check_sums(const Config& config, const graph::Placement& placement, const Plan& plan) {
  if (plan.rows != rlhf::RowKind::kPrompt || config.train.mismatch_limit > 0) return;
  for (const graph::WeightLink& link : plan.graph.links) {
    const auto reader = plan.modules.find(link.destination);
    if (reader == plan.modules.end() || !reader->second.parameters.contains("reduction_chunks")) continue;
    const auto chunks = reader->second.parameters.at("reduction_chunks").get<int64_t>();
    const int trains = placement.layout(link.source, "train").tp;
    for (const graph::FunctionSpec& spec : plan.graph.models.at(link.destination).functions) {
      const int tp = placement.layout(link.destination, spec.name).tp;
      if (!plan.calls(link.destination, spec.name) || sum_parts(chunks, tp) == sum_parts(chunks, trains)) continue;
      const int both = std::lcm(tp, trains);
      const std::string remedy = both == 2 || both == 4 || both == 8
                                     ? fmt::format("models.policy.reduction_chunks: {}", both)
                                     : "one tp for both, or train.mismatch_limit: 1e-4";
      throw base::InputError(base::expectation(
          "models.policy.reduction_chunks",
          fmt::format("a multiple of tp {} of {}.{} and of tp {} of {}.train, so that both add up alike (or "
                      "train.mismatch_limit above 0)",
                      tp, link.destination, spec.name, trains, link.source),
          std::to_string(chunks), remedy));
    }
  }
}

// Completes the layout of a function whose ranks share the weights: all ranks of its group share them together.
void share_over_group(const Placed& placed, const Placed& first, graph::Placement& placement, const Plan& plan) {
  const std::vector<int>& devices = placement.group_of(placed.model)->devices;
  const std::string where = fmt::format("placement.layouts.{}.{}", placed.model, placed.function);
  if (devices != placement.group_of(first.model)->devices)
    throw base::InputError(base::expectation(
        where + ".zero", fmt::format("the devices of {}, as the ranks of both share the weights (zero 3)", first.model),
        fmt::format("devices {}", fmt::join(devices, ", ")), "one group for both models, or zero 2"));
  graph::Layout& layout = placement.layouts[placed.model][placed.function];
  const int dp = static_cast<int>(devices.size()) / (layout.tp * layout.pp * layout.cp);
  if (layout.dp != 0 && layout.dp != dp)
    throw base::InputError(base::expectation(where + ".dp", fmt::format("{} with zero 3: all ranks of its group", dp),
                                             std::to_string(layout.dp), "leaving it out"));
  layout.zero = graph::kMostWholeZero + 1;
  const auto kind = plan.graph.find_function(placed.model, placed.function)->kind;
  if (kind != graph::Kind::kTrain) layout.dp = dp;
}

// Where the ranks of one function share the weights of its model (zero 3), has those of every function of models with
// these weights share them. A call of one is then a call of all these ranks, each with some of the rows or none.
void share_weights(graph::Placement& placement, const Plan& plan) {
  each_copy(placement, plan, [&](int, const std::vector<Placed>& placed) {
    const auto shares = [](const Placed& one) { return one.layout.zero > graph::kMostWholeZero; };
    const auto first = std::ranges::find_if(placed, shares);
    if (first == placed.end()) return;
    for (const Placed& one : placed) share_over_group(one, *first, placement, plan);
  });
}

}  // namespace

void keep_frozen_apart(const graph::Placement& placement, Plan& plan) {
  const std::vector<graph::Company> companies = graph::companies(plan.graph, placement);
  for (auto& [name, module] : plan.modules) {
    if (plan.trainers.contains(name) || !module.parameters.value("trained", false)) continue;
    const nlohmann::json& weights = module.parameters.at("weights");
    const auto trains = [&](const std::string& other) {
      return plan.trainers.contains(other) && plan.modules.at(other).parameters.at("weights") == weights;
    };
    module.parameters["trained"] = std::ranges::any_of(companies, [&, &model = name](const graph::Company& company) {
      return company.models.contains(model) && std::ranges::any_of(company.models, trains);
    });
  }
}

graph::Placement make_placement(const Config& config, Plan& plan) {
  graph::Placement placement = placement_of(config, plan);
  check_reference(placement, plan);
  graph::validate(plan.graph, placement);
  check_supported(placement, plan);
  check_context(config, placement, plan);
  check_experts(placement, plan);
  give_own_copies(placement, plan);
  check_pieces(placement, plan);
  check_sums(config, placement, plan);
  check_devices(config, placement);
  share_weights(placement, plan);
  keep_frozen_apart(placement, plan);
  return placement;
}

int threads_of(int64_t threads, const graph::Placement& placement) {
  return threads > 0 ? static_cast<int>(threads) : std::max(1, host::thread_count() / placement.devices);
}

int threads_of(const Config& config, const graph::Placement& placement) {
  return threads_of(config.run.threads.get(), placement);
}

std::vector<std::string> worker_names(const graph::Graph& graph, const graph::Placement& placement) {
  std::vector<std::string> names(static_cast<size_t>(graph::worker_count(graph, placement)));
  for (const auto& [model, content] : graph.models)
    for (const int worker : graph::workers_of(graph, placement, model)) {
      std::string& name = base::at(names, worker);
      name += (name.empty() ? "" : ", ") + model;
    }
  for (int device = 0; device < placement.devices; ++device)
    base::at(names, device) = fmt::format("device {}: {}", device, base::at(names, device));
  return names;
}

}  // namespace collimate::recipe
