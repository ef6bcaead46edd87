#include <cstddef>
#include <cstring>
#include <functional>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/generate/service_impl.h"

// Save and load of a Service: one JSON entry with the requests, and one entry of raw bytes per kind of array, in which
// the requests' arrays follow each other.
namespace collimate::generate {
namespace {

nlohmann::json describe(const Sequence& sequence, const std::function<double()>& now_seconds) {
  nlohmann::json out = {{"uid", sequence.uid},
                        {"prompt_uid", sequence.prompt_uid},
                        {"sampling", sequence.params.to_json()},
                        {"prompt_tokens", sequence.prompt_tokens},
                        {"length", sequence.length()},
                        {"emitted", sequence.emitted},
                        {"routed", sequence.finish == Finish::kRunning ? 0 : sequence.routed_experts.size()},
                        {"finish", static_cast<int32_t>(sequence.finish)}};
  if (sequence.ends_at != kNever) out["seconds_left"] = sequence.ends_at - now_seconds();
  return out;
}

template <class T>
void write(base::StateWriter& out, const std::string& name, const std::vector<T>& values) {
  out.bytes(name, std::as_bytes(std::span(values)));
}

template <class T>
std::vector<T> read(base::StateReader& in, const std::string& name) {
  std::vector<T> values(in.bytes_size(name) / sizeof(T));
  in.bytes(name, std::as_writable_bytes(std::span(values)));
  return values;
}

// Cuts the requests' arrays out of the joined ones.
class Cutter {
 public:
  explicit Cutter(base::StateReader& in)
      : ids_(read<int32_t>(in, "service.ids")),
        log_probs_(read<float>(in, "service.log_probs")),
        versions_(read<int64_t>(in, "service.versions")),
        top_log_probs_(read<TokenLogProb>(in, "service.top_log_probs")),
        routed_experts_(read<int16_t>(in, "service.routed_experts")) {}

  void fill(const nlohmann::json& json, Sequence& sequence) {
    sequence.uid = json.at("uid");
    sequence.prompt_uid = json.at("prompt_uid");
    sequence.params = SamplingParams::from_json(json.at("sampling"));
    sequence.prompt_tokens = json.at("prompt_tokens");
    sequence.emitted = json.at("emitted");
    sequence.finish = static_cast<Finish>(json.at("finish").get<int32_t>());
    const int64_t length = json.at("length");
    cut(ids_, next_id_, length, sequence.ids);
    size_t place = next_completion_;
    cut(log_probs_, place, length - sequence.prompt_tokens, sequence.log_probs);
    cut(top_log_probs_, next_top_, (length - sequence.prompt_tokens) * sequence.params.top_log_probs,
        sequence.top_log_probs);
    cut(versions_, next_completion_, length - sequence.prompt_tokens, sequence.versions);
    cut(routed_experts_, next_routed_, json.at("routed"), sequence.routed_experts);
  }

 private:
  template <class T>
  static void cut(const std::vector<T>& from, size_t& place, int64_t count, std::vector<T>& to) {
    if (count < 0 || place + count > from.size()) {
      throw base::RunError(base::expectation("generate.load", fmt::format("{} more values", count),
                                             fmt::to_string(from.size() - place)));
    }
    to.assign(from.begin() + place, from.begin() + place + count);
    place += count;
  }

  std::vector<int32_t> ids_;
  std::vector<float> log_probs_;
  std::vector<int64_t> versions_;
  std::vector<TokenLogProb> top_log_probs_;
  std::vector<int16_t> routed_experts_;
  size_t next_id_ = 0;
  size_t next_completion_ = 0;
  size_t next_top_ = 0;
  size_t next_routed_ = 0;
};

}  // namespace

void Service::save(base::StateWriter& out) const {
  const Impl& s = *impl_;
  nlohmann::json requests = nlohmann::json::array(), changed = nlohmann::json::array();
  std::vector<int32_t> ids;
  std::vector<float> log_probs;
  std::vector<int64_t> versions;
  std::vector<TokenLogProb> top_log_probs;
  model::RoutedExperts routed_experts;  // of those that ended: the others' are recomputed
  const auto add = [&](const Sequence& sequence) {
    requests.push_back(describe(sequence, s.options.now_seconds));
    ids.insert(ids.end(), sequence.ids.begin(), sequence.ids.end());
    log_probs.insert(log_probs.end(), sequence.log_probs.begin(), sequence.log_probs.end());
    versions.insert(versions.end(), sequence.versions.begin(), sequence.versions.end());
    top_log_probs.insert(top_log_probs.end(), sequence.top_log_probs.begin(), sequence.top_log_probs.end());
    if (sequence.finish == Finish::kRunning) return;
    routed_experts.insert(routed_experts.end(), sequence.routed_experts.begin(), sequence.routed_experts.end());
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
  write(out, "service.ids", ids);
  write(out, "service.log_probs", log_probs);
  write(out, "service.versions", versions);
  write(out, "service.top_log_probs", top_log_probs);
  write(out, "service.routed_experts", routed_experts);
}

void Service::load(base::StateReader& in) {
  Impl& s = *impl_;
  const nlohmann::json json = in.json("service.requests");
  const uint64_t seed = json.at("seed");
  if (seed != s.options.seed) {
    throw base::InputError(base::expectation("generate.load", fmt::format("a service with seed {}", seed),
                                             fmt::to_string(s.options.seed)));
  }
  s.clear();
  Cutter cutter(in);
  for (const auto& request : json.at("requests")) {
    auto sequence = s.make_sequence();
    cutter.fill(request, *sequence);
    s.check_request(*sequence, "generate.load");
    sequence->history.constraint = s.forms.make(sequence->params, "generate.load");
    const bool runs = sequence->finish == Finish::kRunning;
    Sequence& loaded = *sequence;
    s.enqueue(std::move(sequence));
    if (!runs) s.queues.waiting.pop_back();
    if (request.contains("seconds_left")) s.limit_time(loaded, request.at("seconds_left"));
  }
  for (const int64_t uid : json.at("changed")) s.note_change(*s.in_flight.at(uid));
  s.paused = json.at("paused");
  s.version = json.at("version");
  s.weights_version = s.model.weights().version();
  json.at("stats").get_to(s.stats);
}

}  // namespace collimate::generate
