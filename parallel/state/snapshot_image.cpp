#include "parallel/state/snapshot_image.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "parallel/state/buddies.hpp"
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

[[noreturn]] void refuse_without_memory(std::size_t bytes) {
  throw Error(Exit::runtime, "there is no memory for snapshots",
              fmt::format("{}: {}", human_bytes(static_cast<std::int64_t>(bytes)), std::strerror(errno)),
              "use --snapshot-interval 0, or more ranks or hosts");
}

std::span<std::byte> mapped(int file, std::size_t bytes) {
  void* const place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (place == MAP_FAILED) refuse_without_memory(bytes);
  return {static_cast<std::byte*>(place), bytes};
}

Descriptor memory_file(const std::string& name, std::size_t bytes) {
  Descriptor file(memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || ftruncate(file.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    refuse_without_memory(bytes);
  return file;
}

}  // namespace

std::int64_t ImagePlan::bytes(bool only_sent) const {
  std::int64_t sum = 0;
  for (const Piece& piece : pieces) sum += piece.sent || !only_sent ? piece.bytes : 0;
  return sum;
}

ImagePlan image_plan(int rank, const std::vector<StateTensor>& saved, const std::set<std::string>& here) {
  std::vector<StateTensor> ordered = saved;
  const auto is_here = [&](const StateTensor& tensor) { return here.contains(name_of_part(tensor)); };
  std::ranges::stable_partition(ordered, is_here);
  auto [share, entries] = layout_of_share(rank, ordered);
  ImagePlan plan{.rank = rank, .begin = {}, .header = safetensors::header_of(entries)};
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    const auto number = std::distance(share.tensors.begin(), share.tensors.find(ordered[i].name));
    plan.pieces.push_back(
        {name_of_part(ordered[i]), entries[i].bytes, static_cast<std::size_t>(number), !is_here(ordered[i])});
  }
  share.files = {{static_cast<std::int64_t>(plan.header.size()) + plan.bytes(), checksum_of(plan.header)}};
  plan.begin = snapshot_begin(share);
  return plan;
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ImagePlan::Piece, part, bytes, number, sent)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ImagePlan, rank, begin, header, pieces)

// MessagePack, because `header` is not UTF-8.
std::string text_of(const ImagePlan& plan) {
  std::string text;
  nlohmann::json::to_msgpack(plan, text);
  return text;
}
ImagePlan image_plan_in(const std::string& text) { return nlohmann::json::from_msgpack(text); }

SnapshotImage::Mapped::~Mapped() {
  if (!bytes.empty()) munmap(bytes.data(), bytes.size());
}

SnapshotImage::Generation SnapshotImage::new_generation(const std::string& name, std::size_t info_bytes,
                                                        std::size_t image_bytes) {
  KeptFiles files{memory_file(name + "-info", info_bytes), memory_file(name + "-image", image_bytes)};
  Mapped info(mapped(files.info.get(), info_bytes)), image(mapped(files.image.get(), image_bytes));
  return {std::move(files), std::move(info), std::move(image)};
}

SnapshotImage::SnapshotImage(ImagePlan plan)
    : plan_(std::move(plan)), begin_checksum_(checksum_of(plan_.begin)), checksums_(plan_.pieces.size()) {
  std::size_t end = plan_.header.size();
  for (const ImagePlan::Piece& piece : plan_.pieces)
    first_.push_back(std::exchange(end, end + static_cast<std::size_t>(piece.bytes)));
  for (int g = 0; g < kept_generations; ++g) {
    Generation& made = generations_.emplace_back(new_generation(fmt::format("chorale-{}-{}", plan_.rank, g),
                                                                sizeof(KeptHead) + plan_.begin.size() + room_for_end, end));
    const KeptHead empty;
    std::memcpy(made.info.bytes.data(), &empty, sizeof empty);
    std::memcpy(made.info.bytes.data() + sizeof empty, plan_.begin.data(), plan_.begin.size());
    std::memcpy(made.image.bytes.data(), plan_.header.data(), plan_.header.size());
    std::ranges::fill(made.image.bytes.subspan(plan_.header.size()), std::byte());  // takes the pages now
  }
}

std::array<KeptFiles, kept_generations> SnapshotImage::files() const {
  std::array<KeptFiles, kept_generations> copies;
  for (std::size_t g = 0; g < generations_.size(); ++g)
    copies[g] = {Descriptor(dup(generations_[g].files.info.get())), Descriptor(dup(generations_[g].files.image.get()))};
  return copies;
}

// The step in the head is set to −1 first and to the step last, so that a reader never takes an incomplete generation.
void SnapshotImage::begin() {
  std::atomic_ref(reinterpret_cast<KeptHead*>(here().info.bytes.data())->step).store(-1);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void SnapshotImage::put(std::size_t piece, const Slice& data) {
  const ImagePlan::Piece& known = plan_.pieces.at(piece);
  require(data.bytes() == known.bytes, "a part of {} bytes has grown to {}", known.bytes, data.bytes());
  std::byte* to = here().image.bytes.data() + first_[piece];
  std::uint32_t checksum = 0;
  in_pieces(data, Use::read, [&](const Slice& from, std::int64_t) {
    const auto bytes = static_cast<std::size_t>(from.bytes());
    checksum = copy_with_crc32c(to, {static_cast<const std::byte*>(from.data), bytes}, checksum);
    to += bytes;
  });
  checksums_[known.number] = checksum;
}

std::span<std::byte> SnapshotImage::sent() { return here().image.bytes.last(static_cast<std::size_t>(plan_.bytes(true))); }

void SnapshotImage::add_checksums_of_sent() {
  for (std::size_t i = 0; i < plan_.pieces.size(); ++i)
    if (const ImagePlan::Piece& piece = plan_.pieces[i]; piece.sent)
      checksums_[piece.number] = crc32c(here().image.bytes.subspan(first_[i], static_cast<std::size_t>(piece.bytes)));
}

void SnapshotImage::finish(const Metadata& metadata) {
  const std::string end = snapshot_end(checksums_, metadata);
  require(end.size() <= room_for_end, "the description of a snapshot has {} bytes", end.size());
  std::byte* const info = here().info.bytes.data();
  auto* const head = reinterpret_cast<KeptHead*>(info);
  std::memcpy(info + sizeof(KeptHead) + plan_.begin.size(), end.data(), end.size());
  head->text_bytes = plan_.begin.size() + end.size();
  head->text_crc32c = checksum_of(end, begin_checksum_);
  std::atomic_ref(head->step).store(metadata.step, std::memory_order_release);
  next_ = (next_ + 1) % generations_.size();
}

}  // namespace chorale
