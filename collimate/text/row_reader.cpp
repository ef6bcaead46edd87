#include "collimate/text/row_reader.h"

#include <algorithm>
#include <cstdint>

#include "collimate/text/messages_json.h"

namespace collimate::text {
namespace {

using nlohmann::ordered_json;

constexpr const char* kEarlierTurns[] = {"system", "history"};

// Returns the assistant's message, or the last of several messages, which is the assistant's; those before it go to
// `turns`.
Message parse_answer(const RowReader& reader, const ordered_json& value, const std::string& column, Messages& turns) {
  if (!value.is_object() && !value.is_array())
    throw base::InputError(base::expectation(reader.where(column), "text or messages",
                                             fmt::format("{} {}", value.type_name(), value.dump()),
                                             fmt::format("quotes around it, \"{}\"", value.dump())));
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

// Makes turns before an answer the whole prompt (TRL: the messages that chosen and rejected share). A prompt that is
// there already must say the same. Beside an answer that is a message, a prompt that is text is what the user says.
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

}  // namespace

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

void refuse_earlier_turns(const RowReader& reader, const std::string& shape) {
  for (const char* column : kEarlierTurns) {
    if (!reader.has(column) || reader.holds_nothing(column)) continue;
    throw base::InputError(
        base::expectation(reader.where(column), "no such column beside " + shape, "one",
                          "a prompt column of its own, or data columns: {" + std::string(column) + ": another_name}"));
  }
}

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

}  // namespace collimate::text
