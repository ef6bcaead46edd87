#include "collimate/rlhf/modules/options.h"

#include "collimate/rlhf/advantage/list.h"
#include "collimate/rlhf/loss/list.h"

namespace collimate::rlhf {

AlgorithmSection::AlgorithmSection() : AlgorithmOptions(loss_types(), advantage_names()) {}

std::vector<std::string> train_options(const std::string& head, const std::string& loss_rows) {
  std::vector<std::string> options;
  if (head == "value") options.emplace_back("value_learning_rate");
  if (loss_rows == "rollouts") options.insert(options.end(), {"mismatch_limit", "mismatch_check"});
  return options;
}

}  // namespace collimate::rlhf
