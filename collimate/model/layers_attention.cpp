#include <cmath>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/model/context_attention.h"
#include "collimate/model/head_exchange.h"
#include "collimate/model/kv_cache.h"
#include "collimate/model/layers.h"
#include "collimate/model/recording.h"
#include "collimate/tensor/ops/activation.h"
#include "collimate/tensor/ops/memory.h"
#include "collimate/tensor/ops/norm.h"

namespace collimate::model {

using tensor::GradientTarget;
using tensor::Tape;

namespace {

// Holds the numbers of a block's attention as the attention operations take them.
struct Heads {
  explicit Heads(const Attention& a)
      : heads(static_cast<int>(a.heads)),
        kv_heads(static_cast<int>(a.kv_heads)),
        head_dim(static_cast<int>(a.head_dim)),
        scores{.scale = a.scale > 0 ? static_cast<float>(a.scale) : 1.0F / std::sqrt(static_cast<float>(a.head_dim)),
               .window = a.window,
               .softcap = static_cast<float>(a.softcap),
               .alibi = a.alibi,
               .first_head = static_cast<int>(a.first_head),
               .all_heads = static_cast<int>(a.all_heads)},
        row(a.query_width() + a.kv_width() + a.value_width()) {}
  int heads, kv_heads, head_dim;
  tensor::AttentionScores scores;
  int64_t row;  // width of q, k and v together
};

// ForwardRows are where a forward over the heads of an attention reads and writes.
struct ForwardRows {
  const float* q = nullptr;  // with keys and values behind them
  float* out = nullptr;
  float* lse = nullptr;  // or null
  const float* sinks = nullptr;
};

// Returns the forward's arguments. The step's blocks hold the keys and values.
tensor::AttentionForward forward_over(const Step& step, const Attention& a, const ForwardRows& rows) {
  const Heads h(a);
  tensor::AttentionForward args;
  args.layout = kv_layout(a, step.kv_type);
  args.heads = h.heads;
  args.scores = h.scores;
  args.q = rows.q;
  args.q_stride = h.row;
  args.storage = step.kv_storage;
  args.out = rows.out;
  args.out_stride = a.output_width();
  args.lse = rows.lse;
  args.sinks = rows.sinks;
  return args;
}

// BackwardRows are where a backward reads, and where it writes the gradient of queries, keys and values.
struct BackwardRows {
  const float* q = nullptr;
  const float* out = nullptr;
  const float* dout = nullptr;
  const float* lse = nullptr;
  float* into = nullptr;
};

// Returns the backward's arguments, without those of keys and values.
tensor::AttentionBackward query_backward(const Attention& a, const BackwardRows& rows) {
  const Heads h(a);
  tensor::AttentionBackward args;
  args.heads = h.heads;
  args.kv_heads = h.kv_heads;
  args.head_dim = h.head_dim;
  args.value_dim = static_cast<int>(a.value_dim());
  args.scores = h.scores;
  args.q = rows.q;
  args.out = rows.out;
  args.dout = rows.dout;
  args.out_stride = a.output_width();
  args.lse = rows.lse;
  args.dq = rows.into;
  args.q_stride = args.dq_stride = h.row;
  return args;
}

void set_keys_and_values(tensor::AttentionBackward& args, const Attention& a, const float* k, float* dk,
                         int64_t stride) {
  args.k = k;
  args.v = k + a.kv_width();
  args.dk = dk;
  args.dv = dk + a.kv_width();
  args.kv_stride = args.dkv_stride = stride;
}

// Adds to the gradient of sinks that of the heads from `first` on.
void sinks_backward(const Step& step, const tensor::AttentionBackward& args, int64_t rows, int sinks, int64_t first) {
  if (sinks < 0) return;
  if (float* into = step.weights.param_gradient(sinks); into != nullptr)
    tensor::attention_sinks_backward(step.exec, args, rows, step.weights.param(sinks) + first, into + first);
}

// Attended holds what attention read and made.
struct Attended {
  Slot* qkv = nullptr;
  Slot* out = nullptr;
  const float* lse = nullptr;
  int sinks = -1;
};

// Computes the backward of a rank's heads over all tokens, to whose ranks the gradients go.
void backward_by_heads(const Step& step, const Attention& a, const Attended& of, float* into) {
  const tensor::Arena::Mark mark = step.arena.mark();
  const HeadExchange exchange(step, a);
  const Attention& own = exchange.own();
  const int64_t width = Heads(own).row, rows = step.input.all_rows();
  const float* q = exchange.bring(of.qkv->value);
  const float* out = exchange.bring_outputs(of.out->value);
  const float* dout = exchange.bring_outputs(of.out->gradient);
  float* gradients = step.arena.take(rows * width);
  tensor::AttentionBackward args = query_backward(own, {q, out, dout, of.lse, gradients});
  sinks_backward(step, args, rows, of.sinks, exchange.first_head());
  set_keys_and_values(args, own, q + own.query_width(), gradients + own.query_width(), width);
  tensor::attention_backward(step.exec, args, step.input.documents());
  exchange.give_back_gradients(gradients, into);
  step.arena.rewind(mark);
}

void attend_backward(const Step& step, const Attention& a, const Attended& of) {
  Slot& qkv = *of.qkv;
  const GradientTarget into = step.tape->target(qkv);
  COLLIMATE_CHECK(!into.accumulate, "q, k and v have one reader");
  if (step.input.by_heads()) return backward_by_heads(step, a, of, into.data);
  tensor::AttentionBackward args = query_backward(a, {qkv.value, of.out->value, of.out->gradient, of.lse, into.data});
  sinks_backward(step, args, qkv.rows, of.sinks, 0);
  if (step.input.cut() == nullptr) {
    set_keys_and_values(args, a, qkv.value + a.query_width(), into.data + a.query_width(), qkv.width);
    return tensor::attention_backward(step.exec, args, step.input.documents());
  }
  const tensor::Arena::Mark mark = step.arena.mark();
  const int64_t width = a.kv_width() + a.value_width(), count = step.input.all_rows() * width;
  float* gradients = step.arena.take(count);
  tensor::zero(step.exec, count, gradients);
  set_keys_and_values(args, a, gather_keys_and_values(step, a, qkv), gradients, width);
  tensor::attention_backward(step.exec, args, step.input.documents());
  sum_key_and_value_gradients(step, a, gradients, into.data);
  step.arena.rewind(mark);
}

// Puts keys and values of this rank's tokens, and of other context ranks' if there are any, into the step's blocks.
void append_keys_and_values(const Step& step, const Attention& a, const Slot& qkv, const tensor::KvLayout& layout) {
  const tensor::Arena::Mark mark = step.arena.mark();
  const bool cut = step.input.cut() != nullptr;
  const float* k = cut ? gather_keys_and_values(step, a, qkv) : qkv.value + a.query_width();
  const int64_t stride = cut ? a.kv_width() + a.value_width() : qkv.width;
  tensor::append_kv(step.exec, layout, k, stride, k + a.kv_width(), stride, step.input.appended(), step.kv_storage);
  step.arena.rewind(mark);
}

const float* sinks_of(const Step& step, int sinks) { return sinks < 0 ? nullptr : step.weights.param(sinks); }

// Attends with this rank's tokens to the keys and values of all.
Attended attend_to_all(const Step& step, const Attention& a, Slot* qkv, int sinks) {
  append_keys_and_values(step, a, *qkv, kv_layout(a, step.kv_type));
  Slot* out = tensor::make_slot(step.arena, qkv->rows, a.output_width(), qkv->wanted);
  float* lse = step.tape != nullptr && qkv->wanted ? step.arena.take(qkv->rows * a.heads) : nullptr;
  tensor::attention_forward(step.exec, forward_over(step, a, {qkv->value, out->value, lse, sinks_of(step, sinks)}),
                            step.input.runs());
  return {qkv, out, lse, sinks};
}

// Attends with all tokens and this rank's heads. The slot has this rank's tokens, but `lse` all tokens of its heads.
Attended attend_by_heads(const Step& step, const Attention& a, Slot* qkv, int sinks) {
  const HeadExchange exchange(step, a);
  const Attention& own = exchange.own();
  const int64_t rows = step.input.all_rows(), stride = Heads(own).row;
  Slot* out = tensor::make_slot(step.arena, qkv->rows, a.output_width(), qkv->wanted);
  float* lse = step.tape != nullptr && qkv->wanted ? step.arena.take(rows * own.heads) : nullptr;
  const tensor::Arena::Mark mark = step.arena.mark();
  const float* q = exchange.bring(qkv->value);
  const float* k = q + own.query_width();
  tensor::append_kv(step.exec, kv_layout(own, step.kv_type), k, stride, k + own.kv_width(), stride,
                    step.input.appended(), step.kv_storage);
  float* of_heads = step.arena.take(rows * own.output_width());
  const float* own_sinks = sinks < 0 ? nullptr : sinks_of(step, sinks) + exchange.first_head();
  tensor::attention_forward(step.exec, forward_over(step, own, {q, of_heads, lse, own_sinks}), step.input.runs());
  exchange.give_back_outputs(of_heads, out->value);
  step.arena.rewind(mark);
  return {qkv, out, lse, sinks};
}

// Returns where a backward over this rank's heads adds the gradient [width] of a norm: in memory of its own if all
// heads share the norm and other ranks have some of them, else in the weights' gradient. Null when frozen.
float* heads_gradient(const Step& step, int norm, int64_t width) {
  float* all = step.weights.param_gradient(norm);
  if (all == nullptr || !step.weights.tensor().several() || base::at(step.weights.params(), norm).cut >= 0) return all;
  float* mine = step.arena.take(width);
  tensor::zero(step.exec, width, mine);
  return mine;
}

// Adds the tensor ranks' sum of such a gradient to the weights' gradient, if it has memory of its own.
void sum_heads_gradient(const Step& step, int norm, int64_t width, float* mine) {
  float* all = step.weights.param_gradient(norm);
  if (mine == all) return;
  step.weights.tensor().sum(step.exec, mine, width);
  tensor::add(step.exec, mine, width, all);
}

// Describes the rows that the norms of queries and of keys run over.
struct NormRows {
  NormRows(const Attention& a, const HeadNorms& norms, int64_t rows) {
    const Heads h(a);
    const auto of = [&](int heads, int64_t width) {
      return tensor::HeadRows{
          rows,           h.row,        a.norm_of_all ? 1 : heads, static_cast<int>(a.norm_of_all ? width : a.head_dim),
          a.norm_by_head, norms.centred};
    };
    q = of(h.heads, a.query_width());
    k = of(h.kv_heads, a.kv_width());
  }
  int64_t of_queries() const { return q.moments(); }
  int64_t all() const { return of_queries() + k.moments(); }
  tensor::HeadRows q, k;
};

void normalize_heads_backward(const Step& step, const HeadNorms& norms, const Attention& a, Slot& qkv,
                              const float* inverse, const float* dout) {
  const GradientTarget into = step.tape->target(qkv);
  COLLIMATE_CHECK(!into.accumulate, "q, k and v have one reader");
  tensor::copy(step.exec, dout, qkv.count(), into.data);  // for the values; q's and k's gradients are written over
  const NormRows rows(a, norms, qkv.rows);
  const int64_t at = a.query_width();
  float* dquery = heads_gradient(step, norms.query, rows.q.head_dim);
  float* dkey = heads_gradient(step, norms.key, rows.k.head_dim);
  tensor::head_norm_backward(step.exec, dout, qkv.value, inverse, rows.q, step.weights.param(norms.query), into.data,
                             dquery, norms.offset);
  tensor::head_norm_backward(step.exec, dout + at, qkv.value + at, inverse + rows.of_queries(), rows.k,
                             step.weights.param(norms.key), into.data + at, dkey, norms.offset);
  sum_heads_gradient(step, norms.query, rows.q.head_dim, dquery);
  sum_heads_gradient(step, norms.key, rows.k.head_dim, dkey);
}

}  // namespace

Slot* normalize_heads(Step& step, const HeadNorms& norms, const Attention& a, Slot* qkv) {
  const NormRows rows(a, norms, qkv->rows);
  Slot* out = tensor::make_slot(step.arena, qkv->rows, qkv->width,
                                recorded(step, qkv, norms.query) || recorded(step, qkv, norms.key));
  float* inverse = out->wanted ? step.arena.take(rows.all()) : nullptr;
  tensor::copy(step.exec, qkv->value, qkv->count(), out->value);
  const int64_t at = a.query_width();
  tensor::head_norm(step.exec, qkv->value, rows.q, step.weights.param(norms.query), norms.epsilon, out->value, inverse,
                    norms.offset);
  tensor::head_norm(step.exec, qkv->value + at, rows.k, step.weights.param(norms.key), norms.epsilon, out->value + at,
                    inverse == nullptr ? nullptr : inverse + rows.of_queries(), norms.offset);
  if (!out->wanted) return out;
  step.tape->push([step, norms, a, qkv, out, inverse] {
    if (const float* dout = Tape::gradient(*out)) normalize_heads_backward(step, norms, a, *qkv, inverse, dout);
  });
  return out;
}

void turn(Step& step, const Attention& a, Slot* x, int64_t heads, int64_t head_dim) {
  const auto count = static_cast<int>(heads), width = static_cast<int>(head_dim);
  const tensor::RopeTable& table = step.turns->of(a);
  const int32_t* positions = step.input.positions();
  tensor::rope(step.exec, x->value, x->width, x->rows, count, width, positions, table);
  if (step.tape == nullptr || !x->wanted) return;
  step.tape->push([=, exec = step.exec] {
    if (Tape::gradient(*x) != nullptr)
      tensor::rope_backward(exec, x->gradient, x->width, x->rows, count, width, positions, table);
  });
}

Slot* attend(Step& step, const Attention& a, Slot* qkv, int sinks) {
  if (is_bf16(step.weights.options().compute))
    tensor::round_bf16(step.exec, qkv->value + a.query_width(), qkv->width, qkv->rows, a.kv_width() + a.value_width());
  const Attended of = step.input.by_heads() ? attend_by_heads(step, a, qkv, sinks) : attend_to_all(step, a, qkv, sinks);
  if (of.lse == nullptr) return of.out;
  step.tape->push([step, a, of] {
    if (Tape::gradient(*of.out) != nullptr) attend_backward(step, a, of);
  });
  return of.out;
}

}  // namespace collimate::model
