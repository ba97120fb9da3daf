#include "src/base/spare_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "src/base/error.hpp"
#include "src/base/host.hpp"

namespace chorale {

void require_spare_memory(const char* library) {
  constexpr std::size_t mebibytes = 32, bytes = mebibytes << 20;
  void* const spare = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (spare == MAP_FAILED)
    throw Error(Exit::runtime, fmt::format("there is too little memory for {}", library),
                fmt::format("{} MiB cannot be mapped: {}", mebibytes, std::strerror(errno)), more_memory);
  munmap(spare, bytes);
}

std::int64_t free_addresses() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return -1;
  const std::int64_t pages = std::atoll(first_line("/proc/self/statm").c_str());  // the first number in the file counts all
                                                                                  // mapped pages
  return std::max<std::int64_t>(0, static_cast<std::int64_t>(limit.rlim_cur) - pages * sysconf(_SC_PAGE_SIZE));
}

}  // namespace chorale
