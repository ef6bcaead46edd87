#include "collimate/plan/published/report.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "collimate/plan/inputs/backends.h"

namespace collimate::plan::published {
namespace {

using nlohmann::ordered_json;

std::string row_text(const Result& r) {
  const std::string published = r.published_high > r.published
                                    ? fmt::format("{:.4g}-{:.4g}", r.published, r.published_high)
                                    : fmt::format("{:.4g}", r.published);
  return fmt::format("{:>5}  {:<22.22}  {:<26.26}  {:<10.10} {:<12.12} {:>13} {:>10.4g} {:>+8.1f} %  {:>6}{}\n", r.id,
                     r.paper, r.system, r.metric, r.unit, published, r.predicted, 100 * r.error, r.nearest_fitted,
                     r.fitted ? " fitted" : "");
}

std::string summary_text(const Summary& s) {
  std::string text = fmt::format("{:<44.44} {:>5} {:>10} {:>7}  ", s.paper, s.rows, s.predicted, s.fitted);
  if (s.predicted > s.status_rows) text += fmt::format("{:>7.1f} % ", 100 * s.median_error);
  if (s.predicted > s.fitted + s.status_rows) text += fmt::format("{:>7.1f} % not fitted ", 100 * s.median_not_fitted);
  if (s.rank_correlation != 0) text += fmt::format(" rank {:.2f}", s.rank_correlation);
  if (s.status_rows > 0) text += fmt::format(" status {} of {} right", s.status_right, s.status_rows);
  return text + "\n";
}

ordered_json row_json(const Result& r) {
  return {{"id", r.id},
          {"paper", r.paper},
          {"system", r.system},
          {"metric", r.metric},
          {"unit", r.unit},
          {"published", r.published},
          {"published_high", r.published_high},
          {"predicted", r.predicted},
          {"error", r.error},
          {"may_fit", r.may_fit},
          {"fitted", r.fitted},
          {"nearest_fitted", r.nearest_fitted}};
}

// Reasons with the ids of their rows.
std::map<std::string, std::vector<std::string>> not_modelled(const std::vector<Result>& results) {
  std::map<std::string, std::vector<std::string>> reasons;
  for (const Result& result : results)
    if (!result.modelled()) reasons[result.reason].push_back(result.id);
  return reasons;
}

std::string coverage(const std::vector<Result>& results) {
  const auto timed = std::count_if(results.begin(), results.end(), [](const Result& r) { return r.timed(); });
  const auto predicted =
      std::count_if(results.begin(), results.end(), [](const Result& r) { return r.timed() && r.modelled(); });
  return fmt::format("{} of {} time and throughput rows predicted ({:.0f} %)", predicted, timed,
                     100.0 * static_cast<double>(predicted) / static_cast<double>(std::max<long>(timed, 1)));
}

bool is_fitted_member(double Constants::*member) {
  return std::find(fitted_members().begin(), fitted_members().end(), member) != fitted_members().end();
}

// As plan/inputs/backends.cpp has it, with what is known beside the fit.
std::string backend_row(const FittedBackend& fit) {
  std::vector<std::string> values;
  const auto add = [&](double Constants::*member, const std::string& value) {
    values.push_back(fmt::format("{{&C::{}, {}}}", constant_info(member).name, value));
  };
  const Backend& known = find_backend(fit.name);
  for (const auto member : fitted_members())
    add(member, fmt::format("{}", std::stod(fmt::format("{:.3g}", fit.constants.*member))));
  for (const auto& [member, value] : known.values)
    if (!is_fitted_member(member)) add(member, fmt::format("{}", value));
  return fmt::format("    {{.name = \"{}\",\n     .fitted = true,\n     .values = {{{}}},\n     .source = \"{}\"}},\n",
                     fit.name, fmt::join(values, ",\n                "), known.source);
}

}  // namespace

std::string report_text(const std::vector<Result>& results, const std::vector<HeldOut>& held_out) {
  std::string text = fmt::format("{:>5}  {:<22}  {:<26}  {:<10} {:<12} {:>13} {:>10} {:>10}  {}\n", "id", "paper",
                                 "system", "metric", "unit", "published", "predicted", "error", "nearest fitted row");
  for (const Result& result : results)
    if (result.modelled()) text += row_text(result);
  const auto reasons = not_modelled(results);
  if (!reasons.empty()) text += "\nnot modelled, not counted\n";
  for (const auto& [reason, ids] : reasons) text += fmt::format("  {} (rows {})\n", reason, fmt::join(ids, " "));
  text += fmt::format("\n{}\n\n{:<44} {:>5} {:>10} {:>7}  {:>9}\n", coverage(results), "source", "rows", "predicted",
                      "fitted", "median");
  for (const Summary& summary : summarise(results)) text += summary_text(summary);
  if (!held_out.empty()) text += "\nleft out of the fit                            rows    median error\n";
  for (const HeldOut& left : held_out)
    text += fmt::format("  {:<20} {:<5} {:<26.26} {:>3} {:>8.1f} %\n", left.backend, left.kind, left.name, left.rows,
                        100 * left.median_error);
  return text;
}

std::string fits_text(const std::vector<FittedBackend>& fits) {
  std::string text = "\nfitted to all rows that may be (plan/inputs/backends.cpp)\n";
  for (const FittedBackend& fit : fits)
    text += fmt::format("    // {} rows, mean |log error| {:.3f}\n{}", fit.rows, fit.mismatch, backend_row(fit));
  return text;
}

std::string rows_to_fit_text(const std::vector<FittedRow>& rows) {
  std::string text = "\nthe rows that may be fitted (plan/published/fitted_rows_table.cpp)\n";
  for (const FittedRow& r : rows)
    text += fmt::format("{{\"{}\", \"{}\", \"{}\", \"{}\", {}, {:.4g}, {:.5g}, {}, {}}},\n", r.id, r.measured,
                        r.backend, r.gpu, r.devices, r.parameters, r.completion, r.rows, r.sharing);
  return text;
}

ordered_json fits_json(const std::vector<FittedBackend>& fits) {
  ordered_json made = ordered_json::array();
  for (const FittedBackend& fit : fits) {
    ordered_json values = ordered_json::object();
    for (const ConstantInfo& info : constant_table())
      if (is_fitted_member(info.member)) values[info.name] = fit.constants.*info.member;
    made.push_back({{"backend", fit.name}, {"rows", fit.rows}, {"mean_log_error", fit.mismatch}, {"values", values}});
  }
  return made;
}

ordered_json report_json(const std::vector<Result>& results, const std::vector<HeldOut>& held_out) {
  ordered_json document = {{"rows", ordered_json::array()},
                           {"not_modelled", ordered_json::array()},
                           {"sources", ordered_json::array()},
                           {"held_out", ordered_json::array()}};
  for (const Result& r : results) {
    if (!r.modelled()) {
      document["not_modelled"].push_back(
          {{"id", r.id}, {"paper", r.paper}, {"metric", r.metric}, {"reason", r.reason}});
      continue;
    }
    document["rows"].push_back(row_json(r));
  }
  for (const Summary& s : summarise(results))
    document["sources"].push_back({{"source", s.paper},
                                   {"rows", s.rows},
                                   {"predicted", s.predicted},
                                   {"fitted", s.fitted},
                                   {"median_error", s.median_error},
                                   {"median_error_not_fitted", s.median_not_fitted},
                                   {"rank_correlation", s.rank_correlation},
                                   {"status_rows", s.status_rows},
                                   {"status_right", s.status_right}});
  for (const HeldOut& h : held_out)
    document["held_out"].push_back({{"backend", h.backend},
                                    {"left_out", h.kind},
                                    {"name", h.name},
                                    {"rows", h.rows},
                                    {"median_error", h.median_error}});
  return document;
}

}  // namespace collimate::plan::published
