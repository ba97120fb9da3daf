// Tokens in memory-mapped files. Two formats can be read, and llm.c's format can also be written:
//
//   llm.c       FILE.bin: 256 × i32 (magic, version, count), then the tokens: u16 with magic 20240520, version 1;
//               u32 with 20240801, version 7, for vocabularies over 65536
//   Megatron    FILE.bin: only tokens; FILE.idx: their type, sequences and documents (megatron.hpp)
#pragma once
#include <filesystem>

#include "src/base/descriptor.hpp"
#include "src/data/tokens.hpp"

namespace chorale {

// A file's bytes, mapped read-only.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&&) = delete;
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

enum class TokenType : std::uint8_t { u8, i8, u16, i16, i32, u32, i64 };
std::int64_t size_of(TokenType type);

class StoredTokens final : public TokenSource {
 public:
  // Holds `count` tokens that start at byte `first`. The caller must have checked that the file contains all of these
  // tokens.
  StoredTokens(std::string name, MappedFile file, TokenType type, std::int64_t first, std::int64_t count);

  std::string name() const override { return name_; }
  std::int64_t vocabulary() const override { return vocabulary_; }  // the largest token + 1
  std::int64_t count() const override { return count_; }
  void read(std::int64_t sample, std::span<std::int32_t> out) const override;
  void tokens(std::int64_t first, std::span<std::int32_t> out) const;

  // Throws a usage error if a token is outside a vocabulary of this size. The error names the first such token and its
  // position.
  void require_below(std::int64_t vocabulary) const;

 private:
  template <class Work>
  void each(std::int64_t first, std::int64_t last, Work work) const;  // calls work(position, token) until it returns false

  std::string name_;
  MappedFile file_;
  TokenType type_;
  std::int64_t first_, count_, vocabulary_ = 0;
};

// Opens a file and detects its format. The format is Megatron-LM's if there is an index file whose name is the path with the
// extension .idx. The extension .idx replaces the extension of the path, or is appended to the path.
StoredTokens open_tokens(const std::filesystem::path& path);

// Writes llm.c's format. The file appears under its name only after it is complete.
void write_tokens(const std::filesystem::path& path, std::span<const std::int32_t> tokens);

// Writes a file under a temporary name and then renames it, so that readers never see an incomplete file.
void write_whole(const std::filesystem::path& path, std::span<const std::byte> bytes);

}  // namespace chorale
