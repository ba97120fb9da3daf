// Tokens in files, mapped into memory. Two forms are read, one of them written:
//
//   llm.c       FILE.bin: 256 × i32 (magic, version, count), then the tokens: u16 with magic 20240520, version 1;
//               u32 with 20240801, version 7, for vocabularies over 65536
//   Megatron    FILE.idx: what FILE.bin, tokens and nothing else, holds (megatron.hpp)
#pragma once
#include <filesystem>

#include "src/base/descriptor.hpp"
#include "src/data/tokens.hpp"

namespace chorale {

// A file's bytes, read-only, while it lives.
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
  // `count` tokens from byte `first` on, which the caller has checked to be there.
  StoredTokens(std::string name, MappedFile file, TokenType type, std::int64_t first, std::int64_t count);

  std::string name() const override { return name_; }
  std::int64_t vocabulary() const override { return vocabulary_; }  // the largest token and one
  std::int64_t count() const override { return count_; }
  void read(std::int64_t sample, std::span<std::int32_t> out) const override;
  void tokens(std::int64_t first, std::span<std::int32_t> out) const;

  // A usage error that names the first token a model of this vocabulary has no place for, and where it stands.
  void require_below(std::int64_t vocabulary) const;

 private:
  template <class Work>
  void each(std::int64_t first, std::int64_t last, Work work) const;  // work(position, token) until it says no

  std::string name_;
  MappedFile file_;
  TokenType type_;
  std::int64_t first_, count_, vocabulary_ = 0;
};

// The form is found out: an index beside it, the name of one, or a name to which .bin and .idx belong is Megatron's.
StoredTokens open_tokens(const std::filesystem::path& path);

// In llm.c's form; appears under its name only when it is whole.
void write_tokens(const std::filesystem::path& path, std::span<const std::int32_t> tokens);

// Writes under another name and renames: nobody meets half a file.
void write_whole(const std::filesystem::path& path, std::span<const std::byte> bytes);

}  // namespace chorale
