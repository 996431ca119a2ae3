#include "base/file.hpp"
#include "base/file_kind.hpp"

#include <utility>
#include <vector>

#include "catch.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace std::string_literals;

namespace {

/// A little-endian number of so many bytes.
std::string number(std::size_t value, std::size_t bytes) {
    std::string text;
    for (std::size_t i = 0; i < bytes; ++i) {
        text += static_cast<char>(value >> (8 * i) & 0xff);
    }
    return text;
}

/// A ZIP archive as far as its list of contents and its end say what it is; `records` come first.
/// `in_64`: with an end in 64 bits before the usual one, whose numbers then say nothing: some
/// writers leave them out.
std::string archive(std::vector<std::string> const& names, std::string const& records = "....",
                    bool in_64 = false) {
    auto const begin = "PK\3\4" + records;
    std::string list;
    for (auto const& name : names) {
        list += "PK\1\2" + std::string(24, '\0') + number(name.size(), 2) + std::string(16, '\0') +
                name;
    }
    std::string end;
    if (in_64) {
        end = "PK\6\6" + std::string(36, '\0') + number(list.size(), 8) + number(begin.size(), 8) +
              "PK\6\7" + std::string(16, '\0');
    }
    end += "PK\5\6" + std::string(8, '\0');
    end += in_64 ? std::string(8, '\xff') : number(list.size(), 4) + number(begin.size(), 4);
    return begin + list + end + number(0, 2);
}

std::string const cut_archive =
    "a ZIP archive that is cut off or damaged (a model of PyTorch, for example)";

} // namespace

TEST_CASE("a file is known by its bytes, not by its name") {
    test::ScratchDir const scratch;
    std::vector<std::pair<std::string, std::string>> const files{
        {"\x89PNG\r\n\x1a\n....", "a PNG image"},
        {"\xff\xd8\xff\xe0....", "a JPEG image"},
        {"RIFF....WAVEfmt ", "a WAV recording"},
        {"\x1f\x8b\x08....", "compressed with gzip"},
        {"\x93NUMPY\x01....", "a NumPy array"},
        {archive({"archive/data.pkl", "archive/constants.pkl"}), "a TorchScript module"},
        {archive({"archive/data.pkl"}), "a torch.save pickle"},
        {archive({"archive/data.pkl"}, std::string(300, 'x'), true), "a torch.save pickle"},
        {archive({"archive/archive_format", "archive/data.pkl"}), "a torch.export archive (PT2)"},
        {archive({"inputs.npy"}), "an archive of NumPy arrays"},
        {archive({"readme.txt"}), "a ZIP archive"},
        {archive({}, ""), "a ZIP archive"},
        {"PK\3\4....archive/data.pkl....", cut_archive},
        {"PK\3\4....archive/data.pkl....PK\5\6", cut_archive},
        {std::string(4096, 'x') + "LOCKSTEPSIGNED 1....", "a message of a federation"},
        {"\x80\x04\x95....", "a pickle"},
        {"\x08\x08\x12\x07pytorch\x1a\x05"
         "2.0.0",
         "an ONNX model"},
        {"\x08\x08\x12\x08lockstep:\x05....", "an ONNX model that this program exported"},
        {"\x02\0\0\0\0\0\0\0{}"s, "a safetensors file"},
        {"\x20\0\0\0\0\0\0\0{\"w\":"s, "a safetensors file that is cut off"},
        {"\0\0\x08\x01\0\0\0\x02\1\2"s, "an IDX file"},
        {"CDF\1....", "netCDF-3, which is not HDF5"},
        {"a,b\n1,2\n", "a text table (CSV)"},
        {"[run]\nname = a\n", "a text file"},
        {"# A deck, for one: this.\n[run]\n", "a text file"},
        {"{\"event\": 1}\n", "a JSON file"},
        {"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer, not the file itself"},
        {std::string(5000, '\0'), "a file that begins with nothing but zero bytes"},
        {"", "empty"},
        {"\x89HDF\r\n\x1a\n....", ""},
        {std::string(2048, 'x') + "\x89HDF\r\n\x1a\n....", ""},
        {"\x01\x02\x03\x04\x05\x06\x07\x08\x09", ""},
    };
    auto const path = scratch / "file.h5";
    for (auto const& [bytes, name] : files) {
        write_text_durably(path, bytes);
        CHECK(kind_of_file(path).name == name);
    }
    CHECK(kind_of_file(scratch / "none").name.empty());
    CHECK(kind_of_file(scratch.path()).name.empty());
    CHECK(kind_of_file("/dev/zero").name.empty());
}

TEST_CASE("an archive that is cut off is not called what it holds") {
    test::ScratchDir const scratch;
    auto const path = scratch / "model.pt2";
    for (bool const in_64 : {false, true}) {
        auto const inputs = archive({"archive/data.pkl"}, "....", in_64);
        auto const whole =
            archive({"model/archive_format", "model/inputs.pt"}, inputs + "more", in_64);
        write_text_durably(path, whole);
        CHECK(kind_of_file(path).name == "a torch.export archive (PT2)");
        CHECK_FALSE(kind_of_file(path).is_cut);
        auto const end_of_inputs = whole.find("more"); // where it ends as an archive does
        for (std::size_t const length : {whole.size() - 1, whole.size() - 30, end_of_inputs}) {
            CAPTURE(in_64, length);
            write_text_durably(path, whole.substr(0, length));
            CHECK(kind_of_file(path).name == cut_archive);
            CHECK(kind_of_file(path).is_cut);
        }
    }
}

TEST_CASE("what a file is comes with what makes something of it") {
    test::ScratchDir const scratch;
    auto const path = scratch / "model.pt";
    write_text_durably(path, archive({"archive/data.pkl"}));
    auto const kind = kind_of_file(path);
    CHECK_THAT(kind.weights, Catch::Contains("torch.load('" + path.string() + "'"));
    CHECK_THAT(kind.script, Catch::Contains("torch.jit.script(model).save(FILE)"));
    CHECK_THAT(kind.data, Catch::Contains("h5py"));
}
