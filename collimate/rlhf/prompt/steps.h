#pragma once

#include <string>
#include <vector>

#include "collimate/text/dataset.h"

namespace collimate::rlhf {

// Returns the prompt followed by the steps of the answer, each with the separator behind it. A step's last token, the
// separator's, is trainable. As in TRL's PRMTrainer each step and each separator is turned into tokens by itself.
// Throws InputError for an example without steps, of which `other` says what it is instead, and for a step that has no
// token.
text::RenderedTokens render_steps(const text::Example& example, const text::Renderer& renderer,
                                  const std::string& separator, const std::string& other);

// Returns 1 for each step that is right, and 0 for the others.
std::vector<uint8_t> marks_of(const std::vector<text::LabelledStep>& steps);

}  // namespace collimate::rlhf
