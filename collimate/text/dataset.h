#pragma once

#include <functional>
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
  kSteps,             // TRL's process reward models: prompt + completions [steps] + labels [true or false for each]
  kVerl,              // data_source, prompt (messages), reward_model.ground_truth, extra_info
  kPrompt,            // prompt (text, messages or ids) and other columns
  kAlpaca,            // instruction, input, output; with chosen + rejected a preference
  kShareGpt,          // conversations [{from, value}]; with chosen + rejected a preference
  kQuestionAnswer,    // gsm8k: question + answer
  kText,              // text
};
std::string shape_name(DataShape shape);

// A step of an answer, and whether it is right.
struct LabelledStep {
  std::string text;
  bool right = false;
};

// One row in the form that recipes use, whatever shape it had. Prompts of shapes made for chat models (messages, verl,
// alpaca, sharegpt, question + answer) are messages; a prompt that is plain text in the data stays text, unless turns
// stand before it or its answers are messages. Turns that stand before an answer are the prompt; a prompt column must
// say the same. The columns system and history [[question, answer]…] become turns before the prompt; beside ids and
// beside plain text without a prompt of its own they are refused. The columns tools (a list, or its JSON as a text) and
// chat_template_kwargs (an object) go with a prompt of messages; beside another they are refused.
struct Example {
  Prompt prompt;                                        // empty text for kText
  std::optional<Message> completion, chosen, rejected;  // messages of the assistant
  nlohmann::json ground_truth;      // reward_model.ground_truth, ground_truth, answer, solution or label; null for none
  std::optional<bool> label;        // KTO's desirable / undesirable
  std::vector<LabelledStep> steps;  // of an answer, in their order; empty for none
  // Every column that did not become prompt, completion, chosen, rejected or steps; rewards get them by name.
  nlohmann::json extra = nlohmann::json::object();
  RowLocation location;
};

// One source of rows. `columns` renames the file's columns, all at once, before the shape is recognised: {"problem":
// "prompt"}.
struct DataSource {
  std::string path;
  std::string format = "auto";
  double weight = 1.0;  // times that each row is used per epoch
  std::map<std::string, std::string> columns;
};

// Returns the shape of one row by its columns; nullopt when none fits.
std::optional<DataShape> recognise_shape(const Row& row);
// Makes an example of a row. Throws InputError "[file:line] expected …" when a part that the shape needs is missing,
// empty or of a wrong type.
Example to_example(DataShape shape, Row&& row, const RowLocation& location);

// BadRows says what becomes of rows that cannot be used.
struct BadRows {
  bool drop = false;   // leave them out; else they are an error
  std::string remedy;  // the setting that leaves them out, for that error; "" for none
};

// Counts the rows that were left out, and keeps why the first of them was.
struct LeftOut {
  int64_t rows = 0;
  std::string first;

  void add(const std::string& reason) {
    if (rows++ == 0) first = reason;
  }
  // Throws the first one's InputError where no row may be left out. It names the remedy where `used` rows would remain.
  void require_none(const BadRows& bad, int64_t used) const;
};

// Has all rows of all sources, in order. Few rows are held in memory. Of many, only how they are read is kept: each
// pass over them reads the files again, which must not change meanwhile. After read() only hold_out() and keep_first()
// change a data set.
class Dataset {
 public:
  using Visit = std::function<void(int64_t row, const Example& example)>;
  // Rows with more bytes of content in all are not held. So many take about 100 MiB with their tokens, as much as the
  // program without them.
  static constexpr int64_t kHeldBytes = int64_t{8} << 20;

  // Reads all sources. Throws InputError for a source without rows to use, an unrecognised shape (naming the columns
  // and the shapes), or any bad row that may not be left out.
  static Dataset read(const std::vector<DataSource>& sources, const BadRows& bad = {}, int64_t held_bytes = kHeldBytes);

  int64_t size() const { return rows_; }
  bool is_held() const { return held_; }
  // Visits all rows in order. Throws InputError, after the last row, where files of rows that are not held have changed
  // since they were read.
  void for_each(const Visit& visit) const;
  // Returns the first row that was read.
  const Example& first() const;
  // Return rows that are held.
  const Example& example(int64_t row) const;
  const std::vector<Example>& examples() const { return examples_; }
  // Returns one line per source for the user: file, rows, recognised shape, and which columns became what. `others`
  // says who gets the other columns: ", which rewards get".
  std::vector<std::string> verdict(const std::string& others = "") const;
  const LeftOut& left_out() const { return left_out_; }
  // Moves `count` rows, drawn by the seed alone, to a new data set, where they keep the order of the file and are used
  // once an epoch. This data set keeps the fingerprint() and verdict() of all rows; the new one has none. `count` is
  // more than 0 and less than size().
  Dataset hold_out(int64_t count, uint64_t seed);
  // Drops the rows behind the first `count`.
  void keep_first(int64_t count);
  // Returns the rows and the weight of each source, for OrderOptions.
  const std::vector<RowWeight>& weights() const { return weights_; }
  // Returns a hash of the normalised content of all rows that were read, which is stable over runs and machines.
  uint64_t fingerprint() const { return fingerprint_; }
  // Throws InputError, which names the first row without the part. `part` is "completion", "chosen", "rejected",
  // "label" or "ground_truth"; `reader` says who needs it.
  void require(const std::string& part, const std::string& reader) const;

 private:
  struct Verdict {
    std::string read, others;  // columns
  };
  void read_source(const DataSource& source, const BadRows& bad, int64_t held_bytes);
  void add(Example&& example, int64_t held_bytes);
  void read_again(const Visit& visit) const;
  // Moves the rows that are drawn, by their numbers here, to a data set of the same files.
  Dataset take_out(const std::vector<bool>& drawn);

  std::vector<DataSource> sources_;
  std::vector<Example> examples_;  // empty where the rows are not held
  std::vector<bool> chosen_;       // where they are not held: which of the files' rows are in this data set
  std::optional<Example> first_;
  std::vector<Verdict> verdict_;
  std::vector<RowWeight> weights_;
  uint64_t fingerprint_ = 0, files_fingerprint_ = 0;
  int64_t rows_ = 0, content_bytes_ = 0;
  bool held_ = true;
  LeftOut left_out_;
};

// Returns whether the turns of a conversation of `fewest` turns or more would follow each other with nothing between
// them, as the template does not mark where a turn ends.
bool joins_turns(const Prompt& prompt, const Renderer& renderer, size_t fewest);
// Returns the message about such turns. `remedy` says how the reader chooses another template.
std::string joined_turns_message(const std::string& where, const std::string& remedy);
// Throws InputError with that message where the example's prompt has such turns.
void require_marked_turns(const Example& example, const Renderer& renderer, size_t fewest, const std::string& remedy);

}  // namespace collimate::text
