// An Arena is one rank's symmetric memory: a large, sparse address range that the other ranks of the host can map too.
// So these ranks read and write the arena without a copy. Allocation is local; a peer names a location by rank and offset.
//
//   rank 0   [ a ··· b ····················· ]        only touched pages cost memory
//   rank 1   [ ··· c ······· ]  maps rank 0's arena as  [ a ··· b ···· ]
//
// The memory is a memfd: a file without a name in any file system, so nothing is left behind however the ranks end. Peers
// open it through /proc/<pid>/fd; the kernel allows this to processes of the same user. The arena asks for huge pages. The
// kernel grants them if its setting shmem_enabled is `advise` or `always`.
#pragma once
#include "src/base/descriptor.hpp"
#include "src/memory/memory.hpp"
#include "src/memory/ranges.hpp"

namespace chorale {

// A mapped address range; the destructor unmaps it.
class Mapping {
 public:
  Mapping() = default;
  Mapping(int file, std::int64_t bytes);  // throws if the kernel refuses
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
  // Pieces of up to this size keep their contents after they are freed, until they are allocated again. So a peer may still
  // read them.
  static constexpr std::int64_t kept_bytes = (2 << 20) - 128;

  explicit Arena(std::int64_t bytes);  // bytes of address space; throws if the kernel has no memfd

  Device device() const override { return {}; }
  void* take(std::int64_t bytes) override;
  void give_back(void* place, std::int64_t bytes) noexcept override;
  void return_pages(void* place, std::int64_t bytes) noexcept override;

  int file() const { return file_.get(); }
  const Mapping& mapping() const { return mapping_; }
  std::int64_t offset_of(const void* place) const { return static_cast<const std::byte*>(place) - mapping_.start(); }

  // Maps the arena of another process of this user.
  static Mapping of_process(int pid, int file, std::int64_t bytes);

 private:
  Descriptor file_;
  Mapping mapping_;
  FreeRanges free_;
};

}  // namespace chorale
