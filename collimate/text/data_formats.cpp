#include "collimate/text/data_formats.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "collimate/text/arrow/arrow_files.h"

namespace collimate::text {
namespace {

struct FormatEntry {
  DataFormat format;
  std::string_view name, ending, other_ending = "";
};

constexpr FormatEntry kFormats[] = {{DataFormat::kLines, "jsonl", ".jsonl", ".ndjson"},
                                    {DataFormat::kJson, "json", ".json"},
                                    {DataFormat::kCsv, "csv", ".csv"},
                                    {DataFormat::kTsv, "tsv", ".tsv"},
                                    {DataFormat::kParquet, "parquet", ".parquet"},
                                    {DataFormat::kArrow, "arrow", ".arrow"},
                                    {DataFormat::kText, "text", ".txt"}};

template <class Predicate>
std::optional<DataFormat> first_format(const Predicate& holds) {
  const auto* found = std::ranges::find_if(kFormats, holds);
  return found == std::end(kFormats) ? std::nullopt : std::optional(found->format);
}

// Returns "a, b or c": `words`, and a member of every entry.
std::string any_of_them(std::vector<std::string_view> words, std::string_view FormatEntry::*member) {
  for (const FormatEntry& entry : kFormats) words.push_back(entry.*member);
  const std::string_view last = words.back();
  words.pop_back();
  return fmt::format("{} or {}", fmt::join(words, ", "), last);
}

}  // namespace

std::optional<DataFormat> format_named(const std::string& name) {
  return first_format([&](const FormatEntry& entry) { return entry.name == name; });
}

std::optional<DataFormat> format_of(const std::string& path) {
  const std::filesystem::path file = path;
  const std::string ending = (is_compressed(path) ? file.stem() : file).extension().string();
  return first_format([&](const FormatEntry& entry) {
    return !ending.empty() && (entry.ending == ending || entry.other_ending == ending);
  });
}

std::string data_ending(const std::string& path) {
  const std::filesystem::path file = path;
  return (is_compressed(path) ? file.stem().extension().string() : "") + file.extension().string();
}

std::string format_names() { return any_of_them({"auto"}, &FormatEntry::name); }

std::string format_endings() { return any_of_them({}, &FormatEntry::ending); }

std::vector<std::string> likely_endings() {
  std::vector<std::string> endings;
  for (const FormatEntry& entry : kFormats)
    for (const std::string_view ending : {entry.ending, entry.other_ending})
      if (entry.format != DataFormat::kText && entry.format != DataFormat::kJson && !ending.empty())
        endings.emplace_back(ending);
  return endings;
}

}  // namespace collimate::text
