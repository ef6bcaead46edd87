#pragma once

#include <httplib.h>

#include <string>

#include "collimate/serve/connection.h"

namespace collimate::serve {

// Whether the headers announce a body.
bool has_body(const httplib::Request& request);
// ApiError for a body that cannot be taken: no length or two of them, too long, compressed, or a form.
void check_body_headers(const httplib::Request& request, size_t max_bytes);
// The body, after which the connection is clean. ApiError: as above, too long after all (413), too slow (408), or cut
// short (400).
std::string read_body(const httplib::Request& request, const httplib::ContentReader& reader, Connection& connection,
                      size_t max_bytes);

}  // namespace collimate::serve
