#pragma once

#include <cstdint>
#include <vector>

#include "collimate/base/stateful.h"

namespace collimate::text {

// What happens to the rows at the end of an epoch that do not fill a draw.
enum class LastRows {
  kDrop,  // skipped; the next draw starts the next epoch
  kKeep,  // returned as a shorter draw
  kWrap,  // filled up from the next epoch
};

// `rows` consecutive rows are used `weight` times per epoch: 2 is twice, 0.5 is half of them, chosen anew each epoch.
struct RowWeight {
  int64_t rows = 0;
  double weight = 1.0;
  bool operator==(const RowWeight&) const = default;
};

struct CursorOptions {
  int64_t rows = 0;                // rows of the data set, > 0
  std::vector<RowWeight> weights;  // empty: every row once; else their rows sum to `rows`
  uint64_t seed = 0;
  bool shuffle = true;
  LastRows last = LastRows::kDrop;
  int64_t epochs = 0;   // 0: without end
  int64_t repeats = 1;  // each row is drawn this often in a row (samples per prompt)
};

// One row drawn: enough to make a sample's uid.
struct Draw {
  int64_t row = 0;
  int64_t epoch = 0;
  int64_t repeat = 0;
  bool operator==(const Draw&) const = default;
};

// Order in which a data set's rows are used: a Fisher-Yates shuffle per epoch from (seed, epoch) alone, so that equal
// options give equal draws, and a cursor that is saved and loaded goes on exactly. Not thread-safe.
class DataCursor : public base::Stateful {
 public:
  // Throws InputError for no rows, or weights under which no row is used.
  explicit DataCursor(CursorOptions options);

  // The next `count` rows, each `repeats` times; fewer under kKeep at an epoch's end and under kWrap at the last one's;
  // empty when epochs are over. Throws InputError for a count that no epoch can fill under kDrop.
  std::vector<Draw> next(int64_t count);
  int64_t epoch() const { return epoch_; }
  // Rows already drawn in this epoch.
  int64_t position() const { return position_; }

  void save(base::StateWriter& out) const override;
  // Throws InputError when the data set's size, the seed or shuffling differ from those saved.
  void load(base::StateReader& in) override;

 private:
  void begin_epoch(int64_t epoch);

  CursorOptions options_;
  int64_t epoch_ = 0;
  int64_t position_ = 0;
  std::vector<int64_t> order_;  // of this epoch
};

// Row order of one epoch: what DataCursor uses.
std::vector<int64_t> epoch_order(const CursorOptions& options, int64_t epoch);

}  // namespace collimate::text
