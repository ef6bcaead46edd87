#pragma once

#include <istream>
#include <string>

#include "collimate/text/rows.h"

namespace collimate::text {

// Reads the rows of a table in text form (RFC 4180): the first line has the names of its columns, and a cell in double
// quotes may hold delimiters, line ends and doubled quotes. Every cell is a text; one that is empty and not in quotes
// is null, a missing value. A column without a name is called "Unnamed: 0" by its place, as pandas does. With `tabs`
// tabs separate the cells; else commas do, or semicolons or tabs where the first line has no comma. Throws InputError
// for UTF-16 and, with the line, for two columns of one name and for a quote that nothing closes. A row with more or
// fewer cells than names, or with a cell that is not UTF-8, goes to `bad` where that is given, as in read_rows; else it
// is an InputError.
void read_delimited(std::istream& in, const std::string& path, bool tabs, const RowSink& sink, const BadRowSink& bad);

// Returns the command that makes UTF-8 of a file in an older encoding, for a message.
std::string utf8_remedy(const std::string& path);

}  // namespace collimate::text
