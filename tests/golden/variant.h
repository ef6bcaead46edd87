#pragma once

#include <string>

#include "tests/golden/options.h"

namespace collimate::golden {

// Options of a variant: its `over`, what its name says where `over` does not ("ipo", "|beta=0.04", "+beta0.5", "+js"),
// then `hyper`. UnknownKind for an option that nothing here knows, and for a word of the name that is neither a loss
// nor an option while `over` has nothing that it may stand for: a variant is what its options say.
Options variant_options(const std::string& trainer, const std::string& name, const json& variant, const json& hyper);

}  // namespace collimate::golden
