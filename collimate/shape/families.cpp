#include <algorithm>

#include "collimate/base/error.h"
#include "collimate/shape/family.h"

namespace collimate::shape {

const std::vector<Family>& families() {
  static const std::vector<Family> kFamilies = [] {
    std::vector<Family> all;
    for (const auto& some : {gpt2_families(), gpt_neo_families(), gpt_neox_families(), llama_families(), opt_families(),
                             phi3_families(), qwen_families()})
      all.insert(all.end(), some.begin(), some.end());
    std::sort(all.begin(), all.end(), [](const Family& a, const Family& b) { return a.name < b.name; });
    return all;
  }();
  return kFamilies;
}

const std::vector<std::string>& known_families() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const Family& family : families()) names.push_back(family.name);
    return names;
  }();
  return kNames;
}

const Family& find_family(const std::string& name, const std::string& where) {
  for (const Family& family : families())
    if (family.name == name) return family;
  throw base::InputError(base::expectation(where, fmt::format("one of {}", fmt::join(known_families(), ", ")),
                                           name.empty() ? "nothing" : "'" + name + "'"));
}

}  // namespace collimate::shape
