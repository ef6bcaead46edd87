#include <cstdio>
#include <ctime>
#include <filesystem>
#include <random>

#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/cli/arguments.h"
#include "collimate/cli/loaded_model.h"
#include "collimate/cli/process.h"
#include "collimate/serve/exchange.h"
#include "collimate/serve/http_server.h"
#include "collimate/tensor/aten_threads.h"

namespace collimate::cli {
namespace {

struct ServeCall {
  std::string model;
  ModelOptions loading;
  serve::ServerOptions server;
};

bool read_arguments(const Arguments& arguments, ServeCall& call) {
  CLI::App app{"answers OpenAI's interface over HTTP: completions, chat, models, health, metrics", "serve"};
  app.add_option("MODEL", call.model, "model directory")->required();
  add_flags(app, call.server);
  add_flags(app, call.loading);
  return parse(app, arguments);
}

uint64_t seed_of(const serve::ServerOptions& options) {
  if (options.seed->has_value()) return static_cast<uint64_t>(**options.seed);
  std::random_device random;
  return (static_cast<uint64_t>(random()) << 32) | random();
}

std::string name_of(const ServeCall& call) {
  if (!call.server.name->empty()) return call.server.name;
  return std::filesystem::canonical(call.model).filename().string();
}

// An address as it stands in a URL.
std::string shown(const std::string& host) { return host.find(':') == std::string::npos ? host : "[" + host + "]"; }

}  // namespace

int serve(const Arguments& arguments) {
  ServeCall call;
  if (!read_arguments(arguments, call)) return 0;
  base::StopFlag& stop = stop_on_signals();
  LoadedModel loaded(
      call.model, call.loading,
      {.max_batch_tokens = call.server.max_batch_tokens, .max_batch_sequences = call.server.max_batch_sequences});
  serve::EngineLoop engine(
      {.service = loaded.service(),
       .score = [&](auto ids, double temperature) { return loaded.prompt_log_probs(ids, temperature); },
       .begin = tensor::use_one_aten_thread},
      {.requests = call.server.max_requests, .buffer_tokens = call.server.buffer_tokens}, seed_of(call.server));
  const serve::ServedModel model{.name = name_of(call),
                                 .renderer = loaded.renderer(),
                                 .max_sequence_tokens = loaded.max_sequence_tokens(),
                                 .created = std::time(nullptr)};
  serve::HttpServer server(call.server, model, engine);
  base::log_info("chat template: {}", loaded.renderer().chat().description());
  if (call.server.api_key_file->empty() && !call.server.host->starts_with("127.") && call.server.host != "localhost" &&
      call.server.host != "::1") {
    base::log_warning("{} may be reached by others, and no --api-key-file is given", call.server.host);
  }
  fmt::print("serving {} on http://{}:{}\n", model.name, shown(call.server.host), server.port());
  std::fflush(stdout);
  const int64_t cut = server.run(stop);
  if (cut == 0) return 0;
  throw base::StoppedError(
      base::expectation("serve", fmt::format("running completions to finish within {} s", call.server.shutdown_seconds),
                        fmt::format("{} cut off", cut), "a larger shutdown_seconds"));
}

}  // namespace collimate::cli
