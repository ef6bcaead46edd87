#include "collimate/flow/received_rows.h"

#include <optional>

#include "collimate/tensor/allocator.h"

namespace collimate::flow {
namespace {

void give_blocks(const Batch& rows, int account, std::optional<int> holder = std::nullopt) {
  for (const std::string& name : rows.names())
    for (const batch::ChunkView& view : rows.column(name).chunks) tensor::retag(view.chunk->values, account, holder);
}

}  // namespace

void take_over(const Batch& rows, int account) { give_blocks(rows, account); }

ReceivedRows::ReceivedRows(const std::vector<Batch>& batches, int worker, bool shared)
    : batches_(batches), worker_(worker), shared_(shared) {
  for (const Batch& rows : batches_) take_over(rows, worker_);
}

ReceivedRows::~ReceivedRows() {
  if (!shared_) return;
  for (const Batch& rows : batches_) give_blocks(rows, kDriverAccount, worker_);
}

}  // namespace collimate::flow
