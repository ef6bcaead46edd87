#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/text/dataset.h"
#include "collimate/text/messages_json.h"
#include "collimate/text/table_cells.h"

namespace collimate::text {
namespace {

using nlohmann::ordered_json;

// One row being turned into an example: columns are taken out of it, what is left becomes `extra`.
class RowReader {
 public:
  RowReader(Row&& row, const RowLocation& location) : row_(std::move(row)) { example_.location = location; }

  Example& example() { return example_; }
  bool has(const std::string& column) const {
    const auto found = row_.find(column);
    return found != row_.end() && !found->is_null();
  }
  // An empty text, list or object.
  bool holds_nothing(const std::string& column) const {
    const ordered_json& value = row_.at(column);
    return value.is_string() ? value.get_ref<const std::string&>().empty() : value.is_structured() && value.empty();
  }
  bool has_text(const std::string& column) const { return has(column) && row_.at(column).is_string(); }
  std::string where(const std::string& column) const { return example_.location.text() + " column " + column; }

  // Takes the first of the columns that is there.
  ordered_json take(std::initializer_list<const char*> columns) {
    for (const char* column : columns) {
      if (!has(column)) continue;
      ordered_json value = std::move(row_[column]);
      row_.erase(column);
      return value;
    }
    fail(*columns.begin(), "a value", "none");
  }

  // Notes what the row calls its prompt.
  void call_prompt(const std::string& column) { prompt_column_ = column; }
  const std::string& prompt_column() const { return prompt_column_; }

  // Leaves a column in `extra`.
  void put(const char* column, ordered_json value) { row_[column] = std::move(value); }

  std::string text(const ordered_json& value, const std::string& column) const {
    if (!value.is_string()) fail(column, "text", value.type_name());
    return value.get<std::string>();
  }
  std::string take_text(std::initializer_list<const char*> columns) { return text(take(columns), *columns.begin()); }

  [[noreturn]] void fail(const std::string& column, const std::string& expected, const std::string& got) const {
    throw base::InputError(base::expectation(where(column), expected, got));
  }

  Example finish() {
    if (example_.ground_truth.is_null()) find_ground_truth();
    example_.extra = nlohmann::json(row_);
    return std::move(example_);
  }

 private:
  void find_ground_truth() {
    for (const char* column : {"ground_truth", "answer", "solution", "label"}) {
      if (!has(column)) continue;
      example_.ground_truth = row_[column];
      return;
    }
  }

  std::string prompt_column_ = "prompt";
  Row row_;
  Example example_;
};

constexpr const char* kEarlierTurns[] = {"system", "history"};

// The turns that system and history [[question, answer]…] put before a prompt (LLaMA-Factory, ms-swift).
Messages take_earlier_turns(RowReader& reader) {
  Messages turns;
  const std::string system = reader.has("system") ? reader.take_text({"system"}) : "";
  if (!system.empty()) turns.push_back({"system", system});
  if (!reader.has("history")) return turns;
  const ordered_json history = reader.take({"history"});
  if (!history.is_array()) reader.fail("history", "pairs of texts", history.type_name());
  for (const ordered_json& turn : history) {
    if (!turn.is_array() || turn.size() != 2) reader.fail("history", "pairs of texts", turn.dump());
    turns.push_back({"user", reader.text(turn[0], "history")});
    turns.push_back({"assistant", reader.text(turn[1], "history")});
  }
  return turns;
}

// Puts them before the prompt, unless it begins with them already. A text is then what the user says.
void add_earlier_turns(RowReader& reader) {
  Messages turns = take_earlier_turns(reader);
  if (turns.empty()) return;
  const std::string column = turns[0].role == "system" ? "system" : "history";
  Prompt& prompt = reader.example().prompt;
  if (std::holds_alternative<std::vector<int32_t>>(prompt)) {
    reader.fail(column, "a prompt of text or messages beside it", "token ids");
  }
  const auto* text = std::get_if<std::string>(&prompt);
  Messages messages = text != nullptr ? Messages{{"user", *text}} : *turns_of(prompt);
  const bool repeated = messages.size() >= turns.size() && std::equal(turns.begin(), turns.end(), messages.begin());
  if (!repeated && messages.front().role == "system") {
    reader.fail(column, "messages without a system message beside it", "one that says something else");
  }
  if (!repeated) messages.insert(messages.begin(), turns.begin(), turns.end());
  prompt = std::move(messages);
}

// Gives the template what stands beside the turns.
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

// Where a text is no user's turn, no turn can stand before it.
void refuse_earlier_turns(const RowReader& reader, const std::string& shape) {
  for (const char* column : kEarlierTurns) {
    if (!reader.has(column) || reader.holds_nothing(column)) continue;
    throw base::InputError(
        base::expectation(reader.where(column), "no such column beside " + shape, "one",
                          "a prompt column of its own, or data columns: {" + std::string(column) + ": another_name}"));
  }
}

// A prompt as text, messages or ids; an empty one is an error.
Prompt parse_prompt(const RowReader& reader, const ordered_json& value, const std::string& column) {
  if (value.is_string()) {
    if (value.get_ref<const std::string&>().empty()) reader.fail(column, "a prompt", "an empty text");
    return value.get<std::string>();
  }
  if (!value.is_array() || value.empty()) reader.fail(column, "a prompt (text, messages or ids)", value.type_name());
  if (!value[0].is_number_integer()) return messages_from_json(value, reader.where(column));
  std::vector<int32_t> ids;
  for (const ordered_json& id : value) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > INT32_MAX) {
      reader.fail(column, "token ids", id.dump());
    }
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

Message as_answer(std::string text) { return {"assistant", std::move(text)}; }

// The assistant's message, or messages of which the last is the assistant's; those before it go to `turns`.
Message parse_answer(const RowReader& reader, const ordered_json& value, const std::string& column, Messages& turns) {
  if (!value.is_object() && !value.is_array()) reader.fail(column, "text or messages", value.type_name());
  turns = value.is_object() ? Messages{message_from_json(value, reader.where(column))}
                            : messages_from_json(value, reader.where(column));
  if (turns.back().role != "assistant")
    reader.fail(column, "a last message by the assistant", "'" + turns.back().role + "'");
  Message answer = std::move(turns.back());
  turns.pop_back();
  return answer;
}

// A prompt that is text must be the first thing that the user says in the turns before an answer.
void check_first_question(const RowReader& reader, const std::string& prompt, const Messages& turns,
                          const std::string& column) {
  const auto first = std::find_if(turns.begin(), turns.end(), [](const Message& turn) { return turn.role == "user"; });
  if (first != turns.end() && first->content == prompt) return;
  throw base::InputError(
      base::expectation(reader.where(reader.prompt_column()), "the user's first message in " + column,
                        first == turns.end() ? "no message of the user there" : "another text",
                        fmt::format("data columns: {{{}: first_prompt}}, which leaves the prompt to the messages",
                                    reader.prompt_column())));
}

// Turns before an answer are the whole prompt (TRL: the messages that chosen and rejected share): one that is there
// already must say the same. Beside an answer that is a message, a text is what the user says.
void adopt_turns(const RowReader& reader, std::optional<Prompt>& prompt, Messages turns, const std::string& column) {
  const auto* text = prompt ? std::get_if<std::string>(&*prompt) : nullptr;
  if (turns.empty()) {
    if (text != nullptr) prompt = Messages{{"user", *text}};
    return;
  }
  if (text != nullptr) {
    check_first_question(reader, *text, turns, column);
  } else if (prompt && *prompt != Prompt(turns)) {
    reader.fail(column, "before the answer the turns of the prompt, as the row's other columns have it, or none",
                fmt::format("{} others", turns.size()));
  }
  prompt = std::move(turns);
}

// `prompt` becomes what the answer's messages say of it.
Message take_answer(RowReader& reader, std::optional<Prompt>& prompt, std::initializer_list<const char*> columns) {
  const auto found = std::find_if(columns.begin(), columns.end(), [&](const char* name) { return reader.has(name); });
  const std::string column = found != columns.end() ? *found : *columns.begin();
  const ordered_json value = reader.take(columns);
  if (value.is_string()) return as_answer(value.get<std::string>());
  Messages turns;
  Message answer = parse_answer(reader, value, column, turns);
  adopt_turns(reader, prompt, std::move(turns), column);
  return answer;
}

// Messages; where the assistant speaks last, that is the completion.
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
    throw base::InputError(base::expectation(reader.where(column), "true or false (or 1 or 0) beside an answer",
                                             value.dump(),
                                             "data columns: {" + column + ": another_name} if it says something else"));
}

// The label that stands beside an answer in columns of any shape.
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

// chosen and rejected that both begin with the prompt: their common part up to the last assistant's turn (hh-rlhf),
// else up to the last space.
std::string common_prompt(const std::string& chosen, const std::string& rejected) {
  size_t common = 0;
  while (common < std::min(chosen.size(), rejected.size()) && chosen[common] == rejected[common]) ++common;
  static const std::string kTurn = "\n\nAssistant:";
  const size_t turn = chosen.substr(0, common).rfind(kTurn);
  if (turn != std::string::npos) return chosen.substr(0, turn + kTurn.size());
  const size_t space = chosen.substr(0, common).find_last_of(" \n");
  return space == std::string::npos ? "" : chosen.substr(0, space);
}

void split_texts(RowReader& reader) {
  refuse_earlier_turns(reader, "chosen and rejected that hold their prompt");
  const std::string left = reader.take_text({"chosen"}), right = reader.take_text({"rejected"});
  const std::string prompt = common_prompt(left, right);
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

// Columns stay in `extra`, for reward functions of verl's form.
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

// system, history and instruction + input as LLaMA-Factory reads them.
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
