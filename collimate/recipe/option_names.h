#pragma once

#include <functional>
#include <string>

namespace collimate::recipe {

// Says how messages call the options of an evaluation: as a config has them, or as another caller's flags or arguments.
struct OptionNames {
  // Returns the name of an option. `key` is one of a config's `evaluation`, or "bad_rows", "chat_template", "data",
  // "long_rows", "max_tokens" or "output".
  std::function<std::string(const std::string& key)> of = [](const std::string& key) { return "evaluation." + key; };
  std::string between = ": ";  // stands between name and value
  std::string quote;           // stands around a value in braces

  // Returns "data.eval: {path: FILE}" or "--data '{path: FILE}'".
  std::string with_map(const std::string& key, const std::string& map) const { return with(key, quote + map + quote); }
  // Returns "evaluation.temperature: 1" or "--temperature 1".
  std::string with(const std::string& key, const std::string& value) const { return of(key) + between + value; }
};

}  // namespace collimate::recipe
