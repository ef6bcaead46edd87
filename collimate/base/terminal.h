#pragma once

namespace collimate::base {

// Columns of the terminal that the descriptor writes to; `otherwise` where it is none, or does not say.
int terminal_columns(int descriptor, int otherwise);

}  // namespace collimate::base
