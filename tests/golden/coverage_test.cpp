// Every loss has a small golden inside the repository, and every model family a case of families.json.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "collimate/rlhf/loss/list.h"
#include "collimate/shape/family.h"
#include "tests/golden/changed.h"
#include "tests/golden/options.h"
#include "tests/golden/variant.h"

namespace collimate::golden {
namespace {

using Names = std::set<std::string>;

void add(Names& names, const std::vector<std::string>& more) { names.insert(more.begin(), more.end()); }

// The losses that a file's replay computes.
void add_losses(const std::string& file, Names& names) {
  const json golden = read_small(file);
  std::string kind = trainer_kind(golden);
  if (kind.empty() && trainer_class(golden).empty()) kind = "ppo";  // fixed arrays: no trainer
  ASSERT_FALSE(kind.empty()) << file;
  if (kind == "ppo") {
    for (const char* trainer : {"ppo", "value"}) add(names, loss_names(trainer, Options(golden["hyper"])));
  } else if (golden.contains("variants")) {
    for (const auto& [name, variant] : golden["variants"].items())
      add(names, loss_names(kind, variant_options(kind, name, variant, golden["hyper"])));
  } else {
    add(names, loss_names(kind, Options(golden["hyper"])));
  }
}

TEST(SmallGoldens, HaveEveryLoss) {
  Names replayed, listed;
  for (const auto& entry : std::filesystem::directory_iterator(kSmallGoldens))
    if (entry.path().extension() == ".json") add_losses(entry.path().stem().string(), replayed);
  for (const rlhf::LossEntry& entry : rlhf::losses())
    for (const std::string& type : entry.types) listed.insert(entry.rows + " " + type);
  EXPECT_EQ(replayed, listed)
      << "a golden of a loss is a function of tests/golden/small_losses.py or small_policies.py";
}

TEST(SmallGoldens, HaveEveryFamily) {
  Names computed, known(shape::known_families().begin(), shape::known_families().end());
  for (const json& one : json::parse(std::ifstream(COLLIMATE_SOURCE_DIR "/tests/golden/families.json")))
    computed.insert(one.at("config").at("model_type"));
  EXPECT_EQ(computed, known);
}

}  // namespace
}  // namespace collimate::golden
