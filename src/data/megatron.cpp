#include "src/data/megatron.hpp"

#include <cstring>
#include <limits>
#include <optional>

namespace chorale {
namespace {

constexpr char magic[9] = {'M', 'M', 'I', 'D', 'I', 'D', 'X', '\0', '\0'};

std::optional<TokenType> type_of(std::uint8_t code) {
  switch (code) {
    case 1: return TokenType::u8;
    case 2: return TokenType::i8;
    case 3: return TokenType::i16;
    case 4: return TokenType::i32;
    case 5: return TokenType::i64;
    case 8: return TokenType::u16;
    default: return {};  // codes 6 and 7 are floating-point types
  }
}

// Reads values in sequence, and never reads past the end.
class IndexReader {
 public:
  IndexReader(std::string name, std::span<const std::byte> bytes) : name_(std::move(name)), bytes_(bytes) {}

  [[noreturn]] void refuse(const std::string& numbers) const {
    usage_error(fmt::format("{} is not a Megatron index, or is damaged", name_), numbers,
                "regenerate it with Megatron's preprocess_data.py, or copy it again");
  }
  template <class T>
  T next(const char* what) {
    if (bytes_.size() < sizeof(T)) refuse(fmt::format("it ends before its {}", what));
    T value;
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_ = bytes_.subspan(sizeof value);
    return value;
  }
  // Returns a reader for the next `count` values. The count is read from the file, so it is checked before it is multiplied.
  template <class T>
  IndexReader list(std::uint64_t count, const char* what) {
    if (count > bytes_.size() / sizeof(T))
      refuse(fmt::format("it declares {} {}, but {} bytes follow", count, what, bytes_.size()));
    IndexReader reader(name_, bytes_.first(count * sizeof(T)));
    bytes_ = bytes_.subspan(count * sizeof(T));
    return reader;
  }

 private:
  std::string name_;
  std::span<const std::byte> bytes_;
};

struct Index {
  TokenType type;
  std::vector<std::int64_t> documents;  // the result of megatron_documents()
};

// `there` is the size of FILE.bin in bytes, if the index must be checked against this size.
Index read_index(const std::filesystem::path& path, std::optional<std::int64_t> there) {
  const MappedFile file(path);
  IndexReader reader(path.string(), file.bytes());
  for (const char expected : magic)
    if (reader.next<char>("magic") != expected) reader.refuse("it does not start with MMIDIDX");
  if (const auto version = reader.next<std::uint64_t>("version"); version != 1)
    reader.refuse(fmt::format("version {} is unknown; only 1 is supported", version));
  const auto code = reader.next<std::uint8_t>("type");
  const std::optional<TokenType> type = type_of(code);
  if (!type) reader.refuse(fmt::format("its token type {} is not an integer type", code));
  const auto sequences = reader.next<std::uint64_t>("number of sequences");
  const auto bounds = reader.next<std::uint64_t>("number of documents");
  IndexReader lengths = reader.list<std::int32_t>(sequences, "lengths");
  IndexReader places = reader.list<std::int64_t>(sequences, "places");
  IndexReader documents = reader.list<std::int64_t>(bounds, "document bounds");

  const std::int64_t all = there ? *there / size_of(*type) : std::numeric_limits<std::int64_t>::max() / 8;
  std::vector<std::int64_t> starts{0};  // start of each sequence, in tokens
  for (std::uint64_t i = 0; i < sequences; ++i) {
    const auto length = lengths.next<std::int32_t>("lengths");
    const auto place = places.next<std::int64_t>("places");
    const std::int64_t count = starts.back();
    if (length < 0 || length > all - count)
      reader.refuse(fmt::format("sequence {} has {} tokens, but only {} of {} tokens are left in the .bin", i, length,
                                all - count, all));
    if (place != count * size_of(*type))
      reader.refuse(
          fmt::format("sequence {} starts at byte {}, but the one before it ends at {}", i, place, count * size_of(*type)));
    starts.push_back(count + length);
  }
  Index index{*type, {}};
  std::int64_t bound = 0;
  for (std::uint64_t i = 0; i < bounds; ++i) {
    const auto next = documents.next<std::int64_t>("document bounds");
    if (next < bound || static_cast<std::uint64_t>(next) > sequences)
      reader.refuse(fmt::format("document {} starts at sequence {} of {}", i, next, sequences));
    index.documents.push_back(starts[static_cast<std::size_t>(next)]);
    bound = next;
  }
  if (starts.back() == 0) reader.refuse("it has no tokens");
  if (index.documents.empty()) index.documents.push_back(0);
  if (index.documents.back() < starts.back()) index.documents.push_back(starts.back());
  return index;
}

}  // namespace

StoredTokens open_megatron(const std::filesystem::path& index) {
  MappedFile data(std::filesystem::path(index).replace_extension(".bin"));
  const auto [type, documents] = read_index(index, static_cast<std::int64_t>(data.bytes().size()));
  return {index.string(), std::move(data), type, 0, documents.back()};
}

std::vector<std::int64_t> megatron_documents(const std::filesystem::path& index) { return read_index(index, {}).documents; }

}  // namespace chorale
