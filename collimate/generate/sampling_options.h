#pragma once

#include "collimate/base/option.h"
#include "collimate/base/section.h"
#include "collimate/generate/sampling.h"
#include "collimate/text/utf8.h"

namespace collimate::generate {

// How tokens are drawn, as rollouts, evaluation and the command line declare it: once.
struct SamplingOptions : base::Section {
  // `greedy`: a temperature of 0 is allowed.
  explicit SamplingOptions(double default_temperature = 1.0, bool greedy = true);

  base::Option<double> temperature;
  base::Option<double> top_p{
      this, "top_p", 1.0, "", "nucleus of this much probability", base::above(0.0), base::at_most(1.0)};
  base::Option<int64_t> top_k{
      this, "top_k", 0, "tokens", "draw from the k most likely; 0 from all", base::at_least(int64_t{0})};
  base::Option<double> min_p{
      this, "min_p", 0.0, "", "leave out tokens below this part of the most likely one", base::between(0.0, 1.0)};

  base::Option<double> presence_penalty{this,
                                        "presence_penalty",
                                        0.0,
                                        "",
                                        "taken from the logit of each token that the completion has",
                                        base::between(-kMostPenalty, kMostPenalty)};
  base::Option<double> frequency_penalty{this,
                                         "frequency_penalty",
                                         0.0,
                                         "",
                                         "the same, as often as the completion has it",
                                         base::between(-kMostPenalty, kMostPenalty)};
  base::Option<double> repetition_penalty{
      this,
      "repetition_penalty",
      1.0,
      "",
      "of each token that prompt or completion has: divides its logit above 0, multiplies it below",
      base::above(0.0),
      base::at_most(kMostRepetitionPenalty)};
  base::Option<nlohmann::json> logit_bias{
      this,
      "logit_bias",
      nlohmann::json::object(),
      "",
      "added to logits",
      base::satisfying("a map of token ids to numbers between -100 and 100",
                       [](const nlohmann::json& value) { return parse_logit_bias(value).has_value(); })};
  base::Option<int64_t> min_tokens{this,
                                   "min_tokens",
                                   0,
                                   "tokens",
                                   "before which nothing but the length ends a completion",
                                   base::at_least(int64_t{0})};
  base::Option<std::vector<std::string>> stop{this,
                                              "stop",
                                              {},
                                              "",
                                              "text, or a list of texts, that ends a completion; rewards see it too",
                                              base::not_empty(),
                                              base::satisfying("UTF-8", text::is_valid_utf8)};
  base::Option<std::vector<int64_t>> stop_ids{this,
                                              "stop_ids",
                                              {},
                                              "",
                                              "token ids that end a completion, beside the model's own",
                                              base::between(int64_t{0}, kLargestTokenId)};
  base::Option<bool> ignore_eos{this, "ignore_eos", false, "", "the model's own ends of sequence do not end it"};

  // InputError, naming where it was set, when min_tokens is more than max_tokens.
  SamplingParams params(int64_t max_tokens) const;
};

}  // namespace collimate::generate
