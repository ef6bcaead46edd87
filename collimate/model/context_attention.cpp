#include "collimate/model/context_attention.h"

#include "collimate/model/context_cut.h"
#include "collimate/tensor/ops/memory.h"

namespace collimate::model {
namespace {

int64_t exchanged_width(const Attention& a) { return a.kv_width() + a.value_width(); }
int64_t qkv_width(const Attention& a) { return a.query_width() + exchanged_width(a); }

// Returns where this rank's rows begin among those of all ranks [R, most_rows, width].
float* own_rows(const ContextCut& cut, float* of_ranks, int64_t width) {
  return of_ranks + cut.ranks().rank * cut.most_rows() * width;
}

}  // namespace

const float* gather_keys_and_values(const Step& step, const Attention& a, const Slot& qkv) {
  const ContextCut& cut = *step.input.cut();
  const int64_t width = exchanged_width(a), each = cut.most_rows() * width;
  float* all = step.arena.take(cut.all_rows() * width);
  const tensor::Arena::Mark mark = step.arena.mark();
  float* of_ranks = step.arena.take(cut.ranks().ranks * each);
  tensor::copy_heads(step.exec, {qkv.rows, 1, width}, {qkv.value + a.query_width(), qkv.width, 0},
                     {own_rows(cut, of_ranks, width), width, 0});
  cut.ranks().gather(step.exec, of_ranks, each);
  tensor::gather_rows(step.exec, of_ranks, width, cut.places(), all);
  step.arena.rewind(mark);
  return all;
}

void sum_key_and_value_gradients(const Step& step, const Attention& a, const float* all, float* own) {
  const ContextCut& cut = *step.input.cut();
  const int64_t width = exchanged_width(a), each = cut.most_rows() * width;
  const tensor::Arena::Mark mark = step.arena.mark();
  float* of_ranks = step.arena.take(cut.ranks().ranks * each);
  tensor::gather_rows(step.exec, all, width, cut.rows(), of_ranks);
  cut.ranks().sum_rows(step.exec, of_ranks, each);
  tensor::copy_heads(step.exec, {cut.own_rows(), 1, width}, {own_rows(cut, of_ranks, width), width, 0},
                     {own + a.query_width(), qkv_width(a), 0});
  step.arena.rewind(mark);
}

}  // namespace collimate::model
