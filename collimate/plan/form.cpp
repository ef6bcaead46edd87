#include "collimate/plan/form.h"

#include <algorithm>

namespace collimate::plan {
namespace {

bool overlap(const Seat& a, const Seat& b) {
  return std::any_of(a.places.begin(), a.places.end(), [&](int place) { return b.places.contains(place); });
}

// Pairs has what a comparison of every two models says about the form.
struct Pairs {
  bool generates = false;  // some model does
  bool apart = true;       // nothing trains where something generates
  bool alone = true;       // no two models of different weights meet
  bool partial = false;    // some meet on a part of their devices

  bool separate() const { return apart && generates; }
};

Pairs pairs_of(const std::vector<Seat>& seats) {
  Pairs found;
  for (const Seat& a : seats) {
    found.generates = found.generates || a.generates;
    for (const Seat& b : seats) {
      if (!overlap(a, b)) continue;
      found.apart = found.apart && !(a.trains && b.generates);
      found.alone = found.alone && a.weights == b.weights;
      found.partial = found.partial || a.places != b.places;
    }
  }
  return found;
}

}  // namespace

Seat seat_of(const graph::Graph& graph, const std::string& model) {
  Seat seat{model};
  for (const graph::WeightLink& link : graph.links)
    if (link.destination == model) seat.weights = link.source;
  for (const graph::Node& node : graph.nodes) {
    const graph::FunctionSpec* spec = node.model == model ? graph.find_function(model, node.function) : nullptr;
    seat.trains = seat.trains || (spec != nullptr && spec->writes_weights);
    seat.generates = seat.generates || (spec != nullptr && spec->kind == graph::Kind::kGenerate);
  }
  return seat;
}

std::string form_of(const std::vector<Seat>& seats, int places) {
  const auto everywhere = [&](const Seat& seat) { return static_cast<int>(seat.places.size()) == places; };
  const auto works = [](const Seat& seat) { return seat.trains || seat.generates; };
  if (std::all_of(seats.begin(), seats.end(), everywhere)) return "flattening";
  if (std::all_of(seats.begin(), seats.end(), [&](const Seat& s) { return everywhere(s) || !works(s); }))
    return "interleaving";
  const Pairs pairs = pairs_of(seats);
  if (pairs.partial) return "nested";
  if (pairs.alone) return "standalone";
  return pairs.separate() ? "separation" : "split";
}

bool has_form(const std::vector<Seat>& seats, int places, const std::string& form) {
  return form_of(seats, places) == form || (form == "separation" && pairs_of(seats).separate());
}

const std::vector<std::string>& form_names() {
  static const std::vector<std::string> kNames = {"flattening", "interleaving", "nested",
                                                  "separation", "split",        "standalone"};
  return kNames;
}

std::string form_of(const graph::Graph& graph, const graph::Placement& placement) {
  std::vector<Seat> seats;
  std::set<int> used;
  for (const auto& [name, group] : placement.groups)
    for (const std::string& model : group.models) {
      seats.push_back(seat_of(graph, model));
      seats.back().places = {group.devices.begin(), group.devices.end()};
      used.merge(std::set<int>(seats.back().places));
    }
  return form_of(seats, static_cast<int>(used.size()));
}

}  // namespace collimate::plan
