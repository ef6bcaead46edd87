#pragma once

#include <string>
#include <vector>

#include "collimate/report/run_data.h"

namespace collimate::report {

enum class Scale { kLinear, kPercent, kLog };  // kPercent: fractions shown times 100; kLog drops values <= 0

struct ChartLine {
  std::string label;
  Series series;
  size_t style = 0;  // index of its colour and dashes
};

struct Chart {
  std::string title;
  std::string unit;  // of the y axis, in words
  Scale scale = Scale::kLinear;
  std::vector<ChartLine> lines;
};

// Draws a <figure>: title, legend, the curves over the step with axes and ticks, and values under the pointer. A noisy
// curve of more than 60 points is drawn faintly, and over it its running mean, whose width the legend states.
std::string draw_chart(const Chart& chart);

// Draws a small curve for a row of a table, without axes, 120 x 22.
std::string draw_sparkline(const Series& series);

std::vector<double> log_ticks(double low, double high);  // powers of ten around a positive range

// Returns the mean of `width` neighbours (fewer at the ends) for each value.
std::vector<double> running_mean(const std::vector<double>& values, size_t width);

std::string color(size_t index);  // "var(--c0)"...

}  // namespace collimate::report
