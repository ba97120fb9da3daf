// Opens and reads checkpoints. checkpoint_save.cpp saves checkpoints.
#include "parallel/state/checkpoint.hpp"

#include <fmt/format.h>

#include "layers/shape_fields.hpp"
#include "parallel/state/checkpoint_hosts.hpp"
#include "parallel/state/checkpoint_sets.hpp"
#include "parallel/state/manifest.hpp"
#include "src/base/crc32c.hpp"
#include "src/base/text.hpp"
#include "src/memory/on_host.hpp"
#include "src/record/safetensors.hpp"

namespace chorale {
namespace fs = std::filesystem;

struct Checkpoint::Set {
  fs::path path;
  Manifest manifest;
  std::vector<safetensors::File> files;  // one for each rank of the run that saved the checkpoint

  explicit Set(const fs::path& from);
  Set(const fs::path& name, const Manifest& known, const std::vector<int>& memory);
  void verify(const Peers& peers) const;

 private:
  void require_match() const;
};

namespace {

[[noreturn]] void damaged(const fs::path& file, const std::string& what) {
  throw Error(Exit::runtime, "a checkpoint is damaged", fmt::format("{}: {}", file.string(), what),
              "load an older one, or restore this one from a copy");
}

std::string words(const Shape& shape, DType dtype) {
  return fmt::format("shape {} and type {}", to_string(shape), name_of(dtype));
}

}  // namespace

Checkpoint::Set::Set(const fs::path& from) : path(from), manifest(read_manifest(from)) {
  for (std::size_t rank = 0; rank < manifest.files.size(); ++rank) {
    const StoredFile& stored = manifest.files[rank];
    if (fs::is_symlink(file_of(path, rank))) damaged(file_of(path, rank), "it is a link, which may point outside the set");
    const safetensors::File& file = files.emplace_back(file_of(path, rank));
    if (file.bytes() != stored.bytes)
      damaged(file.path(), fmt::format("it has {} bytes instead of {}", file.bytes(), stored.bytes));
    if (crc32c(file.header()) != stored.header_crc32c) damaged(file.path(), "the checksum of its header is wrong");
  }
  require_match();
}

Checkpoint::Set::Set(const fs::path& name, const Manifest& known, const std::vector<int>& memory)
    : path(name), manifest(known) {
  for (const int file : memory) files.emplace_back(fmt::format("/proc/self/fd/{}", file));
  require_match();
}

void Checkpoint::Set::require_match() const {
  for (const auto& [name, tensor] : manifest.tensors)
    for (const StoredPart& stored : tensor.parts) {
      const safetensors::File& file = files[static_cast<std::size_t>(stored.rank)];
      const safetensors::Entry* entry = file.find(name);
      if (!entry || entry->dtype != tensor.dtype || entry->bytes != stored.part.count * size_of(tensor.dtype))
        damaged(file.path(), fmt::format("tensor \"{}\" of rank {} does not match the manifest", name, stored.rank));
    }
}

void Checkpoint::Set::verify(const Peers& peers) const {
  for (const auto& [name, tensor] : manifest.tensors)
    for (const StoredPart& stored : tensor.parts) {
      if (stored.rank % peers.size != peers.rank) continue;  // a different rank checks this part
      const safetensors::File& file = files[static_cast<std::size_t>(stored.rank)];
      if (crc32c(file.data(*file.find(name))) != stored.crc32c)
        damaged(file.path(), fmt::format("the checksum of tensor \"{}\" of rank {} is wrong", name, stored.rank));
      peers.went_on();
    }
}

Checkpoint Checkpoint::of_memory(const std::string& name, const Manifest& manifest, const std::vector<int>& files,
                                 const Peers& peers) {
  std::unique_ptr<const Set> set;
  std::string trouble;
  try {
    require_whole(manifest);
    set = std::make_unique<const Set>(name, manifest, files);
    set->verify(peers);
  } catch (const std::exception& error) {
    trouble = fmt::format("{} ", on_one_line(error.what()));
  }
  for (const std::string& theirs : peers.exchange(trouble))
    if (!theirs.empty())
      throw Error(Exit::runtime, "a snapshot is damaged", fmt::format("{}: {}", name, trim(theirs)),
                  "an older one is tried");
  return Checkpoint(std::move(set));
}

Checkpoint::Checkpoint(std::unique_ptr<const Set> set) : set_(std::move(set)) {}
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;
const fs::path& Checkpoint::path() const { return set_->path; }
const Metadata& Checkpoint::metadata() const { return set_->manifest.metadata; }

Checkpoint Checkpoint::open(const fs::path& path, Log& log, const Peers& peers) {
  const fs::path folder = folder_of_sets(path);
  // Rank 0 lists the sets, so that all ranks try the same sets in the same order.
  std::string mine;
  if (peers.rank == 0) mine = fs::exists(folder / "manifest.json") ? "." : join(sets_to_load(folder), "\n");
  const std::vector<std::string> names = split(peers.exchange(mine).at(0), '\n');
  if (names.empty()) refuse_without_checkpoint(folder);
  std::string first_trouble;
  for (const std::string& name : names) {
    const fs::path path_of_set = name == "." ? folder : folder / name;
    require_on_all_hosts(path_of_set, peers);
    std::unique_ptr<const Set> set;
    std::string trouble;
    try {
      set = std::make_unique<const Set>(path_of_set);
      set->verify(peers);
    } catch (const Error& error) {
      if (error.exit() == Exit::usage) throw;  // the format is newer; all ranks read the same manifest, so all ranks throw
      trouble = split(error.what(), '\n').at(1);
    }
    for (const std::string& theirs : peers.exchange(trouble))
      if (trouble.empty()) trouble = theirs;
    if (trouble.empty()) return Checkpoint(std::move(set));
    if (first_trouble.empty()) first_trouble = trim(trouble);
    log.warn("skipping the damaged checkpoint {}: {}", path_of_set.string(), trim(trouble));
  }
  refuse_damaged(names.size(), first_trouble);
}

std::vector<StateTensor> Checkpoint::tensors() const {
  std::vector<StateTensor> all;
  for (const auto& [name, stored] : set_->manifest.tensors)
    all.push_back({name, stored.shape, {}, {nullptr, elements_of(stored.shape), stored.dtype}});
  return all;
}

void Checkpoint::require_model(const ModelShape& here) const {
  const auto with_head_width = [](ModelShape shape) {
    shape.head = shape.head_width();
    return settings_of(shape);
  };
  const auto there = with_head_width(metadata().model), wanted = with_head_width(here);
  for (std::size_t i = 0; i < there.size(); ++i)
    if (const auto& [field, text] = there[i]; !field.changeable && text != wanted[i].second)
      usage_error("the checkpoint is of another model",
                  fmt::format("its {} is {}, but {} here ({})", field.option, text, wanted[i].second, path().string()),
                  "use the model options it was saved with, or load another checkpoint");
}

void Checkpoint::read(const std::vector<StateTensor>& wanted) const {
  for (const StateTensor& tensor : wanted) {
    const auto found = set_->manifest.tensors.find(tensor.name);
    const std::string here = words(tensor.shape, tensor.data.dtype);
    const std::string there =
        found == set_->manifest.tensors.end() ? "no such tensor" : words(found->second.shape, found->second.dtype);
    if (here != there)
      usage_error("the checkpoint is of another model",
                  fmt::format("tensor \"{}\": {} in {}, but {} here", tensor.name, there, path().string(), here),
                  "use the options it was saved with (model, --dtype, --no-master-weights), or load another checkpoint");
  }
  for (const StateTensor& tensor : wanted) {
    const StoredTensor& stored = set_->manifest.tensors.at(tensor.name);
    const Part part = resolved(tensor.part, tensor.shape);
    require(part.count == tensor.data.count && (tensor.data.data || part.count == 0),
            "the part of tensor \"{}\" to read has {} elements, but its target has {}", tensor.name, part.count,
            tensor.data.count);
    std::int64_t copied = 0;
    in_pieces(tensor.data, Use::write, [&](const Slice& here, std::int64_t first) {
      const Part wanted_here{part.shard, part.first + first, here.count};
      const std::span target(static_cast<std::byte*>(here.data), static_cast<std::size_t>(here.bytes()));
      for (const StoredPart& piece : stored.parts) {
        const safetensors::File& file = set_->files[static_cast<std::size_t>(piece.rank)];
        copied += copy_common(tensor.shape, size_of(stored.dtype), piece.part, file.data(*file.find(tensor.name)),
                              wanted_here, target);
      }
    });
    require(copied == part.count, "{} of {} elements of \"{}\" were found", copied, part.count, tensor.name);
  }
}

}  // namespace chorale
