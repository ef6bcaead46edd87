#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "collimate/base/option.h"
#include "collimate/base/section.h"
#include "collimate/generate/step_options.h"

namespace collimate::serve {

// ServerOptions are the options of `collimate serve`. The limits bound memory: a request beyond one is refused with a
// reason, and a client that does not read is cut off.
struct ServerOptions : base::Section {
  COLLIMATE_OPTION(std::string, host, "127.0.0.1", "",
                   "address to listen on; 0.0.0.0 or :: can be reached by everybody, so give keys then",
                   base::not_empty());
  COLLIMATE_OPTION(int64_t, port, 8000, "", "port; 0 takes a free one, which is printed",
                   base::between(int64_t{0}, int64_t{65535}));
  COLLIMATE_OPTION(std::string, name, "", "", "the model's name in the interface; empty takes its directory's");
  COLLIMATE_OPTION(std::string, api_key_file, "", "", "a file with one key on each line; empty asks for no key");

  COLLIMATE_OPTION(int64_t, max_requests, 256, "completions",
                   "most completions at a time, with those that wait; further requests are answered with 429",
                   base::at_least(int64_t{1}));
  COLLIMATE_OPTION(int64_t, max_choices, 128, "completions", "most completions of one request: its prompts times n",
                   base::at_least(int64_t{1}));
  COLLIMATE_OPTION(int64_t, max_body_bytes, 4 << 20, "bytes", "largest body of a request",
                   base::at_least(int64_t{1024}));
  COLLIMATE_OPTION(int64_t, max_connections, 256, "", "most connections that are served at a time; further ones wait",
                   base::between(int64_t{1}, int64_t{4096}));
  generate::BatchSequencesOption max_batch_sequences{this, 64};
  generate::BatchTokensOption max_batch_tokens{this};
  COLLIMATE_OPTION(int64_t, buffer_tokens, 16384, "tokens",
                   "most tokens that are kept for a client that reads a stream slowly, before it is cut off",
                   base::at_least(int64_t{16}));

  COLLIMATE_OPTION(double, read_seconds, 30.0, "s", "how long a whole request may take to arrive", base::above(0.0));
  COLLIMATE_OPTION(double, write_seconds, 30.0, "s", "how long a client may take to read 64 KiB of an answer",
                   base::above(0.0));
  COLLIMATE_OPTION(double, idle_seconds, 30.0, "s", "how long a connection may wait for its next request",
                   base::above(0.0));
  COLLIMATE_OPTION(double, stall_seconds, 300.0, "s", "how long a request may wait for its next token",
                   base::above(0.0));
  COLLIMATE_OPTION(double, shutdown_seconds, 30.0, "s", "how long running requests may take to finish after SIGTERM",
                   base::at_least(0.0));

  COLLIMATE_OPTION(std::optional<int64_t>, seed, std::nullopt, "",
                   "seed of requests that name none; null takes another one each time the server starts");
};

}  // namespace collimate::serve
