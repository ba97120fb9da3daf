// Saving has three stages. First, the folder of the set is created on every file system. Then every rank writes its file.
// Finally, the manifest is written and the folder gets its final name. After each stage, the ranks tell each other whether
// they succeeded. So either all ranks continue, or all ranks throw.
#include "parallel/state/checkpoint_save.hpp"

#include "parallel/state/checkpoint_sets.hpp"
#include "src/base/crc32c.hpp"
#include "src/memory/on_host.hpp"

namespace chorale {
namespace fs = std::filesystem;
namespace {

std::span<const std::byte> bytes_of(const Slice& data) {
  return {static_cast<const std::byte*>(data.data), static_cast<std::size_t>(data.bytes())};
}

void name_set(const fs::path& folder, const fs::path& partial, std::int64_t step) {
  const fs::path set = folder / set_name(step), old = folder / (set_name(step) + ".old");
  if (fs::exists(set)) {  // a set of this step already exists; it can be loaded as step-N.old until the new set is named
                          // step-N
    fs::remove_all(old);
    rename_durably(set, old);
  }
  rename_durably(partial, set);
  link_durably(folder / "latest", set_name(step));
  remove_old_sets(folder, step);
}

}  // namespace

ShareLayout layout_of_share(int rank, const std::vector<StateTensor>& mine) {
  ShareLayout layout;
  for (const StateTensor& tensor : mine) {
    const Part part = resolved(tensor.part, tensor.shape);
    require(part.count == tensor.data.count && (tensor.data.data || part.count == 0),
            "the part of tensor \"{}\" to save has {} elements, but its data have {}", tensor.name, part.count,
            tensor.data.count);
    layout.share.tensors[tensor.name] = {tensor.shape, tensor.data.dtype, {{rank, part, 0}}};
    layout.entries.push_back({tensor.name, tensor.data.dtype, {part.count}});
    Shape local = tensor.shape;
    if (part.shard.dim >= 0) local[static_cast<std::size_t>(part.shard.dim)] = part.shard.length;
    if (elements_of(local) == part.count)
      layout.entries.back().shape = local;  // a complete shard is stored with its own shape, not flattened
  }
  return layout;
}

std::string write_share(const PartialSet& set, const Peers& peers, const std::vector<StateTensor>& mine) {
  const fs::path path = file_of(set.path(), static_cast<std::size_t>(peers.rank));
  auto [share, entries] = layout_of_share(peers.rank, mine);
  safetensors::Writer writer(path, std::move(entries));
  for (const StateTensor& tensor : mine) {
    std::uint32_t& checksum = share.tensors[tensor.name].parts.back().crc32c;
    in_pieces(tensor.data, Use::read, [&](const Slice& here, std::int64_t) {  // each block is read once, both for the file
                                                                              // and for its checksum
      writer.write(bytes_of(here));
      checksum = crc32c(bytes_of(here), checksum);
      peers.went_on();
    });
  }
  writer.finish();
  share.files = {{static_cast<std::int64_t>(fs::file_size(path)), crc32c(std::as_bytes(std::span(writer.header())))}};
  return share_text(share);
}

std::int64_t seal(const PartialSet& set, const Metadata& metadata, const std::vector<std::string>& shares) {
  Manifest manifest{metadata, {}, {}};
  for (const std::string& share : shares) add_share(manifest, share);
  std::string text;
  set.together([&] {
    text = manifest_text(manifest);
    if (!set.is_maker()) return "";
    write_durably(set.path() / "manifest.json", text);
    sync_folder(set.path());
    name_set(set.folder(), set.path(), metadata.step);
    return "";
  });
  auto bytes = static_cast<std::int64_t>(text.size());
  for (const StoredFile& file : manifest.files) bytes += file.bytes;
  return bytes;
}

SavedSet save_checkpoint(const fs::path& folder, const Metadata& metadata, const std::vector<StateTensor>& mine,
                         const Peers& peers) {
  PartialSet set(folder, metadata.step, peers);
  const int file_systems = set.make();
  const std::vector<std::string> shares = set.together([&] { return write_share(set, peers, mine); });
  return {file_systems, seal(set, metadata, shares)};
}

}  // namespace chorale
