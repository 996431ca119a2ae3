// Importers of damaged files, each in a process of its own; see fuzz_test.cpp. Images and sound are
// in tests/run/fuzz_import.py.

#include "data/inspect.hpp"
#include "data/look_through.hpp"
#include "data/verify.hpp"
#include "h5/element_type.hpp"
#include "h5/file.hpp"
#include "import/hdf5_source.hpp"
#include "import/idx_source.hpp"
#include "import/image_source.hpp"
#include "import/series_source.hpp"
#include "import/speech_source.hpp"

#include <zlib.h>

#include <fstream>

#include "catch.hpp"
#include "fuzzing.hpp"
#include "importing.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::data;
using namespace lockstep::import;
using test::Outcome;

namespace {

constexpr char const* table = "Date,Close,Volume,Name,kind\n"
                              "2006-01-03,10.5,100,IBM,\"a\"\n"
                              "2006-01-03,20,-2e1,AA,b\n"
                              "2006-01-04 00:01,,110,IBM,\"a \"\"b\"\"\"\n"
                              "2006-01-04,21,210,AA,b\n";
constexpr char const* listing = "file,label,set,text\na.png,one,train,\"hello, you\"\n"
                                "b/c.png,two,test,ÄÖ\n\"b.png\",one,train,x\n";
constexpr char const* festvox = "( arctic_a0001 \"Author of the danger trail.\" )\n"
                                "( arctic_a0002 \"Not at this \\\"particular\\\" case.\" )\n";

void write(std::filesystem::path const& path, std::string const& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

std::string read(std::filesystem::path const& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// Four images of 3 x 2, of values that follow each other.
std::string idx_images() {
    std::string text{'\0', '\0', '\x08', '\x03', '\0', '\0', '\0', '\x04',
                     '\0', '\0', '\0',   '\x03', '\0', '\0', '\0', '\x02'};
    for (int i = 0; i < 24; ++i) {
        text.push_back(static_cast<char>(10 * i));
    }
    return text;
}

std::string gzipped(std::string const& bytes, std::filesystem::path const& path) {
    gzFile const file = ::gzopen(path.c_str(), "wb");
    ::gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    ::gzclose(file);
    return read(path);
}

/// Our own writers' file, compressed and checked.
std::string hdf5_bytes(std::filesystem::path const& path) {
    std::vector<float> const values(60, 1.5F);
    std::vector<std::int64_t> const labels{0, 1, 2, 1, 0, 1};
    auto file = h5::File::create(path, {.alignment = 1});
    file.create_dataset("inputs", h5::Type::f32, {6, 2, 5},
                        {.chunk_rows = 4, .deflate = 4, .checksums = true});
    file.write("inputs", h5::Type::f32, values);
    file.create_dataset("targets", h5::Type::i64, {6});
    file.write("targets", h5::Type::i64, labels);
    file.set_attribute("/", "classes", std::vector<std::string>{"a", "b", "c"});
    file.close();
    return read(path);
}

/// What an importer takes in comes out whole, and can be read.
Outcome whole(std::filesystem::path const& out, ImportSource const& source) {
    auto const report = test::import_to(out, source, {.skip_bad = true});
    for (auto const& file : report.files) {
        if (!verify(file.path).empty() || describe(file.path).samples != file.samples) {
            return Outcome::wrong;
        }
        look_through({.files = file.path.string()});
    }
    return Outcome::right;
}

/// One good file, and the importer that reads it from a path.
struct Subject {
    std::string name;
    std::string good;
    std::function<std::unique_ptr<ImportSource>(std::filesystem::path const&)> open;
    std::string expected{}; ///< bytes of the inputs, where the file itself has a checksum
};

std::vector<Subject> subjects(test::ScratchDir const& scratch) {
    write(scratch / "labels", std::string("\0\0\x08\x01\0\0\0\x04\0\1\2\1", 12));
    std::filesystem::create_directories(scratch / "tree/b");
    for (auto const* const name : {"a.png", "b.png", "b/c.png", "arctic_a0001.wav"}) {
        write(scratch / "tree" / name, "no picture");
    }
    auto const idx = [&scratch](std::filesystem::path const& path) {
        return idx_source({path.string() + "," + (scratch / "labels").string(), {}});
    };
    return {
        {"idx", idx_images(), idx},
        {"gzipped idx", gzipped(idx_images(), scratch / "good.gz"), idx, idx_images().substr(16)},
        {"table", table,
         [](auto const& path) {
             return series_source({.source = path, .columns = {"Volume"}, .target = "kind"});
         }},
        {"series", table,
         [](auto const& path) {
             return series_source({.source = path,
                                   .columns = {"Close", "Volume"},
                                   .time = "Date",
                                   .group = "Name",
                                   .doubles = true,
                                   .fill_forward = true});
         }},
        {"hdf5", hdf5_bytes(scratch / "good.h5"),
         [](auto const& path) { return hdf5_source({.source = path}); }},
        {"list of images", listing,
         [&scratch](auto const& path) {
             return image_source(
                 {.source = scratch / "tree", .labels = {.path = path}, .width = 4, .height = 4});
         }},
        {"transcripts", listing,
         [&scratch](auto const& path) {
             return speech_source({.source = scratch / "tree", .transcripts = path});
         }},
        {"festvox", festvox, [&scratch](auto const& path) {
             return speech_source({.source = scratch / "tree", .transcripts = path});
         }}};
}

std::string inputs_of(std::filesystem::path const& path) {
    auto const file = h5::File::open(path);
    std::string bytes(h5::elements(file.info("inputs").shape), '\0');
    file.read("inputs", h5::Type::u8, bytes);
    return bytes;
}

} // namespace

TEST_CASE("damaged files are imported whole or refused; nothing crashes or hangs") {
    test::ScratchDir const scratch;
    auto const inputs = test::fuzz_inputs(160);
    auto const seed = test::fuzz_seed();
    auto const all = subjects(scratch);
    for (auto i = test::setting("LOCKSTEP_FUZZ_FIRST", 0); i < inputs; ++i) {
        auto const& subject = all[i % all.size()];
        bool const good = i < all.size(); // the undamaged file comes first
        auto const bytes =
            good ? subject.good : test::damaged(subject.good, mixed(seed ^ mixed(i)));
        write(scratch / "source", bytes);
        auto const out = scratch / "out.h5";
        auto const outcome = test::outcome_of([&] {
            auto const source = subject.open(scratch / "source");
            auto const found = whole(out, *source);
            return subject.expected.empty() || inputs_of(out) == subject.expected ? found
                                                                                  : Outcome::wrong;
        });
        CAPTURE(seed, i, subject.name, outcome);
        bool const has_content = i % all.size() < 5; // of others, what is listed is no picture
        CHECK((outcome == static_cast<int>(Outcome::refused) ||
               outcome == static_cast<int>(Outcome::right)));
        CHECK((!good || !has_content || outcome == static_cast<int>(Outcome::right)));
        std::filesystem::remove_all(scratch / "out.h5");
        std::filesystem::remove_all(scratch / "out.h5.importing");
    }
}
