#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collimate/base/fields.h"
#include "collimate/recipe/option_names.h"
#include "collimate/rlhf/prompt/row_options.h"
#include "collimate/rlhf/prompt/source.h"
#include "collimate/text/dataset.h"

// This file says what becomes of rows that are too long for a model or cannot be used, and how people are told.
namespace collimate::recipe {

// Counts rows of a data set that are left out or are not used whole.
struct LeftOutRows {
  std::string data;  // "data.train"
  int64_t rows = 0, of = 0;
  std::string what;       // what became of them, and by which option: "left out (data.bad_rows: drop)"
  std::string rest = {};  // the end of the sentence: "; the first: …", and what to try

  // Returns "data.train: 2 of 40 rows left out (data.bad_rows: drop); the first: …".
  std::string text() const { return short_text() + rest; }
  // Returns the text without its end, which says which row is the first and why.
  std::string short_text() const;

  COLLIMATE_FIELDS(data, rows, of, what, rest)
};

// Says of one kind of such rows whether it is a warning, as it is for all but rows that data.long_rows truncates.
struct LeftOutNote {
  LeftOutRows rows;
  bool warns = true;
};

// Returns notes of the rows that the data set has left out, and then of those that a source of it has left out,
// truncated or rendered without their thoughts. `names` gives the names of "bad_rows" and "long_rows".
std::vector<LeftOutNote> left_out_notes(const std::string& data, const text::Dataset& dataset,
                                        const rlhf::RowSource& source, const OptionNames& names);
// Holds the rows that were left out by a reader of the data set that is no RowSource.
struct UnusedRows {
  const text::LeftOut &bad, &too_long;
};
// Does the same for the rows of such a reader.
std::vector<LeftOutNote> left_out_notes(const std::string& data, const text::Dataset& dataset, const UnusedRows& rows,
                                        const OptionNames& names);
// Logs the notes, and returns their rows.
std::vector<LeftOutRows> log_left_out(const std::vector<LeftOutNote>& notes);

// Returns the names of the options of a config's data: "data.bad_rows".
OptionNames data_option_names();

// Returns how a command that reads rows outside of a run treats bad rows, with the name of the option that leaves them
// out.
text::BadRows bad_rows_of(const rlhf::RowChoices& choices, const OptionNames& names);

// Holds the positions of a command's model, and how many tokens it draws behind a row at most (0: none).
struct RowRoom {
  int64_t positions = 0, drawn = 0;
};
// Sets the limits of rows in `options`. A row may be so long that the model can read it with one drawn token. A prompt
// that is cut leaves room for all of them, but keeps at least half of the positions.
void limit_rows(const rlhf::RowChoices& choices, const RowRoom& room, const OptionNames& names,
                rlhf::SourceOptions& options);
// Warns where prompts of these lengths, in tokens, leave the model fewer positions than it is to draw.
void warn_of_room(const std::vector<int64_t>& prompts, const RowRoom& room, const OptionNames& names);

}  // namespace collimate::recipe
