#include "collimate/recipe/preview.h"

#include <algorithm>
#include <map>

#include "collimate/base/stripped.h"
#include "collimate/recipe/arithmetic.h"

namespace collimate::recipe {
namespace {

constexpr size_t kShownBytes = 400;  // of a text; the rest is counted

// Maps a length to the number of rows that have it.
using RowsByLength = std::map<int64_t, int64_t>;

Lengths lengths_of(const RowsByLength& counts) {
  if (counts.empty()) return {};
  int64_t rows = 0;
  for (const auto& [length, count] : counts) rows += count;
  auto median = counts.begin();
  for (int64_t before = median->second; before <= rows / 2; before += median->second) ++median;
  return {counts.begin()->first, median->first, counts.rbegin()->first};
}

// Returns the text that ids [begin, end) of a row add to the ids before them. By themselves they may decode to another
// one: many tokenizers take a space off the beginning of a text.
std::string added_text(const text::Tokenizer& tokenizer, std::span<const int32_t> ids, size_t begin, size_t end) {
  const std::string before = tokenizer.decode(ids.first(begin), false), text = tokenizer.decode(ids.first(end), false);
  return text.starts_with(before) ? text.substr(before.size())
                                  : tokenizer.decode(ids.subspan(begin, end - begin), false);
}

std::vector<MaskRun> mask_runs(std::span<const int32_t> ids, std::span<const uint8_t> trainable,
                               const text::Tokenizer& tokenizer) {
  std::vector<MaskRun> runs;
  for (size_t begin = 0; begin < ids.size();) {
    size_t end = begin;
    while (end < ids.size() && trainable[end] == trainable[begin]) ++end;
    runs.push_back({trainable[begin] != 0, static_cast<int64_t>(end - begin), added_text(tokenizer, ids, begin, end)});
    begin = end;
  }
  return runs;
}

// Returns the text in quotes, escaped, cut where it is long.
std::string quoted(const std::string& text) {
  if (text.size() <= kShownBytes)
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return quoted(text.substr(0, kShownBytes / 2)) + fmt::format(" … {} bytes … ", text.size() - kShownBytes) +
         quoted(text.substr(text.size() - kShownBytes / 2));
}

std::string lengths_text(const Lengths& l) {
  if (l.shortest == l.longest) return counted(l.longest, "token");
  return fmt::format("{} to {} tokens (median {})", l.shortest, l.longest, l.median);
}

bool is_stop(const text::Tokenizer& tokenizer, int32_t id) {
  const std::vector<int32_t>& stops = tokenizer.info().stop_ids;
  return std::find(stops.begin(), stops.end(), id) != stops.end();
}

// Returns the last token that is trained, or -1. Where white space follows a token that ends a completion it returns
// that token, as in templates whose {% generation %} encloses the line's end.
int32_t last_trained(const text::RenderedTokens& row, const text::Tokenizer& tokenizer) {
  int32_t last = -1;
  for (size_t t = row.ids.size(); t-- > 0;) {
    if (row.trainable[t] == 0 && last < 0) continue;
    if (row.trainable[t] == 0) break;
    if (is_stop(tokenizer, row.ids[t])) return row.ids[t];
    if (last < 0) last = row.ids[t];
    if (!base::stripped(tokenizer.token_bytes(row.ids[t])).empty()) break;
  }
  return last;
}

void add_row(const text::RenderedTokens& row, const text::Tokenizer& tokenizer, DataPreview& out) {
  const int64_t number = out.rows++;
  for (int32_t id : row.ids) out.largest_id = std::max(out.largest_id, id);
  if (out.kind == rlhf::RowKind::kPrompt) return;
  const int32_t last = last_trained(row, tokenizer);
  if (last < 0)
    out.masked.push_back(number);
  else if (!row.cut && !is_stop(tokenizer, last))
    out.unended.push_back(number);
}

std::string row_name(const DataPreview& data, size_t row) {
  if (data.kind == rlhf::RowKind::kPrompt) return "prompt";
  if (data.kind == rlhf::RowKind::kPreference) return row == 0 ? "chosen" : "rejected";
  return "row";
}

}  // namespace

std::string stop_text(const text::Tokenizer& tokenizer) {
  std::vector<std::string> names;
  for (int32_t id : tokenizer.info().stop_ids)
    names.push_back(fmt::format("{} {}", id, quoted(tokenizer.decode(std::vector<int32_t>{id}, false))));
  return names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, " or "));
}

DataPreview preview(const std::string& key, const rlhf::RowSource& source, rlhf::RowKind kind,
                    const text::Tokenizer& tokenizer) {
  DataPreview out{.key = key, .kind = kind};
  RowsByLength prompts, lengths;
  for (int64_t example = 0; example < source.examples(); ++example) {
    const std::vector<text::RenderedTokens> rows = source.rendered(example);
    for (const text::RenderedTokens& row : rows) {
      ++prompts[row.prompt_tokens];
      ++lengths[std::ssize(row.ids)];
      add_row(row, tokenizer, out);
    }
    if (kind == rlhf::RowKind::kPreference && rows[0].ids == rows[1].ids) out.equal.push_back(example);
  }
  out.prompt = lengths_of(prompts);
  out.row = lengths_of(lengths);
  if (source.examples() == 0) return out;
  const std::vector<text::RenderedTokens> first = source.rendered(0);
  for (const text::RenderedTokens& row : first) {
    out.example.push_back(mask_runs(row.ids, row.trainable, tokenizer));
    out.last_ids.push_back(last_trained(row, tokenizer));
  }
  out.answer = source.example(0).value("ground_truth", nlohmann::json());
  return out;
}

std::vector<std::string> preview_lines(const DataPreview& data, const text::Tokenizer& tokenizer) {
  std::vector<std::string> lines;
  const bool prompts = data.kind == rlhf::RowKind::kPrompt, pairs = data.kind == rlhf::RowKind::kPreference;
  const char* counts = data.key == "data.train" ? "trained" : "measured";  // the tokens that are not masked
  const std::string rows = pairs ? fmt::format("{} answers of {}", data.rows, counted(data.rows / 2, "pair"))
                                 : counted(data.rows, prompts ? "prompt" : "row");
  lines.push_back(fmt::format("{}: {}{}{}", data.key, rows,
                              fmt::format("{}{}", prompts ? " of " : "; prompts of ", lengths_text(data.prompt)),
                              prompts ? "" : fmt::format(", with their answers {}", lengths_text(data.row))));
  for (size_t row = 0; row < data.example.size(); ++row) {
    lines.push_back(fmt::format("{}, example 1, {}:", data.key, row_name(data, row)));
    for (const MaskRun& run : data.example[row])
      lines.push_back(fmt::format("  {:<8}{:>5} token{}  {}", run.trained ? counts : "masked", run.tokens,
                                  run.tokens == 1 ? " " : "s", quoted(run.text)));
    if (prompts) {
      lines.push_back(fmt::format("  {:<13} the completion, which ends with {}", counts, stop_text(tokenizer)));
      if (!data.answer.is_null())
        lines.push_back("  ground truth  " +
                        quoted(data.answer.is_string() ? data.answer.get<std::string>() : data.answer.dump()));
    } else {
      const bool ended = data.last_ids[row] >= 0 && is_stop(tokenizer, data.last_ids[row]);
      lines.push_back(fmt::format("  EOS           {}",
                                  ended ? fmt::format("{}: token {}", counts, data.last_ids[row])
                                        : fmt::format("not {}: {} ends a completion", counts, stop_text(tokenizer))));
    }
  }
  return lines;
}

nlohmann::ordered_json to_json(const DataPreview& data) {
  return {{"data", data.key},
          {"rows", data.rows},
          {"prompt_tokens", data.prompt},
          {"row_tokens", data.row},
          {"rows_without_trained_token", data.masked.size()},
          {"rows_without_trained_eos", data.unended.size()},
          {"equal_pairs", data.equal.size()},
          {"example", data.example}};
}

}  // namespace collimate::recipe
