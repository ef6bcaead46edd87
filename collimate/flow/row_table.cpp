#include "collimate/flow/row_table.h"

#include <algorithm>
#include <set>

#include "collimate/base/error.h"
#include "collimate/flow/payload.h"

namespace collimate::flow {

void RowTable::put(int source, std::span<const int64_t> numbers, const Batch& rows) {
  COLLIMATE_CHECK(static_cast<int64_t>(numbers.size()) == rows.rows(), "{} numbers, {} rows", numbers.size(),
                  rows.rows());
  Source& to = sources_[source];
  for (size_t i = 0; i < numbers.size(); ++i) to.places[numbers[i]] = {to.pieces.size(), static_cast<int64_t>(i)};
  to.pieces.push_back(rows);
}

std::vector<int64_t> RowTable::numbers(int source) const {
  std::vector<int64_t> numbers;
  auto found = sources_.find(source);
  if (found == sources_.end()) return numbers;
  for (const auto& [number, place] : found->second.places) numbers.push_back(number);
  return numbers;
}

Batch RowTable::rows_of(int source, std::span<const int64_t> numbers) const {
  auto found = sources_.find(source);
  std::vector<Batch> runs;
  for (size_t i = 0; i < numbers.size();) {
    COLLIMATE_CHECK(found != sources_.end() && found->second.places.contains(numbers[i]), "source {} has no row {}",
                    source, numbers[i]);
    Place place = found->second.places.at(numbers[i]);
    size_t end = i + 1;
    for (; end < numbers.size(); ++end) {
      auto next = found->second.places.find(numbers[end]);
      bool adjacent = next != found->second.places.end() && next->second.piece == place.piece &&
                      next->second.row == place.row + static_cast<int64_t>(end - i);
      if (!adjacent) break;
    }
    runs.push_back(found->second.pieces[place.piece].slice(place.row, place.row + static_cast<int64_t>(end - i)));
    i = end;
  }
  if (runs.size() == 1) return runs.front();
  return Batch::concatenate(runs);
}

Batch RowTable::join(std::span<const int> sources, std::span<const int64_t> numbers) const {
  Batch joined;
  bool first = true;
  for (int source : sources) {
    if (!sources_.contains(source)) continue;
    Batch rows = rows_of(source, numbers);
    joined = first ? rows : joined.merge(rows);
    first = false;
  }
  return joined;
}

void RowTable::save(base::StateWriter& out, const std::string& prefix) const {
  nlohmann::json sources = nlohmann::json::array();
  for (const auto& [source, content] : sources_) {
    std::vector<int64_t> present = numbers(source);
    sources.push_back({{"source", source}, {"numbers", present}});
    std::string packed = pack(rows_of(source, present).contiguous());
    out.bytes(prefix + std::to_string(source), std::as_bytes(std::span(packed)));
  }
  out.json(prefix + "sources", sources);
}

void RowTable::load(base::StateReader& in, const std::string& prefix) {
  sources_.clear();
  for (const nlohmann::json& item : in.json(prefix + "sources")) {
    int source = item.at("source").get<int>();
    auto present = item.at("numbers").get<std::vector<int64_t>>();
    std::string packed(in.bytes_size(prefix + std::to_string(source)), '\0');
    in.bytes(prefix + std::to_string(source), std::as_writable_bytes(std::span(packed)));
    put(source, present, unpack(packed));
  }
}

std::vector<int> input_sources(const graph::Graph& graph, int node) {
  std::set<int> found;
  std::vector<int> open = {node};
  while (!open.empty()) {
    int at = open.back();
    open.pop_back();
    for (const std::string& value : graph.node(at).inputs) {
      int producer = graph.producer(value);
      if (producer >= 0 && found.insert(producer).second) open.push_back(producer);
    }
  }
  std::vector<int> sources = {RowTable::kInputs};
  for (int index : graph::topological_order(graph))
    if (found.contains(index)) sources.push_back(index);
  return sources;
}

}  // namespace collimate::flow
