#include "collimate/graph/schedule_swaps.h"

#include <algorithm>

#include "collimate/base/contains.h"

namespace collimate::graph {
namespace {

// Says whether the models that take turns may be there together, beside those that are always there.
bool fits(const Swaps::Room& room, std::vector<std::string> together, const std::vector<std::string>& used) {
  if (room.memory.budget_bytes == 0)
    return std::all_of(together.begin(), together.end(),
                       [&](const std::string& model) { return base::contains(used, model); });
  together.insert(together.end(), room.always.begin(), room.always.end());
  return room.memory.bytes(room.worker, together) <= room.memory.budget_bytes;
}

}  // namespace

// Off-loads models, the least recently used first, until what stays leaves room for all that is used.
void Swaps::make_room(const Room& room, const std::vector<std::string>& used, std::vector<Move>& moves) {
  std::vector<std::string> stay, idle;
  for (const std::string& model : room.swapped) {
    const State here = state(model, room.worker);
    if (base::contains(used, model) || here == State::kLoading || here == State::kPresent) stay.push_back(model);
    if (!base::contains(used, model) && here == State::kPresent) idle.push_back(model);
  }
  std::stable_sort(idle.begin(), idle.end(), [&](const std::string& a, const std::string& b) {
    return used_[{a, room.worker}] < used_[{b, room.worker}];
  });
  for (const std::string& model : idle) {
    if (fits(room, stay, used)) return;
    state(model, room.worker) = State::kOffloading;
    moves.push_back({model, room.worker, false});
    std::erase(stay, model);
  }
}

void Swaps::load(const Room& room, const std::vector<std::string>& used, std::vector<Move>& moves) {
  std::vector<std::string> held;
  for (const std::string& model : room.swapped)
    if (state(model, room.worker) != State::kAbsent) held.push_back(model);
  for (const std::string& model : room.swapped) {
    State& here = state(model, room.worker);
    if (!base::contains(used, model) || here != State::kAbsent) continue;
    held.push_back(model);
    if (!fits(room, held, used)) return;
    here = State::kLoading;
    moves.push_back({model, room.worker, true});
  }
}

bool Swaps::prepare(const Room& room, const std::vector<std::string>& used, std::vector<Move>& moves) {
  make_room(room, used, moves);
  load(room, used, moves);
  std::vector<std::string> held;
  bool there = true;
  for (const std::string& model : room.swapped) {
    const State here = state(model, room.worker);
    if (here != State::kAbsent) held.push_back(model);
    there = there && (here == State::kPresent || !base::contains(used, model));
  }
  if (!there || !fits(room, held, used)) return false;
  ++clock_;
  for (const std::string& model : held)
    if (base::contains(used, model)) used_[{model, room.worker}] = clock_;
  return true;
}

void Swaps::moved(const std::string& model, int worker, bool there) {
  State& here = state(model, worker);
  if (here == (there ? State::kLoading : State::kOffloading)) here = there ? State::kPresent : State::kAbsent;
}

std::vector<Swaps::Move> Swaps::alone(const std::string& model, const std::vector<int>& workers) {
  std::vector<Move> moves;
  for (auto& [place, state] : states_) {
    const bool there = state == State::kLoading || state == State::kPresent;
    if (there && place.first != model) moves.push_back({place.first, place.second, false});
    state = there && place.first == model ? State::kPresent : State::kAbsent;
  }
  for (const int worker : workers)
    if (std::exchange(state(model, worker), State::kPresent) == State::kAbsent) moves.push_back({model, worker, true});
  return moves;
}

void Swaps::lost(int worker) {
  for (auto& [place, state] : states_)
    if (place.second == worker) state = State::kAbsent;
}

int64_t Swaps::bytes(const Room& room) const {
  std::vector<std::string> held = room.always;
  for (const auto& [place, state] : states_)
    if (place.second == room.worker && state != State::kAbsent) held.push_back(place.first);
  return room.memory.bytes(room.worker, held);
}

}  // namespace collimate::graph
