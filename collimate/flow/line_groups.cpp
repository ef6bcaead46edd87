#include "collimate/flow/line_groups.h"

#include <algorithm>

namespace collimate::flow {
namespace {

struct Line {
  std::string name;
  std::vector<int> ranks;
};

std::vector<Line> lines_of(const comm::Mesh& mesh, int worker) {
  std::vector<Line> lines;
  for (const comm::Axis& axis : mesh.axes()) lines.push_back({axis.name, mesh.line(worker, axis.name)});
  if (mesh.size("dp") > 1 && mesh.size("cp") > 1)
    lines.push_back({kCopies, mesh.flatten({"dp", "cp"}, kCopies).line(worker, kCopies)});
  return lines;
}

}  // namespace

LineGroups::LineGroups(const std::map<std::string, comm::Mesh>& meshes, int worker, const Join& join) {
  for (const auto& [function, mesh] : meshes)
    for (const Line& line : lines_of(mesh, worker)) {
      if (line.ranks.size() == 1) continue;
      std::unique_ptr<comm::Group>& group = groups_[line.ranks];
      const auto place = std::find(line.ranks.begin(), line.ranks.end(), worker) - line.ranks.begin();
      if (!group) group = join(line.ranks, static_cast<int>(place));
      lines_[function][line.name] = group.get();
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
