#include "experiments/common/same_hosts.hpp"

#include <fstream>

#include "tests/catch.hpp"
#include "tests/temporary.hpp"

using namespace chorale;

namespace {

HostFacts facts(const std::string& host) {
  return {host, 1e9, {{"the program", "aa11"}, {"libmpi.so.40", "bb22"}}, {{"data.bin", "9 bytes, checksum 00000001"}}};
}

// Returns the text of the error if the hosts differ, otherwise "alike".
std::string refusal(const std::vector<HostFacts>& ranks) {
  const auto found = unlike(ranks);
  return found ? found->what + "\n" + found->numbers + "\n" + found->fix : "alike";
}

void write(const std::filesystem::path& path, const std::string& text) { std::ofstream(path) << text; }

}  // namespace

TEST_CASE("hosts that differ are refused by name") {
  CHECK(refusal({facts("n0"), facts("n0"), facts("n1")}) == "alike");
  HostFacts other = facts("n1");
  other.objects["the program"] = "cc33";
  CHECK_THAT(refusal({facts("n0"), facts("n0"), other}),
             says("different builds of the program") && says("rank 0 on n0: aa11; rank 2 on n1: cc33"));
  other = facts("n1");
  other.objects["libmpi.so.40"] = "dd44";
  CHECK_THAT(refusal({facts("n0"), other}), says("different builds of libmpi.so.40"));
  for (const char* name : {"libchorale.so", "chorale_cuda.so", "libucp.so.0", "libuct.so.0", "libopen-pal.so.40"}) {
    HostFacts one = facts("n0");
    one.objects[name] = "11";
    other.objects = one.objects;
    other.objects[name] = "22";
    CHECK_THAT(refusal({one, other}), says(std::string("different builds of ") + name));
  }
  other.objects = {{"the program", "aa11"}, {"libcuda.so", "ee55"}};  // libcuda.so is loaded on only one host
  CHECK(refusal({facts("n0"), other}) == "alike");
  other.files["data.bin"] = "missing";
  CHECK_THAT(refusal({facts("n0"), other}), says("data.bin: rank 0 on n0: 9 bytes") && says("rank 1 on n1: missing"));
}

TEST_CASE("libraries that carry no messages may differ, with a warning of one line") {
  HostFacts one = facts("n0"), other = facts("n1");
  CHECK(other_builds({one, one, other}) == "");
  for (const char* name : {"libc.so.6", "libcuda.so.1"}) {
    one.objects[name] = "11";
    other.objects[name] = "22";
  }
  CHECK(refusal({one, one, other}) == "alike");
  CHECK(other_builds({one, one, other}) ==
        "rank 0 on n0 and rank 2 on n1 have different builds of libc.so.6, libcuda.so.1: results may differ in their last "
        "bits");
  for (const char* name : {"libm.so.6", "libz.so.1", "libdnnl.so.2"}) {
    one.objects[name] = "11";
    other.objects[name] = "22";
  }
  CHECK_THAT(other_builds({one, other}), says("builds of libc.so.6, libcuda.so.1, libdnnl.so.2 and 2 more: "));
  CHECK(other_builds({}) == "");
}

TEST_CASE("clocks may differ by minutes, not by hours") {
  HostFacts other = facts("n1");
  other.wall_seconds += 299;
  CHECK(refusal({facts("n0"), other}) == "alike");
  other.wall_seconds += 3 * 3600;
  CHECK_THAT(refusal({facts("n0"), other}),
             says("the clocks of hosts differ") && says("rank 1 on n1 is 3 h 04 min ahead of"));
  CHECK_THAT(refusal({other, facts("n0")}), says("rank 1 on n0 is 3 h 04 min behind"));
}

TEST_CASE("the fingerprint of a file or a folder changes with sizes and contents") {
  const test::TemporaryFolder folder;
  const std::filesystem::path file = std::filesystem::path(folder) / "data";
  CHECK(fingerprint_of(file) == "missing");
  std::string text(1'000'000, 'x');
  write(file, text);
  const std::string before = fingerprint_of(file), whole = fingerprint_of(folder.path());
  CHECK(fingerprint_of(file) == before);
  for (const std::size_t at : {std::size_t{0}, text.size() - 1}) {
    std::string changed = text;
    changed[at] = 'y';
    write(file, changed);
    CHECK(fingerprint_of(file) != before);
    CHECK(fingerprint_of(folder.path()) != whole);
  }
  write(file, text + "x");
  CHECK(fingerprint_of(file) != before);
  write(file, "short");
  const std::string brief = fingerprint_of(file);
  write(file, "shoRt");
  CHECK(fingerprint_of(file) != brief);
}

TEST_CASE("the program and its libraries have build ids") {
  const auto objects = loaded_objects();
  CHECK(objects == loaded_objects());
  CHECK(objects.contains("the program"));
  CHECK(std::ranges::any_of(objects, [](const auto& object) { return object.first.starts_with("libmpi"); }));
  for (const auto& [name, id] : objects) CHECK(id.find_first_not_of("0123456789abcdef") == std::string::npos);
}
