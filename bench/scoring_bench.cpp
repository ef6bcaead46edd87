// Computes log-probs of given sequences, which bench/peers/scoring.py compares with Hugging Face's:
//   bench_scoring MODEL_DIRECTORY float32|bfloat16 REPEATS ROWS.jsonl VALUES.f32 [ROWS VALUES …]
// ROWS has a line {"group": g, "ids": […], "given": n} for each row, which asks for the log-probs of ids[n:]. VALUES
// holds them afterwards, row after row. Given tokens that are the same in a group's rows are computed once. Each file
// prints one line of JSON: least and largest seconds over the repeats (after one warm-up), tokens of all rows, and peak
// memory in MiB.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/base/deadline.h"
#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/batch/token_rows.h"
#include "collimate/host/cpu.h"
#include "collimate/host/memory.h"
#include "collimate/model/model.h"
#include "collimate/tensor/aten_threads.h"
#include "collimate/train/scoring.h"

namespace {

using collimate::Batch;
namespace base = collimate::base;
namespace batch = collimate::batch;
namespace model = collimate::model;
namespace tensor = collimate::tensor;
namespace train = collimate::train;

Batch read_rows(const std::string& path, int64_t& tokens) {
  std::ifstream file(path);
  if (!file) throw base::InputError(base::expectation("bench_scoring", "a file of rows", path));
  batch::TokenRows gathered;
  std::vector<int64_t> groups;
  tokens = 0;
  for (std::string line; std::getline(file, line);) {
    const auto row = nlohmann::json::parse(line);
    const auto ids = row.at("ids").get<std::vector<int32_t>>();
    const auto given = row.at("given").get<size_t>(), length = ids.size();
    if (given < 1 || given >= length)
      throw base::InputError(base::expectation("bench_scoring", "rows with given tokens and others", line));
    gathered.add(static_cast<int64_t>(groups.size()), ids, given);
    groups.push_back(row.at("group").get<int64_t>());
    tokens += static_cast<int64_t>(length);
  }
  Batch rows = gathered.batch();
  rows.set(batch::kPromptUid, groups);
  return rows;
}

void write_values(const Batch& scored, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  for (int64_t r = 0; r < scored.rows(); ++r) {
    const auto trainable = scored.row(batch::kTrainable, r);
    const auto values = scored.row(batch::kLogProbs, r);
    for (size_t t = 0; t < values.size(); ++t)
      if (trainable[t] != 0) file.write(reinterpret_cast<const char*>(&values[t]), sizeof(float));
  }
  if (!file.flush()) throw base::InputError(base::expectation("bench_scoring", "a file to write values to", path));
}

void measure(model::Model& model, int repeats, const std::string& rows_path, const std::string& values_path) {
  int64_t tokens = 0;
  const Batch rows = read_rows(rows_path, tokens);
  std::vector<double> seconds;
  for (int i = 0; i <= repeats; ++i) {
    const double begin = base::now_seconds();
    const Batch scored = train::with_log_probs(model, rows, batch::kLogProbs, {});
    if (i > 0) seconds.push_back(base::now_seconds() - begin);
    if (i == repeats) write_values(scored, values_path);
  }
  const auto [least, largest] = std::minmax_element(seconds.begin(), seconds.end());
  const nlohmann::ordered_json line = {{"rows", rows_path},
                                       {"s_min", *least},
                                       {"s_max", *largest},
                                       {"tokens", tokens},
                                       {"peak_rss_mb", collimate::host::peak_resident_bytes() >> 20}};
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  const int repeats = argc > 3 ? std::atoi(argv[3]) : 0;
  if (argc < 6 || argc % 2 != 0 || repeats < 1) {
    fmt::print(stderr, "bench_scoring MODEL_DIRECTORY float32|bfloat16 REPEATS ROWS VALUES [ROWS VALUES …]\n");
    return 2;
  }
  tensor::use_one_aten_thread();
  collimate::host::CorePool pool(collimate::host::core_count());
  const tensor::Exec exec{&pool};
  model::Model model(
      model::load_huggingface(argv[1], "lm", {.compute = tensor::compute_type_of(argv[2]), .mapped = true}, exec),
      exec);
  for (int i = 4; i + 1 < argc; i += 2) measure(model, repeats, argv[i], argv[i + 1]);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
