#include "collimate/flow/context.h"

#include "collimate/base/error.h"
#include "collimate/flow/line_groups.h"
#include "collimate/graph/whole_layout.h"

namespace collimate::flow {

void SharedObjects::wrong_type(const std::string& name) {
  throw base::RunError(base::expectation("shared object " + name, "one type in all modules of a worker", "two"));
}

bool Context::shares_weights(const std::string& function) const {
  return layout(function).zero > graph::kMostWholeZero;
}

const comm::Mesh& Context::mesh(const std::string& function) const {
  const auto found = meshes.find(function);
  return found == meshes.end() ? alone : found->second;
}

comm::Group* Context::line(const std::string& function, const std::string& axis) const {
  const auto of_function = lines.find(function);
  if (of_function == lines.end()) return nullptr;
  const auto found = of_function->second.find(axis);
  return found == of_function->second.end() ? nullptr : found->second;
}

comm::Group* Context::copies(const std::string& function) const {
  for (const char* name : {kCopies, "dp"})
    if (comm::Group* found = line(function, name); found != nullptr) return found;
  return line(function, "cp");
}

}  // namespace collimate::flow
