#include "collimate/model/head_exchange.h"

#include "collimate/model/context_cut.h"
#include "collimate/shape/context_heads.h"
#include "collimate/tensor/ops/memory.h"

namespace collimate::model {

HeadExchange::HeadExchange(const Step& step, const Attention& a)
    : step_(&step),
      cut_(step.input.cut()),
      whole_(&a),
      own_(shape::context_heads(a, cut_->ranks().rank, cut_->ranks().ranks)) {
  const int64_t sharers = cut_->ranks().ranks * own_.kv_heads / a.kv_heads;  // of a key-value head
  const int64_t keys = a.query_width(), values = keys + a.kv_width();
  const int64_t own_keys = own_.query_width(), own_values = own_keys + own_.kv_width();
  heads_ = {values + a.value_width(),
            own_values + own_.value_width(),
            {{0, 0, own_.query_width(), 1},
             {keys, own_keys, own_.kv_width(), sharers},
             {values, own_values, own_.value_width(), sharers}}};
  outputs_ = {a.output_width(), own_.output_width(), {{0, 0, own_.output_width(), 1}}};
}

std::vector<int64_t> HeadExchange::counts(int64_t width, bool back) const {
  const int ranks = cut_->ranks().ranks;
  std::vector<int64_t> floats;
  for (int from = 0; from < ranks; ++from)
    for (int to = 0; to < ranks; ++to) floats.push_back(cut_->rows_of(back ? to : from) * width);
  return floats;
}

const float* HeadExchange::bring(const Rows& how, const float* from) const {
  const int64_t own_rows = cut_->own_rows();
  tensor::Arena& arena = step_->arena;
  float* all = arena.take(cut_->all_rows() * how.own);
  const tensor::Arena::Mark mark = arena.mark();
  float* goes = arena.take(cut_->ranks().ranks * own_rows * how.own);
  float* came = arena.take(cut_->all_rows() * how.own);
  for (int rank = 0; rank < cut_->ranks().ranks; ++rank)
    for (const Columns& some : how.columns)
      tensor::copy_heads(step_->exec, {own_rows, 1, some.width}, {from + some.first(rank), how.whole, 0},
                         {goes + rank * own_rows * how.own + some.own, how.own, 0});
  cut_->ranks().exchange(step_->exec, goes, came, counts(how.own, /*back=*/false));
  tensor::gather_rows(step_->exec, came, how.own, cut_->turns(), all);
  arena.rewind(mark);
  return all;
}

void HeadExchange::give_back(const Rows& how, const float* from, float* to) const {
  const int64_t own_rows = cut_->own_rows();
  tensor::Arena& arena = step_->arena;
  const tensor::Arena::Mark mark = arena.mark();
  float* goes = arena.take(cut_->all_rows() * how.own);
  float* came = arena.take(cut_->ranks().ranks * own_rows * how.own);
  tensor::gather_rows(step_->exec, from, how.own, cut_->in_turn(), goes);
  cut_->ranks().exchange(step_->exec, goes, came, counts(how.own, /*back=*/true));
  for (int rank = 0; rank < cut_->ranks().ranks; ++rank)
    for (const Columns& some : how.columns) {
      const bool first = rank % some.sharers == 0;  // of the ranks that have these columns
      const auto put = first ? tensor::copy_heads : tensor::add_heads;
      put(step_->exec, {own_rows, 1, some.width}, {came + rank * own_rows * how.own + some.own, how.own, 0},
          {to + some.first(rank), how.whole, 0});
    }
  arena.rewind(mark);
}

}  // namespace collimate::model
