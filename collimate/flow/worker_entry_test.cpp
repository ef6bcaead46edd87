#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/flow/toy_modules.h"

namespace collimate::flow {
namespace {

// This test's program is its own worker: `flow_test worker --store ADDR`.
class WorkerEntry : public testing::Environment {
 public:
  void SetUp() override {
    const std::vector<std::string> words = toy::command_line();
    if (words.size() == 4 && words[1] == "worker") _exit(run_worker(words[3], toy::registry()));
  }
};
[[maybe_unused]] const auto* const kWorkerEntry = testing::AddGlobalTestEnvironment(new WorkerEntry);

}  // namespace
}  // namespace collimate::flow
