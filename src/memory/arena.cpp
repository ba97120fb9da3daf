#include "src/memory/arena.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "src/base/error.hpp"
#include "src/base/round_up.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

constexpr std::int64_t arena_alignment = 128;  // two cache lines, because processors fetch them in pairs
constexpr std::int64_t huge_page = 2 << 20;    // allocations of at least this size start on a huge-page boundary

[[noreturn]] void refuse(const std::string& what, const std::string& fix) {
  throw Error(Exit::runtime, what, std::strerror(errno), fix);
}

}  // namespace

Mapping::Mapping(int file, std::int64_t bytes) : bytes_(bytes) {
  void* place = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (place == MAP_FAILED)
    refuse(fmt::format("the kernel refuses to map {} of shared memory", human_bytes(bytes)), "see ulimit -v");
  start_ = static_cast<std::byte*>(place);
  madvise(place, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);  // a hint, which the kernel can ignore
}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(start_, other.start_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (start_) munmap(start_, static_cast<std::size_t>(bytes_));
}

bool Mapping::holds(const void* place, std::int64_t bytes) const {
  const std::int64_t offset = static_cast<const std::byte*>(place) - start_;
  return start_ && offset >= 0 && offset <= bytes_ - bytes;
}

Arena::Arena(std::int64_t bytes) : free_(round_up(bytes, huge_page)) {
  file_.reset(memfd_create("chorale", MFD_CLOEXEC));
  if (!file_) refuse("memfd_create failed: no shared memory", "use a backend other than shm");
  const std::int64_t whole = round_up(bytes, huge_page);
  if (ftruncate(file_.get(), whole) != 0)
    refuse("ftruncate failed: shared memory cannot be resized", "use a backend other than shm");
  mapping_ = Mapping(file_.get(), whole);
}

void* Arena::take(std::int64_t bytes) {
  const std::int64_t wanted = round_up(std::max<std::int64_t>(bytes, 1), arena_alignment);
  const std::int64_t first = free_.take(wanted, wanted >= huge_page ? huge_page : arena_alignment);
  if (first >= 0) return mapping_.start() + first;
  errno = ENOMEM;
  return nullptr;
}

void Arena::give_back(void* place, std::int64_t bytes) noexcept {
  const std::int64_t length = round_up(std::max<std::int64_t>(bytes, 1), arena_alignment);
  // When an allocation of at least one huge page (2 MiB) is freed, its pages are returned to the kernel immediately. Smaller
  // allocations seldom start on a page boundary, so their pages are kept for reuse.
  static_assert(kept_bytes == huge_page - arena_alignment);
  if (length > kept_bytes) return_pages(place, length);
  free_.give_back(offset_of(place), length);
}

void Arena::return_pages(void* place, std::int64_t bytes) noexcept {
  constexpr std::int64_t page = 4096;
  const std::int64_t first = round_up(offset_of(place), page), end = (offset_of(place) + bytes) / page * page;
  if (first < end) madvise(mapping_.start() + first, static_cast<std::size_t>(end - first), MADV_REMOVE);
}

Mapping Arena::of_process(int pid, int file, std::int64_t bytes) {
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, file);
  const Descriptor theirs(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!theirs)
    refuse(fmt::format("the shared memory of process {} cannot be opened ({})", pid, path),
           "ranks of one host must see each other's processes: run them in one container, or use a backend other than shm");
  return Mapping(theirs.get(), bytes);
}

}  // namespace chorale
