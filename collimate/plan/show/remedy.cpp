#include <fmt/ranges.h>

#include "collimate/base/error.h"
#include "collimate/plan/layout/fixed.h"
#include "collimate/plan/show/plan_text.h"

namespace collimate::plan {
namespace {

// Returns the request as one that is quick to search: for one plan, without staleness.
Request for_one_plan(Request request) {
  request.keep = 1;
  request.load.staleness = 0;
  return request;
}

// Takes over `more` and its plans where there are some.
void keep_if_it_fits(Request more, Request& kept, SearchResult& found) {
  SearchResult tried = search(more);
  if (tried.plans.empty()) return;
  kept = std::move(more);
  found = std::move(tried);
}

// Returns the layouts that the planner would take in place of fixed ones, for as few functions and words as it finds:
// it keeps one fixed layout, then one fixed word, after another for as long as there is a plan. Returns "" where
// nothing fits without them either.
std::string without_fixed(const Request& request) {
  Request kept = for_one_plan(request);
  kept.fixed.clear();
  SearchResult found = search(kept);
  if (found.plans.empty()) return "";
  for (const auto& [call, fixed] : request.fixed) {
    Request more = kept;
    more.fixed[call] = fixed;
    keep_if_it_fits(std::move(more), kept, found);
  }
  for (const auto& [call, fixed] : request.fixed)
    for (const FixedLayout& word : words_of(fixed)) {
      if (kept.fixed[call] == fixed) break;
      Request more = kept;
      add_word(more.fixed[call], word);
      keep_if_it_fits(std::move(more), kept, found);
    }
  std::string text;
  for (const Call& call : found.plans[0].calls) {
    const auto fixed = request.fixed.find(call.model + "." + call.function);
    if (fixed == request.fixed.end() || kept.fixed[fixed->first] == fixed->second) continue;
    text += fmt::format("{}--fix {}={}", text.empty() ? "" : " ", fixed->first, fixed_text(fixed->second, call.how));
  }
  return text;
}

// Throws InputError as no plan has the form that is asked for, with the forms of which there are plans.
[[noreturn]] void throw_without_form(const Request& request, const std::string& why) {
  Request any = request;
  any.form = "";
  any.load.staleness = 0;
  std::vector<std::string> forms;
  for (const Plan& plan : search(any).plans) forms.push_back(plan.form);
  throw base::InputError(base::expectation("--form " + request.form, "a form of which a placement fits the cluster",
                                           why,
                                           forms.empty() ? "more or larger devices: none of another form fits either"
                                                         : fmt::format("{}", fmt::join(forms, ", "))));
}

// Returns the smallest cluster with more devices, in whole nodes, on which it finds a plan; "" where there is none.
std::string larger_cluster(Request request) {
  const Cluster cluster = request.cluster;
  const auto fits = [&](int devices) {
    const std::optional<Cluster> made = with_devices(cluster, devices);
    if (!made) return false;
    request.cluster = *made;
    return !search(request).plans.empty();
  };
  int fitting = 2 * cluster.devices();
  while (fitting <= kMaxDevices && !fits(fitting)) fitting *= 2;
  if (fitting > kMaxDevices) return "";
  // With one kind, the search goes on between half of these devices and all of them, by whole nodes.
  const int groups = static_cast<int>(cluster.groups.size());
  const int step = groups == 1 ? std::max(cluster.groups[0].per_node, cluster.groups[0].gpu.per_node) : fitting / 2;
  for (int little = fitting / 2; fitting - little >= 2 * step;) {
    const int middle = little + (fitting - little) / step / 2 * step;
    (fits(middle) ? fitting : little) = middle;
  }
  return cluster_text(*with_devices(cluster, fitting));
}

// Returns what would help. Where every rank holds its whole model, more devices take none of it away, but can take
// other models. Larger clusters are not searched for a limit that the program counts by itself, placement by placement:
// that takes minutes, and the user can raise the limit.
std::string remedy_of(const Request& request) {
  if (request.excess)
    return fmt::format("a larger run.memory_budget, or more devices{}", request.whole ? ", or --layouts any" : "");
  const std::string larger = larger_cluster(for_one_plan(request));
  if (!request.whole) return larger.empty() ? "more or larger devices" : larger;
  Request any = for_one_plan(request);
  any.whole = any.recomputes = any.selective = any.offloads = false;
  any.load.settings = {};
  if (!search(any).plans.empty()) return larger.empty() ? "--layouts any" : "--layouts any, or " + larger;
  if (!larger.empty()) return larger;
  const std::string both = larger_cluster(any);
  return both.empty() ? "larger devices" : "--layouts any --cluster " + both;
}

}  // namespace

void require_plan(const Request& request, const SearchResult& result) {
  if (!result.plans.empty()) return;
  if (!request.form.empty()) throw_without_form(request, result.why);
  if (const std::string free = request.fixed.empty() ? "" : without_fixed(request); !free.empty())
    throw base::InputError(base::expectation("plan", "fixed layouts that fit the cluster", result.why, free));
  throw base::InputError(base::expectation("plan", "models that fit the cluster",
                                           "no placement that fits: " + result.why, remedy_of(request)));
}

}  // namespace collimate::plan
