#include "collimate/recipe/other_names.h"

#include <fmt/ranges.h>

#include "collimate/recipe/chatlearn/rows.h"
#include "collimate/recipe/config.h"

namespace collimate::recipe {
namespace {

// Returns whether `path` is called so: its last parts are `name`, or its last part begins with `name` where that ends
// in "*".
bool is_called(const std::string& path, std::string_view name) {
  const std::string dotted = fmt::format(".{}", path);
  if (!name.ends_with('*')) return dotted.ends_with(fmt::format(".{}", name));
  return std::string_view(dotted).substr(dotted.rfind('.') + 1).starts_with(name.substr(0, name.size() - 1));
}

// Returns "`a`, `b`" of names divided by spaces.
std::string quoted(std::string_view names) {
  std::string text;
  for (const std::string& name : chatlearn::parts(names, ' '))
    text += fmt::format("{}`{}`", text.empty() ? "" : ", ", name);
  return text;
}

}  // namespace

std::string other_names_table() {
  std::string table = "| their key | of | ours | note |\n|---|---|---|---|\n";
  for (const OtherName& other : other_names())
    if (!other.program.empty())
      table += fmt::format("| `{}` | {} | {} | {} |\n", other.name, other.program,
                           other.key.empty() ? "–" : fmt::format("`{}`", other.key), other.note);
  for (const chatlearn::Row& row : chatlearn::rows())
    table += fmt::format("| {} | ChatLearn, {} | {} | {} |\n", quoted(row.names), row.section,
                         row.key.empty() ? "–" : fmt::format(fmt::runtime(fmt::format("`{}`", row.key)), "NAME"),
                         row.remark);
  return table;
}

base::KeyRemedy remedy_for_name(const std::string& path) {
  const OtherName* found = nullptr;
  for (const OtherName& other : other_names())
    if (is_called(path, other.name) && (found == nullptr || other.name.size() > found->name.size())) found = &other;
  if (found == nullptr) return {};
  if (found->key.empty()) return {"", fmt::format("leaving it out: {}", found->note)};
  return {std::string(found->key), fmt::format("\"{}\"{}{}", found->key, found->note.empty() ? "" : ": ", found->note)};
}

base::KeyRemedy Config::section_remedy(const std::string& key) const { return remedy_for_name(key); }

}  // namespace collimate::recipe
