#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace collimate::graph {

// Which models with residency swap are on which workers. A move that has begun is not begun again, and on a worker
// none is loaded before all that have to leave it are away. Internal to schedule*.cpp.
class Swaps {
 public:
  struct Move {
    std::string model;
    int worker = 0;
    bool load = false;  // else an off-load
    bool operator==(const Move&) const = default;
  };

  // Whether, of the models `swapped` that take turns on the worker, those of `used` are there and no others. Where not,
  // appends the moves that have to begin now and counts them as begun.
  bool prepare(int worker, const std::vector<std::string>& swapped, const std::vector<std::string>& used,
               std::vector<Move>& moves);
  // A move is complete. One that has not begun is of a worker's earlier life, and counts no more.
  void moved(const std::string& model, int worker, bool there) {
    State& here = state(model, worker);
    if (here == (there ? State::kLoading : State::kOffloading)) here = there ? State::kPresent : State::kAbsent;
  }
  // All moves that have begun are complete.
  void settle();
  // Nothing is on the worker any more.
  void lost(int worker);

  friend void to_json(nlohmann::json& out, const Swaps& swaps) { out = swaps.states_; }
  friend void from_json(const nlohmann::json& in, Swaps& swaps) { in.get_to(swaps.states_); }

 private:
  enum class State { kAbsent, kLoading, kPresent, kOffloading };
  State& state(const std::string& model, int worker) { return states_[{model, worker}]; }

  std::map<std::pair<std::string, int>, State> states_;  // by model and worker; absent when missing
};

}  // namespace collimate::graph
