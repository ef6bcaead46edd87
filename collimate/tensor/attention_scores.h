#pragma once

#include <cstdint>

namespace collimate::tensor {

// How attention makes scores of q·k, forward and backward alike. No standard library: kernels include it.
struct AttentionScores {
  float scale = 1;     // multiplies q·k
  int64_t window = 0;  // a token reads at most so many keys, its own and those before it; 0: all
  float softcap = 0;   // a scaled score s becomes softcap tanh(s / softcap); 0: as it is
  bool alibi = false;  // to a scaled score slope(head) (key's position - token's) is added: alibi_slopes
  int first_head = 0;  // slopes are those of the heads from this one on, of so many of the model;
  int all_heads = 0;   // 0: of those that there are
};

}  // namespace collimate::tensor
