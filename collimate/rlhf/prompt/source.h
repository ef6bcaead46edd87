#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collimate/base/stateful.h"
#include "collimate/batch/batch.h"
#include "collimate/text/dataset.h"

namespace collimate::rlhf {

// How examples become rows.
enum class RowKind {
  kPrompt,      // ids = the prompt's tokens; `samples` rows of one prompt_uid in a row
  kCompletion,  // ids = prompt + completion, trainable where the loss looks (SFT)
  kPreference,  // two rows of one pair_uid: chosen, rejected
};

struct SourceOptions {
  RowKind kind = RowKind::kPrompt;
  std::string name = "train";  // part of the uids
  int64_t samples_per_prompt = 1;
  int64_t max_tokens = 0;  // of a row; 0: no limit
  uint64_t seed = 0;
  bool shuffle = true;
  int64_t epochs = 0;       // 0: without end
  nlohmann::json sampling;  // of prompt rows, null for none
};

// Rows of a data set in the order of its cursor, rendered and tokenized once. The state is the cursor alone.
class RowSource : public base::Stateful {
 public:
  // Renders everything. InputError naming file and line: a row longer than max_tokens, an empty prompt or completion.
  RowSource(const text::Dataset& dataset, const text::Renderer& renderer, SourceOptions options);

  // The next `rows` rows (a multiple of rows_per_example()), wrapping over epochs; fewer only when the epochs are over.
  // Columns: uid, ids, trainable, example; prompt_uid (kPrompt), pair_uid (kPreference), sampling (kPrompt, when set).
  Batch next(int64_t rows);
  // Every example once, in file order: for evaluation. At most `examples` of them; 0: all.
  Batch all(int64_t examples = 0) const;

  int64_t examples() const { return static_cast<int64_t>(rendered_.size()); }
  int64_t rows_per_example() const;
  // Rows of one epoch.
  int64_t epoch_rows() const { return examples() * rows_per_example(); }

  void save(base::StateWriter& out) const override;
  void load(base::StateReader& in) override;

 private:
  struct Rendered {
    std::vector<text::RenderedTokens> rows;  // one, or chosen and rejected
    nlohmann::json example;
  };
  Batch make(const std::vector<text::Draw>& draws) const;

  SourceOptions options_;
  std::vector<Rendered> rendered_;
  text::DataCursor cursor_;
};

// The data set's row as rewards see it: its extra columns, `ground_truth` and `prompt` (text).
nlohmann::json example_json(const text::Example& example, const std::string& prompt_text);

}  // namespace collimate::rlhf
