#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collimate/base/fields.h"
#include "collimate/recipe/option_names.h"
#include "collimate/rlhf/prompt/row_options.h"
#include "collimate/rlhf/prompt/source.h"
#include "collimate/text/dataset.h"

// Rows that are too long for a model or cannot be used: what becomes of them, and how that is told.
namespace collimate::recipe {

// Rows of a data set that are not used, or not whole.
struct LeftOutRows {
  std::string data;  // "data.train"
  int64_t rows = 0, of = 0;
  std::string what;       // became of them, by which option: "left out (data.bad_rows: drop)"
  std::string rest = {};  // of the sentence: "; the first: …", and what to try

  // "data.train: 2 of 40 rows left out (data.bad_rows: drop); the first: …".
  std::string text() const { return short_text() + rest; }
  // Leaves out the first of them and why.
  std::string short_text() const;

  COLLIMATE_FIELDS(data, rows, of, what, rest)
};

// A kind of them, and whether it is a warning: rows that are gone, or not what they were.
struct LeftOutNote {
  LeftOutRows rows;
  bool warns = true;
};

// Notes of the rows that the data set has left out, and then of those that a source of it has. `names` are those of
// "bad_rows" and "long_rows".
std::vector<LeftOutNote> left_out_notes(const std::string& data, const text::Dataset& dataset,
                                        const rlhf::RowSource& source, const OptionNames& names);
// Does so for rows that no source has read.
struct UnusedRows {
  const text::LeftOut &bad, &too_long;
};
std::vector<LeftOutNote> left_out_notes(const std::string& data, const text::Dataset& dataset, const UnusedRows& rows,
                                        const OptionNames& names);
// Logs them, and gives their rows.
std::vector<LeftOutRows> log_left_out(const std::vector<LeftOutNote>& notes);

// The options of a config's data.
OptionNames data_option_names();

// How a verb that reads rows outside of a run calls what leaves out bad ones.
text::BadRows bad_rows_of(const rlhf::RowChoices& choices, const OptionNames& names);

// A verb's model has so many positions, and draws up to so many tokens behind a row (0: none). A row may be as long as
// the model can read it with one of these; a prompt that is cut leaves room for all of them, or for as much as it
// keeps.
struct RowRoom {
  int64_t positions = 0, drawn = 0;
};
void limit_rows(const rlhf::RowChoices& choices, const RowRoom& room, const OptionNames& names,
                rlhf::SourceOptions& options);
// Warns where prompts of so many tokens leave the model fewer positions than are to be drawn.
void warn_of_room(const std::vector<int64_t>& prompts, const RowRoom& room, const OptionNames& names);

}  // namespace collimate::recipe
