#include "src/base/passed_files.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "src/base/error.hpp"

namespace chorale {

bool send_files(int line, const std::string& text, const std::vector<int>& files) {
  require(!text.empty() && text.size() <= longest_message && files.size() <= most_passed_files,
          "a message has {} bytes and {} files", text.size(), files.size());
  iovec data{const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) char room[CMSG_SPACE(most_passed_files * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (!files.empty()) {
    message.msg_control = room;
    message.msg_controllen = CMSG_SPACE(files.size() * sizeof(int));
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(files.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), files.data(), files.size() * sizeof(int));
  }
  return sendmsg(line, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

std::optional<PassedFiles> receive_files(int line, int flags) {
  std::string text(longest_message, '\0');
  iovec data{text.data(), text.size()};
  alignas(cmsghdr) char room[CMSG_SPACE(most_passed_files * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  const ssize_t got = recvmsg(line, &message, MSG_CMSG_CLOEXEC | flags);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  PassedFiles passed{.text = text.substr(0, static_cast<std::size_t>(std::max<ssize_t>(got, 0)))};
  for (cmsghdr* header = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr; header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t i = 0; i < (header->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
      int file = -1;
      std::memcpy(&file, CMSG_DATA(header) + i * sizeof file, sizeof file);
      passed.files.emplace_back(file);
    }
  }
  return passed;
}

bool is_own_user(int line) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(line, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == getuid();
}

}  // namespace chorale
