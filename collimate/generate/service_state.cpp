#include <algorithm>
#include <cstddef>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

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

constexpr const char* kLoad = "generate.load";

[[noreturn]] void refuse_state(const std::string& expected, const std::string& got,
                               const std::string& remedy = "another checkpoint, as this one is damaged") {
  throw base::InputError(base::expectation(kLoad, expected, got, remedy));
}

// Throws InputError for a number with a fraction, which none of an object's own numbers has in a saved service, save
// seconds.
void require_whole_numbers(const nlohmann::json& object) {
  for (const auto& [name, value] : object.items())
    if (value.is_number_float() && name != "seconds_left") refuse_state("a whole number as " + name, value.dump());
}

// Fills the sequence from the JSON that take_apart returned and from the next values of the arrays. Throws InputError
// if an array has too few, or if a number points outside of the sequence.
void put_together(const nlohmann::json& json, Arrays& arrays, Sequence& sequence) {
  require_whole_numbers(json);
  json.get_to(sequence);
  const int64_t length = json.at("length"), prompt = sequence.prompt_tokens, emitted = sequence.emitted;
  if (prompt < 1 || prompt > length)
    refuse_state("a prompt of at least 1 token, at most the whole", fmt::format("{} of {} tokens", prompt, length));
  if (emitted < 0 || emitted > length - prompt)
    refuse_state(fmt::format("0 to {} tokens taken", length - prompt), fmt::to_string(emitted));
  if (sequence.finish < Finish::kRunning || sequence.finish > Finish::kError)
    refuse_state("a reason to end", fmt::to_string(static_cast<int32_t>(sequence.finish)));
  arrays.each(sequence, length, json.at("routed"), [](auto& array, auto& values, int64_t count) {
    const auto left = static_cast<int64_t>(array.values.size() - array.next);
    if (count < 0 || count > left)
      refuse_state(fmt::format("{} more values of {}", count, array.name), fmt::to_string(left));
    const auto first = array.values.begin() + static_cast<int64_t>(array.next);
    values.assign(first, first + count);
    array.next += count;
  });
}

// Throws InputError if the sequence has more tokens than its request and a service of `longest` tokens allow; one that
// runs has room for another.
void check_length(const Sequence& sequence, int64_t longest) {
  const int64_t drawn = std::min(longest - sequence.prompt_tokens, sequence.params.max_tokens);
  const int64_t most = sequence.prompt_tokens + drawn - (sequence.finish == Finish::kRunning ? 1 : 0);
  if (sequence.length() > most)
    refuse_state(fmt::format("at most {} tokens in request {}", most, sequence.uid), fmt::to_string(sequence.length()),
                 "max_sequence_tokens as it was, or another checkpoint");
}

// Throws InputError unless the uids of `changed` are those of loaded requests, and include all that have ended: these
// are kept only until they are taken.
void check_changed(std::span<const int64_t> changed, std::span<const std::unique_ptr<Sequence>> loaded) {
  std::set<int64_t> untaken(changed.begin(), changed.end());
  for (const auto& sequence : loaded)
    if (untaken.erase(sequence->uid) == 0 && sequence->finish != Finish::kRunning)
      refuse_state("news of each request that has ended", fmt::format("none of uid {}", sequence->uid));
  if (!untaken.empty()) refuse_state("news of the requests alone", fmt::format("some of uid {}", *untaken.begin()));
}

// A saved service, as it was read and checked.
struct SavedService {
  std::vector<std::unique_ptr<Sequence>> sequences;
  std::vector<double> seconds_left;  // of each sequence; kNever: as long as it takes
  std::vector<int64_t> changed;
  bool paused = false;
  uint64_t version = 0;
  ServiceCounts stats;
};

// Reads what was saved into sequences of `service`, a Service::Impl, which is as before if an error is thrown.
SavedService read_saved(auto& service, const nlohmann::json& json, base::StateReader& in) {
  require_whole_numbers(json);
  const uint64_t seed = json.at("seed");
  if (seed != service.options.seed)
    throw base::InputError(
        base::expectation(kLoad, fmt::format("a service with seed {}", seed), fmt::to_string(service.options.seed)));
  Arrays arrays;
  arrays.each([&](auto& array) {
    array.values.resize(in.bytes_size(array.name) / sizeof(array.values[0]));
    in.bytes(array.name, std::as_writable_bytes(std::span(array.values)));
  });
  SavedService saved;
  std::set<int64_t> uids;
  for (const auto& request : json.at("requests")) {
    Sequence& sequence = *saved.sequences.emplace_back(service.make_sequence());
    put_together(request, arrays, sequence);
    if (!uids.insert(sequence.uid).second) refuse_state("each request once", fmt::format("uid {} twice", sequence.uid));
    service.check_request(sequence, kLoad);
    check_length(sequence, service.options.max_sequence_tokens);
    sequence.history.constraint = service.forms.make(sequence.params, kLoad);
    saved.seconds_left.push_back(request.value("seconds_left", kNever));
  }
  json.at("changed").get_to(saved.changed);
  check_changed(saved.changed, saved.sequences);
  json.at("paused").get_to(saved.paused);
  json.at("version").get_to(saved.version);
  require_whole_numbers(json.at("stats"));
  json.at("stats").get_to(saved.stats);
  return saved;
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
  SavedService saved;
  try {
    saved = read_saved(s, json, in);
  } catch (const nlohmann::json::exception& error) {
    refuse_state("what a service saves", error.what());
  }
  s.clear();
  for (size_t i = 0; i < saved.sequences.size(); ++i) {
    Sequence& sequence = *saved.sequences[i];
    s.enqueue(std::move(saved.sequences[i]));
    if (sequence.finish != Finish::kRunning) s.queues.waiting.pop_back();
    if (saved.seconds_left[i] != kNever) s.limit_time(sequence, saved.seconds_left[i]);
  }
  for (const int64_t uid : saved.changed) s.note_change(*s.in_flight.at(uid));
  s.paused = saved.paused;
  s.version = saved.version;
  s.weights_version = s.model.weights().version();
  s.stats = saved.stats;
}

}  // namespace collimate::generate
