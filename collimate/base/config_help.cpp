#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "collimate/base/config.h"

namespace collimate::base {
namespace {

constexpr const char* kSectionType = "section";

bool below_prefix(const std::string& path, const std::string& prefix) {
  return prefix.empty() || path == prefix || path.rfind(prefix + ".", 0) == 0;
}

// Removes the first part of a path from it and returns that part.
std::string_view next_part(std::string_view& path) {
  const size_t dot = path.find('.');
  const std::string_view part = path.substr(0, dot);
  path.remove_prefix(dot == std::string_view::npos ? path.size() : dot + 1);
  return part;
}

// Says whether a path is at or below `prefix`, in which a name that the user chose may stand for <name>:
// "models.policy.path".
bool below_topic(std::string_view path, std::string_view prefix) {
  while (!prefix.empty()) {
    const std::string_view wanted = next_part(prefix), part = next_part(path);
    const bool placeholder = !wanted.empty() && part.starts_with('<');
    if (wanted != part && !placeholder) return false;
  }
  return true;
}

// Returns "8 samples" or "1e-06", and "" for a section.
std::string default_text(const OptionInfo& option) {
  return option.unit.empty() ? option.default_value : fmt::format("{} {}", option.default_value, option.unit);
}

// Returns a cell of a Markdown table with its bars escaped, as a bar would end the cell.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

std::vector<OptionInfo> described(const Section& root) {
  std::vector<OptionInfo> options;
  root.describe_section("", options);
  return options;
}

}  // namespace

std::string config_help(const Section& root, const std::string& prefix) {
  std::vector<OptionInfo> options = described(root);
  std::erase_if(options, [&](const OptionInfo& option) { return !below_topic(option.path, prefix); });
  size_t path_width = 0;
  size_t default_width = 0;
  for (const auto& option : options) {
    if (option.type == kSectionType) continue;
    path_width = std::max(path_width, option.path.size());
    default_width = std::max(default_width, std::min<size_t>(default_text(option).size(), 24));
  }
  std::string out;
  for (const auto& option : options) {
    if (option.default_value.empty()) {
      out += fmt::format("\n{}: {}\n", option.path, option.help);
      continue;
    }
    out += fmt::format("  {:{}}  {:{}}  {}", option.path, path_width, default_text(option), default_width, option.help);
    if (!option.limits.empty()) out += fmt::format(" ({})", option.limits);
    out += '\n';
  }
  return out;
}

std::string config_reference(const Section& root, const std::string& title) {
  constexpr const char* kHead = "| key | type | default | unit | meaning | limits |\n|---|---|---|---|---|---|\n";
  std::string out = fmt::format("# {}\n\n", title);
  std::string table = "";  // the section whose table is open
  bool open = false;
  for (const auto& option : described(root)) {
    if (option.default_value.empty()) {
      out += fmt::format("{}## {}\n\n{} ({}).\n\n", open ? "\n" : "", option.path, option.help, option.type);
      table = option.path;
      open = false;
      continue;
    }
    if (!open || !below_prefix(option.path, table)) {
      if (open) out += '\n';
      out += kHead;
      open = true;
    }
    out += fmt::format("| `{}` | {} | `{}` | {} | {} | {} |\n", option.path, option.type, cell(option.default_value),
                       option.unit, cell(option.help), cell(option.limits));
  }
  return out;
}

}  // namespace collimate::base
