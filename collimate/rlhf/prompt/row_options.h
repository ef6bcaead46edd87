#pragma once

#include <string>

#include "collimate/base/option.h"
#include "collimate/base/option_check.h"
#include "collimate/base/section.h"
#include "collimate/rlhf/prompt/source.h"

namespace collimate::rlhf {

// Returns the choice that the word names: stop, drop or truncate.
inline LongRows long_rows_of(const std::string& word) {
  if (word == "truncate") return LongRows::kTruncate;
  return word == "drop" ? LongRows::kDrop : LongRows::kStop;
}

// Says what a reader of rows does with those that it cannot use.
struct RowChoices {
  LongRows long_rows = LongRows::kStop;
  bool drops_bad = false;
};

constexpr const char* kStopAtRow = "stop";

// These are the options by which a user says so to a command that reads rows outside of a run; in a config they are
// data.long_rows and data.bad_rows.
struct RowOptions {
  explicit RowOptions(base::Section* section)
      : long_rows(section, "long_rows", kStopAtRow, "",
                  "what happens to rows and prompts that are longer than the model can read: stop ends with an error, "
                  "drop leaves them out, truncate cuts the end of a row or the beginning of a prompt, which then has "
                  "room for a completion",
                  base::one_of({"stop", "drop", "truncate"})),
        bad_rows(section, "bad_rows", kStopAtRow, "",
                 "what happens to rows that cannot be read or used: stop ends with an error, drop leaves them out",
                 base::one_of({"stop", "drop"})) {}

  base::Option<std::string> long_rows, bad_rows;

  // Returns whether a row may be left out or cut.
  bool any() const { return long_rows.get() != kStopAtRow || bad_rows.get() != kStopAtRow; }
  RowChoices choices() const { return {long_rows_of(long_rows), bad_rows.get() == "drop"}; }
};
struct RowSection : base::Section, RowOptions {
  RowSection() : RowOptions(this) {}
};

}  // namespace collimate::rlhf
