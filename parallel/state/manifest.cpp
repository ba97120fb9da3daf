#include "parallel/state/manifest.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "layers/shape_fields.hpp"
#include "src/base/crc32c.hpp"
#include "src/base/foreign_text.hpp"
#include "src/base/host.hpp"
#include "src/math/forced_routing.hpp"

namespace chorale {

using nlohmann::json;

template <Named Enum>
void to_json(json& value, Enum named_value) {
  value = name_of(named_value);
}
template <Named Enum>
void from_json(const json& value, Enum& named_value) {
  named_value = named<Enum>(value.get<std::string>());
}
static void to_json(json& value, const std::optional<ForcedRouting>& routing) {
  value = routing ? name_of(*routing) : learned_routing;
}
static void from_json(const json& value, std::optional<ForcedRouting>& routing) {
  const std::string name = value.get<std::string>();
  routing = name == learned_routing ? std::optional<ForcedRouting>() : named<ForcedRouting>(name);
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Shard, dim, first, length)
// In a manifest file, the key of a part's shard is "slab".
static void to_json(json& text, const Part& part) {
  text = {{"slab", part.shard}, {"first", part.first}, {"count", part.count}};
}
static void from_json(const json& text, Part& part) {
  text.at("slab").get_to(part.shard);
  text.at("first").get_to(part.first);
  text.at("count").get_to(part.count);
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StoredPart, rank, part, crc32c)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StoredTensor, shape, dtype, parts)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StoredFile, bytes, header_crc32c)
// Older checkpoints lack the keys of newer fields, which then keep their defaults. Without experts, all MLPs are dense.
static void to_json(json& text, const Experts& experts) {
  each_field(experts, [&](const ShapeField& field, const auto& value) { text[field.key] = value; });
}
static void from_json(const json& text, Experts& experts) {
  each_field(experts, [&](const ShapeField& field, auto& value) { value = text.value(field.key, value); });
}
static void to_json(json& text, const ModelShape& shape) {
  each_field(shape, [&](const ShapeField& field, const auto& value) { text[field.key] = value; });
  text["experts"] = shape.experts;
}
static void from_json(const json& text, ModelShape& shape) {
  each_field(shape, [&](const ShapeField& field, auto& value) { value = text.value(field.key, value); });
  shape.experts = text.value("experts", Experts());
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Metadata, step, cursor, seed, loss_scale, good_steps, patience, updates, model, blocks,
                                   config)

namespace {

constexpr std::string_view format = "chorale checkpoint";

std::string envelope(const std::string& body) {
  return fmt::format("{{\"crc32c\":\"{:08x}\",\"manifest\":{}}}\n", crc32c(std::as_bytes(std::span(body))), body);
}

// Returns the manifest in an envelope. An envelope is the complete content of a manifest file: a checksum, and the string
// that the checksum covers. The checksum is verified by rebuilding the envelope from this string.
std::string opened(const std::string& text) {
  const std::size_t before = envelope("").size() - 2;  // excludes the closing brace and the newline
  if (text.size() < before + 2) throw std::runtime_error(fmt::format("it has only {} bytes", text.size()));
  const std::string body = text.substr(before, text.size() - before - 2);
  if (envelope(body) != text) throw std::runtime_error("its checksum is wrong");
  return body;
}

void check(const Manifest& manifest) {
  for (const auto& [name, tensor] : manifest.tensors) {
    std::vector<Part> parts;
    for (const StoredPart& stored : tensor.parts) {
      if (stored.rank < 0 || static_cast<std::size_t>(stored.rank) >= manifest.files.size())
        throw std::runtime_error(fmt::format("tensor \"{}\" is in the file of rank {}, but the number of files is {}", name,
                                             stored.rank, manifest.files.size()));
      if (resolved(stored.part, tensor.shape) != stored.part)
        throw std::runtime_error(fmt::format("tensor \"{}\" has an incomplete part", name));
      parts.push_back(stored.part);
    }
    if (const std::string flaw = flaw_in_cover(tensor.shape, std::move(parts)); !flaw.empty())
      throw std::runtime_error(fmt::format("tensor \"{}\" is not whole: {}", name, flaw));
  }
}

// Adds the entries of one rank's file.
void add_file(Manifest& whole, const std::vector<StoredFile>& files, const std::map<std::string, StoredTensor>& tensors) {
  whole.files.insert(whole.files.end(), files.begin(), files.end());
  for (const auto& [name, tensor] : tensors) {
    StoredTensor& there = whole.tensors.try_emplace(name, StoredTensor{tensor.shape, tensor.dtype, {}}).first->second;
    require(there.shape == tensor.shape && there.dtype == tensor.dtype,
            "tensor \"{}\" has shape {} and type {} on one rank, but shape {} and type {} on another", name,
            to_string(there.shape), name_of(there.dtype), to_string(tensor.shape), name_of(tensor.dtype));
    there.parts.insert(there.parts.end(), tensor.parts.begin(), tensor.parts.end());
  }
}

}  // namespace

std::filesystem::path file_of(const std::filesystem::path& set, std::size_t rank) {
  return set / fmt::format("rank-{}.safetensors", rank);
}

std::string manifest_text(const Manifest& manifest) {
  check(manifest);
  const json body = {{"format", format},
                     {"version", checkpoint_version},
                     {"metadata", manifest.metadata},
                     {"files", manifest.files},
                     {"tensors", manifest.tensors}};
  return envelope(body.dump(-1, ' ', false, json::error_handler_t::replace));
}

Manifest read_manifest(const std::filesystem::path& set) {
  const std::filesystem::path path = set / "manifest.json";
  Manifest manifest;
  int version = 0;
  try {
    if (const std::string why = why_no_file(path); !why.empty()) throw std::runtime_error(why);
    const auto text = contents_of(path);
    if (!text) throw std::runtime_error("it cannot be read");
    const json body = json::parse(opened(*text));
    if (body.at("format") != format) throw std::runtime_error("it is not a checkpoint's manifest");
    version = body.at("version");
    if (version <= checkpoint_version) {
      manifest = {body.at("metadata"), body.at("files"), body.at("tensors")};
      check(manifest);
    }
  } catch (const std::exception& error) {
    throw Error(Exit::runtime, "a checkpoint is damaged", fmt::format("{}: {}", path.string(), reason_of(error)),
                "load an older one, or restore this one from a copy");
  }
  if (version > checkpoint_version)
    usage_error("the checkpoint has a newer format",
                fmt::format("{} has version {}, this program reads up to {}", path.string(), version, checkpoint_version),
                "use the program that wrote it, or a newer one");
  return manifest;
}

std::string share_text(const Manifest& one_file) {
  return json{{"files", one_file.files}, {"tensors", one_file.tensors}}.dump();
}

std::string snapshot_begin(const Manifest& share) { return fmt::format("{{\"share\":{},", share_text(share)); }

std::string snapshot_end(const std::vector<std::uint32_t>& checksums, const Metadata& metadata) {
  return fmt::format("\"checksums\":[{}],\"metadata\":{}}}", fmt::join(checksums, ","),
                     json(metadata).dump(-1, ' ', false, json::error_handler_t::replace));
}

void add_snapshot(Manifest& whole, const std::string& text) {
  const json snapshot = json::parse(text);
  whole.metadata = snapshot.at("metadata");
  std::map<std::string, StoredTensor> tensors = snapshot.at("share").at("tensors");
  const auto& checksums = snapshot.at("checksums");
  std::size_t next = 0;
  for (auto& [name, tensor] : tensors) tensor.parts.at(0).crc32c = checksums.at(next++);
  add_file(whole, snapshot.at("share").at("files"), tensors);
}

void require_whole(const Manifest& manifest) { check(manifest); }

void add_share(Manifest& whole, const std::string& share) {
  const json text = json::parse(share);
  add_file(whole, text.at("files"), text.at("tensors"));
}

}  // namespace chorale
