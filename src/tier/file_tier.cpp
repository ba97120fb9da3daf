#include "src/tier/file_tier.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "src/base/crc32c.hpp"
#include "src/base/error.hpp"
#include "src/base/round_up.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

constexpr std::int64_t block = FileTier::block;
constexpr std::int64_t piece_bytes = 4 << 20, buffer_bytes = 1 << 20;
constexpr std::int64_t most_addresses = std::int64_t{1} << 44;

std::int64_t whole_blocks(std::int64_t bytes) { return round_up(std::max<std::int64_t>(bytes, 1), block); }
bool on_block(const void* place) { return reinterpret_cast<std::uintptr_t>(place) % block == 0; }
std::size_t block_at(std::int64_t offset) { return static_cast<std::size_t>(offset / block); }

std::uint32_t checksum(const void* data) { return crc32c({static_cast<const std::byte*>(data), block}); }

constexpr const char* check_the_disk =
    "check the disk (its log is in dmesg), choose another --offload-folder, and resume from the last checkpoint";

}  // namespace

// A copy between the tier and the host.
class FileCopy final : public AsyncCopy {
 public:
  explicit FileCopy(FileTier& tier) : tier_(tier), transfer_(tier) {}
  void fetch(void* to_host, const void* from, std::int64_t bytes) override {
    start(IoRequest::Kind::read, tier_.offset_of(from), to_host, bytes);
  }
  void send(void* to, const void* from_host, std::int64_t bytes) override {
    start(IoRequest::Kind::write, tier_.offset_of(to), const_cast<void*>(from_host), bytes);
  }
  bool over() override {
    tier_.progress();
    if (transfer_.pending == 0) tier_.throw_if_failed(transfer_);
    return transfer_.pending == 0;
  }
  void wait() override { tier_.wait(transfer_); }

 private:
  void start(IoRequest::Kind kind, std::int64_t offset, void* data, std::int64_t bytes) {
    require(transfer_.pending == 0, "a copy was started before the one before was over");
    transfer_.error = 0;
    tier_.start(transfer_, kind, offset, data, bytes);
  }
  FileTier& tier_;
  FileTier::Transfer transfer_;
};

Descriptor FileTier::open_unbuffered(const char* path) { return Descriptor(open(path, O_RDWR | O_DIRECT | O_CLOEXEC)); }

FileTier::FileTier(const std::filesystem::path& folder, std::unique_ptr<IoQueue> queue, Descriptor (*open)(const char* path))
    : folder_(folder), queue_(std::move(queue)) {
  std::string name = (folder / "chorale-tier-XXXXXX").string();
  file_ = Descriptor(mkostemp(name.data(), O_CLOEXEC));
  if (!file_)
    usage_error("the folder for offloaded tensors cannot be used",
                fmt::format("{}: {}", folder.string(), std::strerror(errno)),
                "give --offload-folder a folder that exists and is writable, on a local disk");
  unbuffered_ = open(name.c_str());
  unlink(name.c_str());
  if (!queue_) queue_ = uring_queue();
  if (!queue_) queue_ = plain_queue();
  void* place = MAP_FAILED;
  for (addresses_ = most_addresses; place == MAP_FAILED && addresses_ > block; addresses_ /= 2)
    place =
        mmap(nullptr, static_cast<std::size_t>(addresses_), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require(place != MAP_FAILED, "no addresses could be reserved for a file tier");
  addresses_ *= 2;
  start_ = static_cast<std::byte*>(place);
  free_ = FreeRanges(addresses_);
  buffer_ = static_cast<std::byte*>(std::aligned_alloc(block, buffer_bytes));
}

FileTier::~FileTier() {
  finish(in_flight_);
  munmap(start_, static_cast<std::size_t>(addresses_));
  std::free(buffer_);
}

std::string FileTier::about() const {
  return fmt::format("a file in {}, by {}{}", folder_.string(), queue_->name(), unbuffered_ ? ", unbuffered" : ", buffered");
}

bool FileTier::in_memory() const {
  struct statfs system {};
  return fstatfs(file_.get(), &system) == 0 && (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC);
}

std::int64_t FileTier::free_bytes() const {
  struct statvfs system {};
  if (fstatvfs(file_.get(), &system) != 0 || system.f_blocks == 0) return -1;  // ramfs has no sizes
  return static_cast<std::int64_t>(system.f_bavail) * static_cast<std::int64_t>(system.f_frsize);
}

void* FileTier::take(std::int64_t bytes) {
  const std::int64_t size = whole_blocks(bytes), offset = free_.take(size, block);
  if (offset < 0) {
    errno = ENOMEM;
    return nullptr;
  }
  if (const std::int64_t more = offset + size - length_; more > 0) {
    // If a file system cannot reserve space, glibc writes single bytes instead, and O_DIRECT refuses such writes.
    int error = 0;
    do error = posix_fallocate(file_.get(), length_, more);
    while (error == EINTR);
    if (error != 0) {
      free_.give_back(offset, size);
      const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
      throw Error(Exit::runtime,
                  full ? "the disk has no room for offloaded tensors" : "space for offloaded tensors cannot be reserved",
                  fmt::format("{}: {}; {} requested, {} free, {} held there already", folder_.string(), std::strerror(error),
                              human_bytes(more), human_bytes(free_bytes()), human_bytes(length_)),
                  full ? "make room, choose another --offload-folder, or offload less" : check_the_disk);
    }
    length_ += more;
    checksums_.resize(block_at(length_));
    is_written_.resize(block_at(length_));
  }
  return start_ + offset;
}

void FileTier::give_back(void* place, std::int64_t bytes) noexcept {
  const std::int64_t size = whole_blocks(bytes), offset = offset_of(place);
  for (std::int64_t at = offset; at < offset + size; at += block) is_written_[block_at(at)] = false;
  free_.give_back(offset, size);
}

void FileTier::copy_out(void* to_host, const void* from, std::int64_t bytes) {
  Transfer transfer(*this);
  start(transfer, IoRequest::Kind::read, offset_of(from), to_host, bytes);
  wait(transfer);
}

void FileTier::copy_in(void* to, const void* from_host, std::int64_t bytes) {
  Transfer transfer(*this);
  start(transfer, IoRequest::Kind::write, offset_of(to), const_cast<void*>(from_host), bytes);
  wait(transfer);
}

void FileTier::copy(void* to, const void* from, std::int64_t bytes) {
  std::vector<std::byte> here(static_cast<std::size_t>(std::min(bytes, piece_bytes)));
  for (std::int64_t done = 0; done < bytes; done += piece_bytes) {
    const std::int64_t part = std::min(piece_bytes, bytes - done);
    copy_out(here.data(), static_cast<const std::byte*>(from) + done, part);
    copy_in(static_cast<std::byte*>(to) + done, here.data(), part);
  }
}

// Clearing a complete block needs no transfer, because the block is only marked as never written. The same applies to a
// partly cleared block whose other bytes were never written.
void FileTier::clear(void* place, std::int64_t bytes) {
  const std::vector<std::byte> zeros(block);
  const std::int64_t end = offset_of(place) + bytes;
  for (std::int64_t offset = offset_of(place); offset < end;) {
    const std::int64_t begins = offset % block, part = std::min(block - begins, end - offset);
    const std::size_t at = block_at(offset);
    if (part == block)
      is_written_[at] = false;
    else if (is_written_[at])
      copy_in(start_ + offset, zeros.data(), part);
    offset += part;
  }
}

// Transfers complete blocks in the background if the alignment of `data` allows it. Transfers the remaining bytes through
// the buffer before the call returns.
void FileTier::start(Transfer& transfer, IoRequest::Kind kind, std::int64_t offset, void* data, std::int64_t bytes) {
  auto* here = static_cast<std::byte*>(data);
  transfer.writes = kind == IoRequest::Kind::write;
  if (offset % block == 0 && on_block(data)) {
    const std::int64_t whole = bytes / block * block;
    start_piece(transfer, kind, offset, data, whole);
    offset += whole;
    bytes -= whole;
    here += whole;
  }
  while (bytes > 0) {
    const std::int64_t begins = offset % block, at = offset - begins;
    const std::int64_t wanted = begins > 0 ? std::min(block - begins, bytes) : bytes < block ? bytes : bytes / block * block;
    const std::int64_t part = std::min(wanted, buffer_bytes);
    const std::int64_t whole = whole_blocks(begins + part);
    if (Transfer before(*this); !transfer.writes || part % block > 0) {
      start_piece(before, IoRequest::Kind::read, at, buffer_, whole);
      wait(before);
    }
    std::memcpy(transfer.writes ? buffer_ + begins : here, transfer.writes ? here : buffer_ + begins,
                static_cast<std::size_t>(part));
    if (Transfer after(*this, true); transfer.writes) {
      start_piece(after, IoRequest::Kind::write, at, buffer_, whole);
      wait(after);
    }
    offset += part;
    bytes -= part;
    here += part;
  }
}

// Transfers complete blocks. Reads skip blocks that were never written.
void FileTier::start_piece(Transfer& transfer, IoRequest::Kind kind, std::int64_t offset, void* data, std::int64_t bytes) {
  auto* const here = static_cast<std::byte*>(data);
  for (std::int64_t done = 0; done < bytes;) {
    const bool there = kind == IoRequest::Kind::write || is_written_[block_at(offset + done)];
    std::int64_t run = block;
    while (done + run < bytes && run < piece_bytes &&
           (kind == IoRequest::Kind::write || is_written_[block_at(offset + done + run)] == there))
      run += block;
    if (!there) {
      std::memset(here + done, 0, static_cast<std::size_t>(run));
    } else {
      for (std::int64_t at = 0; kind == IoRequest::Kind::write && at < run; at += block) {
        checksums_[block_at(offset + done + at)] = checksum(here + done + at);
        is_written_[block_at(offset + done + at)] = true;
      }
      (kind == IoRequest::Kind::write ? written_ : read_) += run;
      while (in_flight_ >= queue_->depth()) note(next());
      const int file = (unbuffered_ ? unbuffered_ : file_).get();
      auto piece =
          std::unique_ptr<Piece>(new Piece{{kind, file, offset + done, run, here + done}, &transfer, offset + done, run});
      if (clock_ && in_flight_ == 0) busy_since_ = clock_->seconds();
      queue_->start(*piece);  // if start() throws, no request is in flight
      ++transfer.pending;
      ++in_flight_;
      (void)piece.release();  // note() deletes it
    }
    done += run;
  }
}

IoRequest& FileTier::next() {
  if (!clock_) return queue_->wait_for_one();
  const double begins = clock_->seconds();
  IoRequest& ended = queue_->wait_for_one();
  const double ends = clock_->seconds();
  times_.waited += ends - begins;
  if (on_wait_) on_wait_(begins, ends);
  return ended;
}

void FileTier::note(IoRequest& request) noexcept {
  auto& piece = static_cast<Piece&>(request);
  if (go_on(piece)) return;
  if (piece.result >= 0) check(piece);
  --piece.transfer->pending;
  --in_flight_;
  if (clock_ && in_flight_ == 0) times_.in_flight += clock_->seconds() - busy_since_;
  delete &piece;
}

// The kernel can transfer fewer bytes than requested. The remaining bytes are requested again, starting at a block boundary.
bool FileTier::go_on(Piece& piece) noexcept {
  if (piece.result == piece.bytes) return false;
  const std::int64_t done = std::max<std::int64_t>(piece.result, 0) / block * block;
  if (done > 0 || piece.result == -EINTR || piece.result == -EAGAIN) try {
      piece.offset += done;
      piece.bytes -= done;
      piece.data = static_cast<std::byte*>(piece.data) + done;
      queue_->start(piece);
      return true;
    } catch (...) {  // the queue no longer accepts requests
      piece.result = -EIO;
    }
  if (piece.result >= 0) piece.result = piece.kind == IoRequest::Kind::write ? -ENOSPC : -ENODATA;
  if (piece.transfer->error == 0) {
    piece.transfer->error = static_cast<int>(-piece.result);
    piece.transfer->at = piece.offset;
  }
  return false;
}

void FileTier::check(Piece& piece) noexcept {
  if (piece.kind == IoRequest::Kind::write) return;
  const std::byte* const data = static_cast<const std::byte*>(piece.data) - (piece.offset - piece.first);
  for (std::int64_t at = 0; at < piece.count; at += block)
    if (checksum(data + at) != checksums_[block_at(piece.first + at)] && piece.transfer->error == 0) {
      piece.transfer->error = EBADMSG;
      piece.transfer->at = piece.first + at;
    }
}

void FileTier::progress() {
  while (in_flight_ > 0)
    if (IoRequest* const ended = queue_->one_that_ended())
      note(*ended);
    else
      return;
}

void FileTier::wait(Transfer& transfer) {
  while (transfer.pending > 0) note(next());
  throw_if_failed(transfer);
}

// Used in destructors, which must not throw. The kernel can still write to the memory of requests in flight, so this memory
// must not be freed before the requests complete. If the wait itself fails, the program is terminated.
void FileTier::finish(const std::int64_t& pending) noexcept {
  try {
    while (pending > 0) note(next());
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: copies of offloaded tensors are in flight, and waiting for them failed\n  {}\n  {}\n",
               error.what(), check_the_disk);
    std::fflush(nullptr);
    std::_Exit(static_cast<int>(Exit::runtime));
  }
}

void FileTier::throw_if_failed(const Transfer& transfer) const {
  if (transfer.error == 0) return;
  const bool damaged = transfer.error == EBADMSG;
  throw Error(Exit::runtime,
              damaged ? "offloaded tensors came back damaged from the disk"
                      : fmt::format("offloaded tensors could not be {}", transfer.writes ? "written" : "read"),
              fmt::format("{}, byte {}: {}", about(), transfer.at,
                          damaged ? "the checksum of 4096 bytes is wrong" : std::strerror(transfer.error)),
              check_the_disk);
}

std::unique_ptr<AsyncCopy> FileTier::async_copy() { return std::make_unique<FileCopy>(*this); }

}  // namespace chorale
