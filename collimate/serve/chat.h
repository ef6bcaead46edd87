#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collimate/generate/sampling.h"
#include "collimate/generate/service.h"
#include "collimate/text/chat_template.h"

namespace collimate::serve {

// A ChatModel is one model that answers. It refers to what the caller owns.
struct ChatModel {
  std::string name;
  const text::Renderer& renderer;
  generate::Completer& service;
  int64_t max_sequence_tokens = 0;
  generate::SamplingParams sampling = {};
};

struct ChatSettings {
  std::string system;                // the first message; empty for none
  text::TemplateInputs inputs = {};  // tools
  uint64_t seed = 0;                 // the same seed, models and lines give the same answers
};

// A ChatPort is where the lines come from and the answers go: a terminal, a pipe or a test.
struct ChatPort {
  std::function<std::optional<std::string>()> read_line;  // waits for a line; nothing at the end
  std::function<void(std::string_view text)> write;       // shows text at once
  std::function<bool()> interrupted;                      // asked while an answer is made; true stops it
  std::function<int()> width;                             // characters in a line
};

// A Chat is a conversation with one model, or with two side by side, each with its own history. Answers appear as they
// are made. A line that begins with / is a command; /help lists them. Use it from one thread.
class Chat {
 public:
  // Takes one or two models. Throws InputError for a system message that one of them cannot take.
  Chat(std::vector<ChatModel> models, ChatSettings settings, ChatPort port);

  // Runs until the lines end or /exit.
  void run();

 private:
  struct Speaker {
    ChatModel model;
    text::Messages messages;
  };

  bool command(const std::string& line);
  void answer(const std::string& line);
  std::vector<std::vector<int32_t>> prompts() const;
  int64_t uid() const;  // of the last submitted turn's requests
  void submit(const std::vector<std::vector<int32_t>>& prompts);
  void listen(const std::vector<std::vector<int32_t>>& prompts);
  void clear();
  void set_system(const std::string& text);
  void check_system(const std::string& text) const;
  void save(const std::string& path) const;

  std::vector<Speaker> speakers_;
  ChatSettings settings_;
  const ChatPort port_;
  int64_t turn_ = 0;
};

}  // namespace collimate::serve
