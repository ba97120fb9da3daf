#include "parallel/state/background_save.hpp"

#include <algorithm>
#include <cstring>

#include "parallel/state/checkpoint_save.hpp"
#include "src/memory/on_host.hpp"

namespace chorale {
namespace {

// Copies the data of all tensors, whose slices then show into the copy.
std::vector<std::byte> copied(std::vector<StateTensor>& tensors) {
  std::int64_t bytes = 0;
  for (const StateTensor& tensor : tensors) bytes += tensor.data.bytes();
  std::vector<std::byte> copies(static_cast<std::size_t>(bytes));
  std::byte* next = copies.data();
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
  set_.together([&] {  // a rank may have no room for the copy
    copies_ = copied(mine);
    thread_ = std::thread([this, mine = std::move(mine)] { write(mine); });
    return "";
  });
}

void BackgroundSave::write(const std::vector<StateTensor>& copies) {
  const double begun = clock_.seconds();
  try {
    share_ = write_share(set_, {.rank = peers_.rank, .size = peers_.size}, copies);
  } catch (...) {
    failure_ = std::current_exception();
  }
  hidden_ = clock_.seconds() - begun;
  written_.store(true, std::memory_order_release);
}

BackgroundSave::~BackgroundSave() {
  if (thread_.joinable()) thread_.join();
}

SavedSet BackgroundSave::finish() {
  const double waits = clock_.seconds();
  thread_.join();
  hidden_ = std::max(0.0, hidden_ - (clock_.seconds() - waits));
  const std::vector<std::string> shares = set_.together([&] {
    if (failure_) std::rethrow_exception(failure_);
    return share_;
  });
  return {file_systems_, seal(set_, metadata_, shares)};
}

}  // namespace chorale
