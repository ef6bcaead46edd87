#include "collimate/base/config_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "collimate/base/config_scalar.h"
#include "collimate/base/lower_case.h"

namespace collimate::base {
namespace {

using Kind = ConfigNode::Kind;

bool is_plain_safe(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto rest = [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') ||
           (c != 0 && std::string_view("._/-").find(c) != std::string_view::npos);
  };
  if (text.empty() || !(letter(text[0]) || text[0] == '/' || text[0] == '_')) return false;
  if (!std::all_of(text.begin(), text.end(), rest)) return false;
  const std::string lower = lower_case(std::string(text));
  for (const char* word : {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}) {
    if (lower == word) return false;  // other readers of YAML 1.1 take these for flags
  }
  return true;
}

std::string double_quoted(std::string_view text) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else {
      if (c == '$' && text.substr(i, 2) == "${") out += '$';
      out += c;
    }
  }
  return out + '"';
}

std::string scalar_yaml(const std::string& text, bool is_string) {
  return is_string && !is_plain_safe(text) ? double_quoted(text) : text;
}

bool only_scalars(const ConfigNode& node) {
  return std::all_of(node.children.begin(), node.children.end(),
                     [](const ConfigNode& child) { return child.kind == Kind::kScalar || child.kind == Kind::kNull; });
}

void append_block(const ConfigNode& map, int indent, std::string& out) {
  for (size_t i = 0; i < map.keys.size(); ++i) {
    const ConfigNode& value = map.children[i];
    out += fmt::format("{:{}}{}:", "", indent, scalar_yaml(map.keys[i], true));
    if (value.kind == Kind::kMap && !value.keys.empty()) {
      out += '\n';
      append_block(value, indent + 2, out);
    } else if (value.kind == Kind::kList && !only_scalars(value)) {
      out += '\n';
      for (const auto& entry : value.children) out += fmt::format("{:{}}- {}\n", "", indent + 2, flow_yaml(entry));
    } else {
      out += fmt::format(" {}\n", flow_yaml(value));
    }
  }
}

}  // namespace

std::string flow_yaml(const ConfigNode& node) {
  if (node.kind == Kind::kNull) return "null";
  if (node.kind == Kind::kScalar) return scalar_yaml(node.text, node.quoted);
  const bool map = node.kind == Kind::kMap;
  std::string out = map ? "{" : "[";
  for (size_t i = 0; i < node.children.size(); ++i) {
    if (i > 0) out += ", ";
    if (map) out += scalar_yaml(node.keys[i], true) + ": ";
    out += flow_yaml(node.children[i]);
  }
  return out + (map ? "}" : "]");
}

std::string block_yaml(const ConfigNode& map) {
  std::string out;
  append_block(map, 0, out);
  return out;
}

}  // namespace collimate::base
