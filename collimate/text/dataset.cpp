#include "collimate/text/dataset.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/philox.h"

namespace collimate::text {
namespace {

using nlohmann::json;

template <class Json>
std::string column_names(const Json& row) {
  std::string names;
  for (const auto& [name, value] : row.items()) names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? "none" : names;
}

// All columns are taken out before any is put back, so that two may change names.
void rename_columns(Row& row, const DataSource& source, const RowLocation& location) {
  std::map<std::string, json> taken;
  for (const auto& [from, to] : source.columns) {
    const auto found = row.find(from);
    if (found == row.end()) {
      throw base::InputError(base::expectation(location.text(), "column '" + from + "' of data columns",
                                               "the columns " + column_names(row), "one of them in its place"));
    }
    taken[from] = std::move(*found);
    row.erase(found);
  }
  for (const auto& [from, to] : source.columns) {
    if (row.contains(to)) {
      throw base::InputError(
          base::expectation(location.text(), fmt::format("no column '{}' where data columns has {}: {}", to, from, to),
                            "one", fmt::format("data columns: {{{}: another_name}} too", to)));
    }
    row[to] = std::move(taken[from]);
  }
}

// Returns "frage: prompt, antwort: completion": the first two columns as what most recipes read, unless a later one is
// an answer by its name.
std::string columns_by_place(const Row& row) {
  constexpr std::string_view kAnswers[] = {"response", "output", "answer", "reply", "target", "assistant"};
  std::string prompt, answer, second;
  for (const auto& [name, value] : row.items()) {
    if (answer.empty() && std::ranges::find(kAnswers, name) != std::end(kAnswers))
      answer = name;
    else if (prompt.empty())
      prompt = name;
    else if (second.empty())
      second = name;
  }
  if (answer.empty()) answer = second;
  if (prompt.empty() || answer.empty()) return fmt::format("{}: prompt", prompt.empty() ? answer : prompt);
  return fmt::format("{}: prompt, {}: completion", prompt, answer);
}

// Returns the column that holds a list of rows, as files of some services have it; "" where none does.
std::string column_of_rows(const Row& row, const RowLocation& location) {
  if (row.size() != 1) return "";
  const Row& value = row.front();
  const bool rows = value.is_array() && !value.empty() && value.front().is_object();
  const bool taken_apart =
      location.file.ends_with(".json") && value.is_object();  // an object of lists is read as columns
  return rows || taken_apart ? row.begin().key() : "";
}

// Returns "{frage: question, optionen: choices, loesung: answer}" for a row whose columns look like these; "" for
// others.
std::string columns_of_choices(const Row& row) {
  std::string question, choices, answer;
  for (const auto& [name, value] : row.items()) {
    const bool list = value.is_array() || (value.is_object() && value.contains("text"));
    std::string& column = list ? choices : value.is_string() && question.empty() ? question : answer;
    column = name;
  }
  if (question.empty() || choices.empty() || answer.empty()) return "";
  std::string text;
  for (const auto& [theirs, ours] : {std::pair(question, "question"), {choices, "choices"}, {answer, "answer"}})
    if (theirs != ours) text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", theirs, ours);
  return text;
}

[[noreturn]] void shape_unknown(const Row& row, const RowLocation& location) {
  if (const std::string column = column_of_rows(row, location); !column.empty())
    throw base::InputError(base::expectation(location.text(), "a row in each line, or a list of rows",
                                             fmt::format("one object whose '{}' is a list of rows", column),
                                             fmt::format("jq -c '.{}[]' {} > rows.jsonl", column, location.file)));
  const std::string choices = columns_of_choices(row);
  throw base::InputError(
      base::expectation(location.text(),
                        "columns of a known shape (prompt; prompt + completion; messages; prompt + chosen + rejected; "
                        "instruction + output; conversations; question + answer; question + choices + answer; text)",
                        column_names(row),
                        fmt::format("saying which is which: {{path: {}, columns: {{{}}}}} in the place of the path",
                                    location.file, choices.empty() ? columns_by_place(row) : choices)));
}

std::string prompt_kind(const Prompt& prompt) {
  if (turns_of(prompt) != nullptr) return "messages";
  return std::holds_alternative<std::string>(prompt) ? "text" : "token ids";
}

// Returns "prompt (messages), completion, ground truth": the parts that the example has.
std::string parts_of(const Example& example) {
  std::string parts = "prompt (" + prompt_kind(example.prompt) + ")";
  if (const auto* conversation = std::get_if<Conversation>(&example.prompt)) {
    if (!conversation->inputs.tools.is_null()) parts += ", tools";
    if (!conversation->inputs.variables.is_null()) parts += ", chat_template_kwargs";
  }
  if (example.completion) parts += ", completion";
  if (example.chosen) parts += ", chosen, rejected";
  if (example.label) parts += ", label";
  if (!example.steps.empty()) parts += ", steps with labels";
  if (!example.ground_truth.is_null()) parts += ", ground truth";
  return parts;
}

// Returns the form in which a message is hashed: a list of its role, its content and, where it has any, its other
// members; or the content alone, for an answer without other members.
json hashed_form(const Message& message, bool with_role) {
  if (!with_role && message.more.is_null()) return message.content;
  json out = {message.role, message.content};
  if (!message.more.is_null()) out.push_back(json(message.more));
  return out;
}

json prompt_json(const Prompt& prompt) {
  if (const auto* text = std::get_if<std::string>(&prompt)) return *text;
  if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) return *ids;
  const auto& conversation = std::get<Conversation>(prompt);
  json out = json::array();
  for (const Message& message : conversation.turns) out.push_back(hashed_form(message, true));
  if (!conversation.inputs.empty())
    out.push_back(json::array({json(conversation.inputs.tools), json(conversation.inputs.variables)}));
  return out;
}

// Returns the normalised content of a row, which is hashed.
std::string content_of(const Example& example) {
  const auto answer = [](const std::optional<Message>& part) { return part ? hashed_form(*part, false) : json(); };
  json whole = {prompt_json(example.prompt), answer(example.completion), answer(example.chosen),
                answer(example.rejected),    example.ground_truth,       example.extra};
  for (const LabelledStep& step : example.steps) whole.push_back({step.text, step.right});
  return whole.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Returns what a file's rows of two shapes are refused with, where the row can be read by itself; "" where it can not.
std::string mixed_shapes(DataShape of_file, DataShape of_row, Row&& row, const RowLocation& location) {
  try {
    to_example(of_row, std::move(row), location);
  } catch (const base::InputError&) {
    return "";
  }
  return base::expectation(location.text(), fmt::format("{}, as the file's first row is", shape_name(of_file)),
                           shape_name(of_row), "a file for each shape, and a list of these files");
}

// Makes an example of a row. The first row that can be read tells the shape. A prompt alone is a row that lacks
// something, and not of another shape.
Example read_example(const DataSource& source, std::optional<DataShape>& shape, const RowLocation& location,
                     Row&& row) {
  rename_columns(row, source, location);
  const std::optional<DataShape> own = recognise_shape(row);
  if (!shape) shape = own;
  if (!shape) shape_unknown(row, location);
  if (!own || own == shape || own == DataShape::kPrompt) return to_example(*shape, std::move(row), location);
  Row other = row;
  try {
    return to_example(*shape, std::move(row), location);
  } catch (const base::InputError&) {
    if (const std::string mixed = mixed_shapes(*shape, *own, std::move(other), location); !mixed.empty())
      throw base::InputError(mixed);
    throw;
  }
}

std::string paths_of(const std::vector<DataSource>& sources) {
  std::string paths;
  for (const DataSource& source : sources) paths += (paths.empty() ? "" : ", ") + source.path;
  return paths;
}

bool has_part(const Example& example, const std::string& part) {
  if (part == "completion") return example.completion.has_value();
  if (part == "chosen") return example.chosen.has_value();
  if (part == "rejected") return example.rejected.has_value();
  if (part == "label") return example.label.has_value();
  COLLIMATE_CHECK(part == "ground_truth", "part '{}'", part);
  return !example.ground_truth.is_null();
}

}  // namespace

void LeftOut::require_none(const BadRows& bad, int64_t used) const {
  if (bad.drop || rows == 0) return;
  if (bad.remedy.empty() || used == 0) throw base::InputError(first);
  throw base::InputError(fmt::format("{}{}{}, which leaves out {} of {} rows", first,
                                     first.find("; try ") == std::string::npos ? "; try " : ", or ", bad.remedy, rows,
                                     rows + used));
}

Dataset Dataset::read(const std::vector<DataSource>& sources, const BadRows& bad, int64_t held_bytes) {
  Dataset out;
  for (const DataSource& source : sources) out.read_source(source, bad, held_bytes);
  if (out.rows_ == 0) {
    throw base::InputError(base::expectation("data", "at least one row", "no source of data"));
  }
  out.sources_ = sources;
  out.files_fingerprint_ = out.fingerprint_;
  if (!out.held_) out.chosen_.assign(static_cast<size_t>(out.rows_), true);
  return out;
}

// All rows are read before a bad one becomes an error, so that the error says how many there are.
void Dataset::read_source(const DataSource& source, const BadRows& bad, int64_t held_bytes) {
  const int64_t before = rows_;
  std::optional<DataShape> shape;
  std::optional<Example> first;
  LeftOut left_out;
  const auto leave_out = [&](const std::string& reason) { left_out.add(reason); };
  const auto take_or_leave = [&](const RowLocation& location, Row&& row) {
    try {
      Example example = read_example(source, shape, location, std::move(row));
      if (!first) first = example;
      add(std::move(example), held_bytes);
    } catch (const base::InputError& error) {
      leave_out(error.what());
    }
  };
  read_rows(source.path, source.format, take_or_leave, leave_out);
  const int64_t rows = rows_ - before;
  left_out.require_none(bad, rows);
  if (rows == 0)
    throw base::InputError(
        base::expectation("data " + source.path, "at least one row",
                          left_out.rows > 0 ? "bad ones alone: " + left_out.first : "an empty file"));
  if (left_out_.rows == 0) left_out_.first = left_out.first;
  left_out_.rows += left_out.rows;
  weights_.push_back({rows, source.weight});
  verdict_.push_back({fmt::format("{}: {} row{} of {}, read as {}", source.path, rows, rows == 1 ? "" : "s",
                                  shape_name(*shape), parts_of(*first)),
                      first->extra.empty() ? "" : column_names(first->extra)});
  if (!first_) first_ = std::move(first);
}

void Dataset::add(Example&& example, int64_t held_bytes) {
  const std::string content = content_of(example);
  fingerprint_ = base::mix(fingerprint_, base::stable_hash(content));
  content_bytes_ += std::ssize(content);
  ++rows_;
  if (held_ && content_bytes_ > held_bytes) {
    held_ = false;
    examples_ = {};
  }
  if (held_) examples_.push_back(std::move(example));
}

void Dataset::for_each(const Visit& visit) const {
  if (!held_) return read_again(visit);
  for (int64_t row = 0; row < rows_; ++row) visit(row, example(row));
}

// A row that was left out is left out again.
void Dataset::read_again(const Visit& visit) const {
  uint64_t fingerprint = 0;
  size_t read = 0;
  int64_t row = 0;
  for (const DataSource& source : sources_) {
    std::optional<DataShape> shape;
    const auto example_of = [&](const RowLocation& location, Row&& given) -> std::optional<Example> {
      try {
        return read_example(source, shape, location, std::move(given));
      } catch (const base::InputError&) {
        return std::nullopt;
      }
    };
    const auto take = [&](const RowLocation& location, Row&& given) {
      const std::optional<Example> example = example_of(location, std::move(given));
      if (!example) return;
      fingerprint = base::mix(fingerprint, base::stable_hash(content_of(*example)));
      const bool chosen = read < chosen_.size() && chosen_[read];
      ++read;
      if (chosen) visit(row++, *example);
    };
    read_rows(source.path, source.format, take, [](const std::string&) {});
  }
  if (fingerprint != files_fingerprint_)
    throw base::InputError(base::expectation("data " + paths_of(sources_),
                                             "files that stay as they are while they are read",
                                             "other rows than at first", "starting again when nothing writes them"));
}

Dataset Dataset::hold_out(int64_t count, uint64_t seed) {
  COLLIMATE_CHECK(0 < count && count < size(), "{} of {} rows are held out", count, size());
  constexpr uint32_t kPurpose = 0x4e1d;
  std::vector<std::pair<uint64_t, int64_t>> lots;
  lots.reserve(static_cast<size_t>(size()));
  for (int64_t row = 0; row < size(); ++row)
    lots.emplace_back(base::random_bits(seed, kPurpose, static_cast<uint64_t>(row), 0), row);
  std::ranges::sort(lots);
  std::vector<bool> drawn(static_cast<size_t>(size()));
  for (int64_t i = 0; i < count; ++i) base::at(drawn, base::at(lots, i).second) = true;
  size_t row = 0;
  for (RowWeight& source : weights_)
    for (const size_t end = row + static_cast<size_t>(source.rows); row < end; ++row)
      if (drawn[row]) --source.rows;
  Dataset out = take_out(drawn);
  out.weights_.push_back({count, 1.0});
  return out;
}

Dataset Dataset::take_out(const std::vector<bool>& drawn) {
  Dataset out;
  out.held_ = held_;
  if (held_) {
    std::vector<Example> left;
    for (size_t row = 0; row < examples_.size(); ++row)
      (drawn[row] ? out.examples_ : left).push_back(std::move(examples_[row]));
    examples_ = std::move(left);
  } else {
    out.sources_ = sources_;
    out.files_fingerprint_ = files_fingerprint_;
    out.chosen_.assign(chosen_.size(), false);
    size_t row = 0;
    for (size_t read = 0; read < chosen_.size(); ++read)
      if (chosen_[read] && drawn[row++]) {
        out.chosen_[read] = true;
        chosen_[read] = false;
      }
  }
  out.rows_ = std::count(drawn.begin(), drawn.end(), true);
  rows_ -= out.rows_;
  return out;
}

void Dataset::keep_first(int64_t count) {
  if (count >= size()) return;
  if (held_) examples_.resize(static_cast<size_t>(count));
  int64_t kept = 0;
  for (size_t read = 0; read < chosen_.size(); ++read)
    if (chosen_[read] && kept++ >= count) chosen_[read] = false;
  rows_ = count;
  int64_t left = count;
  for (RowWeight& source : weights_) {
    source.rows = std::min(source.rows, left);
    left -= source.rows;
  }
}

std::vector<std::string> Dataset::verdict(const std::string& others) const {
  std::vector<std::string> lines;
  for (const Verdict& source : verdict_)
    lines.push_back(source.read +
                    (source.others.empty() ? "" : fmt::format("; other columns{}: {}", others, source.others)));
  return lines;
}

const Example& Dataset::first() const {
  COLLIMATE_CHECK(first_.has_value(), "a data set of rows that were held out");
  return *first_;
}

const Example& Dataset::example(int64_t row) const {
  COLLIMATE_CHECK(held_ && row >= 0 && row < size(), "row {} of {}", row, size());
  return base::at(examples_, row);
}

void Dataset::require(const std::string& part, const std::string& reader) const {
  std::string place;
  for_each([&](int64_t, const Example& example) {
    if (place.empty() && !has_part(example, part)) place = example.location.text();
  });
  if (place.empty()) return;
  throw base::InputError(base::expectation(place, fmt::format("{}, which {} needs", part, reader), "a row without it"));
}

bool joins_turns(const Prompt& prompt, const Renderer& renderer, size_t fewest) {
  const Messages* turns = turns_of(prompt);
  return turns != nullptr && turns->size() >= fewest && !renderer.chat().marks_turns();
}

std::string joined_turns_message(const std::string& where, const std::string& remedy) {
  return base::expectation(where, "a chat template, which marks where a turn ends",
                           "a model without one (a base model)", remedy);
}

void require_marked_turns(const Example& example, const Renderer& renderer, size_t fewest, const std::string& remedy) {
  if (joins_turns(example.prompt, renderer, fewest))
    throw base::InputError(joined_turns_message(example.location.text(), remedy));
}

}  // namespace collimate::text
