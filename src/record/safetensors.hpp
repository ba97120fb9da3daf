// The safetensors format, in which Hugging Face publishes models: a JSON header, followed by the bytes of the tensors.
//
//   bytes 0–7      N, little endian
//   8 … 8+N−1      {"__metadata__": {"format": "pt"},
//                   "wte.weight": {"dtype": "F32", "shape": [4096, 384], "data_offsets": [0, 6291456]}, …}
//   8+N …          the data: row-major, little endian, without gaps
//
// Files are not trusted. Every size is checked before it is multiplied. Every tensor must be inside the file and overlap no
// other tensor; otherwise File's constructor throws. The caller must check the values (checkpoints have checksums). Reading
// maps the file, so unused tensors are never read. Writing does not need a complete copy of the file in memory.
#pragma once
#include <map>
#include <span>

#include "src/memory/tensor.hpp"
#include "src/record/durable.hpp"

namespace chorale::safetensors {

struct Entry {
  std::string name;
  DType dtype = DType::f32;
  Shape shape = {};
  std::int64_t first = 0, bytes = 0;  // position in the data
};
using Metadata = std::map<std::string, std::string>;

class File {
 public:
  explicit File(const std::filesystem::path& path);
  ~File();
  File(File&& other) noexcept;

  const std::filesystem::path& path() const { return path_; }
  const Metadata& metadata() const { return metadata_; }
  const std::map<std::string, Entry>& entries() const { return entries_; }
  const Entry* find(const std::string& name) const;  // nullptr if there is no such tensor
  std::span<const std::byte> data(const Entry& entry) const;
  void forget(const Entry& entry) const;  // drops the entry's pages from memory until the next access
  std::span<const std::byte> header() const { return std::span(map_).first(data_starts_); }
  std::int64_t bytes() const { return static_cast<std::int64_t>(map_.size()); }

 private:
  void read_header();

  std::filesystem::path path_;
  std::span<const std::byte> map_;
  std::size_t data_starts_ = 0;
  Metadata metadata_;
  std::map<std::string, Entry> entries_;
};

// Computes `first` and `bytes` of each entry, and returns the beginning of the file up to the data.
std::string header_of(std::vector<Entry>& entries, const Metadata& metadata = {});

// The constructor takes the names, types and shapes of all tensors. The bytes of the tensors must then be written in the
// same order, in chunks of any size.
class Writer {
 public:
  Writer(std::filesystem::path path, std::vector<Entry> entries, const Metadata& metadata = {});
  void write(std::span<const std::byte> bytes);
  void finish();  // syncs the file; throws unless all declared bytes were written
  const std::string& header() const { return header_; }

 private:
  DurableFile file_;
  std::string header_;
  std::int64_t missing_ = 0;
};

}  // namespace chorale::safetensors
