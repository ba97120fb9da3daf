// An Arena is one rank's symmetric memory: a large, sparse address range that other ranks of the host can also map. The
// other ranks therefore read and write the arena without an intermediate copy. Allocation is local; a peer identifies a
// location by rank and offset.
//
//   rank 0   [ a ··· b ····················· ]        only touched pages cost memory
//   rank 1   [ ··· c ······· ]  maps rank 0's arena as  [ a ··· b ···· ]
//
// The memory is a memfd, which is a file without a name in any file system. Thus, no file is left behind, however the ranks
// end. Peers open the memfd through /proc/<pid>/fd, which the kernel allows for processes of the same user. The arena
// requests huge pages. The kernel grants huge pages if its setting shmem_enabled is `advise` or `always`.
#pragma once
#include "src/base/descriptor.hpp"
#include "src/memory/memory.hpp"
#include "src/memory/ranges.hpp"

namespace chorale {

// A mapped address range; the destructor unmaps it.
class Mapping {
 public:
  Mapping() = default;
  Mapping(int file, std::int64_t bytes);  // throws if the kernel refuses the mapping
  Mapping(Mapping&& other) noexcept : start_(other.start_), bytes_(other.bytes_) { other.start_ = nullptr; }
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  std::byte* start() const { return start_; }
  std::int64_t bytes() const { return bytes_; }
  bool holds(const void* place, std::int64_t bytes = 1) const;

 private:
  std::byte* start_ = nullptr;
  std::int64_t bytes_ = 0;
};

class Arena final : public Memory {
 public:
  // Freed allocations of up to this size keep their contents until the memory is allocated again, so a peer can still read
  // these contents.
  static constexpr std::int64_t kept_bytes = (2 << 20) - 128;

  explicit Arena(std::int64_t bytes);  // `bytes` is the size of the address range; throws if the kernel does not support
                                       // memfd_create

  Device device() const override { return {}; }
  void* take(std::int64_t bytes) override;
  void give_back(void* place, std::int64_t bytes) noexcept override;
  void return_pages(void* place, std::int64_t bytes) noexcept override;

  int file() const { return file_.get(); }
  const Mapping& mapping() const { return mapping_; }
  std::int64_t offset_of(const void* place) const { return static_cast<const std::byte*>(place) - mapping_.start(); }

  // Maps the arena of another process of the same user.
  static Mapping of_process(int pid, int file, std::int64_t bytes);

 private:
  Descriptor file_;
  Mapping mapping_;
  FreeRanges free_;
};

}  // namespace chorale
