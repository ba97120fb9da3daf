// Messages with file descriptors over a Unix socket of type SOCK_SEQPACKET. The receiver gets its own descriptors of the
// same files, which stay open even after the sender has died.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "src/base/descriptor.hpp"

namespace chorale {

inline constexpr std::size_t longest_message = 1 << 16, most_passed_files = 16;

struct PassedFiles {
  std::string text;
  std::vector<Descriptor> files = {};
};

bool send_files(int line, const std::string& text, const std::vector<int>& files = {});  // false if the peer is gone
// Returns nullopt if there is no message yet. `text` is empty if the peer has closed the connection. `flags`: MSG_DONTWAIT,
// or 0 to wait.
std::optional<PassedFiles> receive_files(int line, int flags);

bool is_own_user(int line);  // whether the peer of a Unix socket belongs to the same user

}  // namespace chorale
