#include "collimate/plan/layout/fixed.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>

#include "collimate/base/edit_distance.h"
#include "collimate/base/error.h"
#include "collimate/base/nearest_number.h"
#include "collimate/graph/whole_layout.h"

namespace collimate::plan {
namespace {

constexpr int kMostFixed = 1 << 20;  // largest value of any size
constexpr const char* kFixExample = "--fix policy.generate=tp:4,pp:2";

const std::vector<std::pair<std::string, int FixedLayout::*>>& fixed_sizes() {
  static const std::vector<std::pair<std::string, int FixedLayout::*>> kSizes = {
      {"tp", &FixedLayout::tp},
      {"pp", &FixedLayout::pp},
      {"virtual_stages", &FixedLayout::virtual_stages},
      {"ep", &FixedLayout::ep},
      {"dp", &FixedLayout::dp}};
  return kSizes;
}

// Visits each member that a word of --fix sets.
void each_member(const auto& visit) {
  for (const auto& [word, member] : fixed_sizes()) visit(member);
  visit(&FixedLayout::stages);
  visit(&FixedLayout::zero);
  visit(&FixedLayout::micro_batch);
  visit(&FixedLayout::recompute);
  visit(&FixedLayout::offload);
}

std::vector<std::string> fixed_words() {
  std::vector<std::string> words;
  for (const auto& [word, member] : fixed_sizes()) words.push_back(word);
  words.insert(words.end(), {"stages", "zero", "micro_batch", "recompute", "offload"});
  return words;
}

int fixed_number(const std::string& where, const std::string& word, const std::string& text, int least, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    throw base::InputError(
        base::expectation(where, fmt::format("{} from {} to {}", word, least, most), "'" + text + "'",
                          fmt::format("{}:{}", word, base::nearest_number(text, least, most, "1", true))));
  return value;
}

// Reads "5+7+6+6".
std::vector<int64_t> fixed_stages(const std::string& where, const std::string& text) {
  std::vector<int64_t> stages;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('+', begin), text.size());
    stages.push_back(fixed_number(where, "stages", text.substr(begin, end - begin), 1, kMostFixed));
    begin = end + 1;
  }
  return stages;
}

bool fixed_flag(const std::string& where, const std::string& word, const std::string& text) {
  const std::string meant = base::closest(text, {"true", "yes", "on", "1", "false", "no", "off", "0"});
  const bool no = meant == "false" || meant == "no" || meant == "off" || meant == "0";
  if (text != "true" && text != "false")
    throw base::InputError(base::expectation(where, word + ":true or " + word + ":false", "'" + text + "'",
                                             word + (no ? ":false" : ":true")));
  return text == "true";
}

void fix_word(FixedLayout& fixed, const std::string& where, const std::string& word, const std::string& value) {
  for (const auto& [size, member] : fixed_sizes())
    if (word == size) {
      fixed.*member = fixed_number(where, word, value, 1, kMostFixed);
      return;
    }
  if (word == "stages")
    fixed.stages = fixed_stages(where, value);
  else if (word == "zero")
    fixed.zero = fixed_number(where, word, value, 0, 3);
  else if (word == "micro_batch")
    fixed.micro_batch = fixed_number(where, word, value, 1, kMostFixed);
  else if (word == "recompute" || word == "offload")
    (word == "offload" ? fixed.offload : fixed.recompute) = fixed_flag(where, word, value);
  else if (word == "cp")
    throw base::InputError(base::expectation(where, fmt::format("one of {}", fmt::join(fixed_words(), ", ")),
                                             "cp, with which the planner finds no layouts", "leaving cp out"));
  else
    base::throw_unknown_choice(where, word, fixed_words());
}

// Returns the name of every call on devices, as "policy.generate", by node.
std::map<int, std::string> device_calls(const graph::Graph& graph) {
  std::map<int, std::string> names;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const graph::FunctionSpec* spec = graph.find_function(graph.nodes[i].model, graph.nodes[i].function);
    if (spec != nullptr && spec->kind != graph::Kind::kHost)
      names[static_cast<int>(i)] = graph.nodes[i].model + "." + graph.nodes[i].function;
  }
  return names;
}

FixedLayout parse_words(const std::string& where, const std::string& list) {
  FixedLayout fixed;
  std::set<std::string> seen;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string part = list.substr(begin, end - begin);
    const size_t colon = part.find(':');
    if (colon == std::string::npos)
      throw base::InputError(base::expectation(where, "WORD:VALUE,…", "'" + part + "'", kFixExample));
    const std::string word = part.substr(0, colon);
    fix_word(fixed, where, word, part.substr(colon + 1));
    if (!seen.insert(word).second)
      throw base::InputError(base::expectation(where, "each word once", "'" + word + "' twice", "one of them"));
    begin = end + 1;
  }
  if (!fixed.stages.empty() && fixed.pp == 0)
    fixed.pp = std::max(1, static_cast<int>(fixed.stages.size()) / std::max(fixed.virtual_stages, 1));
  return fixed;
}

// Returns the divisor of `whole` nearest to `wanted` and at most `limit`, the smaller one of two.
int nearest_divisor(int64_t whole, int wanted, int limit) {
  int best = 1;
  for (int size = 2; size <= limit; ++size)
    if (whole % size == 0 && std::abs(size - wanted) < std::abs(best - wanted)) best = size;
  return best;
}

// FixedCheck checks a function's fixed layout against the request, the function's kind, the model and the devices.
class FixedCheck {
 public:
  FixedCheck(const Request& request, int node, const std::string& name, const FixedLayout& fixed)
      : request_(request),
        fixed_(fixed),
        where_("--fix " + name),
        kind_(request.graph.spec(node).kind),
        model_(outline_of(request, request.graph.node(node).model)),
        devices_(request.cluster.devices()),
        tp_(std::max(fixed.tp, 1)),
        pp_(std::max(fixed.pp, 1)),
        ep_(std::max(fixed.ep, 1)) {}

  void run() const {
    check_whole();
    check_kind();
    check_model();
    check_experts();
    check_devices();
  }

 private:
  [[noreturn]] void fail(const std::string& expected, const std::string& got, const std::string& remedy) const {
    throw base::InputError(base::expectation(where_, expected, got, remedy));
  }

  void check_whole() const {
    const bool more = std::max({tp_, pp_, ep_}) > 1 || fixed_.zero > graph::kMostWholeZero || fixed_.micro_batch > 0 ||
                      fixed_.recompute.value_or(false) || fixed_.offload.value_or(false);
    if (request_.whole && more)
      fail("dp and zero up to 2, as every rank holds all of its model", fixed_text(fixed_), "--layouts any");
  }

  void check_kind() const {
    const bool trains = kind_ == graph::Kind::kTrain, generates = kind_ == graph::Kind::kGenerate;
    if (!trains && (fixed_.recompute.value_or(false) || fixed_.offload.value_or(false)))
      fail("recompute and offload of a function that trains", fixed_text(fixed_), "leaving them out");
    if (generates && fixed_.zero > 0)
      fail("zero 0 of a function that generates", fmt::format("zero {}", fixed_.zero), "zero:0");
    if (!trains && (fixed_.zero == 1 || fixed_.zero == 2))
      fail("zero 0 or 3 of a function that has no optimizer", fmt::format("zero {}", fixed_.zero),
           fixed_.zero == 1 ? "zero:0" : "zero:3");
    if (fixed_.zero > 0 && fixed_.dp == 1)
      fail("two copies or more that zero spreads state over", fixed_text(fixed_), "dp:2 or zero:0");
    if (static_cast<double>(fixed_.micro_batch) > request_.load.rows)
      fail(fmt::format("micro_batch of at most the {} rows of an iteration", request_.load.rows), fixed_text(fixed_),
           fmt::format("micro_batch:{}", request_.load.rows));
    if (!generates && fixed_.micro_batch > 0 && request_.micro_batch > 0 && fixed_.micro_batch != request_.micro_batch)
      fail(fmt::format("micro_batch as --micro-batch {}", request_.micro_batch), fixed_text(fixed_),
           fmt::format("micro_batch:{}", request_.micro_batch));
  }

  void check_model() const {
    if (tp_ > 1 && model_.norm_of_all)
      fail(fmt::format("tp 1 of {}, whose queries have one norm over all heads", model_.name),
           fmt::format("tp {}", tp_), "tp:1");
    if (model_.heads % tp_ != 0)
      fail(fmt::format("tp that divides the {} heads of {}", model_.heads, model_.name), fmt::format("tp {}", tp_),
           fmt::format("tp:{}", nearest_divisor(model_.heads, tp_, std::max(devices_ / pp_, 1))));
    if (pp_ > model_.layers)
      fail(fmt::format("pp of at most the {} layers of {}", model_.layers, model_.name), fmt::format("pp {}", pp_),
           fmt::format("pp:{}", std::clamp<int64_t>(devices_ / tp_, 1, model_.layers)));
    check_stages();
  }

  void check_stages() const {
    const int runs = std::max(fixed_.virtual_stages, 1);
    if (runs > 1 && pp_ == 1)
      fail("virtual_stages beside a pp above 1", fixed_text(fixed_), fmt::format("virtual_stages:{},pp:2", runs));
    if (runs > 1 && int64_t{pp_} * runs > model_.layers)
      fail(fmt::format("virtual_stages of at most the {} layers of {} by pp {}", model_.layers, model_.name, pp_),
           fixed_text(fixed_), fmt::format("virtual_stages:{}", model_.layers / pp_));
    if (fixed_.stages.empty()) return;
    const std::string got = fmt::format("stages:{}", fmt::join(fixed_.stages, "+"));
    if (std::ssize(fixed_.stages) != int64_t{pp_} * runs)
      fail(fmt::format("the layers of each of {} stages", pp_ * runs), got,
           runs > 1 ? "one number for each of them" : fmt::format("pp:{}", fixed_.stages.size()));
    const int64_t sum = std::accumulate(fixed_.stages.begin(), fixed_.stages.end(), int64_t{0});
    if (sum != model_.layers)
      fail(fmt::format("stages that are the {} layers of {} together", model_.layers, model_.name),
           fmt::format("{}, which are {}", got, sum), "other numbers of layers, or leaving stages out");
  }

  void check_experts() const {
    if (ep_ == 1) return;
    const int64_t count = model_.experts.count;
    if (count == 0)
      fail(fmt::format("ep 1, as {} has no experts", model_.name), fmt::format("ep {}", ep_), "leaving ep out");
    if (count % ep_ != 0)
      fail(fmt::format("ep that divides the {} experts of {}", count, model_.name), fmt::format("ep {}", ep_),
           fmt::format("ep:{}", nearest_divisor(count, ep_, std::max(devices_ / pp_, 1))));
    if (ep_ % tp_ != 0)
      fail(fmt::format("ep that is a multiple of tp {}", tp_), fmt::format("ep {}", ep_),
           count % tp_ == 0 ? fmt::format("ep:{}", tp_) : "tp:1");
  }

  void check_devices() const {
    const int64_t cut = static_cast<int64_t>(std::max(tp_, ep_)) * pp_;
    if (cut > devices_) {
      const int tp = nearest_divisor(model_.heads, tp_, devices_);
      const int pp = std::clamp(devices_ / std::max(tp, std::min(ep_, devices_)), 1, pp_);
      fail(fmt::format("ranks for at most {} devices", devices_), fmt::format("{} for {}", fixed_text(fixed_), cut),
           ep_ > devices_ ? fmt::format("ep:{}", nearest_divisor(model_.experts.count, ep_, devices_))
                          : fmt::format("tp:{},pp:{}", tp, pp));
    }
    const int64_t copy = static_cast<int64_t>(tp_) * pp_;
    if (copy * std::max(fixed_.dp, 1) > devices_)
      fail(fmt::format("ranks for at most {} devices", devices_),
           fmt::format("{} for {}", fixed_text(fixed_), copy * fixed_.dp), fmt::format("dp:{}", devices_ / copy));
  }

  const Request& request_;
  const FixedLayout& fixed_;
  std::string where_;
  graph::Kind kind_;
  const shape::Outline& model_;
  int devices_, tp_, pp_, ep_;
};

}  // namespace

void fix_layout(Request& request, const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos)
    throw base::InputError(base::expectation("--fix", "MODEL.FUNCTION=WORD:VALUE,…", "'" + text + "'", kFixExample));
  const std::string name = text.substr(0, equals);
  std::vector<std::string> known;
  for (const auto& [node, call] : device_calls(request.graph)) known.push_back(call);
  if (std::find(known.begin(), known.end(), name) == known.end()) base::throw_unknown_choice("--fix", name, known);
  if (!request.fixed.emplace(name, parse_words("--fix " + name, text.substr(equals + 1))).second)
    throw base::InputError(
        base::expectation("--fix", "each function once", "'" + name + "' twice", "one --fix with all its words"));
}

void check_fixed(const Request& request) {
  for (const auto& [node, name] : device_calls(request.graph))
    if (const auto found = request.fixed.find(name); found != request.fixed.end())
      FixedCheck(request, node, name, found->second).run();
}

const FixedLayout& fixed_of(const Request& request, const Functions& functions, size_t index) {
  static const FixedLayout kFree;
  if (request.fixed.empty() || functions.at(index).model < 0) return kFree;
  const graph::Node& node = request.graph.node(functions.at(index).node);
  const auto found = request.fixed.find(node.model + "." + node.function);
  return found == request.fixed.end() ? kFree : found->second;
}

std::string why_uncut(const FixedLayout& fixed, int devices) {
  const int64_t tp = std::max(fixed.tp, 1), pp = std::max(fixed.pp, 1), ep = std::max(fixed.ep, 1);
  for (const int64_t ranks : {tp * pp, ep * pp, tp * pp * std::max(fixed.dp, 1)})
    if (devices % ranks != 0)
      return fmt::format("{} as fixed, whose {} ranks do not divide them", fixed_text(fixed), ranks);
  return "";
}

bool keeps_to(const FixedLayout& fixed, const Execution& how, int devices) {
  const graph::Layout& l = how.layout;
  for (const auto& [wanted, size] :
       {std::pair(fixed.tp, l.tp), std::pair(fixed.pp, l.pp), std::pair(fixed.virtual_stages, l.virtual_stages),
        std::pair(fixed.ep, l.ep), std::pair(fixed.dp, l.dp)})
    if (wanted != 0 && wanted != size) return false;
  if (fixed.ep > 1 && (l.ep % l.tp != 0 || devices % (l.ep * l.pp) != 0)) return false;
  if (!fixed.stages.empty() && fixed.stages != l.stages) return false;
  return (fixed.zero < 0 || fixed.zero == l.zero) && fixed.recompute.value_or(l.recompute) == l.recompute &&
         fixed.offload.value_or(l.offload) == l.offload;
}

std::vector<FixedLayout> words_of(const FixedLayout& fixed) {
  std::vector<FixedLayout> words;
  const auto add = [&](auto FixedLayout::*member) {
    FixedLayout word;
    if (fixed.*member == word.*member) return;
    word.*member = fixed.*member;
    words.push_back(word);
  };
  each_member(add);
  return words;
}

void add_word(FixedLayout& fixed, const FixedLayout& word) {
  each_member([&](auto FixedLayout::*member) {
    if (word.*member != FixedLayout().*member) fixed.*member = word.*member;
  });
}

std::string fixed_text(const FixedLayout& fixed) {
  Execution how;
  how.layout.tp = fixed.tp;
  how.layout.pp = fixed.pp;
  how.layout.virtual_stages = fixed.virtual_stages;
  how.layout.ep = fixed.ep;
  how.layout.dp = fixed.dp;
  how.layout.stages = fixed.stages;
  how.layout.zero = fixed.zero;
  how.layout.micro_batch = fixed.micro_batch;
  how.layout.recompute = fixed.recompute.value_or(false);
  how.layout.offload = fixed.offload.value_or(false);
  return fixed_text(fixed, how);
}

std::string fixed_text(const FixedLayout& fixed, const Execution& how) {
  const graph::Layout& l = how.layout;
  std::vector<std::string> words;
  const auto add = [&](bool said, const char* word, auto value) {
    if (said) words.push_back(fmt::format("{}:{}", word, value));
  };
  add(fixed.tp > 0, "tp", l.tp);
  add(fixed.pp > 0, "pp", l.pp);
  add(fixed.virtual_stages > 0, "virtual_stages", l.virtual_stages);
  if (!fixed.stages.empty()) words.push_back(fmt::format("stages:{}", fmt::join(l.stages, "+")));
  add(fixed.ep > 0, "ep", l.ep);
  add(fixed.dp > 0, "dp", l.dp);
  add(fixed.zero >= 0, "zero", l.zero);
  const auto rows = static_cast<int64_t>(how.decoding_rows);
  add(fixed.micro_batch > 0, "micro_batch", rows > 0 ? rows : l.micro_batch);
  add(fixed.recompute.has_value(), "recompute", l.recompute);
  add(fixed.offload.has_value(), "offload", l.offload);
  return fmt::format("{}", fmt::join(words, ","));
}

}  // namespace collimate::plan
