// Opens and reads checkpoints. checkpoint_save.cpp saves checkpoints.
#include "parallel/state/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>

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
  std::vector<std::optional<safetensors::File>> files;  // one for each rank of the run that saved the checkpoint; a file in
                                                        // the memory of another host is absent
  std::vector<std::vector<int>> holders = {};           // for each file in memory, the ranks that have opened it
  std::optional<Peers> peers = {};                      // of a checkpoint in memory

  explicit Set(const fs::path& from);
  Set(const fs::path& name, const Manifest& known, const std::vector<MemoryFile>& memory, const Peers& ranks);
  void verify(const Peers& ranks) const;
  std::span<const std::byte> data(const std::string& tensor, const StoredPart& stored) const;
  bool is_here(const StoredPart& stored) const { return files[static_cast<std::size_t>(stored.rank)].has_value(); }

 private:
  void require_match() const;
  bool is_mine_to_verify(const StoredPart& stored, const Peers& ranks) const;
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
    const safetensors::File& file = *files.emplace_back(file_of(path, rank));
    if (file.bytes() != stored.bytes)
      damaged(file.path(), fmt::format("it has {} bytes instead of {}", file.bytes(), stored.bytes));
    if (crc32c(file.header()) != stored.header_crc32c) damaged(file.path(), "the checksum of its header is wrong");
  }
  require_match();
}

Checkpoint::Set::Set(const fs::path& name, const Manifest& known, const std::vector<MemoryFile>& memory, const Peers& ranks)
    : path(name), manifest(known), peers(ranks) {
  for (const MemoryFile& one : memory) {
    holders.push_back(one.holders);
    std::optional<safetensors::File>& file = files.emplace_back();
    if (one.file >= 0) file.emplace(fmt::format("/proc/self/fd/{}", one.file));
  }
  require_match();
}

void Checkpoint::Set::require_match() const {
  for (const auto& [name, tensor] : manifest.tensors)
    for (const StoredPart& stored : tensor.parts) {
      if (!is_here(stored)) continue;
      const safetensors::File& file = *files[static_cast<std::size_t>(stored.rank)];
      const safetensors::Entry* entry = file.find(name);
      if (!entry || entry->dtype != tensor.dtype || entry->bytes != stored.part.count * size_of(tensor.dtype))
        damaged(file.path(), fmt::format("tensor \"{}\" of rank {} does not match the manifest", name, stored.rank));
    }
}

// The ranks divide the files among themselves. Each host that has a copy of a file in memory checks its copy.
bool Checkpoint::Set::is_mine_to_verify(const StoredPart& stored, const Peers& ranks) const {
  const auto file = static_cast<std::size_t>(stored.rank);
  if (holders.empty()) return stored.rank % ranks.size == ranks.rank;
  std::vector<int> able = holders[file];
  std::erase_if(able, [&](int rank) { return !ranks.share_host(rank, ranks.rank); });
  return !able.empty() && able[file % able.size()] == ranks.rank;
}

std::span<const std::byte> Checkpoint::Set::data(const std::string& tensor, const StoredPart& stored) const {
  const safetensors::File& file = *files[static_cast<std::size_t>(stored.rank)];
  return file.data(*file.find(tensor));
}

void Checkpoint::Set::verify(const Peers& ranks) const {
  for (const auto& [name, tensor] : manifest.tensors)
    for (const StoredPart& stored : tensor.parts) {
      if (!is_mine_to_verify(stored, ranks)) continue;
      if (crc32c(data(name, stored)) != stored.crc32c)
        damaged(files[static_cast<std::size_t>(stored.rank)]->path(),
                fmt::format("the checksum of tensor \"{}\" of rank {} is wrong", name, stored.rank));
      ranks.went_on();
    }
}

// Brings the parts that ranks want, but that are on other hosts only, one tensor at a time.
class Checkpoint::Distant {
 public:
  // Collective.
  Distant(const Set& set, const std::vector<StateTensor>& wanted);

  // Collective: all ranks name all tensors of the manifest, in its order. Returns the bytes of the wanted parts by number.
  std::map<std::size_t, std::vector<std::byte>> bring(const std::string& tensor) const;

 private:
  struct Wish {
    int rank = 0, holder = 0;  // the rank that wants the part, and the rank that sends it
    std::size_t part = 0;      // the part's number in the manifest
  };
  const Set& set_;
  std::map<std::string, std::vector<Wish>> wishes_;  // of all ranks, by tensor
};

Checkpoint::Distant::Distant(const Set& set, const std::vector<StateTensor>& wanted) : set_(set) {
  if (!set.peers) return;
  std::string mine;
  for (const StateTensor& tensor : wanted) {
    const std::vector<StoredPart>& parts = set.manifest.tensors.at(tensor.name).parts;
    const Part here = resolved(tensor.part, tensor.shape);
    for (std::size_t part = 0; part < parts.size(); ++part)
      if (!set.is_here(parts[part]) && have_common(tensor.shape, parts[part].part, here))
        mine += fmt::format("{} {}\n", part, tensor.name);
  }
  const std::vector<std::string> all = set.peers->exchange(mine);
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    for (const std::string& line : split(all[rank], '\n')) {
      if (line.empty()) continue;
      const std::size_t blank = line.find(' '), part = std::stoull(line.substr(0, blank));
      const std::string name = line.substr(blank + 1);
      const int file = set.manifest.tensors.at(name).parts.at(part).rank;
      const std::vector<int>& holders = set.holders[static_cast<std::size_t>(file)];
      std::vector<Wish>& wishes = wishes_[name];
      const Wish wish{static_cast<int>(rank), holders[rank % holders.size()], part};
      const auto same = [&](const Wish& one) { return one.rank == wish.rank && one.part == wish.part; };
      if (std::ranges::none_of(wishes, same)) wishes.push_back(wish);
    }
}

std::map<std::size_t, std::vector<std::byte>> Checkpoint::Distant::bring(const std::string& tensor) const {
  std::map<std::size_t, std::vector<std::byte>> brought;
  const auto wishes = wishes_.find(tensor);
  if (wishes == wishes_.end()) return brought;
  const StoredTensor& stored = set_.manifest.tensors.at(tensor);
  std::vector<ByteMessage> sent, received;
  for (const Wish& wish : wishes->second) {
    const StoredPart& part = stored.parts[wish.part];
    if (wish.holder == set_.peers->rank) {
      const std::span<const std::byte> data = set_.data(tensor, part);
      sent.push_back({wish.rank, {const_cast<std::byte*>(data.data()), data.size()}});  // is only read
    }
    if (wish.rank == set_.peers->rank) {
      std::vector<std::byte>& place = brought[wish.part];
      place.resize(static_cast<std::size_t>(part.part.count * size_of(stored.dtype)));
      received.push_back({wish.holder, place});
    }
  }
  set_.peers->swap(sent, received);
  return brought;
}

Checkpoint Checkpoint::of_memory(const std::string& name, const Manifest& manifest, const std::vector<MemoryFile>& files,
                                 const Peers& peers) {
  std::unique_ptr<const Set> set;
  std::string trouble;
  try {
    require_whole(manifest);
    set = std::make_unique<const Set>(name, manifest, files, peers);
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
  std::multimap<std::string, const StateTensor*> by_name;
  for (const StateTensor& tensor : wanted) by_name.emplace(tensor.name, &tensor);
  const Distant distant(*set_, wanted);
  for (const auto& [name, stored] : set_->manifest.tensors) {
    const auto brought = distant.bring(name);
    const auto [first, last] = by_name.equal_range(name);
    for (auto one = first; one != last; ++one) fill(*one->second, stored, brought);
  }
}

void Checkpoint::fill(const StateTensor& tensor, const StoredTensor& stored,
                      const std::map<std::size_t, std::vector<std::byte>>& brought) const {
  const Part part = resolved(tensor.part, tensor.shape);
  require(part.count == tensor.data.count && (tensor.data.data || part.count == 0),
          "the part of tensor \"{}\" to read has {} elements, but its target has {}", tensor.name, part.count,
          tensor.data.count);
  std::int64_t copied = 0;
  in_pieces(tensor.data, Use::write, [&](const Slice& here, std::int64_t first) {
    const Part wanted_here{part.shard, part.first + first, here.count};
    const std::span target(static_cast<std::byte*>(here.data), static_cast<std::size_t>(here.bytes()));
    for (std::size_t number = 0; number < stored.parts.size(); ++number) {
      const StoredPart& piece = stored.parts[number];
      const auto distant = brought.find(number);
      if (distant == brought.end() && !set_->is_here(piece)) continue;  // nothing of it is wanted here
      const std::span<const std::byte> source =
          distant != brought.end() ? std::span<const std::byte>(distant->second) : set_->data(tensor.name, piece);
      copied += copy_common(tensor.shape, size_of(stored.dtype), piece.part, source, wanted_here, target);
    }
  });
  require(copied == part.count, "{} of {} elements of \"{}\" were found", copied, part.count, tensor.name);
}

}  // namespace chorale
