#include "parallel/state/background_save.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <system_error>

#include "parallel/state/checkpoint_save.hpp"
#include "src/memory/on_host.hpp"

namespace chorale {
namespace {

// Copies the data of all tensors, and makes their slices refer to the copy.
std::unique_ptr<std::byte[]> copied(std::vector<StateTensor>& tensors) {
  std::int64_t bytes = 0;
  for (const StateTensor& tensor : tensors) bytes += tensor.data.bytes();
  auto copies = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes));
  std::byte* next = copies.get();
  for (StateTensor& tensor : tensors) {
    std::byte* const begin = next;
    in_pieces(tensor.data, Use::read, [&](const Slice& here, std::int64_t) {
      if (here.count > 0) std::memcpy(next, here.data, static_cast<std::size_t>(here.bytes()));
      next += here.bytes();
    });
    tensor.data = {begin, tensor.data.count, tensor.data.dtype};
  }
  return copies;
}

}  // namespace

BackgroundSave::BackgroundSave(const std::filesystem::path& folder, Metadata metadata, std::vector<StateTensor> mine,
                               Peers peers, const Clock& clock)
    : metadata_(std::move(metadata)),
      peers_(std::move(peers)),
      set_(folder, metadata_.step, peers_),
      clock_(clock),
      file_systems_(set_.make()) {
  set_.together([&] {  // if a rank does not have enough memory for the copy, all ranks throw
    copies_ = copied(mine);
    return "";
  });
  try {
    thread_ = std::jthread([this, mine] { write(mine); });
  } catch (const std::system_error&) {  // if no thread can be started, this rank writes its file before it continues
    write(mine);
  }
}

BackgroundSave::~BackgroundSave() { dropped_ = true; }

void BackgroundSave::write(const std::vector<StateTensor>& copies) {
  const double begun = clock_.seconds();
  Peers alone{.rank = peers_.rank, .size = peers_.size};
  alone.went_on = [this] {
    ++pieces_;
    if (dropped_) throw std::runtime_error("the save was dropped");
  };
  try {
    share_ = write_share(set_, alone, copies);
  } catch (...) {
    failure_ = std::current_exception();
  }
  hidden_ = clock_.seconds() - begun;
  written_.store(true, std::memory_order_release);
}

// As long as the thread writes, this rank tells the guard process that it is alive. Writing the last block includes the sync
// of the complete file, so the last block can take a long time.
void BackgroundSave::wait_until_written() const {
  constexpr double longest_sync_seconds = 600;
  std::int64_t seen = -1;
  for (double since = 0; !is_written(); std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    const double now = clock_.seconds();
    if (const std::int64_t pieces = pieces_; pieces != seen) {
      seen = pieces;
      since = now;
    }
    if (now - since < longest_sync_seconds) peers_.went_on();
  }
}

SavedSet BackgroundSave::finish() {
  const double waits = clock_.seconds();
  wait_until_written();
  hidden_ = std::max(0.0, hidden_ - (clock_.seconds() - waits));
  const std::vector<std::string> shares = set_.together([&] {
    if (failure_) std::rethrow_exception(failure_);
    return share_;
  });
  return {file_systems_, seal(set_, metadata_, shares)};
}

}  // namespace chorale
