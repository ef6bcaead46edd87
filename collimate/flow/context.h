#pragma once

#include <any>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/comm/mesh.h"
#include "collimate/flow/shared_store.h"
#include "collimate/graph/placement.h"
#include "collimate/host/core_pool.h"

namespace collimate::comm {
class Group;
}

namespace collimate::flow {

// SharedObjects holds the typed objects that the modules of one worker share: `shared<model::Weights>("policy", make)`
// gives policy's service, policy's scoring and policy_trainer one object. It belongs to the worker's thread and is not
// thread-safe.
class SharedObjects {
 public:
  // Returns the object of that name, which `make` (→ std::shared_ptr<T>) makes on first use. Throws RunError when it
  // exists with another type.
  template <class T, class Make>
  std::shared_ptr<T> shared(const std::string& name, Make&& make) {
    auto found = objects_.find(name);
    if (found == objects_.end()) found = objects_.emplace(name, std::shared_ptr<T>(make())).first;
    return cast<T>(name, found->second);
  }
  // Returns the object of that name, or null.
  template <class T>
  std::shared_ptr<T> find(const std::string& name) const {
    auto found = objects_.find(name);
    return found == objects_.end() ? nullptr : cast<T>(name, found->second);
  }

 private:
  template <class T>
  static std::shared_ptr<T> cast(const std::string& name, const std::any& object) {
    auto typed = std::any_cast<std::shared_ptr<T>>(&object);
    if (typed == nullptr) wrong_type(name);
    return *typed;
  }
  [[noreturn]] static void wrong_type(const std::string& name);

  std::map<std::string, std::any> objects_;
};

// A Context is given to a module's object of one rank at setup. References stay valid as long as the module does.
struct Context {
  std::string model;                         // the model's name in the graph
  nlohmann::json parameters;                 // resolved config of the model (an empty object when it has none)
  nlohmann::json config;                     // the whole resolved config
  std::vector<std::string> calls;            // functions of the model that the run's graphs call
  uint64_t seed = 0;                         // of the run
  int device = 0;                            // index of the worker
  graph::Placement placement;                // of the run
  std::string swap_directory;                // where models are while off their device; exists if some swap
  comm::Mesh alone;                          // of this rank alone
  std::map<std::string, comm::Mesh> meshes;  // by function: see mesh
  std::map<std::string, std::map<std::string, comm::Group*>> lines;  // by function and axis: see line
  host::CorePool* pool = nullptr;
  SharedStore* store = nullptr;
  SharedObjects* objects = nullptr;
  double deadline_seconds = 600.0;  // for every wait inside the module
  std::function<void()> progress;   // call it from inside long work: it renews the deadline of all who wait; cheap

  // Returns the layout of one of the model's functions.
  graph::Layout layout(const std::string& function) const { return placement.layout(model, function); }
  // Says whether the ranks of that function share its model's weights (stage 3 of ZeRO). All of them then take part in
  // each call, even those without rows.
  bool shares_weights(const std::string& function) const;
  // Returns the mesh of the replica of that function to which this worker belongs: its axes are dp, cp, pp, tp and its
  // ranks are workers. Returns a mesh of this rank alone where no replica has this worker.
  const comm::Mesh& mesh(const std::string& function) const;
  // Returns the group of the ranks of that mesh that differ from this one on the axis only, in the order of the axis,
  // or null where that is this rank alone. Functions whose lines have the same ranks share one group.
  comm::Group* line(const std::string& function, const std::string& axis) const;
  // Returns the group of the ranks of that mesh that hold the same pieces of the weights, which are those along dp and
  // cp, or null where that is this rank alone.
  comm::Group* copies(const std::string& function) const;

  template <class T, class Make>
  std::shared_ptr<T> shared(const std::string& name, Make&& make) {
    return objects->shared<T>(name, std::forward<Make>(make));
  }
};

// A CallInfo says where one call stands in the run.
struct CallInfo {
  int64_t iteration = 0;
  std::string node;  // name in the graph
  int replica = 0;
  int part = 0;
  int rank = 0;
  nlohmann::json parameters;  // of the node (an empty object when there are none)
};

}  // namespace collimate::flow
