#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <span>

#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/cli/arguments.h"
#include "collimate/cli/loaded_model.h"
#include "collimate/cli/process.h"
#include "collimate/host/hub_download.h"
#include "collimate/recipe/run_files.h"
#include "collimate/serve/exchange.h"
#include "collimate/serve/http_server.h"
#include "collimate/tensor/aten_threads.h"

namespace collimate::cli {
namespace {

struct ServeCall {
  std::string model;
  ModelOptions loading;
  LayoutOptions layout;
  bool download = false;
  serve::ServerOptions server;
};

bool read_arguments(const Arguments& arguments, ServeCall& call) {
  CLI::App app{"serves a model over HTTP with OpenAI's interface: completions, chat, models, health, metrics", "serve"};
  app.add_option("MODEL", call.model, "the directory of the model")->required();
  add_flags(app, call.server);
  add_flags(app, call.loading);
  add_flags(app, call.layout);
  add_download_flag(app, call.download);
  return parse(app, arguments);
}

// Returns how the tokens of requests are drawn that do not say it, as far as the model's files do.
nlohmann::json sampling_of(const std::string& directory, const ModelOptions& options) {
  generate::SamplingOptions asked;
  take_model_sampling(directory, options, asked);
  const nlohmann::json standard = generate::SamplingParams().to_json();
  nlohmann::json sampling = asked.values().to_json();
  for (const auto& [name, value] : standard.items())
    if (sampling.at(name) == value) sampling.erase(name);
  return sampling;
}

uint64_t seed_of(const serve::ServerOptions& options) {
  if (options.seed->has_value()) return static_cast<uint64_t>(**options.seed);
  std::random_device random;
  return (static_cast<uint64_t>(random()) << 32) | random();
}

std::string name_of(const ServeCall& call) {
  if (!call.server.name->empty()) return call.server.name;
  if (!std::filesystem::exists(call.model)) return call.model;  // a name on a hub
  const std::filesystem::path directory = std::filesystem::canonical(call.model);
  const bool of_a_run =
      directory.filename() == "model" && std::filesystem::exists(directory.parent_path() / recipe::kResolvedFile);
  return (of_a_run ? directory.parent_path() : directory).filename().string();
}

// Returns a scorer of prompts that scores `piece_tokens` tokens at a time, as many as a step has.
serve::PromptScorer scorer_of(LoadedModel& loaded, int64_t piece_tokens) {
  return [&loaded, piece_tokens](std::span<const int32_t> ids, const generate::SamplingParams& sampling) {
    const std::shared_ptr<PromptScoreRanks> score = loaded.prompt_score(ids, sampling);
    return serve::ScoreStep([score, piece_tokens]() -> std::optional<generate::PromptLogProbs> {
      if (!score->advance(piece_tokens)) return std::nullopt;
      return score->log_probs();
    });
  };
}

std::vector<serve::Gauge> gauges_of(const LoadedModel& loaded) {
  std::vector<serve::Gauge> gauges;
  const std::optional<Int8Error>& error = loaded.int8_error();
  if (!error) return gauges;
  gauges.push_back({"collimate_int8_weights_error_ratio", "part of the linear weights that int8 rounds away",
                    error->weights.relative});
  if (error->tokens == 0) return gauges;
  gauges.push_back(
      {"collimate_int8_log_prob_error_mean", "of log-probs against float32's, in nats", error->log_prob_mean});
  gauges.push_back({"collimate_int8_log_prob_error_max", "the largest of them", error->log_prob_max});
  return gauges;
}

// Returns the host as a URL has it: an IPv6 address stands in brackets.
std::string shown(const std::string& host) { return host.find(':') == std::string::npos ? host : "[" + host + "]"; }

}  // namespace

int serve(const Arguments& arguments) {
  ServeCall call;
  if (!read_arguments(arguments, call)) return 0;
  base::StopFlag& stop = stop_on_signals();
  const std::string directory = host::model_directory(call.model, call.download);
  LoadedModel loaded(
      directory, call.loading, call.layout,
      {.max_batch_tokens = call.server.max_batch_tokens, .max_batch_sequences = call.server.max_batch_sequences});
  serve::EngineLoop engine({.service = loaded.service(),
                            .score = scorer_of(loaded, call.server.max_batch_tokens),
                            .begin = tensor::use_one_aten_thread},
                           {.requests = call.server.max_requests, .buffer_tokens = call.server.buffer_tokens},
                           seed_of(call.server));
  const serve::ServedModel model{.name = name_of(call),
                                 .renderer = loaded.renderer(),
                                 .max_sequence_tokens = loaded.max_sequence_tokens(),
                                 .created = std::time(nullptr),
                                 .gauges = gauges_of(loaded),
                                 .sampling = sampling_of(directory, call.loading)};
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
