#include "backends/bootstrap/arrivals.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace zl {
namespace {

struct Address {
  sockaddr_un name{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

Address address_of(const Launch& launch, int rank, const std::string& point) {
  const std::string text = "zerolab/" + std::to_string(getuid()) + "/" + launch.job + "/" + point +
                           "/" + std::to_string(rank);
  Address address;
  address.name.sun_family = AF_UNIX;
  // The first byte stays 0: no file's name.
  const std::size_t count = std::min(text.size(), sizeof(address.name.sun_path) - 1);
  std::memcpy(address.name.sun_path + 1, text.data() + (text.size() - count), count);
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + count);
  return address;
}

int open_socket() { return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0); }

bool has_come(const Launch& launch, int rank, const std::string& point) {
  const int asks = open_socket();
  if (asks < 0) return false;
  const Address address = address_of(launch, rank, point);
  const bool found = connect(asks, address.get(), address.length) == 0;
  close(asks);
  return found;
}

std::string list(const std::set<int>& ranks) {
  std::string text = "rank ";
  for (const int rank : ranks) text += (rank == *ranks.begin() ? "" : ", ") + std::to_string(rank);
  return text;
}

}  // namespace

void leave_mark(const Launch& launch, const std::string& point) {
  if (launch.job.empty() || has_come(launch, launch.rank, point)) return;
  const int mark = open_socket();  // stays open
  const Address address = address_of(launch, launch.rank, point);
  if (mark >= 0 && bind(mark, address.get(), address.length) != 0) close(mark);
}

void look_for_marks(const Launch& launch, const std::string& point, std::set<int>& come) {
  for (int rank = 0; rank < launch.ranks && !launch.job.empty(); ++rank) {
    if (!come.contains(rank) && has_come(launch, rank, point)) come.insert(rank);
  }
}

std::string who_is_missing(const Launch& launch, const std::set<int>& come) {
  std::set<int> missing;
  for (int rank = 0; rank < launch.ranks; ++rank) {
    if (!come.contains(rank)) missing.insert(rank);
  }
  if (missing.empty() || !come.contains(launch.rank)) return "";
  if (launch.one_node) return list(missing) + " has not come";
  const std::string of_node = "of this node's " + std::to_string(launch.local_ranks);
  return static_cast<int>(come.size()) < launch.local_ranks
             ? of_node + " only " + list(come) + " has come"
             : "all " + of_node + " have come, " + list(come) + ": one of another node has not";
}

}  // namespace zl
