// Saving has three stages. First the folder of the set is created, on every file system; then every rank writes its file; at
// the end the manifest is written and the folder gets its final name. After each stage the ranks tell each other whether
// they succeeded. So either all ranks continue, or all throw.
#include <fmt/format.h>

#include "parallel/state/checkpoint_hosts.hpp"
#include "parallel/state/checkpoint_sets.hpp"
#include "parallel/state/manifest.hpp"
#include "src/base/crc32c.hpp"
#include "src/memory/on_host.hpp"
#include "src/record/safetensors.hpp"

namespace chorale {
namespace fs = std::filesystem;
namespace {

std::span<const std::byte> bytes_of(const Slice& data) {
  return {static_cast<const std::byte*>(data.data), static_cast<std::size_t>(data.bytes())};
}

// Writes this rank's file. Returns the file's entries for the manifest.
Manifest write_share(const fs::path& path, const Peers& peers, const std::vector<StateTensor>& mine) {
  Manifest share;
  std::vector<safetensors::Entry> entries;
  for (const StateTensor& tensor : mine) {
    const Part part = resolved(tensor.part, tensor.shape);
    require(part.count == tensor.data.count && (tensor.data.data || part.count == 0),
            "the part of tensor \"{}\" to save has {} elements, but its data have {}", tensor.name, part.count,
            tensor.data.count);
    share.tensors[tensor.name] = {tensor.shape, tensor.data.dtype, {{peers.rank, part, 0}}};
    entries.push_back({tensor.name, tensor.data.dtype, {part.count}});
    Shape local = tensor.shape;
    if (part.slab.dim >= 0) local[static_cast<std::size_t>(part.slab.dim)] = part.slab.length;
    if (elements_of(local) == part.count) entries.back().shape = local;  // a whole slab is stored in its shape, not flat
  }
  safetensors::Writer writer(path, std::move(entries));
  for (const StateTensor& tensor : mine) {
    std::uint32_t& checksum = share.tensors[tensor.name].parts.back().crc32c;
    in_pieces(tensor.data, Use::read, [&](const Slice& here, std::int64_t) {  // read once, for the file and for its checksum
      writer.write(bytes_of(here));
      checksum = crc32c(bytes_of(here), checksum);
      peers.went_on();
    });
  }
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

int save_checkpoint(const fs::path& folder, const Metadata& metadata, const std::vector<StateTensor>& mine,
                    const Peers& peers) {
  require(metadata.step >= 0, "step {} cannot be saved", metadata.step);
  PartialSet set(folder, metadata.step, peers);
  const int file_systems = set.make();
  const auto shares = set.together(
      [&] { return share_text(write_share(file_of(set.path(), static_cast<std::size_t>(peers.rank)), peers, mine)); });
  set.together([&] {
    if (set.is_maker()) seal(folder, set.path(), metadata, shares);
    return "";
  });
  return file_systems;
}

}  // namespace chorale
