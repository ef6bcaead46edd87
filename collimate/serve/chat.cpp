#include "collimate/serve/chat.h"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/base/philox.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/host/atomic_file.h"
#include "collimate/serve/chat_answer.h"
#include "collimate/serve/columns.h"
#include "collimate/text/messages_json.h"
#include "collimate/text/utf8.h"

namespace collimate::serve {
namespace {

constexpr const char* kHelp =
    "/clear         forget the conversation, keep the system message\n"
    "/system TEXT   set the system message; without TEXT there is none\n"
    "/save FILE     write the conversation, in the form that data.train reads; two models give two lines\n"
    "/help          this list\n"
    "/exit          end, as the end of the input does\n"
    "Ctrl-C stops an answer. A line that begins with // is sent without the first of them.\n";

// Replaces control characters by U+FFFD, so that a terminal shows them instead of obeying them.
std::string harmless(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view character = text.substr(0, std::max<size_t>(1, text::utf8_length(text)));
    const uint32_t code = text::utf8_length(text) == 0 ? 0 : text::utf8_code_point(text);
    const bool control = (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7F && code < 0xA0);
    if (control) {
      text::append_utf8(out, 0xFFFD);
    } else {
      out += character;
    }
    text.remove_prefix(character.size());
  }
  return out;
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// Returns the token ids of the prompt for an answer to these messages. Throws InputError if the template has no place
// for a role, or if there are more tokens than fit; that error calls the messages `what` and suggests `remedy`.
std::vector<int32_t> prompt_of(const ChatModel& model, const text::Conversation& conversation, const std::string& what,
                               const std::string& remedy) {
  std::vector<int32_t> ids = model.renderer.prompt_tokens(conversation);
  const auto tokens = static_cast<int64_t>(ids.size());
  if (tokens < model.max_sequence_tokens) return ids;
  throw base::InputError(base::expectation("chat",
                                           fmt::format("{} of at most {} tokens", what, model.max_sequence_tokens - 1),
                                           fmt::to_string(tokens), remedy));
}

// A Display shows one answer as it comes, or two side by side.
class Display {
 public:
  Display(const ChatPort& port, size_t speakers) : port_(port) {
    if (speakers == 2) columns_.emplace(port.width());
  }
  void title(const std::string& left, const std::string& right) {
    if (!columns_) return;
    port_.write(columns_->push(0, left + "\n\n"));
    port_.write(columns_->push(1, right + "\n\n"));
  }
  void add(size_t side, const std::string& text) {
    const std::string shown = harmless(text);
    port_.write(columns_ ? columns_->push(static_cast<int>(side), shown) : shown);
  }
  void finish(size_t side) { port_.write(columns_ ? columns_->finish(static_cast<int>(side)) : "\n"); }

 private:
  const ChatPort& port_;
  std::optional<Columns> columns_;
};

}  // namespace

Chat::Chat(std::vector<ChatModel> models, ChatSettings settings, ChatPort port)
    : settings_(std::move(settings)), port_(std::move(port)) {
  COLLIMATE_CHECK(models.size() == 1 || models.size() == 2);
  for (ChatModel& model : models) speakers_.push_back({.model = std::move(model), .messages = {}});
  clear();
}

void Chat::run() {
  while (const auto line = port_.read_line()) {
    const std::string text = trimmed(*line);
    if (text.empty()) continue;
    try {
      if (!text::is_valid_utf8(text))
        throw base::InputError(base::expectation("chat", "a line in UTF-8", "other bytes"));
      if (text[0] == '/' && !text.starts_with("//")) {
        if (!command(text)) return;
      } else {
        answer(text.substr(text[0] == '/' ? 1 : 0));
      }
    } catch (const base::InputError& error) {  // the conversation goes on
      port_.write(std::string(error.what()) + "\n");
    }
  }
}

// Carries out a command. Returns false for one that ends the conversation.
bool Chat::command(const std::string& line) {
  const size_t space = std::min(line.find(' '), line.size());
  const std::string name = line.substr(0, space), rest = trimmed(line.substr(space));
  if (name == "/exit" || name == "/quit") return false;
  if (name == "/clear") {
    clear();
  } else if (name == "/system") {
    set_system(rest);
  } else if (name == "/save") {
    save(rest);
  } else if (name == "/help") {
    port_.write(kHelp);
  } else {
    throw base::InputError(base::expectation("chat", "/clear, /system, /save, /help or /exit", name));
  }
  return true;
}

void Chat::clear() {
  for (Speaker& speaker : speakers_) speaker.messages.clear();
  set_system(settings_.system);
}

// Throws InputError for a system message that a model cannot take, as a conversation that begins with it could not go
// on. Called before the message replaces the present one.
void Chat::check_system(const std::string& text) const {
  if (text.empty()) return;
  if (!text::is_valid_utf8(text))
    throw base::InputError(base::expectation("chat", "a system message in UTF-8", "other bytes"));
  for (const Speaker& speaker : speakers_)
    prompt_of(speaker.model, {{{"system", text}}, settings_.inputs}, "a system message", "a shorter one");
}

void Chat::set_system(const std::string& text) {
  check_system(text);
  settings_.system = text;
  for (Speaker& speaker : speakers_) {
    text::Messages& messages = speaker.messages;
    if (!messages.empty() && messages[0].role == "system") messages.erase(messages.begin());
    if (!text.empty()) messages.insert(messages.begin(), {"system", text});
  }
}

void Chat::save(const std::string& path) const {
  if (path.empty()) throw base::InputError(base::expectation("/save", "a file", "none"));
  std::string lines;
  for (const Speaker& speaker : speakers_) {
    nlohmann::ordered_json messages = nlohmann::ordered_json::array();
    for (const text::Message& message : speaker.messages) messages.push_back(text::message_json(message));
    lines += nlohmann::ordered_json{{"messages", messages}, {"model", speaker.model.name}}.dump() + "\n";
  }
  try {
    host::write_file_atomically(path, lines);
  } catch (const base::RunError& error) {
    throw base::InputError(error.what());
  }
  port_.write("saved in " + path + "\n");
}

void Chat::answer(const std::string& line) {
  for (Speaker& speaker : speakers_) speaker.messages.push_back({"user", line});
  std::vector<std::vector<int32_t>> asked;
  try {
    asked = prompts();
    submit(asked);
  } catch (const base::InputError&) {
    for (Speaker& speaker : speakers_) {
      speaker.messages.pop_back();
      const int64_t one[] = {uid()};  // the other model may have accepted it
      speaker.model.service.cancel(one);
      speaker.model.service.take();
    }
    throw;
  }
  listen(asked);
}

std::vector<std::vector<int32_t>> Chat::prompts() const {
  std::vector<std::vector<int32_t>> prompts;
  for (const Speaker& speaker : speakers_) {
    prompts.push_back(prompt_of(speaker.model, {speaker.messages, settings_.inputs}, "a conversation", "/clear"));
  }
  return prompts;
}

// Returns the uid of this turn's requests. Both models get the same one, so that two copies of a model answer alike.
int64_t Chat::uid() const { return std::bit_cast<int64_t>(base::mix(settings_.seed, static_cast<uint64_t>(turn_))); }

void Chat::submit(const std::vector<std::vector<int32_t>>& prompts) {
  ++turn_;
  for (size_t i = 0; i < speakers_.size(); ++i) {
    Batch request(1);
    request.set(batch::kUid, std::vector<int64_t>{uid()});
    request.set_ragged(batch::kIds, std::vector<std::vector<int32_t>>{prompts[i]});
    request.set_json(batch::kSampling, std::vector<nlohmann::json>{speakers_[i].model.sampling.to_json()});
    speakers_[i].model.service.submit(request);
  }
}

// Steps the models in turn until all have answered, and keeps what they said.
void Chat::listen(const std::vector<std::vector<int32_t>>& prompts) {
  Display display(port_, speakers_.size());
  display.title(speakers_[0].model.name, speakers_.back().model.name);
  std::vector<ChatAnswer> answers;
  for (size_t i = 0; i < speakers_.size(); ++i)
    answers.emplace_back(speakers_[i].model.renderer, speakers_[i].model.sampling, prompts[i], settings_.inputs.tools);
  size_t running = speakers_.size();
  while (running > 0) {
    const bool stop = port_.interrupted();
    for (size_t i = 0; i < speakers_.size(); ++i) {
      if (answers[i].finished()) continue;
      generate::Completer& service = speakers_[i].model.service;
      const int64_t one[] = {uid()};
      if (stop) service.cancel(one);
      service.step();
      for (const generate::Emission& emission : service.take()) display.add(i, answers[i].read(emission));
      if (!answers[i].finished()) continue;
      speakers_[i].messages.push_back(answers[i].message());
      display.finish(i);
      --running;
    }
  }
}

}  // namespace collimate::serve
