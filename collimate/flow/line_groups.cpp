#include "collimate/flow/line_groups.h"

#include <algorithm>

#include "collimate/base/at.h"

namespace collimate::flow {
namespace {

struct Line {
  std::string name;
  std::vector<int> ranks;
};

std::vector<int> copies_line(const comm::Mesh& mesh, int worker) {
  return mesh.flatten({"dp", "cp"}, kCopies).line(worker, kCopies);
}

// Adds the line of a worker's ep neighbours among its copies, and the line of the copies that have the same place among
// their own neighbours.
void add_expert_lines(const comm::Mesh& mesh, int worker, int ep, std::vector<Line>& lines) {
  const std::vector<int> copies = copies_line(mesh, worker);
  const int place = copy_number(mesh, worker);
  Line shared{kExperts, {}}, same{kExpertCopies, {}};
  for (int i = 0; i < static_cast<int>(copies.size()); ++i) {
    if (i / ep == place / ep) shared.ranks.push_back(base::at(copies, i));
    if (i % ep == place % ep) same.ranks.push_back(base::at(copies, i));
  }
  lines.push_back(std::move(shared));
  lines.push_back(std::move(same));
}

std::vector<Line> lines_of(const comm::Mesh& mesh, int ep, int worker) {
  std::vector<Line> lines;
  for (const comm::Axis& axis : mesh.axes()) lines.push_back({axis.name, mesh.line(worker, axis.name)});
  if (mesh.size("dp") > 1 && mesh.size("cp") > 1) lines.push_back({kCopies, copies_line(mesh, worker)});
  if (ep > 1) add_expert_lines(mesh, worker, ep, lines);
  return lines;
}

}  // namespace

int copy_number(const comm::Mesh& mesh, int worker) {
  return mesh.coordinate(worker, "dp") * mesh.size("cp") + mesh.coordinate(worker, "cp");
}

LineGroups::LineGroups(const std::map<std::string, comm::Mesh>& meshes, const std::map<std::string, int>& expert_ranks,
                       int worker, const Join& join) {
  for (const auto& [function, mesh] : meshes) {
    const auto ep = expert_ranks.find(function);
    for (const Line& line : lines_of(mesh, ep == expert_ranks.end() ? 1 : ep->second, worker)) {
      if (line.ranks.size() == 1) continue;
      std::unique_ptr<comm::Group>& group = groups_[line.ranks];
      const auto place = std::find(line.ranks.begin(), line.ranks.end(), worker) - line.ranks.begin();
      if (!group) group = join(line.ranks, static_cast<int>(place));
      lines_[function][line.name] = group.get();
    }
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
