#include "src/data/token_file.hpp"

#include <sys/stat.h>

#include <cstring>
#include <fstream>

#include "src/data/megatron.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/temporary.hpp"

using namespace chorale;

namespace {

std::vector<std::int32_t> all_of(const StoredTokens& source) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(source.count()));
  source.tokens(0, tokens);
  return tokens;
}

void write(const std::filesystem::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

template <class T>
std::string raw(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T)};
}

// Returns a Megatron index of five tokens in three sequences and two documents.
std::string index_of(std::uint8_t type, std::int64_t width, std::uint64_t version = 1) {
  return std::string("MMIDIDX\0\0", 9) + raw({version}) + raw({type}) + raw<std::uint64_t>({3, 3}) +
         raw<std::int32_t>({2, 0, 3}) + raw<std::int64_t>({0, 2 * width, 2 * width}) + raw<std::int64_t>({0, 2, 3});
}

}  // namespace

TEST_CASE("tokens are read back as they were written, in two bytes or four each") {
  const test::TemporaryFolder folder;
  for (const std::int32_t largest : {65535, 65536}) {
    const std::vector<std::int32_t> tokens{3, 0, largest, 7, 7, 1, 2, 9};
    write_tokens(folder / "some.bin", tokens);
    CHECK(std::filesystem::file_size(folder / "some.bin") == 1024 + tokens.size() * (largest < 65536 ? 2 : 4));
    const StoredTokens source = open_tokens(folder / "some.bin");
    CHECK(all_of(source) == tokens);
    CHECK(source.vocabulary() == largest + 1);
    CHECK(source.samples(3) == 2);
    std::vector<std::int32_t> sample(4);
    source.read(1, sample);
    CHECK(sample == std::vector<std::int32_t>{7, 7, 1, 2});
    CHECK_THROWS_WITH(source.read(2, sample), says("sample 2"));
    CHECK_NOTHROW(source.require_below(largest + 1));
    CHECK_THROWS_WITH(source.require_below(9), says(fmt::format("token {} at position 2", largest)));
  }
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);  // no temporary file is left
}

TEST_CASE("the header is llm.c's") {
  const test::TemporaryFolder folder;
  write_tokens(folder / "some.bin", std::vector<std::int32_t>{258, 5});
  const std::string bytes = test::bytes_in(folder / "some.bin");
  CHECK(bytes.substr(0, 12) == raw<std::int32_t>({20240520, 1, 2}));
  CHECK(bytes.substr(1024) == raw<std::uint16_t>({258, 5}));
}

TEST_CASE("a file without tokens is refused, and the error says why") {
  const test::TemporaryFolder folder;
  const auto file = folder / "some.bin";
  CHECK_THROWS_WITH(open_tokens(file), says("No such file"));
  CHECK_THROWS_WITH(open_tokens(folder.path()), says("not a regular file"));
  REQUIRE(mkfifo((folder / "fifo.bin").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(open_tokens(folder / "fifo.bin"), says("not a regular file"));  // open() would block
  write(file, "");
  CHECK_THROWS_WITH(open_tokens(file), says("it is empty"));
  write(file, "Call me Ishmael.");
  CHECK_THROWS_WITH(open_tokens(file), says("is not a token file") && says("chorale data tokenize"));
  write(file, raw<std::int32_t>({20240520, 1, 5}));  // a truncated header
  CHECK_THROWS_WITH(open_tokens(file), says("is not a token file"));

  write_tokens(file, std::vector<std::int32_t>{1, 2, 3, 4, 5});
  const std::string whole = test::bytes_in(file);
  write(file, whole.substr(0, whole.size() - 1));
  CHECK_THROWS_WITH(open_tokens(file), says("declares 5 tokens, but the 9 bytes after it hold 4"));
  for (const std::int32_t count : {0, -1, std::numeric_limits<std::int32_t>::max()}) {
    std::string bytes = whole;
    std::memcpy(bytes.data() + 8, &count, 4);
    write(file, bytes);
    CHECK_THROWS_WITH(open_tokens(file), says("empty or cut short"));
  }
  std::string large = whole.substr(0, 1024) + raw<std::uint32_t>({1, 0xffffffffu});
  std::memcpy(large.data(), raw<std::int32_t>({20240801, 7, 2}).data(), 12);
  write(file, large);
  CHECK_THROWS_WITH(open_tokens(file), says("position 1"));
  CHECK_THROWS_WITH(write_tokens(file, {}), says("1 to 2^31"));
  CHECK_THROWS_WITH(write_tokens(folder / "no" / "some.bin", std::vector<std::int32_t>{1}), says("cannot be written"));
}

TEST_CASE("Megatron's data sets are read, whatever the type of their tokens") {
  const test::TemporaryFolder folder;
  const auto check = [&]<class T>(std::uint8_t code, T) {
    write(folder / "set.idx", index_of(code, sizeof(T)));
    write(folder / "set.bin", raw<T>({5, 6, 7, 8, 100}));
    for (const char* name : {"set.bin", "set.idx"})
      CHECK(all_of(open_tokens(folder / name)) == std::vector<std::int32_t>{5, 6, 7, 8, 100});
    CHECK(megatron_documents(folder / "set.idx") == std::vector<std::int64_t>{0, 2, 5});
  };
  check(1, std::uint8_t{});
  check(2, std::int8_t{});
  check(3, std::int16_t{});
  check(4, std::int32_t{});
  check(5, std::int64_t{});
  check(8, std::uint16_t{});
}

TEST_CASE("the error for a damaged Megatron index names the damaged place") {
  const test::TemporaryFolder folder;
  const auto index = folder / "set.idx";
  write(folder / "set.bin", raw<std::uint16_t>({5, 6, 7, 8, 9}));
  const auto refused = [&](const std::string& bytes, const std::string& why) {
    write(index, bytes);
    CHECK_THROWS_WITH(open_tokens(index), says(why));
  };
  const std::string good = index_of(8, 2);
  for (std::size_t length = 1; length < good.size(); ++length) refused(good.substr(0, length), "is not a Megatron index");
  const auto with = [&](std::size_t at, auto value) {
    std::string bytes = good;
    std::memcpy(bytes.data() + at, &value, sizeof value);
    return bytes;
  };
  refused(with(0, 'X'), "does not start with MMIDIDX");
  refused(index_of(8, 2, 2), "version 2");
  refused(index_of(6, 8), "type 6 is not an integer type");
  refused(with(18, ~std::uint64_t{0}), "it declares 18446744073709551615 lengths");
  refused(with(18, std::uint64_t{1} << 62), "it declares");  // multiplied by 4, this number overflows to 0
  refused(with(34, std::int32_t{-1}), "sequence 0 has -1 tokens");
  refused(with(42, std::int32_t{4}), "sequence 2 has 4 tokens, but only 3 of 5");
  refused(with(46, std::int64_t{2}), "sequence 0 starts at byte 2");
  refused(with(78, std::int64_t{9}), "document 1 starts at sequence 9 of 3");
  write(index, good);
  CHECK_NOTHROW(open_tokens(index));
  write(folder / "set.bin", raw<std::int16_t>({5, -6, 7, 8, 9}));
  refused(index_of(3, 2), "position 1: negative");
  std::filesystem::remove(folder / "set.bin");
  CHECK_THROWS_WITH(open_tokens(index), says("set.bin: No such file"));
}
