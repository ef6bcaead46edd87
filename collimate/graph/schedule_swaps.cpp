#include "collimate/graph/schedule_swaps.h"

#include <algorithm>

namespace collimate::graph {

bool Swaps::prepare(int worker, const std::vector<std::string>& swapped, const std::vector<std::string>& used,
                    std::vector<Move>& moves) {
  const auto wanted = [&](const std::string& model) {
    return std::find(used.begin(), used.end(), model) != used.end();
  };
  bool room = true, all = true;
  for (const std::string& model : swapped) {
    if (wanted(model)) continue;
    State& here = state(model, worker);
    if (here == State::kPresent) {
      here = State::kOffloading;
      moves.push_back({model, worker, false});
    }
    room = room && here == State::kAbsent;
  }
  for (const std::string& model : swapped) {
    if (!wanted(model)) continue;
    State& here = state(model, worker);
    if (room && here == State::kAbsent) {
      here = State::kLoading;
      moves.push_back({model, worker, true});
    }
    all = all && here == State::kPresent;
  }
  return room && all;
}

void Swaps::settle() {
  for (auto& [place, state] : states_) {
    if (state == State::kLoading) state = State::kPresent;
    if (state == State::kOffloading) state = State::kAbsent;
  }
}

void Swaps::lost(int worker) {
  for (auto& [place, state] : states_)
    if (place.second == worker) state = State::kAbsent;
}

}  // namespace collimate::graph
