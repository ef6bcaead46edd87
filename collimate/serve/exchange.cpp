#include "collimate/serve/exchange.h"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/base/stripped.h"
#include "collimate/text/call_grammar.h"
#include "collimate/text/dataset.h"

namespace collimate::serve {
namespace {

constexpr double kLookSeconds = 0.1;  // how often a wait looks for the client

std::string new_id(Endpoint endpoint) {
  static std::atomic<int64_t> count = 0;
  return fmt::format("{}-{:x}-{:x}", endpoint == Endpoint::kChat ? "chatcmpl" : "cmpl", std::time(nullptr), ++count);
}

std::string event(const nlohmann::ordered_json& data) { return "data: " + data.dump() + "\n\n"; }

}  // namespace

ApiError to_api_error(std::exception_ptr error) {
  try {
    std::rethrow_exception(std::move(error));
  } catch (const ApiError& known) {
    return known;
  } catch (const ClientGone& gone) {
    return ApiError(499, gone.what());
  } catch (const OverloadedError& overloaded) {
    return ApiError(429, overloaded.what(), "", "rate_limit_exceeded");
  } catch (const DrainingError& draining) {
    return ApiError(503, draining.what(), "", "shutting_down");
  } catch (const ExpiredError& expired) {
    return ApiError(504, expired.what(), "", "timeout");
  } catch (const base::InputError& wrong) {
    return ApiError(400, wrong.what(), "", "invalid_value");
  } catch (const std::exception& failure) {
    base::log_warning("a request failed: {}", failure.what());
    return ApiError(500, failure.what());
  }
}

Exchange::Exchange(ApiRequest request, const ServedModel& model, EngineLoop& engine, ServerMetrics& metrics,
                   Connection& connection, double stall_seconds)
    : request_(std::move(request)),
      model_(model),
      metrics_(metrics),
      connection_(connection),
      stall_seconds_(stall_seconds),
      begun_seconds_(base::now_seconds()),
      prompts_(prompts_of(request_)) {
  const Work asked = work();
  generate::SamplingParams shown = asked.sampling;
  shown.stop = request_.stop;
  const text::CallForm form = model_.renderer.chat().call_form();
  const bool reads_answers =
      !request_.tools.empty() || (request_.endpoint == Endpoint::kChat && form == text::CallForm::kHarmony);
  const text::Tokenizer& tokenizer = model_.renderer.tokenizer();
  completions_.emplace(engine.submit(asked), tokenizer, shown, asked.prompts,
                       reads_answers ? text::call_token_ids(form, tokenizer) : std::vector<int32_t>());
  Channel& channel = completions_->channel();
  const auto stall = base::Deadline::after(stall_seconds_);
  while (!channel.wait_accepted(base::Deadline::after(kLookSeconds))) {
    check_client();
    if (stall.expired()) throw ApiError(504, base::expectation("serve", "a place in the engine", "none in time"));
  }
  for (size_t prompt = 0; prompt < channel.prompt_log_probs().size(); ++prompt) {
    prompts_[prompt].log_probs = channel.prompt_log_probs()[prompt].log_probs;
    prompts_[prompt].top_log_probs = channel.prompt_log_probs()[prompt].top_log_probs;
  }
  if (reads_answers) {
    const nlohmann::ordered_json& tools = std::get<text::Conversation>(request_.prompts.at(0)).inputs.tools;
    call_readers_.assign(static_cast<size_t>(request_.choices()), {form, tools, opens_thoughts()});
  }
  reply_.emplace(request_, prompts_, tokenizer, model_.name, new_id(request_.endpoint), std::time(nullptr));
}

Exchange::~Exchange() {
  int64_t prompt_tokens = 0;
  for (const PromptTokens& prompt : prompts_) prompt_tokens += static_cast<int64_t>(prompt.ids.size());
  metrics_.count_tokens(prompt_tokens, reply_->completion_tokens());
  metrics_.observe_request(base::now_seconds() - begun_seconds_);
}

// Throws ApiError 400 for tools or a reasoning_effort that the model's chat template cannot use.
void Exchange::check_template(const ApiRequest& request) const {
  const text::ChatTemplate& chat = model_.renderer.chat();
  const auto refuse = [&](const std::string& name, const std::string& expected) {
    throw ApiError(
        400,
        base::expectation(name, expected, "another template: " + chat.description(), "the request without " + name),
        name, "unsupported_parameter");
  };
  if (!request.tools.empty() && chat.call_form() == text::CallForm::kUnknown)
    refuse("tools",
           "a model whose chat template writes calls as those of Hermes, Qwen, Llama 3, Mistral, DeepSeek, GLM, "
           "Phi-4-mini, Gemma 4, LFM2 or gpt-oss do, so that they can be read out of an answer");
  if (request.names_effort && !chat.reads("reasoning_effort"))
    refuse("reasoning_effort", "a model whose chat template reads it");
}

std::vector<PromptTokens> Exchange::prompts_of(const ApiRequest& request) const {
  std::vector<PromptTokens> out;
  const std::string name = request.endpoint == Endpoint::kChat ? "messages" : "prompt";
  check_template(request);
  for (const text::Prompt& prompt : request.prompts) {
    if (text::joins_turns(prompt, model_.renderer, 2))
      throw ApiError(400,
                     text::joined_turns_message(
                         name,
                         "one message, or collimate serve --chat-template chatml, or plain to join turns with "
                         "nothing between"),
                     name, "invalid_value");
    PromptTokens tokens{.ids = model_.renderer.prompt_tokens(prompt)};
    if (request.echo) tokens.text = model_.renderer.prompt_text(prompt);
    if (static_cast<int64_t>(tokens.ids.size()) >= model_.max_sequence_tokens) {
      const std::string message = base::expectation(
          name, fmt::format("at most {} tokens", model_.max_sequence_tokens - 1), fmt::to_string(tokens.ids.size()));
      throw ApiError(400, message, name, "context_length_exceeded");
    }
    out.push_back(std::move(tokens));
  }
  return out;
}

bool Exchange::opens_thoughts() const {
  return base::stripped(model_.renderer.prompt_text(request_.prompts.at(0))).ends_with("<think>");
}

// Returns the grammar for drawing an answer that has to be calls, "" if it need not.
std::string Exchange::call_grammar() const {
  if (!request_.must_call) return "";
  const text::CallForm form = model_.renderer.chat().call_form();
  const text::Tokenizer& tokenizer = model_.renderer.tokenizer();
  if (!text::can_ask_for_calls(form, tokenizer))
    throw ApiError(400,
                   base::expectation("tool_choice",
                                     "none or auto with this model, whose calls are not JSON alone or between marks "
                                     "that are no special tokens",
                                     request_.called_tool.empty() ? "required" : request_.called_tool, "auto"),
                   "tool_choice", "unsupported_parameter");
  nlohmann::ordered_json tools = nlohmann::ordered_json::array();
  for (const nlohmann::ordered_json& tool : std::get<text::Conversation>(request_.prompts.at(0)).inputs.tools)
    if (request_.called_tool.empty() || text::function_of(tool).at("name") == request_.called_tool)
      tools.push_back(tool);
  const bool several = request_.parallel_calls && request_.called_tool.empty();
  return text::call_grammar({form, std::move(tools), several, opens_thoughts()}, tokenizer, "tools");
}

Work Exchange::work() const {
  Work work{.choices_per_prompt = request_.choices_per_prompt, .sampling = request_.sampling, .seed = request_.seed};
  work.sampling.grammar = call_grammar();
  work.prompt_log_probs = request_.echo && request_.log_probs;
  work.whole_answer = !request_.stream;
  if (request_.to_the_end) work.sampling.max_tokens = model_.max_sequence_tokens;
  for (const PromptTokens& prompt : prompts_) work.prompts.push_back(prompt.ids);
  return work;
}

// Throws ClientGone if the client has gone. One that has closed only its sending half may have gone: something is sent
// to it as a probe, whose effect the next look sees.
void Exchange::check_client() {
  if (opened_)
    probes_ = connection_.must_probe();
  else
    connection_.probe_before_answer();
  if (!connection_.peer_gone()) return;
  metrics_.count_gone();
  throw ClientGone();
}

// Moves calls and thoughts out of the delta's text into members of their own.
void Exchange::read_calls(Delta& delta) {
  if (call_readers_.empty()) return;
  text::CallReader& reader = base::at(call_readers_, delta.choice);
  text::CallReader::Read read = reader.read(delta.text, !delta.finish_reason.empty());
  delta.text = std::move(read.text);
  delta.thoughts = std::move(read.thoughts);
  delta.calls = std::move(read.calls);
  if (delta.finish_reason == "stop" && reader.any()) delta.finish_reason = "tool_calls";
}

std::vector<Delta> Exchange::wait() {
  const auto stall = base::Deadline::after(stall_seconds_);
  while (true) {
    auto deltas = completions_->next(base::Deadline::after(kLookSeconds));
    for (Delta& delta : deltas) read_calls(delta);
    check_client();
    if (!first_token_seen_ && std::ranges::any_of(deltas, [](const Delta& delta) { return !delta.tokens.empty(); })) {
      first_token_seen_ = true;
      metrics_.observe_first_token(base::now_seconds() - begun_seconds_);
    }
    if (!deltas.empty() || completions_->finished() || probes_) return deltas;
    if (stall.expired()) throw ApiError(504, base::expectation("serve", "a token of the engine", "none in time"));
  }
}

std::string Exchange::whole() {
  while (!completions_->finished()) {
    for (const Delta& delta : wait()) reply_->add(delta);
  }
  return reply_->whole().dump();
}

std::string Exchange::events() {
  std::string out;
  if (closed_) return out;
  if (!opened_) {
    opened_ = true;
    for (const auto& chunk : reply_->opening()) out += event(chunk);
    if (!out.empty()) return out;
  }
  try {
    while (out.empty() && !completions_->finished()) {
      for (const Delta& delta : wait()) {
        const auto chunk = reply_->chunk(delta);
        if (!chunk.is_null()) out += event(chunk);
      }
      if (probes_ && out.empty()) out = ": waiting\n\n";
    }
  } catch (const ClientGone&) {
    throw;
  } catch (const std::exception&) {
    closed_ = true;
    return "data: " + error_body(to_api_error(std::current_exception())) + "\n\n";
  }
  if (completions_->finished()) out += closing_events();
  return out;
}

std::string Exchange::closing_events() {
  closed_ = true;
  return (request_.include_usage ? event(reply_->usage_chunk()) : "") + "data: [DONE]\n\n";
}

}  // namespace collimate::serve
