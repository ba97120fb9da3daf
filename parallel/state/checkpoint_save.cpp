// Saving has three stages. Rank 0 creates the folder of the set, every rank writes its file, and rank 0 writes the manifest
// and gives the folder its final name. After each stage the ranks tell each other whether they succeeded. So either all
// ranks continue, or all throw.
#include <fmt/format.h>

#include "parallel/state/checkpoint_sets.hpp"
#include "parallel/state/manifest.hpp"
#include "src/base/crc32c.hpp"
#include "src/memory/on_host.hpp"
#include "src/record/safetensors.hpp"

namespace chorale {
namespace fs = std::filesystem;
namespace {

// Runs one stage and returns the texts that stage() returned on all ranks. If stage() throws on a rank, that rank throws
// the same error again. The other ranks throw an error that names that rank.
template <class Stage>
std::vector<std::string> together(const Peers& peers, const fs::path& partial, Stage&& stage) {
  std::string mine = "+";
  std::exception_ptr failure;
  try {
    mine += stage();
  } catch (const std::exception& error) {
    failure = std::current_exception();
    mine = fmt::format("-{}", error.what());
  }
  std::vector<std::string> all = peers.exchange(std::move(mine));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].front() == '-') {
      std::error_code ignored;  // if the folder cannot be removed now, the next save tries again
      if (peers.rank == 0) fs::remove_all(partial, ignored);
      if (failure) std::rethrow_exception(failure);
      throw Error(Exit::runtime, "the checkpoint was not saved", fmt::format("rank {}: {}", rank, all[rank].substr(1)),
                  "earlier checkpoints are intact");
    }
    all[rank].erase(0, 1);
  }
  return all;
}

void begin(const fs::path& folder, const fs::path& partial) {
  if (!fs::exists(folder)) {
    if (folder.has_parent_path()) fs::create_directories(folder.parent_path());
    make_folder(folder);
    sync_folder(folder.has_parent_path() ? folder.parent_path() : ".");
  }
  remove_partial_sets(folder);
  make_folder(partial);
}

std::span<const std::byte> bytes_of(const Slice& data) {
  return {static_cast<const std::byte*>(data.data), static_cast<std::size_t>(data.bytes())};
}

// Writes this rank's file. Returns the file's entries for the manifest.
Manifest write_share(const fs::path& path, int rank, const std::vector<StateTensor>& mine) {
  Manifest share;
  std::vector<safetensors::Entry> entries;
  for (const StateTensor& tensor : mine) {
    const Part part = resolved(tensor.part, tensor.shape);
    require(part.count == tensor.data.count && (tensor.data.data || part.count == 0),
            "the part of tensor \"{}\" to save has {} elements, but its data have {}", tensor.name, part.count,
            tensor.data.count);
    on_host(tensor.data, Use::read, [&](const Slice& here) {
      share.tensors[tensor.name] = {tensor.shape, tensor.data.dtype, {{rank, part, crc32c(bytes_of(here))}}};
    });
    entries.push_back({tensor.name, tensor.data.dtype, {part.count}});
    Shape local = tensor.shape;
    if (part.slab.dim >= 0) local[static_cast<std::size_t>(part.slab.dim)] = part.slab.length;
    if (elements_of(local) == part.count) entries.back().shape = local;  // a whole slab is stored in its shape, not flat
  }
  safetensors::Writer writer(path, std::move(entries));
  for (const StateTensor& tensor : mine)
    on_host(tensor.data, Use::read, [&](const Slice& here) { writer.write(bytes_of(here)); });
  writer.finish();
  share.files = {{static_cast<std::int64_t>(fs::file_size(path)), crc32c(std::as_bytes(std::span(writer.header())))}};
  return share;
}

void seal(const fs::path& folder, const fs::path& partial, const Metadata& metadata,
          const std::vector<std::string>& shares) {
  Manifest manifest{metadata, {}, {}};
  for (const std::string& share : shares) add_share(manifest, share);
  write_durably(partial / "manifest.json", manifest_text(manifest));
  sync_folder(partial);
  const fs::path set = folder / set_name(metadata.step), old = folder / (set_name(metadata.step) + ".old");
  if (fs::exists(set)) {  // a set of this step exists: keep it loadable as step-N.old until the new set is named step-N
    fs::remove_all(old);
    rename_durably(set, old);
  }
  rename_durably(partial, set);
  link_durably(folder / "latest", set_name(metadata.step));
  remove_old_sets(folder, metadata.step);
}

}  // namespace

void save_checkpoint(const fs::path& folder, const Metadata& metadata, const std::vector<StateTensor>& mine,
                     const Peers& peers) {
  require(metadata.step >= 0, "step {} cannot be saved", metadata.step);
  const fs::path partial = folder / (set_name(metadata.step) + ".partial");
  together(peers, partial, [&] {
    if (peers.rank == 0) begin(folder, partial);
    return "";
  });
  const auto shares = together(peers, partial, [&] {
    return share_text(write_share(file_of(partial, static_cast<std::size_t>(peers.rank)), peers.rank, mine));
  });
  together(peers, partial, [&] {
    if (peers.rank == 0) seal(folder, partial, metadata, shares);
    return "";
  });
}

}  // namespace chorale
