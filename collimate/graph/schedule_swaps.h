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

// Which models with residency swap are on which workers. One stays until the room that it takes is wanted: then those
// go first that were not used for longest. A load begins when all that is there, and all that still has to leave,
// leaves room for it within the budget; where there is none, when the models beside which it is used are the only ones.
// A move that has begun is not begun again. Internal to schedule*.cpp.
class Swaps {
 public:
  struct Move {
    std::string model;
    int worker = 0;
    bool load = false;  // else an off-load
    bool operator==(const Move&) const = default;
  };
  // A worker, what is there anyway, and what takes turns on it.
  struct Room {
    int worker = 0;
    const std::vector<std::string>& always;
    const std::vector<std::string>& swapped;
    const DeviceMemory& memory;
  };

  // Whether, of the models that take turns on the worker, those of `used` are there. Where not, appends the moves that
  // have to begin now and counts them as begun.
  bool prepare(const Room& room, const std::vector<std::string>& used, std::vector<Move>& moves);
  // A move is complete. One that has not begun is of a worker's earlier life, and counts no more.
  void moved(const std::string& model, int worker, bool there);
  // All moves that have begun are complete. The further ones, in their order, after which the model alone is there, on
  // these workers; they count as complete.
  std::vector<Move> alone(const std::string& model, const std::vector<int>& workers);
  // Nothing is on the worker any more.
  void lost(int worker);
  // Bytes of what is on the worker, on its way there and on its way from there.
  int64_t bytes(const Room& room) const;

  COLLIMATE_MEMBERS(states, used, clock)

 private:
  enum class State { kAbsent, kLoading, kPresent, kOffloading };
  using Place = std::pair<std::string, int>;  // model and worker
  State& state(const std::string& model, int worker) { return states_[{model, worker}]; }
  void make_room(const Room& room, const std::vector<std::string>& used, std::vector<Move>& moves);
  void load(const Room& room, const std::vector<std::string>& used, std::vector<Move>& moves);

  std::map<Place, State> states_;  // absent when missing
  std::map<Place, int64_t> used_;  // when it was used, by a clock that counts uses
  int64_t clock_ = 0;
};

}  // namespace collimate::graph
