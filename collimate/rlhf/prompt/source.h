#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collimate/batch/batch.h"
#include "collimate/text/dataset.h"
#include "collimate/text/rendered_rows.h"

namespace collimate::rlhf {

// Says how an example becomes rows.
enum class RowKind {
  kPrompt,         // ids = the prompt's tokens; samples_per_prompt adjacent rows share a prompt_uid
  kDemonstration,  // ids = prompt + completion, trainable where the loss looks (SFT)
  kPreference,     // two adjacent rows share a pair_uid: chosen, then rejected
  kMarked,         // ids = prompt + completion, with a mark that the completion is desirable or not (KTO)
  kSteps,          // ids = prompt + steps, trainable where a step ends, with a mark that it is right or not
};

// Says what becomes of a row of more than `max_tokens`. Truncation keeps the last tokens of a prompt and the first ones
// of any other row; then an example with a row that trains nothing, and a pair of equal rows, are dropped.
enum class LongRows { kStop, kDrop, kTruncate };

// Says what becomes of the examples at the end of an epoch that are fewer than an iteration takes: the iteration takes
// the next epoch's first ones too, they are left out, or the iteration has them alone.
enum class LastBatch { kCycle, kDrop, kRetain };

struct SourceOptions {
  RowKind kind = RowKind::kPrompt;
  std::string name = "train";  // of the data set: part of the uids
  int64_t samples_per_prompt = 1;
  int64_t max_tokens = 0;  // of a row; 0: no limit
  // The longest row that the model reads, which a larger max_tokens does not change; 0: not known.
  int64_t model_tokens = 0;
  LongRows long_rows = LongRows::kStop;
  text::BadRows bad_rows;
  uint64_t seed = 0;
  bool shuffle = true;
  LastBatch last_batch = LastBatch::kCycle;
  nlohmann::json sampling;         // sampling parameters of prompt rows; null: none
  nlohmann::json last_sampling;    // of each prompt's last sample, if that is a baseline for the others; null: not so
  bool prompt_is_trained = false;  // `trainable` marks the prompt too, and a column `completion` marks the answer
  // In both rows of a pair, `trainable` begins at the first token in which they differ, or at the last trained token of
  // the shorter row if that is the beginning of the other.
  bool from_difference = false;
  // Marked rows have the columns mismatched_*: each prompt with the answer to the prompt before it in the iteration,
  // the first prompt with the last answer.
  bool mismatched = false;
  // The rows of a pair are padded with this token to one length, and trained where their answers diverge; see
  // divergence_region.h.
  std::optional<int32_t> region_padding;
  std::string step_separator = "\n";  // follows each step of an answer, which ends with the separator's last token
  bool margins = false;               // pairs have a column `margin` from the data's rows; 0 if no row has a margin
  // Rewards judge what follows a prompt: an answer labelled false is then refused, as it is no ground truth.
  bool judged = true;
  int64_t cut_tokens = 0;  // tokens that a truncated row keeps; 0: max_tokens
  // Errors name these: the key that sets max_tokens, the data, why no row may be longer (", as …") and the remedy for
  // a row that is. "" stands for the texts that fit a run's config.
  std::string limit, data, reach, long_remedy;
  std::string chatml;  // the setting, as errors name it, that chooses the ChatML template; "": the config's key
};

// Says what the example is instead of a row of `kind`, and which recipe reads such rows. Returns "" if the example has
// the parts that `kind` needs.
std::string other_than(const text::Example& example, RowKind kind);

// Has the rows of a data set, which are rendered and tokenized once and shuffled anew each epoch. The rows of a data
// set that is not held in memory are kept on disk too. The rows of an iteration depend on its number alone, so there is
// no cursor to save: resume is exact by construction.
class RowSource {
 public:
  // Renders all examples. Throws InputError naming file and line for a row longer than max_tokens, an empty prompt
  // (allowed in plain text), an empty answer to train towards (a rejected one may be empty), an answer labelled false
  // to train towards or as a prompt's ground truth, a margin that is no number or that only some rows have, and turns
  // that nothing marks. Throws InputError naming the data if an epoch has no row under its weights.
  RowSource(const text::Dataset& dataset, const text::Renderer& renderer, SourceOptions options);

  // Returns rows [first, first + count) of an iteration of `rows` rows; all three are multiples of rows_per_example().
  // Iteration i takes examples i·n … (i + 1)·n - 1 of the endless shuffled sequence, n being the examples of `rows`
  // rows; where epochs are cut (epoch_iterations), it does so within its epoch. Rows from rows_of() on, which replace
  // dropped ones, take random examples. An example that its weight uses several times in an epoch has other uids each
  // time. Columns: uid, ids, trainable, prompt_tokens, prompt_uid, example; pair_uid (kPreference), unpadded_tokens
  // (kPreference, with region_padding), desirable (kMarked), step_right (kSteps), sampling (kPrompt, when set).
  Batch rows(int64_t iteration, int64_t rows, int64_t first, int64_t count) const;
  // Returns the numbers, in file order from 0, of examples [first, first + count) of the endless sequence.
  std::vector<int64_t> order(int64_t first, int64_t count) const;
  // Returns each example once, in file order, for evaluation: at most `examples` of them, or all with 0. A row of the
  // data has the same uids with every tokenizer, though each tokenizer may leave out other rows.
  Batch all(int64_t examples = 0) const;

  int64_t examples() const { return rendered_.size(); }
  // Returns the number of examples in one epoch, each counted as often as its weight uses it.
  int64_t epoch_examples() const { return epoch_examples_; }
  int64_t rows_per_example() const;
  // Returns the number of iterations of `rows` rows in an epoch; 0 with LastBatch::kCycle, as epochs then begin within
  // iterations.
  int64_t epoch_iterations(int64_t rows) const;
  // Returns how many rows an iteration has: `rows`, or fewer in the last one of an epoch with LastBatch::kRetain.
  int64_t rows_of(int64_t iteration, int64_t rows) const;
  // Throws InputError where LastBatch::kDrop leaves no iteration of so many rows in an epoch, as rows() does.
  void require_iteration(int64_t rows) const;

  bool has_margins() const { return !margins_.empty(); }
  const text::LeftOut& bad() const { return bad_; }
  const text::LeftOut& too_long() const { return too_long_; }
  // Returns how many examples have trained answers that are rendered without their thoughts, and where the first is.
  const text::LeftOut& thoughtless() const { return thoughtless_; }
  int64_t truncated() const { return truncated_; }  // examples

  // Return an example's rendered rows (one, or chosen and rejected) and the JSON that rewards see, by its number in
  // file order.
  std::vector<text::RenderedTokens> rendered(int64_t example) const { return rendered_.at(example).rows; }
  nlohmann::json example(int64_t example) const { return rendered_.at(example).example; }
  // Return the number, from 0, of the data set's row that the example was made of, and its place: "train.jsonl:12".
  int64_t row(int64_t example) const { return rendered_.at(example).row; }
  std::string place(int64_t example) const;

 private:
  struct Pick {
    int64_t use = 0;  // row + k·examples() for the k-th use, from 0, of that row in its epoch
    int64_t epoch = 0;
    int64_t attempt = 0;  // > 0 for a replacement
    bool by_row = false;  // uids follow from the row's number in the data set, not from `use`
  };
  // Adds the example of a row of the data set, unless it is left out. Returns whether it was added.
  bool take(int64_t row, const text::Example& example, const text::Renderer& renderer);
  // Returns the example's rows as they are trained, or none if the example is left out.
  std::vector<text::RenderedTokens> rows_of(const text::Example& example, const text::Renderer& renderer);
  std::string nothing_left() const;  // why an epoch has no example
  int64_t example_of(const Pick& pick) const { return pick.use % examples(); }
  Pick pick(int64_t iteration, int64_t examples, int64_t index) const;
  Pick pick_of_sequence(int64_t number) const;
  Batch make(const std::vector<Pick>& picks) const;
  void add_steps(Batch& rows, const std::vector<Pick>& picks) const;
  // `row` is the number of the pick's row in the data set.
  int64_t uid_of(const Pick& pick, int64_t row, const char* purpose, int64_t sample) const;
  void add_margins(Batch& rows, const std::vector<Pick>& picks) const;
  void add_mismatched(Batch& rows, const std::vector<Pick>& picks, const Pick& before) const;
  void add_sampling(Batch& rows) const;

  SourceOptions options_;
  text::OrderOptions order_;
  text::RenderedRows rendered_;
  std::vector<std::string> files_;  // each once for a series of rows of one file; examples have its number
  std::vector<float> margins_;      // by example; empty: no row has one
  text::LeftOut bad_, too_long_, thoughtless_;
  int64_t truncated_ = 0;
  int64_t epoch_examples_ = 0;
  mutable int64_t cached_epoch_ = -1;
  mutable std::vector<int64_t> cached_order_;
};

// Returns the data set's row as rewards see it: its extra columns, `ground_truth` and `prompt` (text). Without a ground
// truth of its own, the row's completion is the ground truth.
nlohmann::json example_json(const text::Example& example, const std::string& prompt_text);

}  // namespace collimate::rlhf
