// Words read a bench's command line: a number of rounds, then, in any order, words that choose what is measured.
#pragma once

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <malloc.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "collimate/base/error.h"

namespace collimate::bench {

// The first word is the number of rounds if it is a whole number below 100; else there are 5 rounds.
class Words {
 public:
  Words(std::string program, int argc, char** argv) : program_(std::move(program)), words_(argv + 1, argv + argc) {
    if (words_.empty() || words_[0].size() > 2 || words_[0].find_first_not_of("0123456789") != std::string::npos)
      return;
    rounds_ = std::max(1, std::stoi(words_[0]));
    words_.erase(words_.begin());
  }

  int rounds() const { return rounds_; }

  // Returns the words of `known` that the command line has, in the order of `known`. If it has none of them, returns
  // `unsaid`, or all of `known` if that is empty, too.
  std::vector<std::string> among(const std::vector<std::string>& known, const std::vector<std::string>& unsaid = {}) {
    std::vector<std::string> said;
    for (const std::string& word : known) {
      known_.push_back(word);
      if (std::find(words_.begin(), words_.end(), word) != words_.end()) said.push_back(word);
    }
    if (!said.empty()) return said;
    return unsaid.empty() ? known : unsaid;
  }

  // Returns the words that are directories, that is, those with a slash.
  std::vector<std::string> directories() {
    std::vector<std::string> said;
    for (const std::string& word : words_)
      if (word.find('/') != std::string::npos) said.push_back(word);
    known_.insert(known_.end(), said.begin(), said.end());
    return said;
  }

  // Throws InputError for a word that no call of among() or directories() knew; call it after all of those.
  void all_known() const {
    for (const std::string& word : words_)
      if (std::find(known_.begin(), known_.end(), word) == known_.end())
        throw base::InputError(base::expectation(program_, fmt::format("{}", fmt::join(known_, ", ")), word));
  }

 private:
  std::string program_;
  std::vector<std::string> words_, known_;
  int rounds_ = 5;
};

// Runs a bench's main() and returns its exit code: 2 if the command line is not understood or anything fails, else 0.
inline int run_bench(const std::string& program, int argc, char** argv, void (*run)(Words)) {
  try {
    run(Words(program, argc, argv));
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}

// Makes malloc keep freed memory instead of giving it back to the system, as the allocators do with which PyTorch is
// fastest. Otherwise ATen's time would contain a page fault for each page of each large result.
inline void keep_freed_memory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
}

}  // namespace collimate::bench
