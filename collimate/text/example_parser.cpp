#include <algorithm>
#include <iterator>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/text/messages_json.h"
#include "collimate/text/row_reader.h"
#include "collimate/text/table_cells.h"

namespace collimate::text {
namespace {

using nlohmann::ordered_json;

// Moves the columns tools and chat_template_kwargs into the prompt's conversation. Throws InputError for a prompt of
// another kind.
void take_template_inputs(RowReader& reader) {
  constexpr const char *kTools = "tools", *kVariables = "chat_template_kwargs";
  const auto taken = [&](const char* column) { return reader.has(column) ? reader.take({column}) : ordered_json(); };
  TemplateInputs inputs{tools_from_json(taken(kTools), reader.where(kTools)),
                        variables_from_json(taken(kVariables), reader.where(kVariables))};
  if (inputs.empty()) return;
  if (auto* conversation = std::get_if<Conversation>(&reader.example().prompt))
    return static_cast<void>(conversation->inputs = std::move(inputs));
  const std::string column = inputs.tools.is_null() ? kVariables : kTools;
  throw base::InputError(base::expectation(
      reader.where(column), "a prompt of messages beside it, which a chat template renders", "another prompt",
      fmt::format("messages, or data columns: {{{}: hidden_{}}} to train without showing them", column, column)));
}

// Makes messages the prompt; where the assistant speaks last, that message is the completion.
void split_conversation(RowReader& reader, Messages messages, const std::string& column) {
  if (messages.back().role == "assistant") {
    reader.example().completion = std::move(messages.back());
    messages.pop_back();
  }
  if (messages.empty()) reader.fail(column, "a message before the assistant's", "none");
  reader.example().prompt = std::move(messages);
}

// Takes the label beside an answer that says whether it is a good one (KTO).
void take_flag(RowReader& reader) {
  const std::string column = reader.has("kto_tag") ? "kto_tag" : "label";
  const ordered_json value = reader.take({column.c_str()});
  if (reader.example().label = flag_of(value); !reader.example().label)
    throw base::InputError(
        base::expectation(reader.where(column), "true or false (or 1 or 0) beside an answer", value.dump(),
                          "true where the answer is a good one and false where it is not, or data columns: {" + column +
                              ": another_name} if it says something else"));
}

// Takes the label that stands beside an answer in columns of any shape.
void find_flag(RowReader& reader) {
  const Example& example = reader.example();
  if (example.completion && !example.label && (reader.has("kto_tag") || reader.has("label"))) take_flag(reader);
}

void read_prompt_completion(RowReader& reader) {
  const bool query = !reader.has("prompt") && reader.has("query");
  const char* column = query ? "query" : "prompt";
  reader.call_prompt(column);
  std::optional<Prompt> prompt = parse_prompt(reader, reader.take({column}), column);
  reader.example().completion = take_answer(reader, prompt, {"completion", "response"});
  reader.example().prompt = std::move(*prompt);
}

void read_messages(RowReader& reader) {
  split_conversation(reader, messages_from_json(reader.take({"messages"}), reader.where("messages")), "messages");
}

// Returns the prompt that both chosen and rejected begin with: their common part up to the last assistant's turn
// (hh-rlhf), else up to the last space.
std::string common_prompt(const std::string& chosen, const std::string& rejected) {
  size_t common = 0;
  while (common < std::min(chosen.size(), rejected.size()) && chosen[common] == rejected[common]) ++common;
  static const std::string kTurn = "\n\nAssistant:";
  const size_t turn = chosen.substr(0, common).rfind(kTurn);
  if (turn != std::string::npos) return chosen.substr(0, turn + kTurn.size());
  const size_t space = chosen.substr(0, common).find_last_of(" \n");
  return space == std::string::npos ? "" : chosen.substr(0, space);
}

// Refuses a text that is a prompt by its column's name and that the prompt found in the answers does not have: nothing
// would read it.
void refuse_unread_prompt(RowReader& reader, const std::string& prompt) {
  for (const char* column : {"question", "query", "instruction", "input", "problem"}) {
    if (!reader.has_text(column) || reader.holds_nothing(column)) continue;
    std::string text = reader.take_text({column});
    if (prompt.find(text) == std::string::npos)
      throw base::InputError(
          base::expectation(reader.where(column), "the prompt of chosen and rejected in a column prompt",
                            "one by this name", fmt::format("data columns: {{{}: prompt}}", column)));
    reader.put(column, std::move(text));
  }
}

void split_texts(RowReader& reader) {
  const std::string left = reader.take_text({"chosen"}), right = reader.take_text({"rejected"});
  const std::string prompt = common_prompt(left, right);
  refuse_unread_prompt(reader, prompt);
  refuse_earlier_turns(reader, "chosen and rejected that hold their prompt");
  if (prompt.empty()) reader.fail("prompt", "a prompt, or one that chosen and rejected share", "none");
  reader.example().prompt = prompt;
  reader.example().chosen = as_answer(left.substr(prompt.size()));
  reader.example().rejected = as_answer(right.substr(prompt.size()));
}

void read_preference(RowReader& reader) {
  const bool explicit_prompt = reader.has("prompt");
  if (!explicit_prompt && reader.has_text("chosen") && reader.has_text("rejected")) return split_texts(reader);
  std::optional<Prompt> prompt;
  if (explicit_prompt) prompt = parse_prompt(reader, reader.take({"prompt"}), "prompt");
  reader.example().chosen = take_answer(reader, prompt, {"chosen"});
  reader.example().rejected = take_answer(reader, prompt, {"rejected"});
  if (!prompt) refuse_unread_prompt(reader, "");
  if (!prompt) reader.fail("prompt", "a prompt, or messages that chosen and rejected share", "none");
  reader.example().prompt = std::move(*prompt);
}

void read_rejected_response(RowReader& reader) {
  read_messages(reader);
  Example& example = reader.example();
  if (!example.completion) reader.fail("messages", "a last message by the assistant", "another role");
  example.chosen = example.completion;
  std::optional<Prompt> prompt = example.prompt;
  const bool whole = reader.has("rejected_messages");
  example.rejected = take_answer(reader, prompt, {whole ? "rejected_messages" : "rejected_response"});
}

void read_labelled(RowReader& reader) {
  take_flag(reader);
  reader.has("messages") ? read_messages(reader) : read_prompt_completion(reader);
  if (!reader.example().completion) reader.fail("messages", "a last message by the assistant", "another role");
}

// The columns reward_model and reward_spec stay in `extra`, for reward functions of verl's form.
void read_verl(RowReader& reader) {
  reader.example().prompt = parse_prompt(reader, reader.take({"prompt"}), "prompt");
  for (const char* column : {"reward_model", "reward_spec"}) {
    if (!reader.has(column)) continue;
    ordered_json value = reader.take({column});
    if (value.is_object() && value.contains("ground_truth")) reader.example().ground_truth = value["ground_truth"];
    reader.put(column, std::move(value));
  }
}

void read_prompt(RowReader& reader) {
  reader.example().prompt = parse_prompt(reader, reader.take({"prompt"}), "prompt");
}

// Reads an answer in steps, each with its label, as TRL's PRMTrainer has them.
void read_steps(RowReader& reader) {
  const ordered_json texts = reader.take({"completions"}), labels = reader.take({"labels"});
  read_prompt(reader);
  if (texts.empty()) reader.fail("completions", "at least one step", "none");
  if (texts.size() != labels.size())
    reader.fail("labels", fmt::format("a label for each of the {} steps in completions", texts.size()),
                std::to_string(labels.size()));
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::optional<bool> right = flag_of(labels[i]);
    if (!right) reader.fail("labels", "true or false (or 1 or 0) for each step", labels[i].dump());
    reader.example().steps.push_back({reader.text(texts[i], "completions"), *right});
  }
}

// Reads system, history and instruction + input as LLaMA-Factory does.
void read_alpaca(RowReader& reader) {
  Messages messages = take_earlier_turns(reader);
  std::string question = reader.take_text({"instruction"});
  const std::string input = reader.has("input") ? reader.take_text({"input"}) : "";
  if (!input.empty()) question += (question.empty() ? "" : "\n") + input;
  if (question.empty()) reader.fail("instruction", "a prompt", "an empty text");
  messages.push_back({"user", question});
  Example& example = reader.example();
  std::optional<Prompt> prompt = std::move(messages);
  if (reader.has("chosen")) example.chosen = take_answer(reader, prompt, {"chosen"});
  if (reader.has("rejected")) example.rejected = take_answer(reader, prompt, {"rejected"});
  if (reader.has("output")) example.completion = take_answer(reader, prompt, {"output"});
  example.prompt = std::move(*prompt);
}

void read_sharegpt(RowReader& reader) {
  Messages messages = messages_from_json(reader.take({"conversations"}), reader.where("conversations"));
  Example& example = reader.example();
  if (!reader.has("chosen") || !reader.has("rejected")) return split_conversation(reader, messages, "conversations");
  std::optional<Prompt> prompt = std::move(messages);
  example.chosen = take_answer(reader, prompt, {"chosen"});
  example.rejected = take_answer(reader, prompt, {"rejected"});
  example.prompt = std::move(*prompt);
}

void read_question_answer(RowReader& reader) {
  const std::string question = reader.take_text({"question"});
  if (question.empty()) reader.fail("question", "a prompt", "an empty text");
  const ordered_json answer = reader.take({"answer"});
  reader.example().prompt = Messages{{"user", question}};
  if (answer.is_string()) reader.example().completion = as_answer(answer.get<std::string>());
  reader.example().ground_truth = answer;
  reader.put("answer", answer);
}

void read_text(RowReader& reader) {
  refuse_earlier_turns(reader, "plain text");
  reader.example().prompt = std::string();
  reader.example().completion = as_answer(reader.take_text({"text"}));
}

// The readers are in the order of DataShape.
constexpr void (*kReaders[])(RowReader&) = {read_prompt_completion,
                                            read_messages,
                                            read_preference,
                                            read_rejected_response,
                                            read_labelled,
                                            read_steps,
                                            read_verl,
                                            read_prompt,
                                            read_alpaca,
                                            read_sharegpt,
                                            read_question_answer,
                                            read_text};
static_assert(std::size(kReaders) == static_cast<size_t>(DataShape::kText) + 1);

void refuse_unshown(const RowReader& reader) {
  for (const std::string column : {"images", "image", "videos", "video", "audios", "audio"}) {
    if (!reader.has(column) || reader.holds_nothing(column)) continue;
    throw base::InputError(base::expectation(
        reader.where(column), "no " + column + " beside a prompt", "some, which nothing here shows to the model",
        fmt::format("data columns: {{{}: hidden_{}}} to train without showing them", column, column)));
  }
}

}  // namespace

Example to_example(DataShape shape, Row&& row, const RowLocation& location) {
  read_list_cells(row, location);
  RowReader reader(std::move(row), location);
  base::at(kReaders, shape)(reader);
  add_earlier_turns(reader);
  find_flag(reader);
  take_template_inputs(reader);
  refuse_unshown(reader);
  return reader.finish();
}

}  // namespace collimate::text
