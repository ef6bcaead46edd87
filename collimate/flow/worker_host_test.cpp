#include "collimate/flow/worker_host.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <latch>
#include <thread>

#include "collimate/base/at.h"
#include "collimate/flow/checkpoint.h"
#include "collimate/graph/forms.h"
#include "tests/support/flow/toy_modules.h"

// Workers of one replica that are given messages by hand, each at moments of its own.
namespace collimate::flow {
namespace {

// Keeps what a worker says: of a failure its cause, else the kind.
struct Said : cluster::Outbox {
  void send(cluster::Message message) override {
    const std::string kind = message.kind();
    const auto said = cluster::content_of<message::ToDriver>(std::move(message));
    const auto* failed = std::get_if<message::Failed>(&said);
    list.push_back(failed == nullptr ? kind : failed->cause);
  }
  std::vector<std::string> list;
};

// One of two ranks of tp of the toy policy, beside a trainer of the same weights.
class HandledWorker {
 public:
  HandledWorker(int worker, const std::string& run) : host_(spec_of(worker, run), toy::registry()) {}

  template <class Asked>
  void handle(Asked asked) {
    host_.handle(cluster::message_of(std::move(asked)), said_);
  }
  void step() { host_.step(said_); }
  void train() {
    Batch rows = toy::rows(0, 0, 4);
    rows.set_ragged(batch::kIds, {{1}, {2}, {3}, {4}});
    rows.set(batch::kReward, std::vector<float>(4, 1.0F));
    const graph::Task task{.node = 1};
    handle(message::Start{.task = task, .node = "train", .model = "trainer", .function = "train", .trains = true});
    handle(message::Feed{.task = task, .batches = {rows}});
    handle(message::Close{.task = task});
  }
  const std::vector<std::string>& said() const { return said_.list; }

 private:
  static cluster::WorkerSpec spec_of(int worker, const std::string& run) {
    const graph::Graph graph = toy::flow();
    graph::Placement placement = graph::flattening(graph, 2);
    placement.layouts["policy"]["generate"].tp = placement.layouts["trainer"]["train"].tp = 2;
    cluster::WorkerSpec spec;
    spec.config = "{}";
    spec.graph = graph::text(graph);
    spec.placement = graph::json_text(placement);
    const WorkerOptions options{.seed = 1, .run = run, .back_end = "threads", .deadline_seconds = 20};
    spec.options = nlohmann::json(options).dump();
    spec.rank = worker;
    return spec;
  }

  WorkerHost host_;
  Said said_;
};

// The weights of the beginning come back while the stream is paused. One rank reads ahead, the other steps first: both
// must have the same weights in each step, or the toy stream fails.
TEST(WorkerHost, WhatComesInAPauseComesBetweenTheSameSteps) {
  const std::string directory = testing::TempDir() + "collimate-host-" + std::to_string(getpid());
  std::filesystem::remove_all(directory);
  save_state(SharedStore(), directory + "/store");  // the driver's, which workers load
  std::vector<std::vector<std::string>> said(2);
  std::latch saved(2), done(2);
  const auto work = [&](int worker) {
    HandledWorker host(worker, directory);
    host.handle(message::Save{.directory = directory, .models = {"policy", "trainer"}});
    saved.arrive_and_wait();
    host.train();
    const graph::Task task;
    host.handle(message::Start{
        .task = task, .node = "generate", .model = "policy", .function = "generate", .streams = true, .rank = worker});
    host.handle(message::Feed{.task = task, .batches = {toy::rows(0, 0, 12)}});
    if (worker == 1) host.step();
    host.handle(message::Pause{.model = "policy", .paused = true});
    host.handle(message::Load{.directory = directory});
    host.handle(message::Pause{.model = "policy", .paused = false});
    host.handle(message::Close{.task = task});
    for (int i = 0; i < 10; ++i) host.step();
    base::at(said, worker) = host.said();
    done.arrive_and_wait();  // the end of one would abort what the other one may still be in
  };
  std::vector<std::thread> workers;
  for (int worker = 0; worker < 2; ++worker) workers.emplace_back(work, worker);
  for (std::thread& worker : workers) worker.join();
  for (const std::vector<std::string>& list : said)
    EXPECT_EQ(std::count(list.begin(), list.end(), "finished"), 2) << fmt::format("{}", fmt::join(list, "\n"));
}

}  // namespace
}  // namespace collimate::flow
