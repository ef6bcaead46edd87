#pragma once

#include <functional>
#include <string>

namespace collimate::recipe {

// How messages call the options of an evaluation: as a config has them, or as another caller's flags or arguments.
struct OptionNames {
  // The key is one in a config's `evaluation`; beside those "chat_template", "data", "max_tokens" and "output".
  std::function<std::string(const std::string& key)> of = [](const std::string& key) { return "evaluation." + key; };
  std::string between = ": ";  // name and value
  std::string quote;           // around a value in braces

  // "data.eval: {path: FILE}", "--data '{path: FILE}'".
  std::string with_map(const std::string& key, const std::string& map) const { return with(key, quote + map + quote); }
  // "evaluation.temperature: 1", "--temperature 1".
  std::string with(const std::string& key, const std::string& value) const { return of(key) + between + value; }
};

}  // namespace collimate::recipe
