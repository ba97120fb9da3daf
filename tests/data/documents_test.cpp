#include "src/data/documents.hpp"

#include "src/data/token_file.hpp"
#include "tests/catch.hpp"
#include "tests/refused.hpp"
#include "tests/temporary.hpp"

namespace chorale {
namespace {

using Numbers = std::vector<std::int32_t>;

struct Marked {
  Numbers targets, positions;
};

// Marks the documents of a sample that begins with token number `first`. The initial value of target i is 10 + i.
Marked marked(const Documents& documents, std::int64_t first, const Numbers& inputs) {
  Marked sample{Numbers(inputs.size()), Numbers(inputs.size())};
  for (std::size_t i = 0; i < inputs.size(); ++i) sample.targets[i] = 10 + static_cast<std::int32_t>(i);
  documents.mark(first, inputs, sample.targets, sample.positions);
  return sample;
}

TEST_CASE("an end-of-text token belongs to its document, and nothing predicts the token after it") {
  const Marked sample = marked(Documents::ending_with(0), 0, {5, 6, 0, 7, 0, 0, 8, 9});
  CHECK(sample.positions == Numbers{0, 1, 2, 0, 1, 0, 0, 1});
  CHECK(sample.targets == Numbers{10, 11, -1, 13, -1, -1, 16, 17});
  CHECK(marked({}, 0, {5, 0, 7}).positions == Numbers{0, 1, 2});
  CHECK(marked({}, 0, {5, 0, 7}).targets == Numbers{10, 11, 12});
}

TEST_CASE("documents of an index are found wherever a sample begins, and empty ones change nothing") {
  const Documents documents = Documents::between({0, 3, 3, 7, 12});
  CHECK(marked(documents, 0, {1, 1, 1, 1}).positions == Numbers{0, 1, 2, 0});
  CHECK(marked(documents, 0, {1, 1, 1, 1}).targets == Numbers{10, 11, -1, 13});
  CHECK(marked(documents, 4, {1, 1, 1, 1}).positions == Numbers{0, 1, 2, 0});
  CHECK(marked(documents, 4, {1, 1, 1, 1}).targets == Numbers{10, 11, -1, 13});
  CHECK(marked(documents, 8, {1, 1, 1, 1}).positions == Numbers{0, 1, 2, 3});
  CHECK(marked(documents, 8, {1, 1, 1, 1}).targets == Numbers{10, 11, 12, -1});
}

TEST_CASE("documents that are too long, or those of other data, are refused with the length that fits") {
  const test::TemporaryFolder folder;
  write_tokens(folder / "some.bin", Numbers{1, 2, 0, 3, 4, 5, 6, 0, 7});
  const StoredTokens data = open_tokens(folder / "some.bin");
  const auto refused = [&](const Documents& documents, std::int64_t longest) {
    return test::refused([&] {
      documents.require_of(data);
      documents.require_shorter(data, longest);
    });
  };
  CHECK(refused(Documents::ending_with(0), 5) == "accepted");
  CHECK_THAT(refused(Documents::ending_with(0), 4), says("the document at token 3 has 5 tokens; seq-length is 4") &&
                                                        says("--seq-length 5 or more, or --split-documents"));
  CHECK_THAT(refused(Documents::ending_with(9), 8), says("the document at token 0 has 9 tokens"));
  CHECK(refused(Documents::between({0, 3, 9}), 6) == "accepted");
  CHECK_THAT(refused(Documents::between({0, 3, 9}), 5), says("the document at token 3 has 6 tokens"));
  CHECK_THAT(refused(Documents::between({0, 3}), 5), says("the index describes 3 tokens") && says("has 9"));
  CHECK_THAT(test::refused([] { Documents::ending_with(96).require_token_below(96); }),
             says("--document-mask is 96, vocab-size is 96"));
}

TEST_CASE("the name of documents is a token, an index file or none") {
  CHECK_FALSE(Documents::named("none").any());
  CHECK(marked(Documents::named("50256"), 0, {50256, 3}).positions == Numbers{0, 0});
  int borders = 0;
  for (const std::int32_t target : marked(Documents::named("random:10"), 0, Numbers(10000, 1)).targets)
    borders += target < 0;
  CHECK((borders > 900 && borders < 1100));
  for (const char* name : {"", "-1", "7x", "eos", "99999999999", "random:", "random:0"})
    CHECK_THAT(test::refused([&] { Documents::named(name); }), says("which is no token, no .idx file and not random:MEAN"));
  CHECK_THAT(test::refused([&] { Documents::named("/nowhere/set.idx"); }), says("/nowhere/set.idx: No such file"));
}

}  // namespace
}  // namespace chorale
