#include "collimate/recipe/carried_samples.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/flow/payload.h"
#include "collimate/rlhf/types/rounds.h"

namespace collimate::recipe {
namespace {

constexpr const char *kState = "carried", *kRows = "carried/rows";

// Returns the rows without what the routers of a mixture chose: the next version chooses anew.
Batch without_routes(const Batch& rows) {
  std::vector<std::string> names = rows.names();
  std::erase(names, batch::kRoutedExperts.name);
  return rows.select_columns(names);
}

}  // namespace

Batch CarriedSamples::rows(int64_t count) const {
  std::vector<Batch> parts = {carried_};
  int64_t made = carried_.rows();
  for (int64_t example = begun_; made < count; ++example) {
    parts.push_back(rlhf::first_round(new_rows_(example)));
    made += parts.back().rows();
  }
  COLLIMATE_CHECK(made == count, "{} rows of samples in rounds, {} asked for", made, count);
  return Batch::concatenate(parts);
}

void CarriedSamples::take(const Batch& drawn) {
  begun_ += rlhf::prompts_begun(drawn);
  const rlhf::Parted parted = rlhf::part_rows(drawn, min_samples_);
  carried_ = Batch();
  if (!parted.carried.empty()) carried_ = without_routes(rlhf::next_round(drawn, parted)).contiguous();
}

void CarriedSamples::save(base::StateWriter& out) const {
  out.json(kState, {{"begun", begun_}, {"rows", carried_.rows()}});
  if (carried_.empty()) return;
  const std::string packed = flow::pack(carried_);
  out.bytes(kRows, std::as_bytes(std::span(packed)));
}

void CarriedSamples::load(base::StateReader& in) {
  const nlohmann::json state = in.json(kState);
  state.at("begun").get_to(begun_);
  carried_ = Batch();
  if (state.at("rows").get<int64_t>() == 0) return;
  std::string packed(in.bytes_size(kRows), '\0');
  in.bytes(kRows, std::as_writable_bytes(std::span(packed)));
  carried_ = flow::unpack(packed);
}

std::string generating_node(const graph::Graph& graph) {
  const auto node = std::ranges::find(graph.nodes, std::string("generate"), &graph::Node::function);
  COLLIMATE_CHECK(node != graph.nodes.end(), "no node of {} generates", graph.name);
  return node->id;
}

}  // namespace collimate::recipe
