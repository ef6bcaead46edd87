// Measures linear layers of the models against the limits of this machine, in one process:
//   bench_linear [rounds] [many one] [260k 15m 110m 0.5b] [float32 bfloat16 int8] [64 256 2048]
// many measures so many rows through each layer, beside ATen's linear: GFLOP/s and their share of the type's peak. The
// peak is that of a loop in registers (FMA in fp32; tiles, or pairs of bf16, in bfloat16), measured for each line, as
// the best of the run so far.
// one measures a single row (M = 1), as in decoding, through one layer of a size and through all layers of a model one
// after another: GB/s of the packed weights, and their share of what a loop reaches that only reads the same memory.
// The line names the cache level, or RAM, in which so many bytes fit.
// Numbers are medians of the rounds (least .. largest); if the ranges touch, it is a tie.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/linear.h>

#include <fstream>
#include <map>

#include "bench/models.h"
#include "bench/peaks.h"
#include "bench/words.h"

namespace collimate::bench {
namespace {

using tensor::ComputeType;
using tensor::Exec;

// A Stack holds several layers' weights, packed one behind the other in one piece of memory.
class Stack {
 public:
  Stack(const Exec& exec, const std::vector<LinearLayer>& layers, ComputeType type) : panels_(layers.size()) {
    constexpr int64_t kSlice = 256;  // all slices of so many rows have the same values, so unpacked weights stay small
    std::vector<float> w;
    std::vector<int64_t> begins;
    int64_t most_k = 0, most_n = 0;
    for (const LinearLayer& layer : layers) {
      begins.push_back(bytes_);
      bytes_ += (tensor::packed_bytes({}, layer.n, layer.k, type, 1) + 63) / 64 * 64;
      most_k = std::max(most_k, layer.k), most_n = std::max(most_n, layer.n);
    }
    w = noise(kSlice * most_k);
    char* memory = static_cast<char*>((memory_ = tensor::Buffer(bytes_)).data());
    for (size_t i = 0; i < layers.size(); ++i) {
      panels_[i].reset({}, layers[i].n, layers[i].k, type, 1, memory + begins[i]);
      for (int64_t row = 0; row < layers[i].n; row += kSlice)
        pack_linear_rows(exec, w.data(), row, std::min(kSlice, layers[i].n - row), panels_[i]);
    }
    x_ = noise(most_k);
    y_.resize(static_cast<size_t>(most_n));
  }

  const void* data() const { return memory_.data(); }
  int64_t bytes() const { return bytes_; }
  // Runs one row through every layer.
  void pass(const Exec& exec) {
    for (const tensor::LinearPanels& p : panels_) tensor::linear(exec, x_.data(), p.k, 1, p, y_.data(), p.n);
  }

 private:
  tensor::Buffer memory_;
  int64_t bytes_ = 0;
  std::vector<tensor::LinearPanels> panels_;
  std::vector<float> x_, y_;
};

std::vector<LinearLayer> stack_of(const shape::ModelShape& shape) {
  std::vector<LinearLayer> all;
  for (int64_t i = 0; i < shape.layers(); ++i)
    for (const LinearLayer& layer : linear_layers(shape)) all.push_back(layer);
  all.push_back({"head", shape.vocabulary, shape.hidden});
  return all;
}

// Returns the bytes of one data cache of that level, as the system says, or 0 if it does not say.
int64_t cache_bytes(int level) {
  for (int index = 0; index < 8; ++index) {
    const std::string at = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    std::ifstream number(at + "level"), kind(at + "type"), size(at + "size");
    int found = 0;
    int64_t kib = 0;
    std::string type;
    if (number >> found && kind >> type && size >> kib && found == level && type != "Instruction") return kib << 10;
  }
  return 0;
}

// Returns the name of the memory in which so many bytes fit. L1 and L2 count once for each thread, L3 once.
std::string level_of(int64_t bytes, int threads) {
  for (const int level : {1, 2, 3})
    if (bytes <= cache_bytes(level) * (level < 3 ? threads : 1)) return fmt::format("L{}", level);
  return cache_bytes(1) > 0 ? "RAM" : "unknown";
}

void one_row(const Exec& exec, const std::string& name, const std::vector<LinearLayer>& layers, ComputeType type,
             int rounds) {
  Stack stack(exec, layers, type);
  const double bytes = static_cast<double>(stack.bytes());
  const auto spreads =
      take_turns(rounds, {[&] { return std::vector{tensor::read_peak(exec, stack.data(), stack.bytes())}; },
                          [&] { return std::vector{seconds_per_call([&] { stack.pass(exec); })}; }});
  const double read = spreads[0][0].largest, rate = bytes / spreads[1][0].median / 1e9;
  fmt::print("linear M=1 {:24} {:10.2f} MB {:>4} {:>32} ms {:8.1f} GB/s of {:8.1f} read {:5.1f} %\n",
             fmt::format("{} {}", name, name_of(type)), bytes / 1e6, level_of(stack.bytes(), exec.threads()),
             in_ms(spreads[1][0]), rate, read, 100 * rate / read);
  std::fflush(stdout);
}

// Measures at::linear on the same values.
struct Theirs {
  Theirs(const std::vector<float>& x, const std::vector<float>& w, int64_t rows, const LinearLayer& layer,
         at::ScalarType type)
      : x_(of(x, {rows, layer.k}, type)), w_(of(w, {layer.n, layer.k}, type)) {}
  double sample() const {
    const at::NoGradGuard no_gradient;
    return seconds_per_call([&] { at::linear(x_, w_); });
  }

 private:
  static at::Tensor of(const std::vector<float>& data, at::IntArrayRef sizes, at::ScalarType type) {
    return at::from_blob(const_cast<float*>(data.data()), sizes, at::kFloat).to(type, false, /*copy=*/true);
  }
  at::Tensor x_, w_;
};

class ManyRows {
 public:
  ManyRows(Exec exec, int rounds) : exec_(exec), rounds_(rounds) {}

  void line(const std::string& model, const LinearLayer& layer, ComputeType type, int64_t rows) {
    const auto w = noise(layer.n * layer.k), x = noise(rows * layer.k, 2);
    std::vector<float> y(static_cast<size_t>(rows * layer.n));
    tensor::LinearPanels panels;
    pack_linear(exec_, w.data(), layer.n, layer.k, type, 1, panels);
    const Theirs theirs(x, w, rows, layer, type == ComputeType::kFloat32 ? at::kFloat : at::kBFloat16);
    const auto spreads =
        take_turns(rounds_, {[&] { return std::vector{register_peak(exec_, type)}; },
                             [&] {
                               return std::vector{seconds_per_call(
                                   [&] { tensor::linear(exec_, x.data(), layer.k, rows, panels, y.data(), layer.n); })};
                             },
                             [&] { return std::vector{theirs.sample()}; }});
    double& peak = peaks_[type];
    peak = std::max(peak, spreads[0][0].largest);
    const Spread &ours = spreads[1][0], &aten = spreads[2][0];
    const double rate = 2.0 * static_cast<double>(rows * layer.n * layer.k) / ours.median / 1e9;
    fmt::print("linear {:44} {:8.1f} GFLOP/s {:5.1f} % of {:7.1f} {:>28} ms ATen {:>28} ms ratio {:5.2f}{}\n",
               fmt::format("{} {} {} M={} N={} K={}", model, layer.name, name_of(type), rows, layer.n, layer.k), rate,
               100 * rate / peak, peak, in_ms(ours), in_ms(aten), aten.median / ours.median,
               tie(ours, aten) ? " tie" : "");
    std::fflush(stdout);
  }

 private:
  Exec exec_;
  int rounds_;
  std::map<ComputeType, double> peaks_;  // best GFLOP/s of each type so far
};

void many_rows(const Exec& exec, const std::vector<std::string>& models, const std::vector<std::string>& types,
               const std::vector<std::string>& row_counts, int rounds) {
  ManyRows bench_of(exec, rounds);
  for (const std::string& type : types) {
    if (type == "int8") continue;  // int8 is for few rows; with many it computes as fp32
    print_peaks(tensor::compute_type_of(type), peaks_of(exec, tensor::compute_type_of(type)));
    at::set_num_threads(exec.threads());
    for (const std::string& model : models)
      for (const LinearLayer& layer : linear_layers(model_shape(model)))
        for (const std::string& rows : row_counts)
          bench_of.line(model, layer, tensor::compute_type_of(type), std::stoll(rows));
  }
}

void run(Words words) {
  const std::vector<std::string> parts = words.among({"many", "one"});
  const std::vector<std::string> models = words.among(model_names());
  const std::vector<std::string> types = words.among({"float32", "bfloat16", "int8"});
  const std::vector<std::string> row_counts = words.among({"64", "256", "2048"});
  const Machine machine(words);
  const Exec& exec = machine.exec;
  for (const std::string& part : parts) {
    if (part == "many") {
      many_rows(exec, models, types, row_counts, words.rounds());
      continue;
    }
    for (const std::string& type : types) {
      const ComputeType compute = tensor::compute_type_of(type);
      for (const int64_t width : {64, 288, 896, 4096})
        one_row(exec, fmt::format("N=K={}", width), {{"", width, width}}, compute, words.rounds());
      for (const std::string& model : models)
        one_row(exec, "all of " + model, stack_of(model_shape(model)), compute, words.rounds());
    }
  }
}

}  // namespace
}  // namespace collimate::bench

int main(int argc, char** argv) {
  return collimate::bench::run_bench("bench_linear", argc, argv, &collimate::bench::run);
}
