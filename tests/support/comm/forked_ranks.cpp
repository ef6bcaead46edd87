#include "tests/support/comm/forked_ranks.h"

#include <sys/wait.h>
#include <unistd.h>

#include <exception>

#include "collimate/base/at.h"
#include "collimate/base/error.h"

namespace collimate::comm {

ForkedRanks::ForkedRanks(int size, const std::string& name, const std::function<std::string(Group&)>& body,
                         double deadline_seconds)
    : store_(back_end("shm").open_store()) {
  for (int rank = 0; rank < size; ++rank) {
    int ends[2];
    COLLIMATE_CHECK(::pipe(ends) == 0);
    const int process = ::fork();
    COLLIMATE_CHECK(process >= 0);
    if (process == 0) be_rank({name, store_->address(), rank, size, deadline_seconds}, ends[1], body);
    ::close(ends[1]);
    children_.push_back({process, base::FileDescriptor(ends[0])});
  }
}

ForkedRanks::~ForkedRanks() {
  for (const Child& child : children_) {
    ::kill(child.process, SIGKILL);
    ::waitpid(child.process, nullptr, 0);
  }
}

void ForkedRanks::be_rank(const GroupPlace& place, int words, const std::function<std::string(Group&)>& body) {
  std::string said;
  try {
    const std::unique_ptr<Group> group = back_end("shm").join(place);
    if (::write(words, "+", 1) != 1) _exit(1);
    said = body(*group);
  } catch (const std::exception& error) {
    said = error.what();
  }
  _exit(::write(words, said.data(), said.size()) == static_cast<ssize_t>(said.size()) ? 0 : 1);
}

void ForkedRanks::wait_joined() {
  char joined = 0;
  for (const Child& child : children_) COLLIMATE_CHECK(::read(child.words.get(), &joined, 1) == 1);
}

void ForkedRanks::kill(int rank, int signal) { ::kill(base::at(children_, rank).process, signal); }

std::string ForkedRanks::said(int rank) {
  std::string all;
  char some[4096];
  while (const ssize_t count = ::read(base::at(children_, rank).words.get(), some, sizeof some)) {
    COLLIMATE_CHECK(count > 0);
    all.append(some, static_cast<size_t>(count));
  }
  return all;
}

std::vector<std::string> run_forked(int size, const std::string& name, const std::function<std::string(Group&)>& body,
                                    double deadline_seconds) {
  ForkedRanks ranks(size, name, body, deadline_seconds);
  ranks.wait_joined();
  std::vector<std::string> all;
  for (int rank = 0; rank < size; ++rank) all.push_back(ranks.said(rank));
  return all;
}

}  // namespace collimate::comm
