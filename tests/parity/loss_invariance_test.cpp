#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "collimate/base/at.h"
#include "collimate/base/config.h"
#include "collimate/rlhf/loss/list.h"
#include "collimate/train/micro_batch.h"
#include "tests/parity/small_learner.h"
#include "tests/support/comm/ranks.h"

namespace collimate::test {
namespace {

constexpr int64_t kRows = 12;

const std::vector<Key<float>> kTokenColumns = {batch::kLogProbs, batch::kReferenceLogProbs, batch::kAdvantages,
                                               batch::kValues,   batch::kReturns,           rlhf::kCompletion,
                                               rlhf::kStepRight};

// A gradient within this part of the whole model's is rounding: the exact one is 0.
constexpr double kRounding = 1e-6;

struct Case {
  std::string name;
  const char* family;
  const char* head;
  rlhf::Loss loss;
};

// The rows in another order, pairs kept together.
Batch reversed(const Batch& rows) {
  std::vector<int64_t> order;
  for (int64_t pair = rows.rows() / 2 - 1; pair >= 0; --pair) order.insert(order.end(), {2 * pair, 2 * pair + 1});
  return rows.gather(order);
}

// An outcome is the loss and the gradients of an update.
struct Outcome {
  double loss = 0;
  std::vector<std::string> names;
  std::vector<std::vector<double>> gradients;  // by tensor; those of GPT-2's c_attn.bias in its three parts
};

Outcome outcome_of(SmallLearner& small, const Case& c, const Batch& rows, const batch::GlobalCounts& counts) {
  Outcome out;
  out.loss = small.accumulate(rows, c.loss, counts).loss;
  for (size_t p = 0; p < small.weights->params().size(); ++p) {
    const std::string& name = small.weights->params()[p].name;
    const std::vector<double> all = small.gradient(static_cast<int>(p));
    std::vector<std::string> parts = {""};
    if (name.ends_with("c_attn.bias")) parts = {", queries", ", keys", ", values"};
    const auto size = static_cast<int64_t>(all.size() / parts.size());
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto begin = all.begin() + static_cast<int64_t>(i) * size;
      out.names.push_back(name + parts[i]);
      out.gradients.emplace_back(begin, begin + size);
    }
  }
  return out;
}

double squared_norm(const std::vector<double>& values) {
  double sum = 0;
  for (double x : values) sum += x * x;
  return sum;
}

// The gradient of these is 0 in exact arithmetic. A query's scores move together with a key bias, unless positions turn
// keys, as in the other families; the scores of a pair, of which the loss reads the difference, with the last norm's
// bias.
std::vector<std::string> without_gradient(const Case& c) {
  if (std::string(c.family) != "gpt2") return {};
  std::vector<std::string> names = {"transformer.h.0.attn.c_attn.bias, keys", "transformer.h.1.attn.c_attn.bias, keys"};
  if (c.loss.needs.row_scores) names.emplace_back("transformer.ln_f.bias");
  return names;
}

// All rows in one micro-batch against other ways to compute the same. The bound of a tensor is 1e-5·√Σ‖g_unit‖², over
// the gradients of the smallest units (rows or pairs) alone; of one without gradient, rounding.
class Reference {
 public:
  Reference(const fs::path& root, const Case& c, const Batch& all = training_rows(kRows)) : case_(c) {
    counts_ = train::count_rows(all);
    SmallLearner whole(root / c.family, c.head, 100000), unit(root / c.family, c.head, 1);
    whole_ = outcome_of(whole, c, all, counts_);
    squares_.resize(whole_.gradients.size());
    for (int64_t r = 0; r < kRows; r += 2) {
      const Outcome one = outcome_of(unit, c, all.slice(r, r + 2), counts_);
      for (size_t p = 0; p < squares_.size(); ++p) squares_[p] += squared_norm(one.gradients[p]);
    }
    double total = 0;
    for (double square : squares_) total += square;
    rounding_ = kRounding * std::sqrt(total);
    std::vector<std::string> zero;
    for (size_t p = 0; p < squares_.size(); ++p)
      if (is_zero(p)) zero.push_back(whole_.names[p]);
    EXPECT_EQ(zero, without_gradient(c)) << c.name;
  }

  const batch::GlobalCounts& counts() const { return counts_; }
  double loss() const { return whole_.loss; }

  void expect_same(const Outcome& other, const std::string& how) const {
    // Where tokens cancel, the rounding of their sum is left.
    EXPECT_NEAR(other.loss, whole_.loss, 1e-6 * std::max(std::abs(whole_.loss), 0.05)) << case_.name << " " << how;
    for (size_t p = 0; p < squares_.size(); ++p) {
      std::vector<double> difference = other.gradients[p];
      for (size_t i = 0; i < difference.size(); ++i) difference[i] -= whole_.gradients[p][i];
      EXPECT_LE(std::sqrt(squared_norm(difference)), is_zero(p) ? rounding_ : 1e-5 * std::sqrt(squares_[p]))
          << case_.name << " " << how << " " << whole_.names[p];
    }
  }

 private:
  bool is_zero(size_t p) const { return std::sqrt(squares_[p]) <= rounding_; }

  const Case& case_;
  batch::GlobalCounts counts_;
  Outcome whole_;
  std::vector<double> squares_;  // Σ‖g_unit‖² of each tensor
  double rounding_ = 0;
};

Case case_of(const std::string& rows, const std::string& type, const nlohmann::json& more = nlohmann::json::object(),
             const char* family = "llama") {
  nlohmann::json options = nlohmann::json::object();
  if (type == "exo_pair") options["label_smoothing"] = 0.1;
  options.update(more);
  rlhf::LossSetting setting{.completion_tokens = 8};
  base::apply(options, "algorithm", setting.options);
  const char* head = rows == "scored pairs" || rows == "labelled steps" ? "score" : rows == "values" ? "value" : "lm";
  return {fmt::format("{} {} {}", family, type, more.dump()), family, head, rlhf::make_loss(rows, type, setting)};
}

// Options, each with a loss that reads it, beside those without which it would do nothing.
struct Chosen {
  std::string rows, type;
  nlohmann::json options, without = nlohmann::json::object();
};

// Several together, and values beside those that other_values gives.
const std::vector<Chosen>& chosen_options() {
  static const std::vector<Chosen> list = {
      {"rollouts", "cispo", {{"importance_sampling_level", "sequence"}, {"epsilon_high", 1.5}}},
      {"rollouts", "dapo", {{"delta", 1.5}}},
      {"rollouts", "cispo", {{"epsilon_high", 1.5}}},
      {"rollouts",
       "grpo",
       {{"top_entropy_quantile", 0.4}, {"entropy_coefficient", 0.1}},
       {{"top_entropy_quantile", 0.4}}},
      {"pairs", "sigmoid", {{"loss_type", {"aot", "sft", "aot_unpaired"}}}},
      {"pairs", "simpo", {{"cpo_alpha", 0.0}}},
      {"values", "value", {{"value_clip", nullptr}}},
      {"values", "value", {{"value_clip", 0}}}};
  return list;
}

// Returns values other than an option's default: all other choices, the other of true and false, or a number near it.
std::vector<nlohmann::json> other_values(const base::OptionInfo& option) {
  static const std::regex kChoice("\"([^\"]+)\"");
  const nlohmann::json standard = nlohmann::json::parse(option.default_value, nullptr, false);
  if (standard.is_boolean()) return {!standard.get<bool>()};
  if (standard.is_number()) return {standard == 0 ? 0.4 : standard.get<double>() / 2};
  if (standard.is_null()) return {0.3};
  const std::string chosen = standard.is_string() ? standard.get<std::string>() : option.default_value;
  std::vector<nlohmann::json> choices;
  for (std::sregex_iterator each(option.limits.begin(), option.limits.end(), kChoice), end; each != end; ++each)
    if ((*each)[1] != chosen) choices.emplace_back((*each)[1].str());
  return choices;
}

// Each option that losses on some rows read, with the first of them that does, at each of its other values. A new loss
// and its options are among them; one that does nothing alone says here beside which it does.
std::vector<Chosen> every_option() {
  static const std::map<std::string, nlohmann::json> kBeside = {
      {"use_bias_correction_kl", {{"beta", 0.04}}},
      {"kl_loss_estimator", {{"beta", 0.04}}},
      {"kl_loss_log_ratio_limit", {{"beta", 0.04}}},
      {"kl_loss_limit", {{"beta", 0.04}}},
      {"clip_cov_share", {{"clip_cov_low", -1.0}}},
      {"clip_cov_low", {{"clip_cov_share", 0.2}}},
      {"clip_cov_high", {{"clip_cov_share", 0.2}, {"clip_cov_low", -1.0}}},
      {"f_alpha_divergence_coef", {{"f_divergence_type", "alpha_divergence"}}}};
  // A neighbour of the default would change nothing for so few rows.
  static const std::map<std::string, std::vector<nlohmann::json>> kValues = {
      {"clip_cov_share", {0.4}},
      {"clip_cov_low", {-0.1}},
      {"clip_cov_high", {0.02}},
      {"kl_cov_share", {0.3}},
      {"kl_loss_estimator", {"k1", "k2", "k1+"}}};  // k3+ changes the gradient alone
  std::vector<base::OptionInfo> options;
  rlhf::AlgorithmOptions().describe_section("", options);
  std::set<std::string> seen;
  std::vector<Chosen> all;
  for (const rlhf::LossEntry& entry : rlhf::losses())
    for (const std::string& type : entry.types)
      for (const std::string& name : entry.options(type)) {
        if (!seen.insert(entry.rows + " " + name).second) continue;
        const auto beside = kBeside.find(name);
        const nlohmann::json without = beside == kBeside.end() ? nlohmann::json::object() : beside->second;
        const auto option = std::ranges::find(options, name, &base::OptionInfo::path);
        const auto own = kValues.find(name);
        for (const nlohmann::json& value : own == kValues.end() ? other_values(*option) : own->second) {
          all.push_back({entry.rows, type, without, without});
          all.back().options[name] = value;
        }
      }
  return all;
}

std::vector<Chosen> options_of_cases() {
  std::vector<Chosen> all = every_option();
  all.insert(all.end(), chosen_options().begin(), chosen_options().end());
  return all;
}

// Every loss of the list with its defaults, the options above, and one loss of each head with the other families.
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const rlhf::LossEntry& entry : rlhf::losses())
    for (const std::string& type : entry.types) all.push_back(case_of(entry.rows, type));
  for (const Chosen& one : options_of_cases()) all.push_back(case_of(one.rows, one.type, one.options));
  for (const char* family : {"qwen2", "gpt2"})
    for (const auto& [rows, type] : {std::pair("rollouts", "grpo"), std::pair("pairs", "sigmoid"),
                                     std::pair("scored pairs", "bradley_terry"), std::pair("values", "value")})
      all.push_back(case_of(rows, type, nlohmann::json::object(), family));
  return all;
}

class Invariance : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* family : {"llama", "qwen2", "gpt2"}) write_small_model(scratch_.path() / family);
    write_text(scratch_.path() / "qwen2/config.json",
               R"({"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": 13, "hidden_size": 32,
      "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
      "intermediate_size": 64, "max_position_embeddings": 32, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
      "tie_word_embeddings": false,
      "pad_token_id": 0, "bos_token_id": null, "eos_token_id": 1, "hidden_act": "silu"})");
    write_text(scratch_.path() / "gpt2/config.json",
               R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 13, "n_embd": 32,
      "n_layer": 2, "n_head": 2, "n_inner": 64, "n_positions": 32, "layer_norm_epsilon": 1e-5,
      "activation_function": "gelu_new", "pad_token_id": 0, "bos_token_id": null, "eos_token_id": 1})");
  }
  Scratch scratch_{"invariance"};
};

// A case whose options change nothing would repeat the one without.
TEST_F(Invariance, EveryOptionOfTheCasesChangesItsLoss) {
  for (const Chosen& one : options_of_cases()) {
    const Case with = case_of(one.rows, one.type, one.options), without = case_of(one.rows, one.type, one.without);
    const double loss = Reference(scratch_.path(), without).loss();
    EXPECT_GT(std::abs(Reference(scratch_.path(), with).loss() - loss), 1e-5 * std::abs(loss)) << with.name;
  }
}

TEST_F(Invariance, MicroBatchesOrderAndThreadsDoNotChangeLossAndGradients) {
  struct Way {
    const char* name;
    bool turned;
    int64_t micro_batch_tokens;
    int threads;
  };
  for (const Case& c : cases()) {
    const Reference reference(scratch_.path(), c);
    for (const Way& way : {Way{"a row or pair at a time", false, 1, 1}, Way{"micro-batches of 40", false, 40, 1},
                           Way{"reversed", true, 100000, 1}, Way{"reversed, of 25, two threads", true, 25, 2}}) {
      SmallLearner small(scratch_.path() / c.family, c.head, way.micro_batch_tokens, way.threads);
      const Batch rows = way.turned ? reversed(training_rows(kRows)) : training_rows(kRows);
      reference.expect_same(outcome_of(small, c, rows, reference.counts()), way.name);
    }
  }
}

// Each rank trains its share of the pairs, in micro-batches of its own.
std::vector<Outcome> ranks_outcomes(const fs::path& root, const Case& c, int ranks, const batch::GlobalCounts& counts) {
  const Batch all = training_rows(kRows);
  std::vector<Outcome> outcomes(static_cast<size_t>(ranks));
  comm::with_ranks(ranks, fmt::format("{}-{}", c.name, ranks), [&](comm::Group& group) {
    const int64_t pairs = kRows / 2, rank = group.rank();
    SmallLearner small(root / c.family, c.head, 30 + 10 * rank, 1, &group);
    const Batch mine = all.slice(2 * (pairs * rank / ranks), 2 * (pairs * (rank + 1) / ranks));
    base::at(outcomes, rank) = outcome_of(small, c, mine, counts);
  });
  return outcomes;
}

TEST_F(Invariance, ThreadRanksDoNotChangeLossAndGradients) {
  for (const Case& c : cases()) {
    const Reference reference(scratch_.path(), c);
    for (int ranks : {2, 4}) {
      const std::vector<Outcome> outcomes = ranks_outcomes(scratch_.path(), c, ranks, reference.counts());
      reference.expect_same(outcomes[0], fmt::format("{} ranks", ranks));
      for (const Outcome& other : outcomes) {
        EXPECT_EQ(other.loss, outcomes[0].loss) << c.name;
        EXPECT_EQ(other.gradients, outcomes[0].gradients) << c.name << ": ranks must hold the same bits";
      }
    }
  }
}

// The rows behind a prompt of 12 more tokens: the same one in the first two pairs, others after that.
Batch with_long_prompts(const Batch& rows) {
  Batch out = rows;
  const auto put = [&](const auto& key, auto value_at) {
    using Value = decltype(value_at(int64_t{0}, size_t{0}));
    std::vector<std::vector<Value>> columns;
    for (int64_t r = 0; r < rows.rows(); ++r) {
      columns.emplace_back();
      for (size_t t = 0; t < 15; ++t) columns.back().push_back(value_at(r < 4 ? 0 : r / 2, t));
      const auto row = rows.row(key, r);
      columns.back().insert(columns.back().end(), row.begin() + 3, row.end());
    }
    out.set_ragged(key, columns);
  };
  put(batch::kIds, [](int64_t prompt, size_t t) { return static_cast<int32_t>(2 + 11 * uniform(7, prompt, t)); });
  put(batch::kTrainable, [](int64_t, size_t) { return uint8_t{0}; });
  for (const Key<float>& key : kTokenColumns) put(key, [](int64_t, size_t) { return 0.0F; });
  return out;
}

// Four rows of one prompt, packed once for all of them, in twos and each alone.
TEST_F(Invariance, APromptPackedOnceGivesWhatItsCopiesGive) {
  const Batch rows = with_long_prompts(training_rows(kRows));
  int64_t packed = 0;
  for (int64_t r = 0; r < kRows; ++r) packed += rows.length(batch::kIds.name, r);
  ASSERT_EQ(static_cast<int64_t>(train::pack_rows(rows).tokens.ids.size()), packed - 3 * 15);
  for (const Case& c : cases()) {
    const Reference reference(scratch_.path(), c, rows);
    for (const int64_t micro_batch_tokens : {1, 60}) {
      SmallLearner small(scratch_.path() / c.family, c.head, micro_batch_tokens);
      reference.expect_same(outcome_of(small, c, rows, reference.counts()),
                            fmt::format("micro-batches of {}", micro_batch_tokens));
    }
  }
}

// The rows filled up to the same length behind their end with tokens that are not trained.
Batch padded(const Batch& rows) {
  size_t longest = 0;
  for (int64_t r = 0; r < rows.rows(); ++r) longest = std::max(longest, rows.row(batch::kIds, r).size());
  Batch out = rows;
  const auto fill = [&](const auto& key, auto padding) {
    std::vector<std::vector<decltype(padding)>> columns;
    for (int64_t r = 0; r < rows.rows(); ++r) {
      const auto row = rows.row(key, r);
      columns.emplace_back(row.begin(), row.end());
      columns.back().resize(longest, padding);
    }
    out.set_ragged(key, columns);
  };
  fill(batch::kIds, int32_t{0});
  fill(batch::kTrainable, uint8_t{0});
  for (const Key<float>& key : kTokenColumns) fill(key, 7.0F);
  return out;
}

// Packed without padding, whole and row by row, against padded rows. A score is of a row's last token, so that padding
// is another row there.
TEST_F(Invariance, PackingGivesWhatPaddingGives) {
  const Batch rows = padded(training_rows(kRows));
  ASSERT_EQ(rows.length(batch::kIds.name, 0), rows.length(batch::kIds.name, 1));
  for (const Case& c : cases()) {
    if (c.loss.needs.row_scores) continue;
    const Reference reference(scratch_.path(), c);
    SmallLearner together(scratch_.path() / c.family, c.head, 100000);
    SmallLearner apart(scratch_.path() / c.family, c.head, 1);
    reference.expect_same(outcome_of(together, c, rows, reference.counts()), "padded, in one micro-batch");
    reference.expect_same(outcome_of(apart, c, rows, reference.counts()), "padded, each alone");
  }
}

}  // namespace
}  // namespace collimate::test
