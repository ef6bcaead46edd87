#include "collimate/model/router_choices.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/shape/mixture.h"
#include "collimate/tensor/ops/memory.h"

namespace collimate::model {
namespace {

constexpr auto kNumberBytes = static_cast<int64_t>(sizeof(int32_t));

// Returns whether a router can have chosen these experts [K].
bool is_choice(std::span<const int16_t> experts, const shape::Experts& how) {
  return std::ranges::adjacent_find(experts, std::greater_equal()) == experts.end() && experts.back() < how.count;
}

}  // namespace

int64_t routed_width(const shape::ModelShape& shape) {
  const shape::Experts* experts = shape::experts_of(shape);
  return experts == nullptr ? 0 : shape::routers_of(shape) * experts->per_token;
}

RouterChoices::RouterChoices(const tensor::Exec& exec, const shape::ModelShape& shape, const TokenBatch& tokens,
                             bool keep)
    : exec_(exec),
      tokens_(static_cast<int64_t>(tokens.ids.size())),
      routers_(shape::routers_of(shape)),
      per_token_(shape::experts_of(shape)->per_token),
      replayed_(tokens.replayed),
      agreement_(tokens.agreement) {
  if (keep) {
    kept_ = tensor::Buffer(routers_ * tokens_ * per_token_ * kNumberBytes, *exec.device);
    tensor::zero(exec_, routers_ * tokens_ * per_token_, kept_.floats());
  }
  if (tokens.experts.empty()) return;
  read_recorded(tokens, *shape::experts_of(shape));
  recorded_on_device_ = tensor::OnDevice<int32_t>(exec, std::span<const int32_t>(recorded_));
  differ_ = tensor::Buffer(tokens_ * kNumberBytes, *exec.device);
  tensor::zero(exec_, tokens_, differ_.floats());
}

void RouterChoices::read_recorded(const TokenBatch& tokens, const shape::Experts& how) {
  const auto all = static_cast<size_t>(tokens_ * routers_ * per_token_);
  if (tokens.experts.size() != all)
    throw base::InputError(base::expectation(
        "routed_experts", fmt::format("{} tokens × {} routers × {} experts", tokens_, routers_, per_token_),
        fmt::format("{} numbers", tokens.experts.size()), "samples that this model drew"));
  recorded_.resize(all);
  const std::span<const int16_t> given(tokens.experts);
  for (int64_t t = 0; t < tokens_; ++t)
    for (int64_t router = 0; router < routers_; ++router) {
      const auto one =
          given.subspan(static_cast<size_t>((t * routers_ + router) * per_token_), static_cast<size_t>(per_token_));
      known_ += router == 0 && one.front() >= 0 ? 1 : 0;
      if (one.front() >= 0 && !is_choice(one, how))
        throw base::InputError(base::expectation("routed_experts",
                                                 fmt::format("ascending experts below {} of a token", how.count),
                                                 fmt::format("{}", fmt::join(one, ", "))));
      std::ranges::copy(one, recorded_.begin() + (router * tokens_ + t) * per_token_);
    }
}

int32_t* RouterChoices::kept(int router) const {
  if (kept_.data() == nullptr) return nullptr;
  return static_cast<int32_t*>(kept_.data()) + router * tokens_ * per_token_;
}

void RouterChoices::compare(const shape::Experts& how, const tensor::Routed& routed, int router) {
  if (recorded_.empty()) return;
  const int32_t* of_router = recorded_on_device_.data() + router * tokens_ * per_token_;
  tensor::replay_routes(exec_, how, {of_router, replayed_, static_cast<int32_t*>(differ_.data())}, tokens_, routed);
  compared_ += known_;
}

void RouterChoices::join(const StageRanks& stages) {
  if (!stages.several()) return;
  const tensor::HostView<int32_t> all(exec_, static_cast<int32_t*>(kept_.data()), routers_ * tokens_ * per_token_);
  std::vector<float> numbers(all.begin(), all.end());  // experts are few enough to be exact
  stages.sum(std::span(numbers));
  std::ranges::transform(numbers, all.begin(), [](float number) { return static_cast<int32_t>(number); });
}

RoutedExperts RouterChoices::chosen() const {
  RoutedExperts out;
  const int64_t of_router = tokens_ * per_token_;
  const tensor::HostView<const int32_t> all(exec_, static_cast<const int32_t*>(kept_.data()), routers_ * of_router);
  out.reserve(all.size());
  for (int64_t t = 0; t < tokens_; ++t)
    for (int64_t router = 0; router < routers_; ++router)
      for (int64_t k = 0; k < per_token_; ++k)
        out.push_back(static_cast<int16_t>(all[router * of_router + t * per_token_ + k]));
  return out;
}

void RouterChoices::tell() {
  if (recorded_.empty() || agreement_ == nullptr) return;
  {
    const tensor::HostView<const int32_t> differ(exec_, static_cast<const int32_t*>(differ_.data()), tokens_);
    agreement_->differing += std::accumulate(differ.begin(), differ.end(), int64_t{0});
  }
  agreement_->compared += std::exchange(compared_, 0);
  tensor::zero(exec_, tokens_, differ_.floats());
}

}  // namespace collimate::model
