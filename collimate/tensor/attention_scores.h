#pragma once

#include <cstdint>

namespace collimate::tensor {

// AttentionScores says how attention makes scores from q·k, forward and backward alike. This header includes nothing
// of the standard library but <cstdint>, because kernels include it.
struct AttentionScores {
  float scale = 1;     // multiplies q·k
  int64_t window = 0;  // a token reads at most so many keys, its own and those just before it; 0: all
  float softcap = 0;   // a scaled score s becomes softcap tanh(s / softcap); 0: scores stay as they are
  bool alibi = false;  // slope(head) (position of the key - that of the token) is added to a scaled score: alibi_slopes
  int first_head = 0;  // ALiBi: the number of the first head here among the model's
  int all_heads = 0;   // ALiBi: heads of the model; 0: all heads are here
};

}  // namespace collimate::tensor
