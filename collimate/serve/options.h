#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "collimate/base/option.h"
#include "collimate/base/section.h"

namespace collimate::serve {

// `collimate serve` may be told this. Limits bound memory: a request beyond one is refused with a reason, a client that
// does not read is cut off.
struct ServerOptions : base::Section {
  base::Option<std::string> host{this,
                                 "host",
                                 "127.0.0.1",
                                 "",
                                 "address to listen on; 0.0.0.0 or :: is everybody's, then give keys",
                                 base::not_empty()};
  base::Option<int64_t> port{
      this, "port", 8000, "", "port; 0 takes a free one, which is printed", base::between(int64_t{0}, int64_t{65535})};
  base::Option<std::string> name{this, "name", "", "", "the model's name in the interface; empty: its directory's"};
  base::Option<std::string> api_key_file{this, "api_key_file", "", "", "file of keys, one a line; empty: none needed"};

  base::Option<int64_t> max_requests{this,
                                     "max_requests",
                                     256,
                                     "completions",
                                     "in flight, those that wait included; beyond them the answer is 429",
                                     base::at_least(int64_t{1})};
  base::Option<int64_t> max_choices{
      this, "max_choices", 128, "completions", "of one request: prompts times n", base::at_least(int64_t{1})};
  base::Option<int64_t> max_body_bytes{this,    "max_body_bytes",      4 << 20,
                                       "bytes", "of a request's body", base::at_least(int64_t{1024})};
  base::Option<int64_t> max_connections{this,
                                        "max_connections",
                                        256,
                                        "",
                                        "connections served at a time; further ones wait",
                                        base::between(int64_t{1}, int64_t{4096})};
  base::Option<int64_t> max_batch_sequences{this,
                                            "max_batch_sequences",
                                            64,
                                            "completions",
                                            "computed together; further ones wait",
                                            base::at_least(int64_t{1})};
  base::Option<int64_t> max_batch_tokens{
      this, "max_batch_tokens", 2048, "tokens", "of one step, prompts included", base::at_least(int64_t{1})};
  base::Option<int64_t> buffer_tokens{this,
                                      "buffer_tokens",
                                      16384,
                                      "tokens",
                                      "kept of a stream for a client that reads slowly, before it is cut off",
                                      base::at_least(int64_t{16})};

  base::Option<double> read_seconds{this, "read_seconds", 30.0, "s", "for a whole request to arrive", base::above(0.0)};
  base::Option<double> write_seconds{
      this, "write_seconds", 30.0, "s", "for a client to take 64 KiB of an answer", base::above(0.0)};
  base::Option<double> idle_seconds{
      this, "idle_seconds", 30.0, "s", "a connection may wait for its next request", base::above(0.0)};
  base::Option<double> stall_seconds{
      this, "stall_seconds", 300.0, "s", "a request may wait for its next token", base::above(0.0)};
  base::Option<double> shutdown_seconds{
      this, "shutdown_seconds", 30.0, "s", "after SIGTERM for running requests to finish", base::at_least(0.0)};

  base::Option<std::optional<int64_t>> seed{this, "seed", std::nullopt, "",
                                            "of requests that name none; null: another one in each run"};
};

}  // namespace collimate::serve
