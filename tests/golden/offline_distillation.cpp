// Distillation: rows with what a teacher says of their tokens.
#include "collimate/batch/teacher_keys.h"
#include "collimate/train/learner.h"
#include "tests/golden/offline.h"

namespace collimate::golden {
namespace {

template <class T>
std::vector<T> flat(const json& tokens) {
  std::vector<T> out;
  for (const json& token : tokens) {
    if (!token.is_array()) {
      out.push_back(token.get<T>());
      continue;
    }
    for (const json& number : token) out.push_back(number.get<T>());
  }
  return out;
}

template <class T>
void set_column(Batch& rows, const Key<T>& key, const json& batch) {
  std::vector<std::vector<T>> column;
  for (const json& row : batch.at(key.name)) column.push_back(flat<T>(row));
  rows.set_ragged(key, column);
}

class DistillationTask : public OfflineTask {
 public:
  explicit DistillationTask(const Options& options) { loss_ = loss_of("distill", options); }

  OfflineMicro prepare(const json& micro, const json&, Trainee&) override {
    const json& batch = micro.at("batch");
    OfflineMicro out{.rows = to_batch(unpadded_rows(batch))};
    const auto listed = static_cast<int64_t>(batch.at("teacher_ids").at(0).at(0).size());
    set_column(out.rows, batch::of_width(batch::kTeacherIds, listed), batch);
    set_column(out.rows, batch::of_width(batch::kTeacherLogProbs, listed), batch);
    set_column(out.rows, batch::kTeacherRest, batch);
    out.counts.tokens = micro.at("num_items_in_batch");
    out.counts.rows = static_cast<double>(out.rows.rows());
    return out;
  }
};

}  // namespace

std::unique_ptr<OfflineTask> make_distillation_task(const Options& options) {
  return std::make_unique<DistillationTask>(options);
}

}  // namespace collimate::golden
