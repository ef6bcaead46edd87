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

// OpenAI's interface over HTTP: /v1/completions, /v1/chat/completions, /v1/models, /health and /metrics. One thread
// accepts, one a connection answers; they share the engine, the metrics and what does not change. With keys, all but
// /health asks for one.
class HttpServer {
 public:
  // Binds at once: InputError when the address cannot be had or the file of keys is no such file. Keeps references to
  // model and engine.
  HttpServer(const ServerOptions& options, const ServedModel& model, EngineLoop& engine);
  ~HttpServer();

  int port() const;
  // Serves until `stop`: then takes no new request and finishes what runs, within `shutdown_seconds`. How many
  // completions it had to cut off. RunError when listening failed, or the engine has stopped by itself. Blocking.
  int64_t run(const base::StopFlag& stop);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The keys in a file: one a line, blanks around them removed, lines that are empty or begin with # left out. InputError
// when there is none.
std::vector<std::string> read_api_keys(const std::string& path);

}  // namespace collimate::serve
