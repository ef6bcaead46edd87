#include "collimate/recipe/left_out.h"

#include <fmt/format.h>

#include <algorithm>

#include "collimate/base/log.h"

namespace collimate::recipe {

std::string LeftOutRows::text() const { return fmt::format("{}: {} of {} rows {}", data, rows, of, what); }

std::vector<LeftOutNote> left_out_notes(const std::string& data, const text::Dataset& dataset,
                                        const rlhf::RowSource& source, const OptionNames& names) {
  std::vector<LeftOutNote> notes;
  const int64_t all = dataset.size() + dataset.left_out().rows;
  const auto add = [&](int64_t rows, const std::string& what, bool warns = true) {
    if (rows > 0) notes.push_back({{data, rows, all, what}, warns});
  };
  const auto drop = [&](const text::LeftOut& out, const std::string& option) {
    add(out.rows, fmt::format("left out ({}); the first: {}", option, out.first));
  };
  drop(dataset.left_out(), names.with("bad_rows", "drop"));
  drop(source.bad(), names.with("bad_rows", "drop"));
  drop(source.too_long(), names.of("long_rows"));
  add(source.truncated(), fmt::format("truncated ({})", names.with("long_rows", "truncate")), false);
  const text::LeftOut& thoughtless = source.thoughtless();
  add(thoughtless.rows,
      fmt::format("stand without the thoughts of their answers (<think> … </think>, reasoning_content), which the chat "
                  "template leaves out; the first: {}; try a chat_template.jinja in the model's directory that writes "
                  "them, or prompt and completion as plain texts",
                  thoughtless.first));
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

}  // namespace collimate::recipe
