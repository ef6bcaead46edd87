#include "collimate/flow/context.h"

#include "collimate/base/error.h"

namespace collimate::flow {

void SharedObjects::wrong_type(const std::string& name) {
  throw base::RunError(base::expectation("shared object " + name, "one type in all modules of a worker", "two"));
}

}  // namespace collimate::flow
