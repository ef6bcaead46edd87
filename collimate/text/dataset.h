#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "collimate/text/chat_template.h"
#include "collimate/text/epoch_order.h"
#include "collimate/text/rows.h"

namespace collimate::text {

enum class DataShape {
  kPromptCompletion,  // TRL: prompt + completion; also prompt + response, query + response
  kMessages,          // messages; the last assistant message is the completion
  kPreference,        // prompt + chosen + rejected (TRL), chosen + rejected with the prompt in both (hh-rlhf), or both
                      // with chosen and rejected as whole conversations (UltraFeedback)
  kRejectedResponse,  // ms-swift: messages + rejected_response
  kLabelled,          // KTO: prompt + completion + label, or messages + label / kto_tag
  kVerl,              // data_source, prompt (messages), reward_model.ground_truth, extra_info
  kPrompt,            // prompt (text, messages or ids) and other columns
  kAlpaca,            // instruction, input, output; with chosen + rejected a preference
  kShareGpt,          // conversations [{from, value}]; with chosen + rejected a preference
  kQuestionAnswer,    // gsm8k: question + answer
  kText,              // text
};
std::string shape_name(DataShape shape);

// One row in the form that recipes use, whatever shape it had. The columns tools (a list, or its JSON as a text) and
// chat_template_kwargs (an object) go with a prompt of messages; beside another they are refused. Prompts of shapes
// made for chat models (messages, verl, alpaca, sharegpt, question + answer) are messages; a prompt that is plain text
// in the data stays text, unless its answers are messages. Turns that stand before an answer are the prompt; a prompt
// column must say the same. The columns system and history [[question, answer]…] are turns before the prompt; beside
// plain text they are refused.
struct Example {
  Prompt prompt;                                        // empty text for kText
  std::optional<Message> completion, chosen, rejected;  // the assistant's
  nlohmann::json ground_truth;  // reward_model.ground_truth, ground_truth, answer, solution or label; null for none
  std::optional<bool> label;    // KTO's desirable / undesirable
  // Every column that did not become prompt, completion, chosen or rejected; rewards get them by name.
  nlohmann::json extra = nlohmann::json::object();
  RowLocation location;
};

// `columns` renames the file's columns, all at once, before the shape is recognised: {"problem": "prompt"}.
struct DataSource {
  std::string path;
  std::string format = "auto";
  double weight = 1.0;  // times that each row is used per epoch
  std::map<std::string, std::string> columns;
};

// Shape of one row by its columns; nullopt when none fits.
std::optional<DataShape> recognise_shape(const Row& row);
// Throws InputError "[file:line] expected …" when a part that the shape needs is missing, empty or of a wrong type.
Example to_example(DataShape shape, Row&& row, const RowLocation& location);

// BadRows says what becomes of rows that cannot be used.
struct BadRows {
  bool drop = false;   // they are left out; else an error
  std::string remedy;  // what a user sets to leave them out, for that error; "" for nothing
};

// Rows that were left out, and why the first of them was.
struct LeftOut {
  int64_t rows = 0;
  std::string first;

  void add(const std::string& reason) {
    if (rows++ == 0) first = reason;
  }
  // InputError of the first where they may not be left out; it names the remedy where that would leave a row to use.
  void require_none(const BadRows& bad, int64_t used) const;
};

// All rows of all sources, in order, in memory. Immutable after read().
class Dataset {
 public:
  // Throws InputError for no rows, an unrecognised shape (naming the columns and the shapes), or any bad row that may
  // not be left out.
  static Dataset read(const std::vector<DataSource>& sources, const BadRows& bad = {});

  int64_t size() const { return static_cast<int64_t>(examples_.size()); }
  const Example& example(int64_t row) const;
  const std::vector<Example>& examples() const { return examples_; }
  // One line per source for the user: file, rows, recognised shape, which columns became what. `others` says whose the
  // other columns are: ", which rewards get".
  std::vector<std::string> verdict(const std::string& others = "") const;
  const LeftOut& left_out() const { return left_out_; }
  // Moves `count` rows, drawn by the seed alone, to a data set of their own, in the order of the file and each used
  // once in an epoch. fingerprint() and verdict() stay with the rows that are left. 0 < count < size().
  Dataset hold_out(int64_t count, uint64_t seed);
  // Forgets the rows behind the first `count`, where there are more.
  void keep_first(int64_t count);
  // Returns, for OrderOptions, rows and weight of each source.
  const std::vector<RowWeight>& weights() const { return weights_; }
  // Stable over runs and machines: hash of all rows' normalised content.
  uint64_t fingerprint() const { return fingerprint_; }
  // Throws InputError naming the first row without it; `part` is "completion", "chosen", "rejected", "label" or
  // "ground_truth", `reader` who needs it.
  void require(const std::string& part, const std::string& reader) const;

 private:
  struct Verdict {
    std::string read, others;  // columns
  };
  void read_source(const DataSource& source, const BadRows& bad);

  std::vector<Example> examples_;
  std::vector<Verdict> verdict_;
  std::vector<RowWeight> weights_;
  uint64_t fingerprint_ = 0;
  LeftOut left_out_;
};

// Would the turns of a conversation of `fewest` or more stand one after the other with nothing between, as the template
// does not mark where one ends?
bool joins_turns(const Prompt& prompt, const Renderer& renderer, size_t fewest);
// Gives what is said then; `remedy` says how the reader chooses another template.
std::string joined_turns_message(const std::string& where, const std::string& remedy);
// InputError of that.
void require_marked_turns(const Example& example, const Renderer& renderer, size_t fewest, const std::string& remedy);

}  // namespace collimate::text
