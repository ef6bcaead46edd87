#include "collimate/recipe/left_out.h"

#include <fmt/format.h>

#include <algorithm>

#include "collimate/base/log.h"
#include "collimate/recipe/arithmetic.h"

namespace collimate::recipe {
namespace {

constexpr const char* kFirst = "; the first: ";

int64_t all_rows(const text::Dataset& dataset) { return dataset.size() + dataset.left_out().rows; }

}  // namespace

std::string LeftOutRows::short_text() const { return fmt::format("{}: {} of {} rows {}", data, rows, of, what); }

std::vector<LeftOutNote> left_out_notes(const std::string& data, const text::Dataset& dataset, const UnusedRows& rows,
                                        const OptionNames& names) {
  std::vector<LeftOutNote> notes;
  const auto drop = [&](const text::LeftOut& out, const std::string& option) {
    if (out.rows == 0) return;
    notes.push_back({{data, out.rows, all_rows(dataset), fmt::format("left out ({})", option), kFirst + out.first}});
  };
  drop(dataset.left_out(), names.with("bad_rows", "drop"));
  drop(rows.bad, names.with("bad_rows", "drop"));
  drop(rows.too_long, names.of("long_rows"));
  return notes;
}

std::vector<LeftOutNote> left_out_notes(const std::string& data, const text::Dataset& dataset,
                                        const rlhf::RowSource& source, const OptionNames& names) {
  std::vector<LeftOutNote> notes = left_out_notes(data, dataset, {source.bad(), source.too_long()}, names);
  if (source.truncated() > 0)
    notes.push_back({{data, source.truncated(), all_rows(dataset),
                      fmt::format("truncated ({})", names.with("long_rows", "truncate"))},
                     false});
  if (const text::LeftOut& thoughtless = source.thoughtless(); thoughtless.rows > 0)
    notes.push_back(
        {{data, thoughtless.rows, all_rows(dataset),
          "stand without the thoughts of their answers (<think> … </think>, reasoning_content), which the "
          "chat template leaves out",
          fmt::format("{}{}; try a chat_template.jinja in the model's directory that writes them, or prompt "
                      "and completion as plain texts",
                      kFirst, thoughtless.first)}});
  return notes;
}

std::vector<LeftOutRows> log_left_out(const std::vector<LeftOutNote>& notes) {
  std::vector<LeftOutRows> rows;
  for (const LeftOutNote& note : notes) {
    note.warns ? base::log_warning("{}", note.rows.text()) : base::log_info("{}", note.rows.text());
    rows.push_back(note.rows);
  }
  return rows;
}

OptionNames data_option_names() {
  return {.of = [](const std::string& key) { return "data." + key; }};
}

text::BadRows bad_rows_of(const rlhf::RowChoices& choices, const OptionNames& names) {
  return {.drop = choices.drops_bad, .remedy = names.with("bad_rows", "drop")};
}

void limit_rows(const rlhf::RowChoices& choices, const RowRoom& room, const OptionNames& names,
                rlhf::SourceOptions& options) {
  options.max_tokens = std::max<int64_t>(1, room.positions - (room.drawn > 0 ? 1 : 0));
  options.cut_tokens = std::max<int64_t>(1, room.positions - std::min(room.drawn, room.positions / 2));
  options.long_rows = choices.long_rows;
  options.bad_rows = bad_rows_of(choices, names);
  options.data = names.of("data");
  options.chatml = names.with("chat_template", "chatml");
  options.reach = fmt::format(", as the model has {} positions", room.positions);
  options.long_remedy = names.with("long_rows", "drop or truncate");
}

void warn_of_room(const std::vector<int64_t>& prompts, const RowRoom& room, const OptionNames& names) {
  int64_t most = 0, without = 0;
  for (const int64_t tokens : prompts) {
    most = std::max(most, tokens);
    without += tokens + room.drawn > room.positions ? 1 : 0;
  }
  if (without == 0) return;
  const int64_t left = std::max<int64_t>(1, room.positions - most);
  base::log_warning(
      "{} {} is more than {} of {} leave{} of the model's {} positions, which win: their completions are cut there, at "
      "the longest prompt after {}; try {}, or shorter prompts",
      names.of("max_tokens"), room.drawn, without, counted(std::ssize(prompts), "prompt"), without == 1 ? "s" : "",
      room.positions, counted(left, "token"), names.with("max_tokens", fmt::to_string(left)));
}

}  // namespace collimate::recipe
