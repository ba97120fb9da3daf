#include "src/record/safetensors.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <numeric>
#include <random>

#include "src/base/crc32c.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/temporary.hpp"

namespace chorale::test {
namespace {

using safetensors::Entry;

void put(const std::filesystem::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

std::string with_header(const std::string& json, std::size_t data_bytes) {
  const std::uint64_t length = json.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + json + std::string(data_bytes, 'x');
}

std::vector<std::byte> some_bytes(std::int64_t count) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
  return bytes;
}

const std::vector<Entry> every_type = {{"weights", DType::f32, {3, 5}},    {"halves", DType::f16, {7}},
                                       {"brains", DType::bf16, {2, 1, 2}}, {"doubles", DType::f64, {}},
                                       {"long", DType::i64, {4}},          {"short", DType::i32, {0, 9}},
                                       {"a \"name\"/é", DType::u8, {3}}};

std::filesystem::path sample(const TemporaryFolder& folder) {
  const auto path = folder / "sample.safetensors";
  safetensors::Writer writer(path, every_type, {{"format", "pt"}});
  for (const Entry& entry : every_type) writer.write(some_bytes(elements_of(entry.shape) * size_of(entry.dtype)));
  writer.finish();
  return path;
}

}  // namespace

TEST_CASE("the checksum is CRC-32C, in one piece or in many, with the instruction and without") {
  const std::string digits = "123456789";
  CHECK(crc32c(std::as_bytes(std::span(digits))) == 0xe3069283);
  CHECK(crc32c({}) == 0);
  const auto bytes = some_bytes(10007);
  const std::span<const std::byte> all(bytes);
  for (const std::size_t cut : {0, 1, 7, 8, 9, 500, 999, 1535, 1536, 1537, 4608, 9999, 10007}) {
    CHECK(crc32c(all.subspan(cut), crc32c(all.first(cut))) == crc32c_by_tables(all));
    CHECK(crc32c_by_tables(all.subspan(cut)) == crc32c(all.subspan(cut)));
    std::vector<std::byte> copy(all.size() + 1);
    CHECK(copy_with_crc32c(copy.data(), all.subspan(cut), 7) == crc32c_by_tables(all.subspan(cut), 7));
    CHECK(std::ranges::equal(all.subspan(cut), std::span(copy).first(all.size() - cut)));
    CHECK(copy[all.size() - cut] == std::byte());  // nothing beyond
  }
}

TEST_CASE("a written safetensors file is read back") {
  const TemporaryFolder folder;
  const safetensors::File file(sample(folder));
  CHECK(file.metadata() == safetensors::Metadata{{"format", "pt"}});
  CHECK(file.entries().size() == every_type.size());
  CHECK(file.header().size() % 8 == 0);
  CHECK(file.find("none") == nullptr);
  for (const Entry& wanted : every_type) {
    const Entry* entry = file.find(wanted.name);
    REQUIRE(entry);
    CHECK(entry->dtype == wanted.dtype);
    CHECK(entry->shape == wanted.shape);
    const auto data = file.data(*entry);
    const auto expected = some_bytes(elements_of(wanted.shape) * size_of(wanted.dtype));
    CHECK(std::equal(data.begin(), data.end(), expected.begin(), expected.end()));
  }
}

TEST_CASE("a writer writes what its header declares or throws") {
  const TemporaryFolder folder;
  safetensors::Writer writer(folder / "a", {{"x", DType::f32, {2}}});
  CHECK_THROWS_WITH(writer.finish(), says("8 bytes that the header declares were not written"));
  CHECK_THROWS_WITH(writer.write(some_bytes(9)), says("1 bytes more"));
  CHECK_THROWS_WITH(safetensors::Writer(folder / "b", {{"x"}, {"x"}}), says("two tensors are named \"x\""));
  CHECK_THROWS_WITH(safetensors::Writer(folder / "a", {}), says("File exists"));
}

TEST_CASE("a file with a wrong header is refused with the reason") {
  const TemporaryFolder folder;
  const auto path = folder / "bad";
  const auto refusal = [&](const std::string& text) -> std::string {
    put(path, text);
    try {
      safetensors::File file(path);
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find(path.string()) != std::string::npos);
      return error.what();
    }
    return "nothing";
  };
  const auto one = [](const char* dtype, const char* shape, const char* offsets) {
    return fmt::format(R"({{"x":{{"dtype":"{}","shape":{},"data_offsets":{}}}}})", dtype, shape, offsets);
  };
  CHECK(refusal(with_header(one("F32", "[2]", "[0,8]"), 8)) == "nothing");
  CHECK_THAT(refusal("short"), says("too few for a header"));
  CHECK_THAT(refusal(std::string(8, '\xff')), says("does not fit in its 8 bytes"));
  CHECK_THAT(refusal(with_header("{", 0)), says("not a list of tensors"));
  CHECK_THAT(refusal(with_header("[]", 0)), says("not a list of tensors"));
  CHECK_THAT(refusal(with_header(std::string(200'000, '['), 0)), says("not a list of tensors"));
  CHECK_THAT(refusal(with_header(one("F8", "[2]", "[0,8]"), 8)), says("type F8"));
  CHECK_THAT(refusal(with_header(one("F32", "[-2]", "[0,8]"), 8)), says("not a non-negative integer"));
  CHECK_THAT(refusal(with_header(one("F32", "[2.0]", "[0,8]"), 8)), says("not a non-negative integer"));
  CHECK_THAT(refusal(with_header(one("F32", "[18446744073709551615]", "[0,8]"), 8)), says("not a non-negative integer"));
  CHECK_THAT(refusal(with_header(one("F32", "[2]", "[0,8,9]"), 8)), says("must be two numbers"));
  CHECK_THAT(refusal(with_header(one("F32", "[2]", "[8,0]"), 8)), says("but -8 bytes"));
  CHECK_THAT(refusal(with_header(one("F32", "[3]", "[0,8]"), 8)), says("but 8 bytes"));
  CHECK_THAT(refusal(with_header(one("F32", "[4611686018427387904,4]", "[0,0]"), 0)),
             says("but 0 bytes"));  // the size overflows to 0
  CHECK_THAT(refusal(with_header(one("F32", "[2]", "[4,12]"), 12)), says("starts at byte 4"));
  CHECK_THAT(refusal(with_header(one("F32", "[2]", "[0,8]"), 7)), says("have 8 bytes, but the file holds 7"));
  CHECK_THAT(refusal(with_header(one("F32", "[2]", "[0,8]"), 9)), says("have 8 bytes, but the file holds 9"));
  const std::string overlap =
      R"({"x":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"y":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})";
  CHECK_THAT(refusal(with_header(overlap, 8)), says("\"y\" starts at byte 4 of the data, but the one before it ends at 8"));
  CHECK_THROWS_WITH(safetensors::File(folder / "none"), says("No such file"));
  CHECK_THROWS_WITH(safetensors::File(folder.path()), says("not a regular file"));
  REQUIRE(mkfifo((folder / "fifo").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(safetensors::File(folder / "fifo"), says("not a regular file"));  // open() would block
}

TEST_CASE("an error about a damaged header is short, and does not quote the JSON library's numbers") {
  const TemporaryFolder folder;
  const std::string word(50'000, 'x');
  for (const std::string& header : {"{\"" + word, "{\"" + word + "\":1}", R"({"x":{"dtype":")" + word + "\"}}"}) {
    put(folder / "bad", with_header(header, 0));
    CHECK_THROWS_WITH(safetensors::File(folder / "bad"), !says("json.exception") && says("not a list of tensors: "));
    try {
      safetensors::File(folder / "bad");
    } catch (const Error& error) {
      CHECK(std::string(error.what()).size() < 600);
    }
  }
}

TEST_CASE("mutated tensor files are read or refused, and never crash") {
  const TemporaryFolder folder;
  const std::string good = test::bytes_in(sample(folder));
  const auto path = folder / "mutated";
  std::mt19937 chance(5);
  const auto any = [&](std::size_t below) { return std::uniform_int_distribution<std::size_t>(0, below - 1)(chance); };
  int refused = 0, read = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string bad = good;
    const std::size_t header = 700;  // most mutations change the header
    for (std::size_t times = 1 + any(3); times > 0; --times) {
      const std::size_t at = any(any(4) ? std::min(header, bad.size()) : bad.size());
      switch (any(5)) {
        case 0: bad[at] ^= static_cast<char>(1 << any(8)); break;
        case 1: bad[at] = static_cast<char>(any(256)); break;
        case 2: bad.resize(1 + at); break;
        case 3: bad.insert(at, 1 + any(9), "0123456789[]{},:\"-e"[any(19)]); break;
        default: bad.erase(at, 1 + any(9));
      }
      if (bad.empty()) bad = "x";
    }
    put(path, bad);
    try {
      const safetensors::File file(path);
      ++read;
      unsigned sum = 0;  // reads every byte
      for (const auto& [name, entry] : file.entries())
        for (const std::byte byte : file.data(entry)) sum += static_cast<unsigned>(byte);
      CHECK(sum < 1'000'000);
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > 3000);
  CHECK(read > 20);
}

}  // namespace chorale::test
