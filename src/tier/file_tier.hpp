// A file that serves as a slow memory tier. The file holds tensors while no computation uses them. Like tensors on a device,
// these tensors must be copied to memory before they are used. The CPU cannot load from or store to the tier; an access to
// its addresses causes a segmentation fault.
//
//   tensor in the tier    │····block 0····│····block 1····│··        blocks of 4 KiB, each with a CRC-32C in memory
//        │ fetch  ▲ send
//        ▼        │                  in the background, if the address in memory is a multiple of 4 KiB (on_pages);
//   tensor in memory                 otherwise, and for parts of blocks, through a buffer before the call returns
//
// The file is opened with O_DIRECT if the file system supports it. With O_DIRECT, the pages of the file are not cached, so
// they do not count toward a memory limit. The file is unlinked immediately, so that no file is left, however the program
// ends. Space is reserved when a tensor is created, so a full disk causes an error at the start. The checksum of every block
// that is read is verified. Blocks that were never written read as zeros, without any transfer.
#pragma once
#include <filesystem>
#include <functional>
#include <vector>

#include <chorale/clock.hpp>
#include "src/base/descriptor.hpp"
#include "src/memory/memory.hpp"
#include "src/memory/ranges.hpp"
#include "src/tier/io_queue.hpp"

namespace chorale {

class FileTier final : public Memory {
 public:
  static constexpr std::int64_t block = 4096;

  static Descriptor open_unbuffered(const char* path);  // returns an empty descriptor if the file system refuses O_DIRECT
  // Throws a usage error if the folder does not exist or is not writable. Tests can pass a `queue` that fails, or a function
  // `open` that fails.
  explicit FileTier(const std::filesystem::path& folder, std::unique_ptr<IoQueue> queue = nullptr,
                    Descriptor (*open)(const char* path) = open_unbuffered);
  // From this call on, the tier measures how long the program waits for transfers, and calls `on_wait` after each wait.
  using OnWait = std::function<void(double begins, double ends)>;
  void measure(const Clock& clock, OnWait on_wait) {
    clock_ = &clock;
    on_wait_ = std::move(on_wait);
  }
  // `in_flight` is the time during which transfers were in flight, in seconds. A transfer counts until the program notices
  // its completion. `waited` is the time during which the program waited for transfers, in seconds.
  struct Times {
    double in_flight = 0, waited = 0;
  };
  const Times& times() const { return times_; }
  ~FileTier() override;
  FileTier(const FileTier&) = delete;

  Device device() const override { return {Device::Kind::file, 0}; }
  void* take(std::int64_t bytes) override;  // throws if the disk has too little space
  void give_back(void* place, std::int64_t bytes) noexcept override;
  std::int64_t free_bytes() const override;
  void copy_in(void* to, const void* from_host, std::int64_t bytes) override;
  void copy_out(void* to_host, const void* from, std::int64_t bytes) override;
  void copy(void* to, const void* from, std::int64_t bytes) override;
  void clear(void* place, std::int64_t bytes) override;
  void pin(void* host, std::int64_t bytes) override { queue_->pin(host, bytes); }
  void release(void* host) noexcept override { queue_->release(host); }
  std::unique_ptr<AsyncCopy> async_copy() override;

  bool in_memory() const;     // whether the file system keeps its files in memory, as tmpfs does
  std::string about() const;  // "a file in /scratch, by io_uring, unbuffered"
  std::int64_t read_bytes() const { return read_; }
  std::int64_t written_bytes() const { return written_; }

 private:
  friend class FileCopy;
  // The requests of one copy. The requests use the caller's memory, so the destructor waits until all requests have
  // completed.
  struct Transfer {
    explicit Transfer(FileTier& with, bool to_file = false) : tier(with), writes(to_file) {}
    ~Transfer() { tier.finish(pending); }
    Transfer(const Transfer&) = delete;
    FileTier& tier;
    std::int64_t pending = 0;
    int error = 0;        // errno of the first request that failed, or EBADMSG if a checksum is wrong
    std::int64_t at = 0;  // offset in the file
    bool writes;
  };
  struct Piece : IoRequest {
    Transfer* transfer;
    std::int64_t first, count;  // all bytes of this block; the IoRequest has only the bytes that are not yet transferred
  };

  std::int64_t offset_of(const void* place) const { return static_cast<const std::byte*>(place) - start_; }
  void start(Transfer& transfer, IoRequest::Kind kind, std::int64_t offset, void* data, std::int64_t bytes);
  void start_piece(Transfer& transfer, IoRequest::Kind kind, std::int64_t offset, void* data, std::int64_t bytes);
  IoRequest& next();                       // waits until a request completes, and returns it
  void note(IoRequest& request) noexcept;  // handles a request that the queue returned
  bool go_on(Piece& piece) noexcept;       // requests the remaining bytes of a piece (a block of a transfer); returns false
                                           // if no bytes remain
  void check(Piece& piece) noexcept;
  void progress();                                    // handles completed requests; never waits
  void wait(Transfer& transfer);                      // throws if the transfer failed
  void finish(const std::int64_t& pending) noexcept;  // waits until `pending` is 0
  void throw_if_failed(const Transfer& transfer) const;
  std::filesystem::path folder_;
  Descriptor file_, unbuffered_;  // two descriptors of the same file; the second is empty if the file system refuses
                                  // O_DIRECT
  std::unique_ptr<IoQueue> queue_;
  std::byte* start_ = nullptr;  // a reserved address range without memory; each address corresponds to an offset in the file
  std::int64_t addresses_ = 0;
  FreeRanges free_{0};
  std::int64_t length_ = 0;               // length of the file in bytes
  std::vector<std::uint32_t> checksums_;  // indexed by block
  std::vector<bool> is_written_;          // indexed by block
  std::byte* buffer_ = nullptr;           // for parts of blocks, and for transfers to memory that is not page-aligned
  std::int64_t in_flight_ = 0, read_ = 0, written_ = 0;
  const Clock* clock_ = nullptr;
  OnWait on_wait_;
  Times times_;
  double busy_since_ = 0;  // valid while transfers are in flight
};

}  // namespace chorale
