#include "parallel/state/snapshot.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "parallel/state/buddies.hpp"
#include "parallel/state/manifest.hpp"
#include "src/base/crc32c.hpp"
#include "src/base/host.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

constexpr std::size_t not_here = std::string::npos;  // the source of a piece that a buddy receives

// Reads the description of a snapshot. Throws if it is incomplete or damaged.
std::string text_in(int info, std::int64_t step) {
  KeptHead head{.magic = 0};
  if (pread(info, &head, sizeof head, 0) != sizeof head || head.magic != KeptHead::format || head.step != step ||
      head.text_bytes > (1u << 30))
    throw std::runtime_error("the head of a snapshot is wrong");
  std::string text(head.text_bytes, '\0');
  if (pread(info, text.data(), text.size(), sizeof head) != static_cast<ssize_t>(text.size()) ||
      crc32c(std::as_bytes(std::span(text))) != head.text_crc32c)
    throw std::runtime_error("the checksum of a description is wrong");
  return text;
}

bool has(const std::vector<KeptRank>& kept, const KeptStep& step, int rank) {
  return std::ranges::any_of(kept, [&](const KeptRank& one) {
    return one.start == step.start && one.rank == rank && std::ranges::count(one.steps, step.step) > 0;
  });
}

// The snapshots of one step, as far as they are in the memory of this host.
struct Opened {
  Manifest manifest;
  std::vector<Descriptor> images;
  std::vector<Checkpoint::MemoryFile> files;
};

// Collective. `kept`: what the keeper of each rank's host holds.
Opened open_step(KeeperLine& keeper, const KeptStep& wanted, const std::vector<std::vector<KeptRank>>& kept,
                 const Peers& peers) {
  Opened opened;
  std::string mine, trouble;
  try {
    for (int rank = 0; rank < wanted.size; ++rank) {
      Checkpoint::MemoryFile& file = opened.files.emplace_back();
      for (int peer = 0; peer < peers.size; ++peer)
        if (has(kept[static_cast<std::size_t>(peer)], wanted, rank)) file.holders.push_back(peer);
      if (std::ranges::count(file.holders, peers.rank) == 0) continue;
      for (KeptFiles& one : keeper.take(wanted.start, rank)) {
        if (!one.info || kept_step(one.info.get()) != wanted.step) continue;
        if (file.holders[0] == peers.rank) mine += fmt::format("{} {}\n", rank, text_in(one.info.get(), wanted.step));
        file.file = opened.images.emplace_back(std::move(one.image)).get();
        break;
      }
      if (file.file < 0) throw std::runtime_error("the snapshots of a rank are missing");
    }
  } catch (const std::exception& error) {
    trouble = fmt::format("{} ", on_one_line(error.what()));
  }
  for (const std::string& theirs : peers.exchange(trouble))
    if (!theirs.empty()) trouble = theirs;
  std::map<int, std::string> texts;
  for (const std::string& all : peers.exchange(mine))
    for (const std::string& line : split(all, '\n'))
      if (const std::size_t blank = line.find(' '); blank != std::string::npos)
        texts[std::atoi(line.c_str())] = line.substr(blank + 1);
  if (!trouble.empty()) throw std::runtime_error(trim(trouble));
  for (const auto& [rank, text] : texts) add_snapshot(opened.manifest, text);
  return opened;
}

std::string text_of(const std::vector<KeptRank>& kept, std::int64_t oldest) {
  std::string text = fmt::format("{}\n", oldest);
  for (const KeptRank& one : kept) text += to_text(one) + "\n";
  return text;
}

}  // namespace

std::int64_t SnapshotPlan::memory_bytes() const {
  std::int64_t bytes = 0;
  for (const ImagePlan& image : images) bytes += kept_generations * image.bytes();
  return bytes;
}

std::int64_t SnapshotPlan::sent_bytes() const { return buddy < 0 ? 0 : images.at(0).bytes(true); }

SnapshotPlan snapshot_plan(const std::vector<StateTensor>& state, const Peers& peers) {
  std::vector<int> hosts = peers.hosts;
  hosts.resize(static_cast<std::size_t>(peers.size));
  std::vector<std::vector<HeldPart>> parts;
  for (const std::string& text : peers.exchange(text_of(held_parts(state)))) parts.push_back(held_parts_in(text));
  const std::vector<int> buddies = buddies_of(hosts, parts);
  SnapshotPlan plan{.images = {}, .buddy = buddies[static_cast<std::size_t>(peers.rank)]};
  std::set<std::string> there;  // what the buddy holds
  if (plan.buddy >= 0)
    for (const HeldPart& part : parts[static_cast<std::size_t>(plan.buddy)]) there.insert(part.name);
  std::vector<StateTensor> saved = state;
  std::erase_if(saved, [](const StateTensor& tensor) { return !tensor.copy.empty(); });
  plan.images.push_back(image_plan(peers.rank, saved, there));
  const std::vector<std::string> images = peers.exchange(plan.buddy < 0 ? "" : text_of(plan.images[0]));
  for (std::size_t rank = 0; rank < buddies.size(); ++rank)
    if (buddies[rank] == peers.rank) plan.images.push_back(image_plan_in(images[rank]));
  return plan;
}

Snapshots::Snapshots(const SnapshotPlan& plan, const std::vector<StateTensor>& state, const std::string& keeper,
                     std::int64_t start, const Peers& peers)
    : peers_(peers), keeper_name_(keeper), start_(start), keeper_(keeper), buddy_(plan.buddy) {
  std::map<std::string, std::size_t> parts;
  for (std::size_t i = 0; i < state.size(); ++i) parts[name_of_part(state[i])] = i;
  for (const ImagePlan& one : plan.images) {
    std::vector<std::size_t>& sources = sources_.emplace_back();
    for (const ImagePlan::Piece& piece : one.pieces)
      sources.push_back(piece.sent && one.rank != peers.rank ? not_here : parts.at(piece.part));
    images_.emplace_back(one);
  }
  if (!give_to_keeper())
    throw Error(Exit::runtime, "the keeper of snapshots does not answer",
                fmt::format("rank {} on {}", peers.rank, host_name()), "use --snapshot-interval 0 with launch");
}

bool Snapshots::give_to_keeper() {
  return std::ranges::all_of(images_, [this](const SnapshotImage& image) {
    return keeper_.keep({.start = start_, .rank = image.plan().rank, .size = peers_.size}, image.files());
  });
}

void Snapshots::take(const std::vector<StateTensor>& state, const Metadata& metadata) {
  if (!keeper_.is_alive()) {  // the supervisor starts a new one, which holds nothing yet
    keeper_ = KeeperLine(keeper_name_);
    if (keeper_.is_open()) give_to_keeper();
  }
  for (std::size_t i = 0; i < images_.size(); ++i) {
    images_[i].begin();
    for (std::size_t piece = 0; piece < sources_[i].size(); ++piece)
      if (sources_[i][piece] != not_here) images_[i].put(piece, state.at(sources_[i][piece]).data);
  }
  std::vector<ByteMessage> sent, received;
  if (buddy_ >= 0) sent.push_back({buddy_, images_[0].sent()});
  for (std::size_t i = 1; i < images_.size(); ++i) received.push_back({images_[i].plan().rank, images_[i].sent()});
  if (buddy_ >= 0) peers_.swap(sent, received);
  for (std::size_t i = 0; i < images_.size(); ++i) {
    if (i > 0) images_[i].add_checksums_of_sent();
    images_[i].finish(metadata);
  }
}

std::optional<Checkpoint> newest_snapshot(KeeperLine& keeper, std::int64_t oldest, const Peers& peers, Log& log) {
  std::vector<std::vector<KeptRank>> kept;
  std::vector<KeptRank> all;
  const std::vector<std::string> texts = peers.exchange(text_of(keeper.list(), oldest));
  for (const std::string& text : texts) {
    kept.push_back(kept_ranks_in(text.substr(text.find('\n') + 1)));
    all.insert(all.end(), kept.back().begin(), kept.back().end());
  }
  for (const KeptStep& step : complete_steps(all)) {
    if (step.step < std::atoll(texts[0].c_str())) break;  // the checkpoint on rank 0's disk is newer
    try {
      const Opened opened = open_step(keeper, step, kept, peers);
      return Checkpoint::of_memory(fmt::format("step {} in memory", step.step), opened.manifest, opened.files, peers);
    } catch (const std::exception& error) {
      log.warn("skipping the snapshot of step {}: {}", step.step, on_one_line(error.what()));
    }
  }
  return std::nullopt;
}

}  // namespace chorale
