// The manifest of a checkpoint states which file holds which part of each tensor, and the checksums of all bytes. The
// manifest contains no paths. The file of rank 3 is always rank-3.safetensors in the same folder, so no manifest can point
// elsewhere.
//
//   {"crc32c":"0badcafe","manifest":{"format":"chorale checkpoint","version":1,"metadata":{…},
//    "files":[{"bytes":…,"header_crc32c":…}, …],
//    "tensors":{"norm.gain":{"shape":[384],"dtype":"f32","parts":[{"rank":0,"part":{…},"crc32c":…}]}, …}}}
//
// The first checksum covers the text between `"manifest":` and the last brace.
#pragma once
#include <filesystem>
#include <map>

#include "parallel/state/checkpoint.hpp"

namespace chorale {

inline constexpr int checkpoint_version = 1;

struct StoredPart {
  int rank = 0;
  Part part;
  std::uint32_t crc32c = 0;
};

struct StoredTensor {
  Shape shape;
  DType dtype = DType::f32;
  std::vector<StoredPart> parts;
};

struct StoredFile {
  std::int64_t bytes = 0;
  std::uint32_t header_crc32c = 0;
};

struct Manifest {
  Metadata metadata;
  std::vector<StoredFile> files;  // indexed by the rank that wrote the file
  std::map<std::string, StoredTensor> tensors;
};

std::filesystem::path file_of(const std::filesystem::path& set, std::size_t rank);
std::string manifest_text(const Manifest& manifest);
// Throws if the manifest is damaged or its parts do not cover each tensor exactly once. If the manifest has a newer version,
// throws a usage error.
Manifest read_manifest(const std::filesystem::path& set);

// The entries of one rank's file, as a string that the rank sends to all ranks. add_share adds such a string to the complete
// manifest.
std::string share_text(const Manifest& one_file);
void add_share(Manifest& whole, const std::string& share);

// The description of a snapshot in memory (snapshot.hpp) is the text `begin` + `end`. Only `end` changes between snapshots.
// The checksums are in the order of share.tensors. add_snapshot adds such a description to the manifest of all ranks.
std::string snapshot_begin(const Manifest& share);
std::string snapshot_end(const std::vector<std::uint32_t>& checksums, const Metadata& metadata);
void add_snapshot(Manifest& whole, const std::string& text);
void require_whole(const Manifest& manifest);  // throws unless the parts cover each tensor exactly once

}  // namespace chorale
