#include "experiments/launch/control.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "experiments/common/advice.hpp"
#include "src/base/error.hpp"
#include "src/base/passed_files.hpp"

namespace chorale::launch {
namespace {

constexpr const char* socket_name = "control";
constexpr std::size_t longest = 4096;

Descriptor new_socket() { return Descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)); }

// The address of a socket in a folder. A path can be longer than an address, so the folder is named by a descriptor.
struct ControlAddress {
  sockaddr_un where{};
  Descriptor folder;

  explicit ControlAddress(const std::filesystem::path& in) : folder(open(in.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
    where.sun_family = AF_UNIX;
    fmt::format("/proc/self/fd/{}/{}", folder.get(), socket_name).copy(where.sun_path, sizeof where.sun_path - 1);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&where); }
};

bool is_readable(int line, int milliseconds) {
  pollfd one{line, POLLIN, 0};
  return poll(&one, 1, milliseconds) == 1;
}

}  // namespace

Control::Control(const std::filesystem::path& folder) : path_(folder / socket_name), listening_(new_socket()) {
  const ControlAddress address(folder);
  const mode_t before = umask(0177);
  const bool bound = bind(listening_.get(), address.get(), sizeof address.where) == 0;
  umask(before);
  if (!bound || listen(listening_.get(), 8) != 0) listening_.reset();
}

Control::~Control() {
  if (listening_) unlink(path_.c_str());
}

void Control::serve(const std::function<std::string(const std::string& request)>& answer) {
  constexpr int patience_milliseconds = 200;  // a client sends its request at once
  if (!listening_ || !is_readable(listening_.get(), 0)) return;
  const Descriptor line(accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!line || !is_own_user(line.get()) || !is_readable(line.get(), patience_milliseconds)) return;
  char text[longest];
  const ssize_t got = recv(line.get(), text, sizeof text, MSG_DONTWAIT);
  if (got <= 0) return;
  const std::string said = answer({text, static_cast<std::size_t>(got)}).substr(0, longest);
  send(line.get(), said.data(), said.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

std::string ask_supervisor(const std::filesystem::path& folder, const std::string& request) {
  constexpr int patience_milliseconds = 10000;
  const std::filesystem::path real = std::filesystem::weakly_canonical(folder);
  const Descriptor line = new_socket();
  const ControlAddress address(real);
  if (connect(line.get(), address.get(), sizeof address.where) != 0)
    usage_error("no supervisor answers for this run",
                fmt::format("{}: {}", (real / socket_name).string(), std::strerror(errno)),
                fmt::format("name the folder of a launch that still runs, as {} launch prints it", program()));
  char text[longest];
  if (!is_own_user(line.get()) || send(line.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0 ||
      !is_readable(line.get(), patience_milliseconds))
    throw Error(Exit::runtime, "the supervisor of this run does not answer", real.string(), "try again");
  const ssize_t got = recv(line.get(), text, sizeof text, 0);
  return got > 0 ? std::string(text, static_cast<std::size_t>(got)) : "";
}

}  // namespace chorale::launch
