#pragma once

#include <cstdint>
#include <limits>
#include <variant>
#include <vector>

#include "collimate/generate/sampling.h"

namespace collimate::generate {

// A member of SamplingParams that is a number in [low, high], or in (low, high] with `above`. A value other than 0 must
// be at least `smallest`.
template <class T>
struct SamplingNumber {
  T SamplingParams::*at;
  T low;
  T high = std::numeric_limits<T>::max();  // the default: no upper limit
  bool above = false;
  T smallest = 0;

  constexpr bool limited() const { return high != std::numeric_limits<T>::max(); }
  constexpr bool not_too_small(T value) const { return smallest == 0 || value == 0 || value >= smallest; }
  constexpr bool holds(T value) const {  // NaN fails
    return (above ? value > low : value >= low) && value <= high && not_too_small(value);
  }
};

// Any other member, whose possible values follow from its type.
template <class T>
struct SamplingMember {
  T SamplingParams::*at;
};

// A field describes a member to JSON (SamplingParams), configurations and flags (SamplingOptions) and requests
// (serve/api.cpp). The field's default is the member's.
struct SamplingField {
  const char* name;     // in JSON, and of the option
  const char* request;  // name in the body of a request; null if serve/api.cpp reads it in another form
  std::variant<SamplingNumber<double>, SamplingNumber<int64_t>, SamplingMember<bool>, SamplingMember<uint64_t>,
               SamplingMember<LogitBias>, SamplingMember<std::vector<int32_t>>,
               SamplingMember<std::vector<std::string>>, SamplingMember<std::string>>
      member;
  const char* unit = "";
  const char* help = nullptr;  // of the option; null: no option
  // JSON, which every sample's messages carry, always has the field. False for one that few runs set: its default is
  // then left out.
  bool always = true;
  bool file = false;       // a value of the option that does not begin with { names a file that has it
  bool truncates = false;  // greedy draws do not read it
};

// All members, options in the order of help. A new number needs a member with its default, a row here, and its use: in
// sampler_stages.cpp if it changes logits, in sampler.cpp and tensor/ops/truncation.cpp if it truncates, in finish_of
// of sequence.cpp if it ends a completion. Divisors have a lower limit, as a sane model's logits must not overflow:
// that would end the step of all requests.
inline constexpr SamplingField kSamplingFields[] = {
    {"temperature", "temperature", SamplingNumber<double>{&SamplingParams::temperature, 0.0, 1e4, false, 1e-6}, "",
     "temperature of sampling; 0 always takes the most likely token"},
    {.name = "top_p",
     .request = "top_p",
     .member = SamplingNumber<double>{&SamplingParams::top_p, 0.0, 1.0, true},
     .help = "draw from the most likely tokens that together have this probability",
     .truncates = true},
    {.name = "top_k",
     .request = "top_k",
     .member = SamplingNumber<int64_t>{&SamplingParams::top_k, 0},
     .unit = "tokens",
     .help = "draw from the k most likely tokens; 0 draws from all",
     .truncates = true},
    {.name = "min_p",
     .request = "min_p",
     .member = SamplingNumber<double>{&SamplingParams::min_p, 0.0, 1.0},
     .help = "leave out tokens less likely than this share of the most likely one",
     .truncates = true},
    {"presence_penalty", "presence_penalty", SamplingNumber<double>{&SamplingParams::presence_penalty, -2.0, 2.0}, "",
     "subtracted from the logit of each token that the completion already has"},
    {"frequency_penalty", "frequency_penalty", SamplingNumber<double>{&SamplingParams::frequency_penalty, -2.0, 2.0},
     "", "subtracted from the logit of a token for each time that the completion has it"},
    {"repetition_penalty", "repetition_penalty", SamplingNumber<double>{&SamplingParams::repetition_penalty, 1e-4, 1e4},
     "",
     "penalty on each token that prompt or completion already has: divides a positive logit, multiplies a negative "
     "one"},
    {"logit_bias", "logit_bias", SamplingMember<LogitBias>{&SamplingParams::logit_bias}, "",
     "added to the logits of these tokens"},
    {"min_tokens", "min_tokens", SamplingNumber<int64_t>{&SamplingParams::min_tokens, 0}, "tokens",
     "a completion does not end before it has so many tokens"},
    {"stop", nullptr, SamplingMember<std::vector<std::string>>{&SamplingParams::stop}, "",
     "a text, or a list of texts, that ends a completion; rewards see it too"},
    {"stop_ids", "stop_token_ids", SamplingMember<std::vector<int32_t>>{&SamplingParams::stop_ids}, "",
     "ids of tokens that end a completion, in addition to the model's own"},
    {"ignore_eos", "ignore_eos", SamplingMember<bool>{&SamplingParams::ignore_eos}, "",
     "do not end a completion at the model's own end tokens"},
    {.name = "regex",
     .request = nullptr,
     .member = SamplingMember<std::string>{&SamplingParams::regex},
     .help = "completions are texts that this regular expression matches as a whole: other tokens are not drawn",
     .always = false},
    {.name = "json_schema",
     .request = nullptr,
     .member = SamplingMember<std::string>{&SamplingParams::json_schema},
     .help = "completions are JSON that this schema allows: the schema, its text or the name of a file that has it",
     .always = false,
     .file = true},
    // Callers set these, each in its own way.
    {.name = "grammar",
     .request = nullptr,
     .member = SamplingMember<std::string>{&SamplingParams::grammar},
     .always = false},
    {"max_tokens", nullptr, SamplingNumber<int64_t>{&SamplingParams::max_tokens, 1}},
    {"seed", nullptr, SamplingMember<uint64_t>{&SamplingParams::seed}},
    {.name = "timeout_seconds",
     .request = "timeout",
     .member = SamplingNumber<double>{&SamplingParams::timeout_seconds, 0.0, kLongestTimeout},
     .always = false},
    {.name = "top_logprobs",
     .request = nullptr,
     .member = SamplingNumber<int64_t>{&SamplingParams::top_log_probs, 0, kMostTopLogProbs},
     .always = false},
};

}  // namespace collimate::generate
