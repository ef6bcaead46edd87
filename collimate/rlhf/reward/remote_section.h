#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "collimate/rlhf/reward/reward_section.h"

namespace collimate::rlhf {

// An entry that asks a server over HTTP has these keys. Where the server is and how it is asked may change between a
// run and its resumption.
struct RemoteSection : JournaledSection {
  COLLIMATE_OPTION(double, timeout_seconds, 60.0, "seconds", "time limit for one answer of the server",
                   base::above(0.0), base::outside_hash{});
  COLLIMATE_OPTION(int64_t, tries, 5, "",
                   "how often a request is sent where the server cannot be reached, is too busy or too slow, fails, or "
                   "breaks off; the waits between grow from 0.25 to 8 seconds",
                   base::at_least(int64_t{1}), base::outside_hash{});
  COLLIMATE_OPTION(int64_t, parallel_requests, 8, "requests", "most requests at one time",
                   base::between(int64_t{1}, int64_t{1024}), base::outside_hash{});
  COLLIMATE_OPTION(std::string, key_variable, "", "",
                   "name of the variable of the environment with the server's key, sent as a bearer token",
                   base::outside_hash{});
  // Knows the words that clients of servers usually have for these keys.
  base::KeyRemedy section_remedy(const std::string& key) const override;
};

// Asks a server of the user's own for rewards.
struct HttpSection : RemoteSection {
  COLLIMATE_OPTION(std::string, http, "", "", "address that is asked by POST, http:// or https://", base::not_empty(),
                   base::outside_hash{});
  COLLIMATE_OPTION(int64_t, batch_samples, 64, "samples", "most samples in one request", base::at_least(int64_t{1}));
  COLLIMATE_OPTION(std::string, form, kColumns, "",
                   "columns: {prompts, completions, finished, COLUMN…}, a list each; openrlhf: {query, prompts, "
                   "labels}, as OpenRLHF asks; the answer to both is {rewards: [number or null, …]}",
                   base::one_of({kColumns, kOpenRlhf}));

  static constexpr const char* kColumns = "columns";
  static constexpr const char* kOpenRlhf = "openrlhf";
  // Throws InputError for an address of another form.
  void section_demands(const std::string& path) const override;
};

// Asks a language model behind an OpenAI-compatible server for a score.
struct JudgeSection : RemoteSection {
  COLLIMATE_OPTION(std::string, judge, "", "",
                   "base address of a server with OpenAI's interface, as http://127.0.0.1:8000/v1", base::not_empty(),
                   base::outside_hash{});
  COLLIMATE_OPTION(std::string, model, "", "", "the model's name there", base::not_empty());
  COLLIMATE_OPTION(std::string, prompt, kPrompt, "",
                   "what the judge is asked; {prompt}, {completion}, {lowest}, {highest} and columns of the data in "
                   "braces are filled in",
                   base::not_empty());
  COLLIMATE_OPTION(std::string, system, "", "", "its system message, filled in likewise; empty for none");
  COLLIMATE_OPTION(std::string, pattern, R"(\[\[\s*-?\d+(?:\.\d+)?\s*\]\])", "",
                   "Perl regular expression; the score is the last number in its last match in the judge's answer",
                   base::not_empty());
  COLLIMATE_OPTION(double, lowest, 0.0, "", "a score below this is a failure");
  COLLIMATE_OPTION(double, highest, 10.0, "", "a score above this is a failure");
  COLLIMATE_OPTION(nlohmann::json, request, nullptr, "",
                   "members of each request's JSON beside model and messages, as {temperature: 0, max_tokens: 1024}, "
                   "which is the default; null leaves one of these out");

  static const char* const kPrompt;
  // Knows members of a request too.
  base::KeyRemedy section_remedy(const std::string& key) const override;
  // Throws InputError for an address or a pattern of another form, for unequal bounds in the wrong order, for a prompt
  // without the completion, and for members of the request that the entry's other keys say.
  void section_demands(const std::string& path) const override;
};

}  // namespace collimate::rlhf
