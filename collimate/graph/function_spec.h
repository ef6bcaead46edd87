#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "collimate/base/fields.h"
#include "collimate/base/words.h"

namespace collimate::graph {

enum class Kind { kGenerate, kScore, kTrain, kHost };
constexpr auto words_of(Kind) { return base::Words<Kind, 4>{"kind", {"generate", "score", "train", "host"}}; }
// Granularity is the least that one feed may hold: any rows; whole sample groups; all rows of the iteration at once.
enum class Granularity { kRow, kGroup, kIteration };
constexpr auto words_of(Granularity) {
  return base::Words<Granularity, 3>{"granularity", {"row", "group", "iteration"}};
}
// Dispatch says how the rows of a task reach the dp ranks of a replica: in near-equal runs of rows, all rows to each
// rank, or all rows to rank 0 only.
enum class Dispatch { kSplit, kBroadcast, kWhole };
constexpr auto words_of(Dispatch) { return base::Words<Dispatch, 3>{"dispatch", {"split", "broadcast", "whole"}}; }
// Collect says what comes back: rows concatenated in dp order, the rows of dp rank 0, or nothing.
enum class Collect { kConcat, kFirst, kNone };
constexpr auto words_of(Collect) { return base::Words<Collect, 3>{"collect", {"concat", "first", "none"}}; }

// A Column is a column's name and, where known, its type ("f32", "i64", "json", …; the empty type matches every
// type). Its text form is "name" or "name:type".
struct Column {
  Column(const char* text) : Column(std::string_view(text)) {}         // NOLINT: a literal is a column
  Column(const std::string& text) : Column(std::string_view(text)) {}  // NOLINT
  explicit Column(std::string_view text);
  Column() = default;

  std::string name;
  std::string type;
  std::string text() const { return type.empty() ? name : name + ":" + type; }
  bool operator==(const Column&) const = default;
};
void to_json(nlohmann::json& out, const Column& column);
void from_json(const nlohmann::json& in, Column& column);

// A Cost is what the planner knows of a function's work. 0 means unknown.
struct Cost {
  double forward_passes = 0;   // over each row's tokens
  double backward_passes = 0;  // over each row's tokens; a pass costs two forwards
  std::vector<std::string> columns;
  double seconds_per_row = 0;  // of host work
  bool operator==(const Cost&) const = default;

  COLLIMATE_FIELDS(forward_passes, backward_passes, columns, seconds_per_row)
};

// A FunctionSpec is one function of a module, as scheduler, planner and validator know it.
struct FunctionSpec {
  std::string name;
  Kind kind = Kind::kHost;
  std::vector<Column> needs;
  std::vector<Column> makes;
  Granularity granularity = Granularity::kRow;
  Dispatch dispatch = Dispatch::kSplit;
  Collect collect = Collect::kConcat;
  bool streams = false;         // takes rows while it works and gives each out when it is done
  bool writes_weights = false;  // of its own model
  bool drops_rows = false;      // a filter: dropped rows are replaced by new prompts
  bool deterministic = true;    // otherwise its results go to the journal
  bool retry_safe = true;       // may run again on the same rows after a failure, also in a process begun anew
  Cost cost;
  bool operator==(const FunctionSpec&) const = default;

  COLLIMATE_FIELDS(name, kind, needs, makes, granularity, dispatch, collect, streams, writes_weights, drops_rows,
                   deterministic, retry_safe, cost)
};

// In JSON every field is written; on reading all but the name may be absent. Throws InputError naming the function and
// listing the known ones for unknown keys and words.
FunctionSpec function_spec_from_json(const nlohmann::json& json);

}  // namespace collimate::graph
