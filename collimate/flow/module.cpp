#include "collimate/flow/module.h"

namespace collimate::flow {
namespace {

[[noreturn]] void no_such_way(const std::string& function, const char* way) {
  throw base::RunError(base::expectation("module",
                                         std::string("a module that can ") + way + " its function " + function,
                                         "one whose spec says so and whose class does not"));
}

}  // namespace

Batch Module::call(const std::string& function, const Batch&, const CallInfo&) { no_such_way(function, "call"); }

std::unique_ptr<Stream> Module::open(const std::string& function, const CallInfo&) { no_such_way(function, "stream"); }

void Module::train_step(const std::string& function, std::span<const Batch>, const CallInfo&) {
  no_such_way(function, "train");
}

void Module::save_checkpoint(const std::string&, int64_t) {}
void Module::save(base::StateWriter&) const {}
void Module::load(base::StateReader&) {}

}  // namespace collimate::flow
