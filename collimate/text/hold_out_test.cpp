#include <gtest/gtest.h>

#include <set>

#include "collimate/host/atomic_file.h"
#include "collimate/text/dataset.h"
#include "tests/support/text/written_files.h"

namespace collimate::text {
namespace {

TEST(HoldOut, RowsAreHeldOutByTheSeedAlone) {
  const TemporaryDirectory directory;
  const auto source = [&](const std::string& name, const std::string& content) {
    host::write_file_atomically(directory.path(name), content);
    return DataSource{directory.path(name)};
  };
  std::string lines;
  for (int i = 0; i < 60; ++i) lines += fmt::format("{{\"prompt\": \"{:02}\"}}\n", i);
  DataSource second = source("b.jsonl", lines.substr(0, lines.size() / 2));
  second.weight = 0.5;
  const auto prompts = [](const Dataset& data) {
    std::vector<std::string> out;
    for (const Example& example : data.examples()) out.push_back(example.location.text());
    return out;
  };
  const auto halves = [&](uint64_t seed) {
    Dataset data = Dataset::read({source("a.jsonl", lines), second});
    const uint64_t fingerprint = data.fingerprint();
    const Dataset held_out = data.hold_out(20, seed);
    EXPECT_EQ(data.fingerprint(), fingerprint);
    EXPECT_EQ(data.weights().at(0).rows + data.weights().at(1).rows, 70);
    EXPECT_EQ(data.weights().at(1).weight, 0.5);
    EXPECT_EQ(held_out.weights(), (std::vector<RowWeight>{{20, 1.0}}));
    return std::pair(prompts(data), prompts(held_out));
  };
  const auto [left, drawn] = halves(3);
  std::set<std::string> all(left.begin(), left.end());
  all.insert(drawn.begin(), drawn.end());
  EXPECT_EQ(std::tuple(left.size(), drawn.size(), all.size()), std::tuple(70, 20, 90)) << "no row is in both";
  EXPECT_EQ(halves(3), std::pair(left, drawn));
  EXPECT_NE(halves(4).second, drawn);
}

}  // namespace
}  // namespace collimate::text
