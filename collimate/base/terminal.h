#pragma once

namespace collimate::base {

// Returns the columns of the terminal that the descriptor writes to, or `otherwise` where it is no terminal or does not
// say.
int terminal_columns(int descriptor, int otherwise);

}  // namespace collimate::base
