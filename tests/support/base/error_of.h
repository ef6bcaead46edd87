#pragma once

#include <string>

#include "collimate/base/error.h"

namespace collimate::base {

// The message of the E that `call` throws; "" where it throws nothing. Every other exception passes.
template <class E = InputError, class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

}  // namespace collimate::base
