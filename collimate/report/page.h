#pragma once

#include <string>

namespace collimate::report {

// Makes a whole HTML document that fetches nothing: `title` is plain text, `body` is the HTML in its <main>.
std::string html_page(const std::string& title, const std::string& body);

}  // namespace collimate::report
