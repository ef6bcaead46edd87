#include "collimate/flow/line_groups.h"

#include <algorithm>

namespace collimate::flow {

LineGroups::LineGroups(const std::map<std::string, comm::Mesh>& meshes, int worker, const Join& join) {
  for (const auto& [function, mesh] : meshes)
    for (const comm::Axis& axis : mesh.axes()) {
      const std::vector<int> ranks = mesh.line(worker, axis.name);
      if (ranks.size() == 1) continue;
      std::unique_ptr<comm::Group>& group = groups_[ranks];
      if (!group) group = join(ranks, mesh.coordinate(worker, axis.name));
      lines_[function][axis.name] = group.get();
    }
}

LineGroups::~LineGroups() { abort("the worker of another rank has ended"); }

void LineGroups::beat() {
  for (const auto& [ranks, group] : groups_) group->beat();
}

void LineGroups::abort(const std::string& cause) {
  for (const auto& [ranks, group] : groups_) group->abort(cause);
}

}  // namespace collimate::flow
