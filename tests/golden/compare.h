#pragma once

#include <string>
#include <vector>

namespace collimate::golden {

// How far numbers may lie apart: strictly at the first update, with room for rounding that grows at later ones.
struct Tolerance {
  double loss = 1e-5;   // absolute below 1, relative above
  double norm = 1e-4;   // relative
  double token = 1e-4;  // as a loss; log-prob or value of one token, and metrics: a loss is a mean over many
};
Tolerance tolerance_at(size_t step);
inline constexpr double kParameterTolerance = 1e-5;  // relative, of the L2 norm of a tensor after training
inline constexpr double kEntryTolerance = 1e-4;      // of single entries and sums, relative to the norm

// All comparisons of one golden. Remembers the one that is worst against its tolerance.
class Comparison {
 public:
  // |ours - theirs| / max(1, |theirs|): losses, log-probs, rewards.
  void loss(const std::string& what, double ours, double theirs, double tolerance);
  void losses(const std::string& what, const std::vector<float>& ours, const std::vector<float>& theirs,
              double tolerance);
  // |ours - theirs| / |theirs|: norms.
  void relative(const std::string& what, double ours, double theirs, double tolerance);
  // |ours - theirs| / scale.
  void scaled(const std::string& what, double ours, double theirs, double scale, double tolerance);
  // Something that cannot be compared at all.
  void fail(const std::string& what);

  bool within() const { return count_ > 0 && worst_ratio_ <= 1.0; }
  int64_t count() const { return count_; }
  // "worst relative difference 3.1e-06 (31% of tolerance): loss, step 7: 0.1 for 0.2".
  std::string text() const;

 private:
  void add(const std::string& what, double ours, double theirs, double difference, double tolerance);

  int64_t count_ = 0;
  double worst_ratio_ = -1.0;
  double worst_difference_ = 0.0;
  std::string worst_;
};

enum class Verdict { kWithin, kOutside, kUnknown };

// One line of the report: a file, or a variant inside one.
struct Outcome {
  std::string name;
  Verdict verdict = Verdict::kUnknown;
  std::string text;
  bool required = true;  // an unknown one of these makes the program fail
};
Outcome outcome_of(const std::string& name, const Comparison& comparison);

}  // namespace collimate::golden
