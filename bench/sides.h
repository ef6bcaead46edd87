// The benches that compare with ATen share this loop over models, types and sizes.
#pragma once

#include <ATen/Parallel.h>

#include <string>
#include <vector>

#include "bench/peaks.h"
#include "bench/words.h"
#include "collimate/host/core_pool.h"

namespace collimate::bench {

struct SaidSides {
  std::vector<std::string> models, types, sizes;
};

using CompareSides = void (*)(const tensor::Exec& exec, const std::string& model, const std::string& type, int64_t size,
                              int rounds);

// Prints the machine and the head of the table, then compares for each model, type and size. ATen gets as many threads
// as we use.
inline void compare_sides(const Words& words, const SaidSides& said, CompareSides compare) {
  const Machine machine(words);
  const tensor::Exec& exec = machine.exec;
  at::set_num_threads(exec.threads());
  print_sides();
  for (const std::string& model : said.models)
    for (const std::string& type : said.types)
      for (const std::string& size : said.sizes) compare(exec, model, type, std::stoll(size), words.rounds());
}

}  // namespace collimate::bench
