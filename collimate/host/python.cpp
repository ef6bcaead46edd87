#include "collimate/host/python.h"

#include <cstdlib>

namespace collimate::host {

std::string python_interpreter() {
  const char* variable = std::getenv("COLLIMATE_PYTHON");
  return variable != nullptr ? variable : "python3";
}

ChildOptions python_module(const std::string& interpreter, const std::string& module,
                           const std::vector<std::string>& arguments) {
  const char* variable = std::getenv("COLLIMATE_PYTHON_PATH");
  const char* old = std::getenv("PYTHONPATH");
  std::string path = variable != nullptr ? variable : COLLIMATE_PYTHON_DIR;
  if (old != nullptr) path += std::string(":") + old;
  ChildOptions options{.command = {interpreter, "-m", "collimate." + module}, .environment = {{"PYTHONPATH", path}}};
  options.command.insert(options.command.end(), arguments.begin(), arguments.end());
  return options;
}

}  // namespace collimate::host
