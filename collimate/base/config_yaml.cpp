#include "collimate/base/config_yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>

#include "collimate/base/error.h"

namespace collimate::base {
namespace {

using Kind = ConfigNode::Kind;
constexpr int64_t kMaxNodes = 1'000'000;

// A Converter converts the parser's tree. Lines come from the file unless `fixed_where` is set, which every node then
// gets.
class Converter {
 public:
  Converter(std::string file_name, std::string fixed_where, bool last_wins = false)
      : file_name_(std::move(file_name)), fixed_where_(std::move(fixed_where)), last_wins_(last_wins) {}

  std::string where(const YAML::Mark& mark) const {
    return fixed_where_.empty() ? fmt::format("{}:{}", file_name_, mark.line + 1) : fixed_where_;
  }

  ConfigNode convert(const YAML::Node& node, const YAML::Mark& mark) {
    if (++nodes_ > kMaxNodes) {
      throw InputError(expectation(where(mark), "at most a million values", "more (aliases count each time)"));
    }
    ConfigNode out{Kind::kNull, "", false, where(mark)};
    if (node.IsScalar()) {
      out.kind = Kind::kScalar;
      out.text = node.Scalar();
      out.quoted = node.Tag() != "?" && node.Tag() != "";
    } else if (node.IsSequence()) {
      out.kind = Kind::kList;
      for (const auto& entry : node) out.children.push_back(convert(entry, entry.Mark()));
    } else if (node.IsMap()) {
      out.kind = Kind::kMap;
      for (const auto& entry : node) add_entry(entry.first, entry.second, out);
    }
    return out;
  }

 private:
  void add_entry(const YAML::Node& key, const YAML::Node& value, ConfigNode& out) {
    const std::string at = where(key.Mark());
    if (!key.IsScalar()) throw InputError(expectation(at, "a key", "a list or mapping in its place"));
    if (out.find(key.Scalar())) {
      if (last_wins_) {
        out.child(key.Scalar()) = convert(value, key.Mark());
        return;
      }
      throw InputError(
          expectation(at, "every key once", fmt::format("\"{}\" twice", key.Scalar()), "one of the two lines alone"));
    }
    out.keys.push_back(key.Scalar());
    out.children.push_back(convert(value, key.Mark()));
  }

  std::string file_name_;
  std::string fixed_where_;
  bool last_wins_ = false;
  int64_t nodes_ = 0;
};

bool has_bare_reference(std::string_view line) {
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (quote == 0 && line.substr(i, 2) == "${") return true;
    if (line[i] == quote)
      quote = 0;
    else if (quote == 0 && (line[i] == '"' || line[i] == '\''))
      quote = line[i];
  }
  return false;
}

// This remedy is for a text such as a regular expression that begins with a bracket, which opens a list in YAML.
constexpr const char* kQuotes = "quotes around a value that is a text: '[0-9]+'";

// Returns the remedy for a syntax error. Inside { } or [ ] YAML takes the brace of a bare ${NAME} for its own.
std::string syntax_remedy(const std::string& text, const YAML::Mark& mark) {
  std::istringstream lines(text);
  std::string line;
  for (int number = 0; number <= mark.line; ++number) std::getline(lines, line);
  if (has_bare_reference(line)) return "quotes: \"${NAME:default}\"";
  if (line.substr(0, line.find_first_not_of(" \t")).find('\t') != std::string::npos)
    return "spaces in place of the tab that the line begins with";
  return line.find_first_of("[{") == std::string::npos ? "the indentation of the keys beside it; if it is right, look "
                                                         "for a bracket or quote above that is not closed"
                                                       : kQuotes;
}

// A DocumentStart notes where a document starts and ignores its content.
class DocumentStart : public YAML::EventHandler {
 public:
  std::optional<YAML::Mark> mark;

  void OnDocumentStart(const YAML::Mark& start) override { mark = start; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

// Returns where a second document starts, if one does. (YAML::LoadAll never ends on "[a], [b]", because it takes the
// comma for a document that uses up nothing of the text.)
std::optional<YAML::Mark> second_document(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStart first, second;
  if (parser.HandleNextDocument(first)) parser.HandleNextDocument(second);
  return second.mark;
}

// Returns the parser's message about what stops it in words of a person who writes YAML.
std::string plain_words(const std::string& problem) {
  static const std::map<std::string, std::string> kWords = {
      {"end of map not found", "keys that do not stand below each other"},
      {"end of sequence not found", "entries of a list that do not stand below each other"},
      {"end of map flow not found", "a { without its }"},
      {"end of sequence flow not found", "a [ without its ]"},
      {"illegal flow end", "a } or ] without its { or ["},
      {"illegal tab when looking for indentation", "a tab before a key"},
      {"illegal map value", "a second \":\" in the line, outside of quotes"},
      {"illegal EOF in scalar", "a quote that is not closed"},
      {"illegal block entry", "a \"-\" where no list may begin"}};
  const auto found = kWords.find(problem);
  return found == kWords.end() ? problem : found->second;
}

ConfigNode parse(const std::string& text, Converter converter) {
  try {
    if (const auto second = second_document(text)) {
      const bool is_marked = text.find("---") != std::string::npos, rows = text.starts_with("{\"");
      throw InputError(expectation(converter.where(*second), "one YAML document",
                                   rows ? "a file of rows" : "a second one",
                                   rows ? "collimate init RECIPE MODEL FILE, which writes a config for such a file"
                                   : is_marked ? ""
                                               : kQuotes));
    }
    const YAML::Node document = YAML::Load(text);
    return document.Mark().is_null() ? ConfigNode{} : converter.convert(document, document.Mark());
  } catch (const YAML::Exception& error) {
    throw InputError(expectation(converter.where(error.mark), "valid YAML", plain_words(error.msg),
                                 syntax_remedy(text, error.mark)));
  }
}

// Returns the value of "NAME" or "NAME:default".
std::string variable_value(const std::string& reference, const std::string& where) {
  const size_t colon = reference.find(':');
  const std::string name = reference.substr(0, colon);
  if (const char* value = std::getenv(name.c_str())) return value;
  if (colon != std::string::npos) return reference.substr(colon + 1);
  throw InputError(expectation(where, fmt::format("the environment variable {}", name), "none set",
                               fmt::format("${{{}:default}}", name)));
}

std::string expanded(const std::string& text, const std::string& where) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (text.compare(i, 3, "$${") == 0) {
      out += "${";
      i += 3;
    } else if (text.compare(i, 2, "${") == 0) {
      const size_t end = text.find('}', i);
      if (end == std::string::npos) {
        throw InputError(
            expectation(where, "${NAME} or ${NAME:default}", fmt::format("\"{}\"", text.substr(i)), "$${"));
      }
      out += variable_value(text.substr(i + 2, end - i - 2), where);
      i = end + 1;
    } else {
      out += text[i++];
    }
  }
  return out;
}

bool is_one_reference(const std::string& text) { return text.starts_with("${") && text.find('}') + 1 == text.size(); }

}  // namespace

ConfigNode parse_yaml(const std::string& text, const std::string& file_name, bool last_wins) {
  ConfigNode root = parse(text, Converter(file_name, "", last_wins));
  if (root.where.empty()) root.where = file_name;
  return root;
}

ConfigNode parse_yaml_value(const std::string& text, const std::string& where) {
  ConfigNode value = parse(text, Converter("", where));
  if (text.empty()) value = {Kind::kScalar, "", true};  // `--set a.b=` is the empty string
  value.where = where;
  return value;
}

void expand_environment(ConfigNode& node) {
  if (node.kind == Kind::kScalar && node.text.find("${") != std::string::npos) {
    if (is_one_reference(node.text)) node.quoted = false;
    node.text = expanded(node.text, node.where);
  }
  for (auto& child : node.children) expand_environment(child);
}

}  // namespace collimate::base
