#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collimate/base/stop.h"
#include "collimate/serve/engine_loop.h"
#include "collimate/serve/options.h"
#include "collimate/text/chat_template.h"

namespace collimate::serve {

struct ServedModel;

// An HttpServer offers OpenAI's interface over HTTP: /v1/completions, /v1/chat/completions, /v1/models, /health and
// /metrics. One thread accepts connections, and one thread answers each connection. They share the engine, the metrics
// and constant data. If there are API keys, every path but /health asks for one.
class HttpServer {
 public:
  // Binds the address. Throws InputError when it cannot be bound, or the file of keys has no key or cannot be read.
  // Keeps references to model and engine.
  HttpServer(const ServerOptions& options, const ServedModel& model, EngineLoop& engine);
  ~HttpServer();

  int port() const;
  // Serves until `stop` is requested, then takes no new request and lets running ones finish within `shutdown_seconds`.
  // Returns how many completions it had to cut off. Throws RunError when listening failed or the engine has broken.
  int64_t run(const base::StopFlag& stop);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Reads the API keys in a file, one on each line. Blanks around keys are removed; lines that are empty or begin with #
// are left out. Throws InputError when there is no key.
std::vector<std::string> read_api_keys(const std::string& path);

}  // namespace collimate::serve
