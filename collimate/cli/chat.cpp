#include "collimate/serve/chat.h"

#include <unistd.h>

#include <cstdio>
#include <random>

#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/base/terminal.h"
#include "collimate/cli/arguments.h"
#include "collimate/cli/line_reader.h"
#include "collimate/cli/loaded_model.h"
#include "collimate/cli/process.h"
#include "collimate/generate/sampling_options.h"
#include "collimate/host/file_io.h"
#include "collimate/host/hub_download.h"
#include "collimate/text/json_numbers.h"
#include "collimate/text/messages_json.h"

namespace collimate::cli {
namespace {

struct ChatCall {
  std::string model, compare, system, tools;
  int64_t max_tokens = 512;
  std::optional<uint64_t> seed;
  generate::SamplingOptions sampling;
  ModelOptions loading;
  LayoutOptions layout;
  bool download = false;
};

bool read_arguments(const Arguments& arguments, ChatCall& call) {
  CLI::App app{"opens a conversation with a model; /help in it lists its commands", "chat"};
  app.add_option("MODEL", call.model, "the directory of the model")->required();
  app.add_option("--compare", call.compare, "another model, whose answers are shown beside those of the first");
  app.add_option("--system", call.system, "the system message");
  app.add_option("--tools", call.tools, "a JSON file, a list of tools' definitions, which the chat template shows");
  app.add_option("--max-tokens", call.max_tokens, "most tokens of an answer")
      ->check(at_least(1))
      ->capture_default_str();
  app.add_option("--seed", call.seed, "seed of the draws; without it every conversation is different")
      ->check(at_least(0));
  add_flags(app, call.sampling);
  add_flags(app, call.loading);
  add_flags(app, call.layout);
  add_download_flag(app, call.download);
  return parse(app, arguments);
}

text::TemplateInputs inputs_of(const ChatCall& call) {
  if (call.tools.empty()) return {};
  return {.tools = text::tools_from_json(text::parse_exact_json(host::read_file(call.tools), call.tools, 1),
                                         "--tools " + call.tools)};
}

// A Speaker is a loaded model with a service that answers one request at a time.
struct Speaker {
  Speaker(const std::string& directory, const ModelOptions& options, const LayoutOptions& layout)
      : loaded(directory, options, layout, {.max_batch_sequences = 1}), service(loaded.service()) {}
  serve::ChatModel model(const std::string& name, const generate::SamplingParams& sampling) {
    return {name, loaded.renderer(), *service, loaded.max_sequence_tokens(), sampling};
  }
  LoadedModel loaded;
  std::unique_ptr<generate::Completer> service;
};

void show(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

int chat(const Arguments& arguments) {
  ChatCall call;
  if (!read_arguments(arguments, call)) return 0;
  std::vector<std::unique_ptr<Speaker>> speakers;
  std::vector<serve::ChatModel> models;
  for (const std::string& name : {call.model, call.compare}) {
    if (name.empty()) continue;
    const std::string directory = host::model_directory(name, call.download);
    speakers.push_back(std::make_unique<Speaker>(directory, call.loading, call.layout));
    generate::SamplingOptions sampling = call.sampling;
    take_model_sampling(directory, call.loading, sampling);
    models.push_back(speakers.back()->model(name, sampling.params(call.max_tokens)));
    base::log_info("{}: {}", name, speakers.back()->loaded.renderer().chat().description());
  }
  const serve::ChatSettings settings{
      .system = call.system, .inputs = inputs_of(call), .seed = call.seed ? *call.seed : std::random_device()()};
  LineReader lines;
  std::optional<InterruptScope> interrupts;
  const serve::ChatPort port{.read_line =
                                 [&] {
                                   interrupts.reset();  // at the prompt Ctrl-C ends the program
                                   auto line = lines.read("> ");
                                   interrupts.emplace();
                                   return line;
                                 },
                             .write = show,
                             .interrupted = [&] { return interrupts && interrupts->take(); },
                             .width = [] { return base::terminal_columns(STDOUT_FILENO, 80); }};
  serve::Chat(std::move(models), settings, port).run();
  return 0;
}

}  // namespace collimate::cli
