#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "collimate/base/fields.h"
#include "collimate/graph/device_memory.h"

namespace collimate::graph {

// Swaps says which models with residency swap are on which workers. A model stays until its room is wanted; then the
// least recently used models leave first. A load begins when everything that is there or still leaving, together with
// the model, is within the budget. Without a budget it begins when only models that are used together with it are
// there. A move that has begun is not begun again. Internal to schedule*.cpp.
class Swaps {
 public:
  struct Move {
    std::string model;
    int worker = 0;
    bool load = false;  // otherwise an off-load
    bool operator==(const Move&) const = default;
  };
  // A Room is a worker, the models that are always on it, and the models that take turns on it.
  struct Room {
    int worker = 0;
    const std::vector<std::string>& always;
    const std::vector<std::string>& swapped;
    const DeviceMemory& memory;
  };

  // Returns whether all models of `used` that take turns on the worker are there. If not, appends the moves that have
  // to begin now and counts them as begun.
  bool prepare(const Room& room, const std::vector<std::string>& used, std::vector<Move>& moves);
  // Completes a move. A move that has not begun belongs to an earlier life of the worker and is ignored.
  void moved(const std::string& model, int worker, bool there);
  // Completes all moves that have begun and returns the further ones, in order, after which the model alone is there,
  // on these workers. These count as complete.
  std::vector<Move> alone(const std::string& model, const std::vector<int>& workers);
  // Notes that nothing is on the worker any more.
  void lost(int worker);
  // Returns the bytes of what is on the worker, on its way there and on its way from there.
  int64_t bytes(const Room& room) const;

  COLLIMATE_MEMBERS(states, used, clock)

 private:
  enum class State { kAbsent, kLoading, kPresent, kOffloading };
  using Place = std::pair<std::string, int>;  // model and worker
  State& state(const std::string& model, int worker) { return states_[{model, worker}]; }
  void make_room(const Room& room, const std::vector<std::string>& used, std::vector<Move>& moves);
  void load(const Room& room, const std::vector<std::string>& used, std::vector<Move>& moves);

  std::map<Place, State> states_;  // a missing entry means kAbsent
  std::map<Place, int64_t> used_;  // time of the last use, by a clock that counts uses
  int64_t clock_ = 0;
};

}  // namespace collimate::graph
