// Measures the speed of the kernels against an FMA loop in registers, for work on a kernel:
//   bench_kernels [threads] [few linear bf16 backward attention head stream]
// Each line has the shape, the time of the best of several runs, GFLOP/s, and their share of the type's peak, which is
// measured in the same run. Lines that are bound by reading weights add GB/s. bench_attention, bench_log_prob and
// bench_linear compare with ATen and with the limits of memory.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "bench/peak/peak.h"
#include "bench/peaks.h"
#include "collimate/tensor/kernels/isa.h"
#include "collimate/tensor/ops/activation.h"
#include "collimate/tensor/ops/attention.h"
#include "collimate/tensor/ops/linear.h"
#include "collimate/tensor/ops/log_prob.h"
#include "collimate/tensor/ops/norm.h"
#include "collimate/tensor/ops/optimizer.h"

namespace {

using collimate::bench::noise;
using collimate::tensor::ComputeType;
using collimate::tensor::Exec;
using collimate::tensor::LinearPanels;

// Returns the CPU time of the calling thread, so that a busy machine does not count, or, for several threads, the wall
// clock. Both in seconds.
double now(bool wall) {
  timespec t{};
  clock_gettime(wall ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

bool g_wall = false;

double seconds_of(const std::function<void()>& body) {
  double best = 1e30;
  const double begin = now(g_wall);
  for (int i = 0; i < 3 || (i < 200 && now(g_wall) - begin < 0.15); ++i) {
    const double t = now(g_wall);
    body();
    best = std::min(best, now(g_wall) - t);
  }
  return best;
}

struct Bench {
  Exec exec;
  double peak = 0, bf16_peak = 0;  // GFLOP/s of all threads

  void line(const std::string& name, double flops, double seconds, double bytes = 0,
            ComputeType type = ComputeType::kFloat32) const {
    const double rate = flops / seconds / 1e9;
    fmt::print("{:52} {:10.1f} us {:8.1f} GFLOP/s {:5.1f} %{}\n", name, seconds * 1e6, rate,
               100 * rate / (is_bf16(type) ? bf16_peak : peak),
               bytes > 0 ? fmt::format(" {:6.1f} GB/s", bytes / seconds / 1e9) : "");
  }

  void linear(int64_t m, int64_t n, int64_t k, ComputeType type) const {
    const auto w = noise(n * k);
    const auto x = noise(m * k);
    std::vector<float> y(static_cast<size_t>(m * n));
    LinearPanels panels;
    pack_linear(exec, w.data(), n, k, type, 1, panels);
    const double s = seconds_of([&] { collimate::tensor::linear(exec, x.data(), k, m, panels, y.data(), n); });
    line(fmt::format("linear {} M={} N={} K={}", name_of(type), m, n, k), 2.0 * m * n * k, s,
         static_cast<double>(packed_bytes(exec, n, k, type, 1)), type);
  }

  void backward(int64_t m, int64_t n, int64_t k, ComputeType type) const {
    const auto w = noise(n * k);
    const auto x = noise(m * k);
    const auto dy = noise(m * n);
    std::vector<float> dx(static_cast<size_t>(m * k));
    std::vector<float> dw(static_cast<size_t>(n * k));
    const double flops = 2.0 * m * n * k;
    const double input = seconds_of(
        [&] { collimate::tensor::linear_grad_input(exec, type, dy.data(), n, m, w.data(), n, k, dx.data(), k); });
    line(fmt::format("grad_input {} M={} N={} K={}", name_of(type), m, n, k), flops, input, 0, type);
    const double weight = seconds_of(
        [&] { collimate::tensor::linear_grad_weight(exec, type, dy.data(), n, x.data(), k, m, n, k, dw.data()); });
    line(fmt::format("grad_weight {} M={} N={} K={}", name_of(type), m, n, k), flops, weight, 0, type);
  }

  void attention(int64_t sequences, int64_t tokens, int heads, int kv_heads, int head_dim) const;
  void head(int64_t rows, int64_t vocab, int64_t width) const;
  void stream() const;
};

void Bench::head(int64_t rows, int64_t vocab, int64_t width) const {
  using namespace collimate::tensor;
  const auto hidden = noise(rows * width);
  const auto w = noise(vocab * width);
  const std::vector<int32_t> targets(static_cast<size_t>(rows), 3);
  std::vector<float> lp(static_cast<size_t>(rows), 1.0F), dh(hidden.size()), dw(w.size());
  LinearPanels panels;
  pack_linear(exec, w.data(), vocab, width, ComputeType::kFloat32, 1, panels);
  const LogProbHead args{hidden.data(), width, rows, &panels, nullptr, 0.9F, targets.data()};
  const double flops = 2.0 * rows * vocab * width;
  const std::string shape = fmt::format("M={} V={} H={}", rows, vocab, width);
  line("log_prob " + shape, flops, seconds_of([&] { log_softmax_gather(exec, args, {.log_prob = lp.data()}); }));
  const LogProbGrad grad{lp.data(), nullptr, w.data(), dh.data(), width, false, dw.data(), nullptr};
  line("log_prob backward " + shape, 3 * flops, seconds_of([&] { log_softmax_gather_backward(exec, args, grad); }));
  std::vector<float> logits(static_cast<size_t>(rows * vocab)), norms(static_cast<size_t>(2 * rows));
  float* max = norms.data();
  log_softmax_gather(exec, args, {.max = max, .log_sum = max + rows, .logits = logits.data()});
  const LogProbForward kept{max, max + rows, nullptr, logits.data()};
  line("log_prob backward, logits kept " + shape, 2 * flops,
       seconds_of([&] { log_softmax_gather_backward(exec, args, grad, kept); }));
}

// Measures memory-bound operations, in GB/s of what they must read and write.
void Bench::stream() const {
  using namespace collimate::tensor;
  constexpr int64_t kCount = 8 << 20;
  constexpr int64_t kWidth = 768;
  constexpr int64_t kRows = kCount / kWidth / 2;
  auto a = noise(kCount), b = noise(kCount), c = noise(kCount), d = noise(kCount);
  const auto print = [](const char* name, double bytes, double seconds) {
    fmt::print("{:52} {:10.1f} us {:8.1f} GB/s\n", name, seconds * 1e6, bytes / seconds / 1e9);
  };
  print("memcpy", 8.0 * kCount, seconds_of([&] { std::copy(a.begin(), a.end(), b.begin()); }));
  print("adamw", 28.0 * kCount, seconds_of([&] { adamw(exec, a.data(), b.data(), c.data(), d.data(), kCount, {}); }));
  std::vector<double> sums(static_cast<size_t>(squares_chunks(kCount)));
  print("squares_of_chunks", 4.0 * kCount, seconds_of([&] { squares_of_chunks(exec, a.data(), kCount, sums.data()); }));
  print("rms_norm", 8.0 * kRows * kWidth,
        seconds_of([&] { rms_norm(exec, a.data(), kRows, kWidth, b.data(), 1e-5F, c.data(), d.data()); }));
  print("rms_norm_backward", 20.0 * kRows * kWidth, seconds_of([&] {
          rms_norm_backward(exec, a.data(), b.data(), d.data(), kRows, kWidth, d.data(), c.data(), false, d.data());
        }));
  print("silu_mul", 12.0 * kCount / 2,
        seconds_of([&] { silu_mul(exec, a.data(), a.data() + kWidth, 2 * kWidth, kRows, kWidth, b.data(), kWidth); }));
}

void Bench::attention(int64_t sequences, int64_t tokens, int heads, int kv_heads, int head_dim) const {
  using namespace collimate::tensor;
  const int64_t rows = sequences * tokens;
  const int64_t width = int64_t{heads} * head_dim;
  const int64_t kv_width = int64_t{kv_heads} * head_dim;
  const KvLayout layout{kv_heads, head_dim};
  const int64_t blocks = KvLayout::blocks_for(tokens);
  const auto q = noise(rows * width);
  const auto k = noise(rows * kv_width);
  const auto v = noise(rows * kv_width);
  std::vector<float> storage(static_cast<size_t>(sequences * blocks * kv_block_floats(exec, layout)));
  std::vector<float> out(q.size()), lse(static_cast<size_t>(rows * heads)), dq(q.size()), dk(k.size()), dv(v.size());
  std::vector<int32_t> ids(static_cast<size_t>(sequences * blocks));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  std::vector<AttentionRun> runs;
  std::vector<Document> documents;
  for (int64_t s = 0; s < sequences; ++s) {
    runs.push_back({s * tokens, tokens, 0, ids.data() + s * blocks});
    documents.push_back({s * tokens, tokens});
  }
  append_kv(exec, layout, k.data(), kv_width, v.data(), kv_width, runs, storage.data());
  const AttentionForward f{layout, heads, {0.125F}, q.data(), width, storage.data(), out.data(), width, lse.data()};
  const double flops = 2.0 * 2.0 * sequences * heads * head_dim * (tokens * (tokens + 1) / 2.0);
  const std::string shape = fmt::format("S={} T={} H={}/{} D={}", sequences, tokens, heads, kv_heads, head_dim);
  line("attention " + shape, flops, seconds_of([&] { attention_forward(exec, f, runs); }));
  for (AttentionRun& run : runs) run = {run.first_row / tokens, 1, tokens - 1, run.blocks};
  line("attention decode " + shape, 4.0 * sequences * heads * head_dim * tokens,
       seconds_of([&] { attention_forward(exec, f, runs); }), static_cast<double>(storage.size()) * 4);
  AttentionBackward b;
  b.heads = heads, b.kv_heads = kv_heads, b.head_dim = head_dim, b.scores.scale = 0.125F;
  b.q = q.data(), b.q_stride = width, b.k = k.data(), b.v = v.data(), b.kv_stride = kv_width;
  b.out = out.data(), b.dout = q.data(), b.out_stride = width, b.lse = lse.data();
  b.dq = dq.data(), b.dq_stride = width, b.dk = dk.data(), b.dv = dv.data(), b.dkv_stride = kv_width;
  line("attention backward " + shape, 2.5 * flops, seconds_of([&] { attention_backward(exec, b, documents); }));
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  const auto wants = [&](const std::string& what) {
    for (int i = 2; i < argc; ++i) {
      if (what == argv[i]) return true;
    }
    return argc <= 2;
  };
  g_wall = threads > 1;
  collimate::host::CorePool pool(threads);
  Bench bench{{&pool}};
  bench.peak = collimate::tensor::fma_peak(bench.exec);
  const ComputeType bf16 = collimate::tensor::compute_type_of("bfloat16");
  bench.bf16_peak = collimate::bench::register_peak(bench.exec, bf16);
  fmt::print("isa {} threads {} register peak {:.1f} GFLOP/s, of bfloat16 {:.1f}\n",
             name_of(collimate::tensor::instruction_set()), threads, bench.peak, bench.bf16_peak);
  for (const int64_t m : {1, 4, 8, 16}) {
    if (!wants("few")) break;
    for (const int64_t k : {64, 288, 1024}) bench.linear(m, k, k, ComputeType::kFloat32);
    bench.linear(m, 32000, 288, ComputeType::kFloat32);
    bench.linear(m, 1024, 1024, bf16);
  }
  for (const int64_t m : {64, 256, 2048}) {
    if (wants("linear")) {
      for (const int64_t k : {64, 288, 768, 1024}) bench.linear(m, k, k, ComputeType::kFloat32);
    }
    if (wants("bf16")) {
      for (const int64_t k : {288, 768, 1024}) bench.linear(m, k, k, bf16);
      for (const int64_t k : {288, 768, 1024}) bench.backward(m, k, k, bf16);
    }
    if (wants("backward")) {
      for (const int64_t k : {64, 288, 768, 1024}) bench.backward(m, k, k, ComputeType::kFloat32);
    }
  }
  if (wants("attention")) {
    bench.attention(8, 128, 12, 4, 64);
    bench.attention(8, 192, 6, 6, 48);
    bench.attention(32, 64, 8, 4, 16);
    bench.attention(1, 1024, 12, 12, 64);
  }
  if (wants("head")) {
    bench.head(512, 32000, 288);
    bench.head(1365, 32000, 288);
    bench.head(512, 512, 64);
  }
  if (wants("stream")) bench.stream();
  return 0;
}
