#include "src/memory/arena.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

constexpr std::int64_t alignment = 128;      // two cache lines: processors fetch them in pairs
constexpr std::int64_t huge_page = 2 << 20;  // pieces of at least this size start on a huge-page boundary
constexpr std::int64_t page = 4096;
// Pieces of at least this size return their pages to the kernel at once. Activations of 0.4 to 1.6 MB would otherwise leave
// 100 MB behind in a model of 124 million parameters. Pages of smaller pieces stay allocated for reuse.
constexpr std::int64_t returned_at_once = 128 << 10;

std::int64_t rounded(std::int64_t bytes, std::int64_t to) { return (bytes + to - 1) / to * to; }

[[noreturn]] void refuse(const std::string& what, const std::string& fix) {
  throw Error(Exit::runtime, what, std::strerror(errno), fix);
}

}  // namespace

Mapping::Mapping(int file, std::int64_t bytes) : bytes_(bytes) {
  void* place = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (place == MAP_FAILED)
    refuse(fmt::format("the kernel refuses to map {} of shared memory", human_bytes(bytes)), "see ulimit -v");
  start_ = static_cast<std::byte*>(place);
  madvise(place, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);  // a hint; the kernel may ignore it
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

Arena::Arena(std::int64_t bytes) : free_(rounded(bytes, huge_page)) {
  file_.reset(memfd_create("chorale", MFD_CLOEXEC));
  if (!file_) refuse("memfd_create failed: no shared memory", "use a backend other than shm");
  const std::int64_t whole = rounded(bytes, huge_page);
  if (ftruncate(file_.get(), whole) != 0)
    refuse("ftruncate failed: shared memory cannot be resized", "use a backend other than shm");
  mapping_ = Mapping(file_.get(), whole);
}

void* Arena::take(std::int64_t bytes) {
  const std::int64_t wanted = rounded(std::max<std::int64_t>(bytes, 1), alignment);
  const std::int64_t first = free_.take(wanted, wanted >= huge_page ? huge_page : alignment);
  if (first >= 0) return mapping_.start() + first;
  errno = ENOMEM;
  return nullptr;
}

void Arena::give_back(void* place, std::int64_t bytes) noexcept {
  const std::int64_t first = offset_of(place), end = first + rounded(std::max<std::int64_t>(bytes, 1), alignment);
  const FreeRanges::Range free = free_.give_back(first, end - first);
  if (end - first < returned_at_once) return;
  // A page at an end of the piece may hold parts of other pieces. It is returned if these are free too.
  const std::int64_t first_page = std::max(rounded(free.first, page), first / page * page);
  const std::int64_t end_page = std::min((free.first + free.bytes) / page * page, rounded(end, page));
  if (first_page < end_page)
    madvise(mapping_.start() + first_page, static_cast<std::size_t>(end_page - first_page), MADV_REMOVE);
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
