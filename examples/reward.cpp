// A reward written in C++: the part of neighbouring characters that ascend. Any recipe's config can name it:
//   reward: [{function: ascending}]
//   build/release/bin/example_reward CONFIG.yaml OUTPUT_DIRECTORY
#include <cstdio>

#include "collimate/base/error.h"
#include "collimate/recipe/train.h"
#include "collimate/rlhf/reward/functions.h"
#include "collimate/rlhf/reward/rules.h"
#include "collimate/tensor/allocator.h"
#include "collimate/tensor/aten_threads.h"

namespace {

double ascending(const collimate::rlhf::RewardSample& sample) {
  const std::string& text = sample.completion;
  if (text.size() < 2) return 0;
  double ascents = 0;
  for (size_t i = 1; i < text.size(); ++i) ascents += text[i - 1] <= text[i] ? 1 : 0;
  return ascents / static_cast<double>(text.size() - 1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "example_reward CONFIG.yaml OUTPUT_DIRECTORY\n");
    return 2;
  }
  collimate::tensor::install_aten_allocator();
  collimate::tensor::use_one_aten_thread();
  collimate::rlhf::register_reward("ascending",
                                   [](const nlohmann::json&) { return collimate::rlhf::function_reward(ascending); });
  try {
    collimate::recipe::TrainCall call{.output = argv[2]};
    call.note = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
    const auto outcome = collimate::recipe::train(collimate::recipe::load(argv[1], {}), call);
    std::printf("%s\n", outcome.summary.at("final_metrics").dump(1).c_str());
  } catch (const collimate::base::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.exit_code();
  }
  return 0;
}
