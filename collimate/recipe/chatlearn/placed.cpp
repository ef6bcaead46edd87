#include "collimate/recipe/chatlearn/placed.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "collimate/base/error.h"

namespace collimate::recipe::chatlearn {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kMostDevices = 65536;

struct Layout {
  int64_t tp = 1, pp = 1, ep = 1, cp = 1;
  bool shards = false;   // DeepSpeed's or FSDP's groups share all weights
  bool swaps = false;    // leaves its devices while another model works
  bool ulysses = false;  // cp exchanges tokens for heads
  bool operator==(const Layout&) const = default;
};

// Holds a model of ours on its devices.
struct Seat {
  std::string model;  // ours
  const Model* made_of = nullptr;
  int64_t count = 0;
  bool trains = false;
  std::vector<int64_t> devices;
  Layout layout;
};

Layout layout_of(const Model& model) {
  Layout layout{model.number({"tensor_model_parallel_size"}, 1), model.number({"pipeline_model_parallel_size"}, 1),
                model.number({"expert_model_parallel_size"}, 1),
                model.number({"context_parallel_size", "sp_size", "ulysses_sequence_parallel_size"}, 1)};
  layout.ulysses = layout.cp > 1 && model.number({"context_parallel_size", "sp_size"}, 0, 0) == 0;
  layout.shards = model.number({"zero_size", "fsdp_size"}, 1, -1) != 1;
  layout.swaps = model.is_true("free_memory") || model.is_true("force_free_memory") ||
                 model.is_true("offload_weights") || model.is_true("free_gpu_memory.offload_weights");
  return layout;
}

// Returns the names of one entry: "a,b", or a list of names.
std::vector<std::string> names_in(const base::ConfigNode& entry) {
  if (entry.kind == base::ConfigNode::Kind::kMap)
    throw base::InputError(base::expectation(entry.where, "colocation to be a list of \"a,b\"", entry.description()));
  std::string text = entry.text;
  for (const base::ConfigNode& each : entry.children) text += each.text + ",";
  std::erase(text, ' ');
  return parts(text, ',');
}

// Returns the names of models in each group. A list of single names is one group, as in the templates of the main
// branch.
std::vector<std::vector<std::string>> colocated(const Source& source) {
  std::vector<std::vector<std::string>> groups;
  const base::ConfigNode* node = source.find("colocation");
  if (node == nullptr || node->kind == base::ConfigNode::Kind::kNull) return groups;
  if (node->kind == base::ConfigNode::Kind::kList) {
    for (const base::ConfigNode& each : node->children) groups.push_back(names_in(each));
    if (std::ranges::all_of(groups, [](const auto& group) { return group.size() < 2; })) groups = {names_in(*node)};
  } else {
    groups.push_back(names_in(*node));
  }
  std::set<std::string> seen;
  for (const std::vector<std::string>& group : groups)
    for (const std::string& name : group) {
      const bool known = std::ranges::find(source.models, name, &Model::name) != source.models.end();
      if (!known || !seen.insert(name).second)
        throw base::InputError(base::expectation(node->where, "colocation to name models, each in one group",
                                                 fmt::format("\"{}\"{}", name, known ? " twice" : "")));
    }
  return groups;
}

// Gives the seats of one group their devices from `first` on, and returns how many the group has: its largest model is
// on all of them; smaller ones fill what others leave, the tightest room first.
int64_t seat_group(std::vector<Seat*> seats, int64_t first) {
  std::ranges::stable_sort(seats, [](const Seat* a, const Seat* b) {
    return std::pair(a->trains, a->count) > std::pair(b->trains, b->count);
  });
  int64_t devices = 0;
  for (const Seat* seat : seats) devices = std::max(devices, seat->count);
  std::vector<int64_t> used;  // devices of each row of models side by side
  for (Seat* seat : seats) {
    int64_t* best = nullptr;
    for (int64_t& row : used)
      if (row + seat->count <= devices && (best == nullptr || row > *best)) best = &row;
    if (best == nullptr) best = &used.emplace_back(0);
    seat->devices.resize(static_cast<size_t>(seat->count));
    std::iota(seat->devices.begin(), seat->devices.end(), first + *best);
    *best += seat->count;
  }
  return devices;
}

// Places all seats and returns how many devices there are. Seats that are made of one model are on the same devices.
int64_t seat_all(const Source& source, std::vector<Seat>& seats) {
  int64_t next = 0;
  std::vector<Seat*> alone;
  std::map<const Model*, Seat*> first;
  for (Seat& seat : seats)
    if (first.emplace(seat.made_of, &seat).second) alone.push_back(&seat);
  for (const std::vector<std::string>& group : colocated(source)) {
    std::vector<Seat*> members;
    std::erase_if(alone, [&](Seat* seat) {
      const bool member = std::ranges::find(group, seat->made_of->name) != group.end();
      if (member) members.push_back(seat);
      return member;
    });
    if (!members.empty()) next += seat_group(members, next);
  }
  for (Seat* seat : alone) next += seat_group({seat}, next);
  for (Seat& seat : seats) seat.devices = first.at(seat.made_of)->devices;
  return next;
}

void require_divisor(const Seat& seat) {
  const int64_t one = seat.layout.tp * seat.layout.pp * seat.layout.cp;
  if (seat.count % one == 0) return;
  const base::ConfigNode* gpus = seat.made_of->find("num_gpu");
  throw base::InputError(
      base::expectation(gpus == nullptr ? "models." + seat.made_of->name : gpus->where,
                        fmt::format("a multiple of the {} devices of one copy of {}", one, seat.made_of->name),
                        std::to_string(seat.count)));
}

ordered_json words_of(const Layout& layout, bool with_zero) {
  ordered_json words = ordered_json::object();
  if (layout.tp != 1) words["tp"] = layout.tp;
  if (layout.pp != 1) words["pp"] = layout.pp;
  if (layout.cp != 1) words["cp"] = layout.cp;
  if (layout.ulysses) words["cp_kind"] = "ulysses";
  if (layout.ep != 1) words["ep"] = layout.ep;
  if (layout.shards && with_zero) words["zero"] = 3;
  return words;
}

const std::vector<std::string>& functions_of(const std::string& model, bool trains_alone) {
  static const std::map<std::string, std::vector<std::string>> kFunctions = {{"policy", {"generate"}},
                                                                             {"policy_trainer", {"train"}},
                                                                             {"reference", {"log_probs"}},
                                                                             {"value", {"values", "train"}},
                                                                             {"reward", {"score"}}};
  static const std::vector<std::string> kTrains = {"train"};
  return trains_alone && model == "policy" ? kTrains : kFunctions.at(model);
}

ordered_json groups_of(const std::vector<Seat>& seats, int64_t devices) {
  ordered_json placement = {{"version", 1}, {"devices", {{"count", devices}, {"kind", "cpu"}}}};
  std::map<std::vector<int64_t>, std::string> names;  // devices → their group
  const bool trains_alone =
      std::ranges::none_of(seats, [](const Seat& seat) { return seat.model == "policy_trainer"; });
  for (const Seat& seat : seats) {
    const std::string& group = names.emplace(seat.devices, seat.model).first->second;
    placement["groups"][group]["devices"] = seat.devices;
    placement["groups"][group]["models"].push_back(seat.model);
    for (const std::string& function : functions_of(seat.model, trains_alone)) {
      ordered_json words = words_of(seat.layout, true);
      if (!words.empty()) placement["layouts"][seat.model][function] = std::move(words);
    }
    if (seat.layout.swaps) placement["residency"][seat.model] = "swap";
  }
  return placement;
}

}  // namespace

ordered_json placed(const Source& source, const std::vector<std::pair<std::string, const Model*>>& models) {
  std::vector<Seat> seats;
  for (const auto& [name, model] : models)
    if (const int64_t count = model->number({"num_gpu", "num_device"}, 0, 0); count > 0) {
      if (count > kMostDevices)
        throw base::InputError(base::expectation(
            "models." + model->name, fmt::format("at most {} devices", kMostDevices), std::to_string(count)));
      const bool trains = model->role == Role::kPolicyTrainer || model->role == Role::kValueTrainer;
      seats.push_back({name, model, count, trains, {}, layout_of(*model)});
      require_divisor(seats.back());
    }
  ordered_json keys = ordered_json::object();
  if (seats.empty()) return keys;
  const int64_t devices = seat_all(source, seats);
  const Layout& first = seats.front().layout;
  const bool alike = !first.swaps && std::ranges::all_of(seats, [&](const Seat& seat) {
    return seat.layout == first && seat.count == devices;
  });
  if (!alike) {
    keys["placement"] = groups_of(seats, devices);
    return keys;
  }
  keys["devices"] = devices;
  keys.update(words_of(first, devices > 1));
  return keys;
}

}  // namespace collimate::recipe::chatlearn
