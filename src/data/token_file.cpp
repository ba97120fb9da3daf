#include "src/data/token_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>

#include "src/base/foreign_text.hpp"
#include "src/data/megatron.hpp"

namespace chorale {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t header_bytes = 256 * 4;
constexpr std::int32_t magic_u16 = 20240520, magic_u32 = 20240801;
constexpr std::int32_t version_u16 = 1, version_u32 = 7;

StoredTokens open_llm_c(const fs::path& path) {
  MappedFile file(path);
  const auto bytes = static_cast<std::int64_t>(file.bytes().size());
  std::array<std::int32_t, 3> header{};
  std::memcpy(header.data(), file.bytes().data(), std::min<std::size_t>(sizeof header, file.bytes().size()));
  const auto [magic, version, count] = header;
  const bool narrow = magic == magic_u16, wide = magic == magic_u32;
  if (const std::int32_t known = narrow ? version_u16 : version_u32;
      bytes >= header_bytes && (narrow || wide) && version != known)
    usage_error("the token file has another version",
                fmt::format("{}: its version is {}; this program reads version {}", path.string(), version, known),
                "make it again with: chorale data tokenize TEXT --out FILE.bin");
  if (bytes < header_bytes || !(narrow || wide))
    usage_error(fmt::format("{} is not a token file", path.string()),
                fmt::format("{} bytes, starting with {} and {} instead of {} and {} (or {} and {})", bytes, magic, version,
                            magic_u16, version_u16, magic_u32, version_u32),
                "make one with: chorale data tokenize TEXT --out FILE.bin");
  const TokenType type = narrow ? TokenType::u16 : TokenType::u32;
  if (count < 1 || count > (bytes - header_bytes) / size_of(type))
    usage_error(fmt::format("{} is empty or cut short", path.string()),
                fmt::format("its header declares {} tokens, but the {} bytes after it hold {}", count, bytes - header_bytes,
                            (bytes - header_bytes) / size_of(type)),
                "regenerate it, or copy it again");
  return {path.string(), std::move(file), type, header_bytes, count};
}

}  // namespace

MappedFile::MappedFile(const fs::path& path) {
  struct stat status {};
  const auto refuse = [&](const std::string& why) {
    usage_error("a file cannot be read", fmt::format("{}: {}", path.string(), why), "check its name");
  };
  if (const std::string why = why_no_file(path); !why.empty()) refuse(why);
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file || fstat(file.get(), &status) != 0) refuse(std::strerror(errno));
  if (status.st_size == 0) refuse("it is empty");
  const auto size = static_cast<std::size_t>(status.st_size);
  void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) refuse(std::strerror(errno));
  bytes_ = {static_cast<const std::byte*>(address), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

std::int64_t size_of(TokenType type) {
  switch (type) {
    case TokenType::u8:
    case TokenType::i8: return 1;
    case TokenType::u16:
    case TokenType::i16: return 2;
    case TokenType::i32:
    case TokenType::u32: return 4;
    case TokenType::i64: return 8;
  }
  __builtin_unreachable();
}

// Checks every token when the file is opened, so that no training step can encounter an invalid token.
StoredTokens::StoredTokens(std::string name, MappedFile file, TokenType type, std::int64_t first, std::int64_t count)
    : name_(std::move(name)), file_(std::move(file)), type_(type), first_(first), count_(count) {
  std::int64_t largest = -1, wrong = -1;
  each(0, count, [&](std::int64_t position, std::int64_t token) {
    if (token < 0 || token >= std::numeric_limits<std::int32_t>::max()) wrong = position;
    largest = std::max(largest, token);
    return wrong < 0;
  });
  if (wrong >= 0)
    usage_error(fmt::format("{} has an invalid token", name_),
                fmt::format("at position {}: negative, or 2^31 − 1 or more", wrong), "regenerate the file");
  vocabulary_ = largest + 1;
}

template <class Work>
void StoredTokens::each(std::int64_t first, std::int64_t last, Work work) const {
  const auto with = [&]<class T>(T) {
    const std::byte* from = file_.bytes().data() + first_;
    for (std::int64_t i = first; i < last; ++i) {
      T token;  // copied with memcpy, because tokens in a file can be unaligned
      std::memcpy(&token, from + i * static_cast<std::int64_t>(sizeof token), sizeof token);
      if (!work(i, static_cast<std::int64_t>(token))) return;
    }
  };
  switch (type_) {
    case TokenType::u8: return with(std::uint8_t{});
    case TokenType::i8: return with(std::int8_t{});
    case TokenType::u16: return with(std::uint16_t{});
    case TokenType::i16: return with(std::int16_t{});
    case TokenType::i32: return with(std::int32_t{});
    case TokenType::u32: return with(std::uint32_t{});
    case TokenType::i64: return with(std::int64_t{});
  }
}

void StoredTokens::tokens(std::int64_t first, std::span<std::int32_t> out) const {
  const auto length = static_cast<std::int64_t>(out.size());
  require(first >= 0 && first <= count_ && length <= count_ - first, "tokens [{}, {} + {}) are outside the {} tokens of {}",
          first, first, length, count_, name_);
  each(first, first + length, [&](std::int64_t position, std::int64_t token) {
    out[static_cast<std::size_t>(position - first)] = static_cast<std::int32_t>(token);
    return true;
  });
}

void StoredTokens::read(std::int64_t sample, std::span<std::int32_t> out) const {
  const auto sequence = static_cast<std::int64_t>(out.size()) - 1;
  require(sequence > 0 && sample >= 0 && sample < samples(sequence), "sample {} of {} tokens is outside {}", sample,
          sequence, name_);
  tokens(sample * sequence, out);
}

void StoredTokens::require_below(std::int64_t vocabulary) const {
  if (vocabulary_ <= vocabulary) return;
  each(0, count_, [&](std::int64_t position, std::int64_t token) {
    if (token < vocabulary) return true;
    usage_error(fmt::format("{} has tokens outside the model's vocabulary", name_),
                fmt::format("token {} at position {}; the model's vocabulary has {}", token, position, vocabulary),
                fmt::format("set the vocabulary to {} or more, or tokenize with a smaller one", vocabulary_));
  });
}

StoredTokens open_tokens(const fs::path& path) {
  // `path` can also be a Megatron-LM path prefix, without an extension.
  for (fs::path index : {fs::path(path).replace_extension(".idx"), fs::path(path.string() + ".idx")})
    if (fs::exists(index)) return open_megatron(index);
  return open_llm_c(path);
}

void write_tokens(const fs::path& path, std::span<const std::int32_t> tokens) {
  if (tokens.empty() || tokens.size() > std::numeric_limits<std::int32_t>::max())
    usage_error("a token file must hold 1 to 2^31 − 1 tokens", fmt::format("{}: {}", path.string(), tokens.size()),
                tokens.empty() ? "give a text that is not empty" : "split the text into several files");
  const bool narrow = *std::max_element(tokens.begin(), tokens.end()) < 1 << 16;
  const std::size_t width = narrow ? 2 : 4;
  std::vector<std::byte> bytes(header_bytes + tokens.size() * width);
  const std::array<std::int32_t, 3> header{narrow ? magic_u16 : magic_u32, narrow ? version_u16 : version_u32,
                                           static_cast<std::int32_t>(tokens.size())};
  std::memcpy(bytes.data(), header.data(), sizeof header);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    require(tokens[i] >= 0, "token {} at position {} is negative", tokens[i], i);
    std::memcpy(bytes.data() + header_bytes + i * width, &tokens[i], width);  // little-endian, so these are the low bytes
  }
  write_whole(path, bytes);
}

void write_whole(const fs::path& path, std::span<const std::byte> bytes) {
  const fs::path unfinished = path.string() + fmt::format(".{}", getpid());
  const auto refuse = [&](const std::string& why) {
    std::error_code ignored;
    fs::remove(unfinished, ignored);
    usage_error("a file cannot be written", fmt::format("{}: {}", path.string(), why),
                "choose a writable place with enough room");
  };
  std::ofstream stream(unfinished, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  stream.close();
  if (!stream) refuse(std::strerror(errno));
  std::error_code error;
  fs::rename(unfinished, path, error);
  if (error) refuse(error.message());
}

}  // namespace chorale
