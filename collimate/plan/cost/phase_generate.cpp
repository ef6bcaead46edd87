#include <algorithm>
#include <cmath>
#include <numeric>

#include "collimate/base/at.h"
#include "collimate/plan/cost/phase_parts.h"
#include "collimate/plan/cost/stages.h"

namespace collimate::plan {
namespace {

constexpr int kSampledRows = 128;
constexpr double kPrefillTokens = 8192;  // of one step, as is usual in engines

// Returns the share of the weights that a batch of `rows` tokens touches: all dense ones, and experts as they are
// drawn.
double touched_share(const shape::Outline& model, double rows) {
  if (model.experts.count == 0) return 1;
  const double total = shape::total_parameters(model), routed = total - shape::active_parameters(model);
  const double drawn = static_cast<double>(model.experts.per_token) / static_cast<double>(model.experts.count);
  return 1 - routed / total * std::pow(1 - drawn, std::max(rows, 1.0) - 1);
}

// Round has the seconds of one decoding round, split as PhaseTime has them.
class Round {
 public:
  Round(const Job& job, const Execution& how, const Constants& c) : job_(job), how_(how), c_(c) {
    const double tp = how.layout.tp, pp = how.layout.pp;
    Execution even = how;  // all stages together
    even.layout.stages.clear();
    // In a filled pipeline all stages wait for the one with most layers.
    const double waits = c.serial_pipeline + (1 - c.serial_pipeline) * unevenness(job, how);
    layers_ = waits * static_cast<double>(job.model.layers);
    if (job.model.experts.count > 0) routed_layers_ = layers_ - waits * static_cast<double>(job.model.dense_layers);
    bandwidth_ = job.gpu.memory_bytes_per_second * c.memory_efficiency;
    weights_ = waits * (how.fp8 ? 1 : 2) * device_parameters(job, even) * pp;
    cache_ = waits * 2 * cached_values(job, even) * pp;
    flops_ = waits * forward_flops(job.model, 1, job.language_head) / tp;
    prefill_ = waits / tp;
    context_flops_ = waits * 4.0 * static_cast<double>(job.model.layers * job.model.heads * job.model.head_dim) / tp;
    peak_ = (how.fp8 && job.gpu.fp8_flops > 0 ? job.gpu.fp8_flops : job.gpu.flops) * c.score_efficiency;
    share_ = c.serial_pipeline + (1 - c.serial_pipeline) / pp;
    sends_ = pp - 1.0 / how.layout.virtual_stages;  // the last stage sends nothing
    prefill_sends_ = c.serial_pipeline * sends_ + (1 - c.serial_pipeline);
  }

  double latency(double alive) const {
    const double split = how_.layout.tp > 1 ? c_.decode_tp_layer_seconds : 0;
    return layers_ * (c_.decode_layer_seconds + split) + routed_layers_ * c_.decode_expert_seconds +
           c_.decode_step_seconds + alive * c_.decode_row_seconds;
  }
  // Every token passes all layers and stages before the next one of its row is drawn: with as many micro-batches in
  // flight as there are stages, nothing hides the sends.
  double tensor(double alive) const {
    const double rows = alive * share_;
    return layers_ * exchange_seconds(job_, how_, c_, rows) + sends_ * stage_send_seconds(job_, how_, c_, rows);
  }
  double traffic(double alive, double context) const {
    const double rows = alive * share_;
    // A device's experts meet the rows of all replicas that ep spans.
    const double meeting = rows * std::max(1.0, static_cast<double>(how_.layout.ep) / how_.layout.tp);
    const double memory = (weights_ * touched_share(job_.model, meeting) + rows * context * cache_) / bandwidth_;
    return std::max(memory, rows * (flops_ + context * context_flops_) / peak_);
  }
  // Returns the seconds of the prefill of `rows` rows whose tokens have these moments, in steps one after the other.
  double prefill(const Moments& tokens, double rows) const {
    const double all = rows * tokens.mean, step = std::min(all, kPrefillTokens);
    if (all <= 0) return 0;
    const double compute = rows * forward_flops(job_.model, tokens, false) * prefill_ / peak_;
    const double exchanges = layers_ * exchange_seconds(job_, how_, c_, step);
    const double sends = prefill_sends_ * stage_send_seconds(job_, how_, c_, step);
    return compute * share_ + all / step * (exchanges * share_ + sends);
  }

 private:
  const Job& job_;
  const Execution& how_;
  const Constants& c_;
  double routed_layers_ = 0;
  double layers_, bandwidth_, weights_, cache_, flops_, context_flops_, prefill_, peak_;
  // One micro-batch has this share of the rows that decode. In a filled pipeline pp of them are in flight and every
  // stage works; in a serial one, one stage works on all rows.
  double share_;
  double sends_;          // from one rank to the next with all of its runs
  double prefill_sends_;  // that a step waits for; in a filled pipeline, stages send at once
};

// Returns lengths of rows in an order in which long and short ones mix, which is always the same.
std::vector<double> arrival(const Lengths& lengths, double rows) {
  if (lengths.constant()) return {lengths.mean()};
  const int count = static_cast<int>(std::clamp(rows, 1.0, static_cast<double>(kSampledRows)));
  const std::vector<double> sorted = lengths.sample(count);
  std::vector<double> mixed;
  int stride = std::max(1, static_cast<int>(count * 0.618));
  while (std::gcd(stride, count) != 1) ++stride;
  for (int64_t i = 0; i < count; ++i) mixed.push_back(base::at(sorted, i * stride % count));
  return mixed;
}

// Returns the lengths; where all are equal and not all rows fit at once, the length once for each wave.
std::vector<double> waves(std::vector<double> lengths, double rows, double limit) {
  if (lengths.size() > 1 || rows <= limit) return lengths;
  return std::vector<double>(static_cast<size_t>(std::ceil(rows / limit)), lengths[0]);
}

// Returns the seconds in which the prompts and first tokens of preempted rows are prefilled again.
double recompute_seconds(const Round& round, const Decoding& decoded) {
  if (decoded.preempted_rows <= 0) return 0;
  const double context = decoded.recomputed_tokens / decoded.preempted_rows;
  return round.prefill({context, context * context}, decoded.preempted_rows);
}

}  // namespace

double decoding_rows(const Job& job, const Execution& how, const Constants& c, double resident_bytes) {
  const Settings& set = job.load.settings;
  const double most = std::min(replica_rows(job, how), set.batch_rows > 0 ? set.batch_rows : c.batch_rows);
  const double wanted = how.decoding_rows > 0 ? std::min(most, how.decoding_rows) : most;
  if (set.pool_tokens > 0) return std::min(wanted, pool_tokens(job, wanted) / job.load.row_tokens().mean);
  const MemoryBound bound = memory_of(job, how, c);
  const double free = usable_bytes(job.gpu, c) - bound.resident_bytes() - bound.working_bytes() - resident_bytes;
  return std::min(concurrency(job, how, free * c.kv_share), wanted);
}

PhaseTime generate_time(const Job& job, const Execution& how, const Constants& c, double resident_bytes) {
  const double rows = replica_rows(job, how);
  const double limit = std::max(1.0, decoding_rows(job, how, c, resident_bytes));
  const Round round(job, how, c);
  PhaseTime time;
  const auto seconds = [&](double alive, double context) {
    return round.latency(alive) + round.tensor(alive) + round.traffic(alive, context);
  };
  const std::vector<double> lengths = waves(arrival(job.load.completion, rows), rows, limit);
  const Decoding decoded = decode(lengths, rows, {limit, pool_tokens(job, limit)}, job.load.prompt.mean(), seconds);
  const double alive = std::min(rows, limit);
  time.latency = decoded.rounds * round.latency(alive);
  time.tensor = decoded.rounds * round.tensor(alive);
  if (const double both = time.latency + time.tensor; both > decoded.seconds) {
    time.latency *= decoded.seconds / both;
    time.tensor *= decoded.seconds / both;
  }
  time.memory = decoded.seconds - time.latency - time.tensor;
  time.prefill = round.prefill(job.load.prompt.moments(), rows) + recompute_seconds(round, decoded);
  time.tail = decoded.tail_seconds;
  time.fixed = c.phase_seconds;
  for (size_t part = 0; part < kFinishParts; ++part)
    time.finish[part] = 1 - (decoded.seconds - decoded.finish[part]) / time.total();
  return time;
}

double transfer_seconds(const Job& trains, const Execution& from, const Job& uses, const Execution& to,
                        bool same_devices, const Constants& c) {
  const double model = 2 * (from.lora_rank > 0 ? shape::adapter_parameters(uses.model, from.lora_rank)
                                               : shape::total_parameters(uses.model));
  if (same_devices) {
    const double have = from.layout.tp * from.layout.pp, want = to.layout.tp * to.layout.pp;
    if (have <= want && from.layout.zero < 3) {
      const double moved = layers_to_move(uses, from, to) / static_cast<double>(uses.model.layers);
      if (moved == 0) return 0;
      const bool same_node = from.layout.tp * from.layout.pp <= uses.per_node;
      return send_seconds(model * moved / to.layout.tp, same_node, uses.gpu, c);
    }
    const double gathered = model / want;
    const int ranks = from.layout.zero >= 3 ? uses.devices : static_cast<int>(have / want);
    return collective_seconds(Collective::kAllGather, gathered, rank_set(ranks, 1, uses.per_node), uses.gpu, c);
  }
  // Every device of the source sends its share once to each node of the target; devices of a node pass it on.
  const double nodes = std::ceil(static_cast<double>(uses.devices) / uses.per_node);
  const double lane = std::min(trains.gpu.network_bytes_per_second, uses.gpu.network_bytes_per_second);
  const double lanes = std::max(1, trains.devices) * lane * c.network_efficiency;
  const double copies = std::max(1.0, nodes);
  return model * copies / lanes + weight_tensors(uses.model) * c.tensor_seconds +
         model / (to.layout.tp * to.layout.pp * uses.gpu.link_bytes_per_second * c.link_efficiency);
}

}  // namespace collimate::plan
