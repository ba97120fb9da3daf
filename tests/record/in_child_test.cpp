// Tests end_in_child(), which runs a function in a child process, with functions that crash. Also tests records that make
// libhdf5 crash.
#include "src/record/in_child.hpp"

#include <csignal>

#include "src/base/error.hpp"
#include "src/record/reader.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/progress.hpp"
#include "tests/temporary.hpp"

namespace chorale::test {

TEST_CASE("work in a child process may crash, loop or need too much memory") {
  int here = 1;
  CHECK(end_in_child([&] { here = 2; }, 20) == "");
  CHECK(here == 1);
  CHECK(end_in_child([] { usage_error("refused", "", ""); }, 20) == "");
  CHECK(end_in_child([] { std::raise(SIGSEGV); }, 20) == "Segmentation fault");
  CHECK(end_in_child([] { throw std::bad_alloc(); }, 20) == "a lack of memory");
  const auto loop = [] {
    for (volatile bool endless = true; endless;) {}
  };
  CHECK(end_in_child(loop, 1) == "more than 1 s of computing");
}

// If links to other files were followed, the author of a record could make libhdf5 open any file.
TEST_CASE("links of a record that lead to other files are not followed") {
  const TemporaryFolder folder;
  const auto file = [&](const char* name) {
    h5::File made(H5Fcreate((folder / name).c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    h5::set_attribute(made.get(), "schema", schema_name);
    return made;
  };
  const auto put = [](const h5::File& made, const char* group, const char* text) {
    h5::write_text(h5::make_group(made.get(), group).get(), "text", text);
  };
  put(file("other.h5"), "g", "secret");
  {
    const h5::File made = file("run.h5");
    put(made, "own", "open");
    REQUIRE(H5Lcreate_external("other.h5", "/g", made.get(), "g", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    REQUIRE(H5Lcreate_external("other.h5", "/g/text", made.get(), "own/more", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    REQUIRE(H5Oexists_by_name(made.get(), "g/text", H5P_DEFAULT) > 0);  // the links are valid
  }
  const Reader reader(folder / "run.h5");
  CHECK(reader.groups() == std::vector<std::string>{"/own"});
  CHECK(reader.variables("/own").size() == 1);
}

// A record stores strings in an HDF5 heap. libhdf5 1.10 trusts the sizes in the heap's header and crashes on some wrong
// sizes. Newer versions can refuse wrong sizes. With every version, the process that runs the tests must survive, and must
// read either the correct groups or none.
TEST_CASE("a record whose heap has wrong sizes is read right or refused") {
  const TemporaryFolder folder;
  {
    const h5::Properties newest(H5Pcreate(H5P_FILE_ACCESS));
    REQUIRE(H5Pset_libver_bounds(newest.get(), H5F_LIBVER_LATEST, H5F_LIBVER_LATEST) >= 0);
    const h5::File made(H5Fcreate((folder / "run.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, newest.get()));
    h5::set_attribute(made.get(), "schema", schema_name);
    h5::write_text(h5::make_group(made.get(), "g").get(), "text", "open");
  }
  const std::string good = bytes_in(folder / "run.h5");
  const std::size_t heap = good.find("GCOL");
  REQUIRE(heap != std::string::npos);
  int refused = 0;
  for (std::size_t at = heap + 4; at < heap + 48; ++at) {
    if (at >= heap + 24 && at < heap + 28) continue;  // if these sizes are small, libhdf5 1.10 loops until it is killed
    for (const char wrong : {'\x00', '\x01', '\x7f', '\xff'}) {
      std::string bad = good;
      bad[at] = wrong;
      put_bytes(folder / "run.h5", bad);
      try {
        for (const std::string& group : Reader(folder / "run.h5").groups()) CHECK(group == "/g");
      } catch (const Error&) {
        ++refused;
      }
      alive();
    }
  }
  CHECK(refused > 0);  // at least one of the wrong sizes must be refused
}

}  // namespace chorale::test
