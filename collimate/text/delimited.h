#pragma once

#include <istream>
#include <string>

#include "collimate/text/rows.h"

namespace collimate::text {

// Rows of a table as text (RFC 4180): the first line has the names of its columns, a cell in double quotes may hold
// delimiters, line ends and doubled quotes. Every cell is a text; one that is empty and not in quotes is null, a
// missing value. A column without a name is called "Unnamed: 0" by its place, as pandas does. Tabs separate the cells
// where `tabs`; else commas do, or semicolons or tabs where the first line has no comma. Throws InputError, naming the
// line: no UTF-8, two columns of one name, a quote that nothing closes. A row with more or fewer cells than names goes
// to `bad` where that is given, as in read_rows.
void read_delimited(std::istream& in, const std::string& path, bool tabs, const RowSink& sink, const BadRowSink& bad);

}  // namespace collimate::text
