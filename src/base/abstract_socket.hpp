// Abstract Unix socket addresses, which need no file. The kernel frees a name when the last process closes the socket. A
// name is valid within one network namespace. Any user can claim a name that is not in use.
#pragma once
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <optional>
#include <string>

#include "src/base/descriptor.hpp"

namespace chorale {

class AbstractAddress {
 public:
  explicit AbstractAddress(const std::string& name) {  // truncated to 107 characters
    where_.sun_family = AF_UNIX;
    length_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                     name.copy(where_.sun_path + 1, sizeof where_.sun_path - 1));  // sun_path[0] stays 0
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&where_); }
  socklen_t length() const { return length_; }

 private:
  sockaddr_un where_{};
  socklen_t length_ = 0;
};

// Claims a name on this host until the returned descriptor is closed. Returns nullopt if a different process holds the name.
// If no socket can be created, the claim always succeeds.
inline std::optional<Descriptor> claim(const std::string& name) {
  Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const AbstractAddress address(name);
  if (bind(socket.get(), address.get(), address.length()) != 0 && errno == EADDRINUSE) return std::nullopt;
  return socket;
}

}  // namespace chorale
