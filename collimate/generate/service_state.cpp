#include <cstddef>
#include <set>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/generate/service_impl.h"

// A Service is saved as one JSON entry with the requests, and one entry of raw bytes per kind of array, in which the
// requests' arrays follow each other.
namespace collimate::generate {
namespace {

template <class T>
struct Array {
  const char* name;
  std::vector<T> values = {};
  size_t next = 0;  // index of the first value that no sequence has taken
};

struct Arrays {
  Array<int32_t> ids{"service.ids"};
  Array<float> log_probs{"service.log_probs"};
  Array<int64_t> versions{"service.versions"};
  Array<TokenLogProb> top_log_probs{"service.top_log_probs"};
  Array<int16_t> routed_experts{"service.routed_experts"};

  // Calls `visit` for each kind of array with the saved array, the sequence's own, and how many of its values are
  // saved.
  void each(auto& sequence, int64_t length, int64_t routed, auto&& visit) {
    const int64_t completion = length - sequence.prompt_tokens;
    visit(ids, sequence.ids, length);
    visit(log_probs, sequence.log_probs, completion);
    visit(versions, sequence.versions, completion);
    visit(top_log_probs, sequence.top_log_probs, completion * sequence.params.top_log_probs);
    visit(routed_experts, sequence.routed_experts, routed);
  }
  void each(auto&& visit) {
    const Sequence none;
    each(none, 0, 0, [&](auto& array, auto&, int64_t) { visit(array); });
  }
};

// Appends the sequence's arrays to `arrays`, and returns the rest of the sequence as JSON.
nlohmann::json take_apart(const Sequence& sequence, Arrays& arrays) {
  const int64_t length = sequence.length();
  // The routed experts of a sequence that has not ended are recomputed.
  const int64_t routed = sequence.finish == Finish::kRunning ? 0 : std::ssize(sequence.routed_experts);
  arrays.each(sequence, length, routed, [](auto& array, const auto& values, int64_t count) {
    array.values.insert(array.values.end(), values.begin(), values.begin() + count);
  });
  nlohmann::json out = sequence;
  out.update({{"length", length}, {"routed", routed}});
  return out;
}

// Fills the sequence from the JSON that take_apart returned and from the next values of the arrays. Throws RunError if
// an array has too few.
void put_together(const nlohmann::json& json, Arrays& arrays, Sequence& sequence) {
  json.get_to(sequence);
  arrays.each(sequence, json.at("length"), json.at("routed"), [](auto& array, auto& values, int64_t count) {
    if (count < 0 || array.next + count > array.values.size())
      throw base::RunError(base::expectation("generate.load", fmt::format("{} more values", count),
                                             fmt::to_string(array.values.size() - array.next)));
    values.assign(array.values.begin() + array.next, array.values.begin() + array.next + count);
    array.next += count;
  });
}

}  // namespace

void Service::save(base::StateWriter& out) const {
  const Impl& s = *impl_;
  nlohmann::json requests = nlohmann::json::array(), changed = nlohmann::json::array();
  Arrays arrays;
  const auto add = [&](const Sequence& sequence) {
    requests.push_back(take_apart(sequence, arrays));
    if (sequence.ends_at != kNever) requests.back()["seconds_left"] = sequence.ends_at - s.options.now_seconds();
  };
  for (const Sequence* sequence : s.changed) {
    changed.push_back(sequence->uid);
    if (sequence->finish != Finish::kRunning) add(*sequence);
  }
  for (const Sequence* sequence : s.queues.running) add(*sequence);
  for (const Sequence* sequence : s.queues.waiting) add(*sequence);
  out.json("service.requests", {{"requests", requests},
                                {"changed", changed},
                                {"paused", s.paused},
                                {"version", s.version},
                                {"seed", s.options.seed},
                                {"stats", s.stats}});
  arrays.each([&](auto& array) { out.bytes(array.name, std::as_bytes(std::span(array.values))); });
}

void Service::load(base::StateReader& in) {
  Impl& s = *impl_;
  const nlohmann::json json = in.json("service.requests");
  const uint64_t seed = json.at("seed");
  if (seed != s.options.seed) {
    throw base::InputError(base::expectation("generate.load", fmt::format("a service with seed {}", seed),
                                             fmt::to_string(s.options.seed)));
  }
  std::vector<std::unique_ptr<Sequence>> loaded;  // all are checked before any takes a place
  Arrays arrays;
  arrays.each([&](auto& array) {
    array.values.resize(in.bytes_size(array.name) / sizeof(array.values[0]));
    in.bytes(array.name, std::as_writable_bytes(std::span(array.values)));
  });
  std::set<int64_t> uids;
  for (const auto& request : json.at("requests")) {
    Sequence& sequence = *loaded.emplace_back(s.make_sequence());
    put_together(request, arrays, sequence);
    if (!uids.insert(sequence.uid).second)
      throw base::InputError(
          base::expectation("generate.load", "each request once", fmt::format("uid {} twice", sequence.uid)));
    s.check_request(sequence, "generate.load");
    sequence.history.constraint = s.forms.make(sequence.params, "generate.load");
  }
  s.clear();
  for (auto next = loaded.begin(); const auto& request : json.at("requests")) {
    Sequence& sequence = **next;
    s.enqueue(std::move(*next++));
    if (sequence.finish != Finish::kRunning) s.queues.waiting.pop_back();
    if (request.contains("seconds_left")) s.limit_time(sequence, request.at("seconds_left"));
  }
  for (const int64_t uid : json.at("changed")) s.note_change(*s.in_flight.at(uid));
  s.paused = json.at("paused");
  s.version = json.at("version");
  s.weights_version = s.model.weights().version();
  json.at("stats").get_to(s.stats);
}

}  // namespace collimate::generate
