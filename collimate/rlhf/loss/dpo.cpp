#include <ATen/TensorOperators.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/sort.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/rlhf/loss/list.h"
#include "collimate/rlhf/loss/pairs.h"
#include "collimate/tensor/results.h"

namespace collimate::rlhf {
namespace {

using at::Tensor;

using Options = AlgorithmOptions;

double beta(const Options& o) { return o.beta->value_or(kPairBeta); }

// Numbers of each pair, all [R / 2]: log-ratios against the reference and the scores that f_divergence_type makes of
// them.
struct Pairs {
  Tensor chosen, rejected;              // Σ (log p - log p_ref) over tokens
  Tensor chosen_score, rejected_score;  // score_of those; with reverse_kl they are equal
  Tensor chosen_tokens, rejected_tokens;
  Tensor policy_margin, reference_margin;  // Σ log p of the chosen answer less that of the rejected one, by each model

  Tensor margin() const { return chosen_score - rejected_score; }
  Tensor mean_margin() const { return chosen_score / chosen_tokens - rejected_score / rejected_tokens; }
};

// Returns f'(ratio) of the divergence f_divergence_type (Wang et al. 2024).
Tensor score_of(const Tensor& log_ratio, const Options& o) {
  const double power = o.f_alpha_divergence_coef - 1;
  const std::string& divergence = o.f_divergence_type;
  if (divergence == "forward_kl") return 1 - (-log_ratio).exp();
  if (divergence == "js_divergence") return at::log_sigmoid(log_ratio) + std::log(2.0);
  if (divergence == "alpha_divergence" && std::abs(power) >= 1e-6)
    return ((log_ratio * power).clamp_max(80.0).exp() - 1) / power;
  return log_ratio;
}

// Returns the weights [M] of LD-DPO (Liu et al. 2024): 1 up to the length of the pair's shorter answer, then ld_alpha.
Tensor length_weights(const LossContext& c, double ld_alpha) {
  const std::vector<int64_t>& counts = c.token_counts();
  std::vector<float> weights;
  for (size_t r = 0; r < counts.size(); ++r) {
    const int64_t shared = std::min(counts[r], counts[r ^ 1]);
    for (int64_t t = 0; t < counts[r]; ++t) weights.push_back(t < shared ? 1.F : static_cast<float>(ld_alpha));
  }
  return tensor::tensor_beside(c.log_probs(), weights);
}

Pairs read_pairs(const LossContext& c, const Options& o) {
  Tensor log_probs = c.log_probs();
  Tensor reference = c.per_token(batch::kReferenceLogProbs);
  if (o.ld_alpha->has_value()) {
    const Tensor weights = length_weights(c, **o.ld_alpha);
    log_probs = log_probs * weights;
    reference = reference * weights;
  }
  const Tensor policy_sum = c.row_sum(log_probs);
  const Tensor reference_sum = c.row_sum(reference);
  const Tensor ratio = policy_sum - reference_sum;
  const Tensor score = score_of(ratio, o);
  const Tensor tokens = c.row_tokens().clamp_min(1.0);
  return {every_second(ratio, 0),
          every_second(ratio, 1),
          every_second(score, 0),
          every_second(score, 1),
          every_second(tokens, 0),
          every_second(tokens, 1),
          every_second(policy_sum, 0) - every_second(policy_sum, 1),
          every_second(reference_sum, 0) - every_second(reference_sum, 1)};
}

// Returns the loss of each pair, [R / 2].
using PairLoss = Tensor (*)(const Pairs&, const Options&);

Tensor sigmoid(const Pairs& p, const Options& o) { return smoothed_logistic(p.margin() * beta(o), o.label_smoothing); }

// Takes means over tokens, so that beta does not depend on lengths.
Tensor sigmoid_norm(const Pairs& p, const Options& o) { return -at::log_sigmoid(p.mean_margin() * beta(o)); }

Tensor hinge(const Pairs& p, const Options& o) { return (1 - p.margin() * beta(o)).relu(); }

Tensor ipo(const Pairs& p, const Options& o) { return (p.mean_margin() - 1 / (2 * beta(o))).square(); }

// Source: Chowdhury et al. 2024.
Tensor robust(const Pairs& p, const Options& o) {
  const Tensor logits = p.margin() * beta(o);
  const double e = o.label_smoothing;
  return (-at::log_sigmoid(logits) * (1 - e) + at::log_sigmoid(-logits) * e) / (1 - 2 * e);
}

// Returns the KL of the model's preference from the smoothed label (Ji et al. 2024).
Tensor exo_pair(const Pairs& p, const Options& o) {
  const Tensor logits = p.margin() * beta(o);
  return logits.sigmoid() * (at::log_sigmoid(logits) - std::log1p(-o.label_smoothing.get())) +
         (-logits).sigmoid() * (at::log_sigmoid(-logits) - std::log(o.label_smoothing.get()));
}

Tensor sppo_hard(const Pairs& p, const Options& o) {
  return (p.chosen - 0.5 / beta(o)).square() + (p.rejected + 0.5 / beta(o)).square();
}

Tensor apo_zero(const Pairs& p, const Options& o) {
  return 1 - (p.chosen * beta(o)).sigmoid() + (p.rejected * beta(o)).sigmoid();
}

Tensor apo_down(const Pairs& p, const Options& o) {
  return (p.chosen * beta(o)).sigmoid() + 1 - ((p.chosen - p.rejected) * beta(o)).sigmoid();
}

Tensor nca_pair(const Pairs& p, const Options& o) {
  return -at::log_sigmoid(p.chosen * beta(o)) - at::log_sigmoid(-p.chosen * beta(o)) * 0.5 -
         at::log_sigmoid(-p.rejected * beta(o)) * 0.5;
}

Tensor bco_pair(const Pairs& p, const Options& o) {
  return -at::log_sigmoid(p.chosen * beta(o)) - at::log_sigmoid(-p.rejected * beta(o));
}

// Blends the logistic and the exponential loss (Lu et al. 2024). The weight of the exponential loss is taken inside the
// exponential, which alone could be infinite where the weight is 0.
Tensor discopop(const Pairs& p, const Options& o) {
  const Tensor logits = p.margin() * beta(o);
  const Tensor blend = (logits / o.discopop_tau.get()).sigmoid();
  const Tensor log_blend = at::log_sigmoid(logits / o.discopop_tau.get());
  return -at::log_sigmoid(logits) * (1 - blend) + (log_blend - logits).exp();
}

// AOT, optimal transport (Melnyk et al. 2024), compares not pairs but quantiles of two lists of the whole update: each
// number of one list with the number of the other list that has the same rank.
struct Transported {
  Tensor upper, lower;  // [R / 2]

  static bool reads(const std::string& type) { return type == "aot" || type == "aot_unpaired"; }
  static Transported of(const std::string& type, const Pairs& p) {
    return type == "aot" ? Transported{p.policy_margin, p.reference_margin} : Transported{p.chosen, p.rejected};
  }
};

// Returns [n]: for each of this micro-batch's n numbers in `own`, the number of `other` that has the same rank.
Tensor of_the_same_rank(const batch::Survey& own, const batch::Survey& other, int64_t n) {
  const Tensor rank =
      std::get<1>(at::sort(own.all, std::optional<bool>(/*stable=*/true), int64_t{0}, /*descending=*/false)).argsort();
  return std::get<0>(at::sort(other.all)).index_select(0, rank.slice(0, own.begin, own.begin + n));
}

// Returns [R / 2]: the loss of each upper number against the lower number of the same rank, which is a constant here.
// The loss of each lower number against its upper one, which may be in another micro-batch, adds its gradient alone.
Tensor aot(const LossContext& c, const Transported& own, const Options& o) {
  const int64_t n = own.upper.size(0);
  const auto loss = [&](const Tensor& upper, const Tensor& lower) {
    return smoothed_logistic((upper - lower) * beta(o), o.label_smoothing);
  };
  const Tensor value = loss(own.upper, of_the_same_rank(c.surveyed(0), c.surveyed(1), n));
  const Tensor other_side = loss(of_the_same_rank(c.surveyed(1), c.surveyed(0), n), own.lower);
  return value + other_side - other_side.detach();
}

// Returns the weights [R / 2] of WPO (Zhou et al. 2024), which say how likely the policy is to write both answers of a
// pair: exp of the sum, over the two answers, of the mean over tokens of log p - log Σ p², where Σ is over the
// vocabulary. They are constants to the gradient.
Tensor policy_weights(const LossContext& c) {
  const Tensor aligned = c.row_sum(c.log_probs().detach() - c.log_collision()) / c.row_tokens().clamp_min(1.0);
  return (every_second(aligned, 0) + every_second(aligned, 1)).exp();
}

// A variant is a function above and a row below. A loss without a reference has a file of its own, as cpo.cpp.
struct Named {
  const char *name, *about;      // about: LossEntry::about
  PairLoss loss;                 // null: sft, or aot's comparison of lists
  bool scored = false;           // reads the scores that f_divergence_type makes
  bool smoothed = false;         // reads label_smoothing
  const char* option = nullptr;  // name of a further option that it reads

  bool weighted(const Options& o) const { return loss != nullptr && o.use_weighting; }
};

constexpr Named kLosses[] = {
    {"sigmoid", "DPO: the logistic loss of the margin, by which the chosen answer gains more on the reference.",
     sigmoid, true, true},
    {"hinge", "The hinge loss of the margin: pairs that are apart far enough count no more.", hinge, true},
    {"ipo", "IPO: the squared distance of the margin per token from 1 / (2 beta), so that it does not grow for ever.",
     ipo, true},
    {"robust", "DPO that expects a share label_smoothing of the pairs to be the wrong way round.", robust, true, true},
    {"exo_pair", "EXO: the KL of the model's preference to the labels', which label_smoothing softens.", exo_pair, true,
     true},
    {"nca_pair",
     "NCA: raises the chosen answer's likelihood and lowers the rejected one's; a third term holds the first back.",
     nca_pair},
    {"bco_pair",
     "BCO: a classifier by likelihood that calls chosen answers good and rejected ones bad, each by itself.", bco_pair},
    {"sppo_hard",
     "SPPO: moves the log-ratio of the chosen answer to 1 / (2 beta) and of the rejected one to the negative "
     "of that.",
     sppo_hard},
    {"aot", "AOT: compares the margins of all pairs of an update, sorted, with those of the reference.", nullptr, false,
     true},
    {"aot_unpaired", "AOT: compares all chosen answers of an update, sorted, with all rejected ones.", nullptr, false,
     true},
    {"apo_zero", "APO: raises the likelihood of the chosen answer and lowers that of the rejected one.", apo_zero},
    {"apo_down", "APO for answers that are worse than the model's own: lowers both, the rejected one more.", apo_down},
    {"discopop", "DiscoPOP: a blend of the logistic and the exponential loss, which discopop_tau sets.", discopop, true,
     false, "discopop_tau"},
    {"sigmoid_norm", "DPO of the margin per token, so that beta does not depend on lengths.", sigmoid_norm, true},
    {"sft", "The negative log-likelihood of the chosen answers; of use beside another loss (loss_weights).", nullptr}};

Tensor evaluate(LossContext& c, const Options& options, const Named& named) {
  const Pairs pairs = read_pairs(c, options);
  const std::string type = named.name;
  report_pairs(c, pairs.chosen.detach() * beta(options), pairs.rejected.detach() * beta(options));
  const bool transported = Transported::reads(type);
  if (named.loss == nullptr && !transported) return chosen_likelihood_loss(c);
  Tensor losses = transported ? aot(c, Transported::of(type, pairs), options) : named.loss(pairs, options);
  if (named.weighted(options)) {
    const Tensor weights = policy_weights(c);
    c.row_mean("rewards/weights", weights);
    losses = losses * weights;
  }
  return losses.sum() / (c.global_rows() / 2);
}

const Named& named(const std::string& type) {
  return *std::find_if(std::begin(kLosses), std::end(kLosses), [&](const Named& one) { return one.name == type; });
}

std::vector<std::string> dpo_options(const std::string& type) {
  const Named& loss = named(type);
  std::vector<std::string> names = {"beta", "ld_alpha"};
  if (loss.scored) names.insert(names.end(), {"f_divergence_type", "f_alpha_divergence_coef"});
  if (loss.smoothed) names.emplace_back("label_smoothing");
  if (loss.option != nullptr) names.emplace_back(loss.option);
  if (loss.loss != nullptr) names.emplace_back("use_weighting");
  return names;
}

Loss make_dpo(const std::string& type, const LossSetting& setting) {
  const Options& o = setting.options;
  if (beta(o) <= 0.0)
    throw base::InputError(base::expectation("algorithm.beta", "above 0 for " + type, fmt::format("{}", beta(o))));
  if (type == "exo_pair" && o.label_smoothing <= 0.0)
    throw base::InputError(base::expectation("algorithm.label_smoothing", "above 0 for exo_pair", "0", "1e-3"));
  Loss loss{.name = type,
            .needs = {.log_collision = named(type).weighted(o), .rows_per_unit = 2},
            .columns = {batch::kReferenceLogProbs.name},
            .value = [o, one = named(type)](LossContext& c) { return evaluate(c, o, one); }};
  if (Transported::reads(type)) {
    loss.surveys = 2;
    loss.survey = [o, type](LossContext& c) {
      const Transported own = Transported::of(type, read_pairs(c, o));
      return std::vector<Tensor>{own.upper.detach(), own.lower.detach()};
    };
  }
  return loss;
}

}  // namespace

// Preference losses against a frozen reference (Rafailov et al. 2023 and variants). Names and formulas are those of TRL
// 1.16's DPOTrainer, except that label_smoothing with sigmoid is cDPO (Mitchell 2023); TRL ignores it there.
// use_weighting weighs each pair (WPO), but not in "sft" and aot, which TRL does not weigh either. The losses read
// `reference_log_probs`.
LossEntry dpo_losses() {
  LossEntry entry{"pairs", {}, dpo_options, make_dpo};
  for (const Named& loss : kLosses) {
    entry.types.emplace_back(loss.name);
    entry.about[loss.name] = loss.about;
  }
  return entry;
}

}  // namespace collimate::rlhf
