#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/flow/module.h"

namespace collimate::flow {

// A ModuleFactory makes one rank's module. `parameters` is the resolved config of the model; nothing heavy happens
// before setup.
using ModuleFactory = std::function<std::unique_ptr<Module>(const nlohmann::json& parameters)>;

// A Registry is the explicit list of module kinds: it says what a kind's name in a graph's text means. A worker in
// another process has the list of its own program; a module that is given in process (`pinned`) runs only in the
// driver's process.
class Registry {
 public:
  // These add a kind. They throw RunError when the kind is there already.
  void add(const std::string& kind, ModuleFactory factory);
  void add_pinned(const std::string& kind, ModuleFactory factory);
  // Makes a module. Throws InputError for an unknown kind; the message lists the known ones.
  std::unique_ptr<Module> create(const std::string& kind, const nlohmann::json& parameters) const;
  bool pinned(const std::string& kind) const;
  std::vector<std::string> kinds() const;

 private:
  struct Entry {
    ModuleFactory factory;
    bool pinned = false;
  };
  const Entry& find(const std::string& kind) const;
  std::map<std::string, Entry> entries_;
};

}  // namespace collimate::flow
