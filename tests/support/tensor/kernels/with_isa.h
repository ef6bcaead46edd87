#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "collimate/base/immovable.h"
#include "collimate/tensor/kernels/isa.h"

namespace collimate::tensor {

// The instruction sets of this machine, ascending. The first call prints which it lacks; tools/run_tests.py shows the
// line beside the program's result, so that a run says what it has not compared.
inline const std::vector<InstructionSet>& sets_here() {
  static const std::vector<InstructionSet> sets = [] {
    std::vector<InstructionSet> found;
    std::string lacking;
    for (const InstructionSet set : kInstructionSets) {
      if (set <= best_instruction_set()) {
        found.push_back(set);
      } else {
        lacking.append(" ").append(name_of(set));
      }
    }
    if (!lacking.empty()) std::printf("note: instruction sets that this machine lacks, not run:%s\n", lacking.c_str());
    return found;
  }();
  return sets;
}

// Uses `set` until it goes.
class WithInstructionSet : private base::Immovable {
 public:
  explicit WithInstructionSet(InstructionSet set) { set_instruction_set(set); }
  ~WithInstructionSet() { set_instruction_set(before_); }

 private:
  InstructionSet before_ = instruction_set();
};

}  // namespace collimate::tensor
