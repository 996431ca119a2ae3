#include "base/file.hpp"
#include "base/file_kind.hpp"

#include <utility>
#include <vector>

#include "catch.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace std::string_literals;

TEST_CASE("a file is known by its bytes, not by its name") {
    test::ScratchDir const scratch;
    std::vector<std::pair<std::string, std::string>> const files{
        {"\x89PNG\r\n\x1a\n....", "a PNG image"},
        {"\xff\xd8\xff\xe0....", "a JPEG image"},
        {"RIFF....WAVEfmt ", "a WAV recording"},
        {"\x1f\x8b\x08....", "compressed with gzip"},
        {"\x93NUMPY\x01....", "a NumPy array"},
        {"PK\3\4....archive/data.pkl....archive/constants.pklPK\5\6", "a TorchScript module"},
        {"PK\3\4....archive/data.pkl....PK\5\6", "a torch.save pickle"},
        {"PK\3\4....archive/archive_format....archive/data.pklPK\5\6",
         "a torch.export archive (PT2)"},
        {"PK\3\4....inputs.npy....PK\5\6", "an archive of NumPy arrays"},
        {"PK\3\4....readme.txt....PK\5\6", "a ZIP archive"},
        {"PK\3\4....archive/data.pkl....",
         "a ZIP archive that is cut off or damaged (a model of PyTorch, for example)"},
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

TEST_CASE("what a file is comes with what makes something of it") {
    test::ScratchDir const scratch;
    auto const path = scratch / "model.pt";
    write_text_durably(path, "PK\3\4....archive/data.pkl....PK\5\6");
    auto const kind = kind_of_file(path);
    CHECK_THAT(kind.weights, Catch::Contains("torch.load('" + path.string() + "'"));
    CHECK_THAT(kind.script, Catch::Contains("torch.jit.script(model).save(FILE)"));
    CHECK_THAT(kind.data, Catch::Contains("h5py"));
}
