#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collimate/batch/batch.h"
#include "collimate/text/dataset.h"

namespace collimate::rlhf {

// How examples become rows.
enum class RowKind {
  kPrompt,         // ids = the prompt's tokens; `samples` rows of one prompt_uid in a row
  kDemonstration,  // ids = prompt + completion, trainable where the loss looks (SFT)
  kPreference,     // two rows of one pair_uid: chosen, rejected
  kMarked,         // ids = prompt + completion, with a mark that the completion is desirable or not (KTO)
};

// Says what becomes of a row of more than `max_tokens`. Truncated, a prompt keeps its last tokens and any other row its
// first ones; one with nothing left to train on is dropped.
enum class LongRows { kStop, kDrop, kTruncate };

struct SourceOptions {
  RowKind kind = RowKind::kPrompt;
  std::string name = "train";  // part of the uids
  int64_t samples_per_prompt = 1;
  int64_t max_tokens = 0;  // of a row; 0: no limit
  // The longest row that the model reads, 0 for one that is not known: a larger max_tokens than this helps no row.
  int64_t model_tokens = 0;
  LongRows long_rows = LongRows::kStop;
  text::BadRows bad_rows;
  uint64_t seed = 0;
  bool shuffle = true;
  int64_t epochs = 0;              // 0: without end
  nlohmann::json sampling;         // of prompt rows, null for none
  nlohmann::json last_sampling;    // of the last sample of each prompt, where it is a baseline for the others
  bool prompt_is_trained = false;  // `trainable` marks the prompt too, and a column `completion` the answer
  // In pairs `trainable` begins in both rows with the first token in which they differ; with the last one where they
  // are equal.
  bool from_difference = false;
  // Marked rows have the columns of each prompt with the answer to the prompt before it in its iteration, of the first
  // prompt with the last answer.
  bool mismatched = false;
  bool margins = false;  // of pairs: a column `margin`, that of the data's rows, 0 where none has one
  // Whether rewards judge what follows a prompt: an answer labelled false is then refused, as no ground truth.
  bool judged = true;
  int64_t cut_tokens = 0;  // what a truncated row keeps; 0: max_tokens
  // Errors say this: the key that max_tokens is of, the data's name, why no row may be longer (", as …") and what a
  // user sets against one that is; "" for what a config has there.
  std::string limit, data, reach, long_remedy;
  std::string chatml;  // what a user sets to choose that template; "" for the key of a config
};

// Says what an example is instead of a row of `kind`, and which recipe reads such rows; "" where it has the parts of
// one.
std::string other_than(const text::Example& example, RowKind kind);

// Rows of a data set, rendered and tokenized once, shuffled anew each epoch. What an iteration reads depends on its
// number alone, so there is no cursor to save: resume is exact by construction.
class RowSource {
 public:
  // Renders everything. InputError naming file and line: a row longer than max_tokens, an empty prompt (but of plain
  // text), an empty answer that would be trained towards (a rejected one may be empty) or one labelled false
  // (which is no ground truth of a prompt either), a margin
  // that is no number or that only some rows have, turns that nothing marks; naming the data: weights under which an
  // epoch has no row.
  RowSource(const text::Dataset& dataset, const text::Renderer& renderer, SourceOptions options);

  // Rows [first, first + count) of an iteration of `rows` rows: both multiples of rows_per_example(). Iteration i takes
  // examples i·n … (i + 1)·n - 1 of the endless shuffled sequence; rows beyond `rows` (which replace dropped ones) take
  // random examples. One that its weight uses more than once in an epoch has uids of its own each time. Columns: uid,
  // ids, trainable, prompt_tokens, prompt_uid, example; pair_uid (kPreference), desirable (kMarked), sampling (kPrompt,
  // when set).
  Batch rows(int64_t iteration, int64_t rows, int64_t first, int64_t count) const;
  // The numbers in file order, from 0, of examples [first, first + count) of that sequence.
  std::vector<int64_t> order(int64_t first, int64_t count) const;
  // Every example once, in file order: for evaluation. At most `examples` of them; 0: all. The uids of a row of the
  // data are the same for every tokenizer, of which each may leave out other rows.
  Batch all(int64_t examples = 0) const;

  int64_t examples() const { return static_cast<int64_t>(rendered_.size()); }
  // One epoch has the examples that their weights let in, as often as these say.
  int64_t epoch_examples() const { return epoch_examples_; }
  int64_t rows_per_example() const;

  bool has_margins() const { return !margins_.empty(); }
  const text::LeftOut& bad() const { return bad_; }
  const text::LeftOut& too_long() const { return too_long_; }
  // Examples whose trained answers are rendered without their thoughts, and the place of the first.
  const text::LeftOut& thoughtless() const { return thoughtless_; }
  int64_t truncated() const { return truncated_; }  // examples

  // An example in file order, without a copy: its rendered rows (one, or chosen and rejected), and what rewards see.
  const std::vector<text::RenderedTokens>& rendered(int64_t example) const { return rendered_.at(example).rows; }
  const nlohmann::json& example(int64_t example) const { return rendered_.at(example).example; }
  // The number, from 0, of the data set's row that it was made of, and where that stands: "train.jsonl:12".
  int64_t row(int64_t example) const { return rendered_.at(example).row; }
  std::string place(int64_t example) const {
    const Rendered& made = rendered_.at(example);
    return text::RowLocation{files_.at(made.file), made.row_in_file, made.line}.text();
  }

 private:
  struct Rendered {
    std::vector<text::RenderedTokens> rows;  // one, or chosen and rejected
    nlohmann::json example;
    bool desirable = false;  // of a marked one
    int64_t row = 0;         // of the data set
    size_t file = 0;         // of files_
    int64_t line = 0, row_in_file = 0;
  };
  struct Pick {
    int64_t use = 0;  // row + k·examples() for the k-th use, from 0, of that row in its epoch
    int64_t epoch = 0;
    int64_t attempt = 0;  // > 0 for a replacement
    bool by_row = false;  // uids are of the data set's row, whatever rows are left out
  };
  // The example's rows as they are trained; none when it is left out.
  std::vector<text::RenderedTokens> rows_of(const text::Example& example, const text::Renderer& renderer);
  std::string nothing_left() const;  // why an epoch has no example
  size_t example_of(const Pick& pick) const { return static_cast<size_t>(pick.use % examples()); }
  Pick pick(int64_t iteration, int64_t examples, int64_t index) const;
  int64_t uid_of(const Pick& pick, const char* purpose, int64_t sample) const;
  Batch make(const std::vector<Pick>& picks) const;
  void add_marks(Batch& rows, const std::vector<Pick>& picks) const;
  void add_mismatched(Batch& rows, const std::vector<Pick>& picks, const Pick& before) const;
  void add_sampling(Batch& rows) const;

  SourceOptions options_;
  text::OrderOptions order_;
  std::vector<Rendered> rendered_;
  std::vector<std::string> files_;  // each once, as rows follow each other
  std::vector<float> margins_;      // by example; empty for none
  text::LeftOut bad_, too_long_, thoughtless_;
  int64_t truncated_ = 0;
  int64_t epoch_examples_ = 0;
  mutable int64_t cached_epoch_ = -1;
  mutable std::vector<int64_t> cached_order_;
};

// The data set's row as rewards see it: its extra columns, `ground_truth` and `prompt` (text).
nlohmann::json example_json(const text::Example& example, const std::string& prompt_text);

}  // namespace collimate::rlhf
