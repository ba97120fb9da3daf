#include "parallel/state/snapshot.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "parallel/state/checkpoint_save.hpp"
#include "src/base/crc32c.hpp"
#include "src/base/text.hpp"
#include "src/memory/on_host.hpp"

namespace chorale {
namespace {

constexpr std::size_t room_for_end = 1 << 18;  // for the checksums and the metadata of a snapshot

std::uint32_t checksum_of(const std::string& text, std::uint32_t before = 0) {
  return crc32c(std::as_bytes(std::span(text)), before);
}

std::span<std::byte> mapped(int file, std::size_t bytes) {
  void* const place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (place == MAP_FAILED)
    throw Error(Exit::runtime, "there is no memory for snapshots",
                fmt::format("{}: {}", human_bytes(static_cast<std::int64_t>(bytes)), std::strerror(errno)),
                "use --snapshot-interval 0, or more ranks or hosts");
  return {static_cast<std::byte*>(place), bytes};
}

Descriptor memory_file(const std::string& name, std::size_t bytes) {
  Descriptor file(memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || ftruncate(file.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    throw Error(Exit::runtime, "there is no memory for snapshots",
                fmt::format("{}: {}", human_bytes(static_cast<std::int64_t>(bytes)), std::strerror(errno)),
                "use --snapshot-interval 0, or more ranks or hosts");
  return file;
}

// Reads the description of a snapshot. Throws if it is incomplete or damaged.
std::string text_in(int info, std::int64_t step) {
  KeptHead head{.magic = 0};
  if (pread(info, &head, sizeof head, 0) != sizeof head || head.magic != KeptHead::format || head.step != step ||
      head.text_bytes > (1u << 30))
    throw std::runtime_error("the head of a snapshot is wrong");
  std::string text(head.text_bytes, '\0');
  if (pread(info, text.data(), text.size(), sizeof head) != static_cast<ssize_t>(text.size()) ||
      checksum_of(text) != head.text_crc32c)
    throw std::runtime_error("the checksum of a description is wrong");
  return text;
}

// The snapshots of one step, taken from the keeper.
struct Taken {
  Manifest manifest;
  std::vector<Descriptor> images;
};

Taken take_all(KeeperLine& keeper, const KeptStep& wanted) {
  Taken taken;
  for (int rank = 0; rank < wanted.size; ++rank)
    for (KeptFiles& files : keeper.take(wanted.start, rank)) {
      if (!files.info || kept_step(files.info.get()) != wanted.step || std::ssize(taken.images) > rank) continue;
      add_snapshot(taken.manifest, text_in(files.info.get(), wanted.step));
      taken.images.push_back(std::move(files.image));
    }
  if (std::ssize(taken.images) != wanted.size || taken.manifest.metadata.step != wanted.step)
    throw std::runtime_error("the snapshots of a rank are missing");
  return taken;
}

std::vector<KeptStep> steps_in(const std::string& text) {
  std::vector<KeptStep> steps;
  for (const std::string& line : split(text, '\n')) {
    KeptStep step;
    long long start = 0, number = 0;
    if (std::sscanf(line.c_str(), "%lld %lld %d", &start, &number, &step.size) != 3) continue;
    step.start = start;
    step.step = number;
    steps.push_back(step);
  }
  return steps;
}

}  // namespace

Snapshots::Generation Snapshots::new_generation(const std::string& name, std::size_t info_bytes, std::size_t image_bytes) {
  Generation made{.files = {memory_file(name + "-info", info_bytes), memory_file(name + "-image", image_bytes)}};
  made.info = mapped(made.files.info.get(), info_bytes);
  made.image = mapped(made.files.image.get(), image_bytes);
  return made;
}

Snapshots::Snapshots(const std::vector<StateTensor>& mine, KeeperLine& keeper, std::int64_t start, const Peers& peers) {
  auto [share, entries] = layout_of_share(peers.rank, mine);
  const std::string header = safetensors::header_of(entries);
  for (const safetensors::Entry& entry : entries) bytes_ += entry.bytes;
  header_bytes_ = header.size();
  share.files = {{static_cast<std::int64_t>(header.size()) + bytes_, checksum_of(header)}};
  begin_ = snapshot_begin(share);
  begin_checksum_ = checksum_of(begin_);
  for (const StateTensor& tensor : mine)
    order_.push_back(static_cast<std::size_t>(std::distance(share.tensors.begin(), share.tensors.find(tensor.name))));
  std::array<KeptFiles, kept_generations> files;
  for (std::size_t g = 0; g < generations_.size(); ++g) {
    generations_[g] =
        new_generation(fmt::format("chorale-{}-{}", peers.rank, g), sizeof(KeptHead) + begin_.size() + room_for_end,
                       header_bytes_ + static_cast<std::size_t>(bytes_));
    const KeptHead empty;
    std::memcpy(generations_[g].info.data(), &empty, sizeof empty);
    std::memcpy(generations_[g].info.data() + sizeof empty, begin_.data(), begin_.size());
    std::memcpy(generations_[g].image.data(), header.data(), header.size());
    std::memset(generations_[g].image.data() + header_bytes_, 0, static_cast<std::size_t>(bytes_));  // takes the pages now
    files[g] = {Descriptor(dup(generations_[g].files.info.get())), Descriptor(dup(generations_[g].files.image.get()))};
  }
  if (!keeper.keep({.start = start, .rank = peers.rank, .size = peers.size}, files))
    throw Error(Exit::runtime, "the keeper of snapshots does not answer", fmt::format("rank {}", peers.rank),
                "use --snapshot-interval 0");
}

Snapshots::~Snapshots() {
  for (const Generation& one : generations_)
    for (const std::span<std::byte> part : {one.info, one.image})
      if (!part.empty()) munmap(part.data(), part.size());
}

// The step in the head is set to −1 first and to the step last, so that a reader never takes an incomplete generation.
void Snapshots::take(const std::vector<StateTensor>& mine, const Metadata& metadata) {
  Generation& here = generations_[next_];
  next_ = (next_ + 1) % generations_.size();
  auto* const head = reinterpret_cast<KeptHead*>(here.info.data());
  std::atomic_ref(head->step).store(-1);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::vector<std::uint32_t> checksums(order_.size());
  std::byte* to = here.image.data() + header_bytes_;
  std::size_t number = 0;
  for (const StateTensor& tensor : mine) {
    std::uint32_t& checksum = checksums[order_.at(number++)];
    in_pieces(tensor.data, Use::read, [&](const Slice& piece, std::int64_t) {
      const auto bytes = static_cast<std::size_t>(piece.bytes());
      require(to + bytes <= here.image.data() + here.image.size(), "the parts of a rank have grown");
      if (bytes > 0) std::memcpy(to, piece.data, bytes);
      checksum = crc32c({to, bytes}, checksum);
      to += bytes;
    });
  }
  const std::string end = snapshot_end(checksums, metadata);
  require(end.size() <= room_for_end, "the description of a snapshot has {} bytes", end.size());
  std::memcpy(here.info.data() + sizeof(KeptHead) + begin_.size(), end.data(), end.size());
  head->text_bytes = begin_.size() + end.size();
  head->text_crc32c = checksum_of(end, begin_checksum_);
  std::atomic_ref(head->step).store(metadata.step, std::memory_order_release);
}

std::int64_t Snapshots::bytes_of(const std::vector<StateTensor>& mine) {
  std::int64_t bytes = 0;
  for (const StateTensor& tensor : mine) bytes += tensor.data.bytes();
  return kept_generations * bytes;
}

std::optional<Checkpoint> newest_snapshot(KeeperLine& keeper, std::int64_t oldest, const Peers& peers, Log& log) {
  std::string mine;
  if (peers.rank == 0)
    for (const KeptStep& step : complete_steps(keeper.list()))
      if (step.step >= oldest) mine += fmt::format("{} {} {}\n", step.start, step.step, step.size);
  for (const KeptStep& step : steps_in(peers.exchange(mine).at(0))) {
    Taken taken;
    std::string trouble;
    try {
      taken = take_all(keeper, step);
    } catch (const std::exception& error) {
      trouble = fmt::format("{} ", on_one_line(error.what()));
    }
    for (const std::string& theirs : peers.exchange(trouble))
      if (trouble.empty()) trouble = theirs;
    if (trouble.empty()) try {
        std::vector<int> files;
        for (const Descriptor& image : taken.images) files.push_back(image.get());
        return Checkpoint::of_memory(fmt::format("step {} in memory", step.step), taken.manifest, files, peers);
      } catch (const Error& error) {
        trouble = on_one_line(error.what());
      }
    log.warn("skipping the snapshot of step {}: {}", step.step, trim(trouble));
  }
  return std::nullopt;
}

}  // namespace chorale
