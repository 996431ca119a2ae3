#include "base/file_kind.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "base/zip_directory.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace lockstep {

namespace {

constexpr std::size_t head_bytes = 16 << 10;
constexpr std::size_t list_bytes = 64 << 20; ///< of an archive's list of contents, at most

constexpr std::string_view separators{",;\t"};

constexpr char const* of_images =
    "Make a data set from a directory of PNG or JPEG images: lockstep "
    "data import images DIRECTORY OUT.h5";
constexpr char const* of_sounds =
    "Make a data set of recordings: lockstep data import speech DIRECTORY OUT.h5";
constexpr char const* of_films =
    "Make a data set of videos: lockstep data import video DIRECTORY OUT.h5";
constexpr char const* of_federation =
    "Name a model of the federation: a file global/round-….h5 in the federation's directory. To "
    "list the federation's messages, run lockstep federate info DIRECTORY";
constexpr char const* to_utf8 = "Convert it to UTF-8: iconv -f UTF-16 -t UTF-8 FILE >NEW";
constexpr char const* a_model =
    "This file holds a model instead of samples. Set model.weights to this file";

/// What the first bytes tell.
struct Magic {
    std::size_t at;
    std::string_view bytes;
    char const* name;
    char const* data;
};

using namespace std::string_view_literals;

constexpr std::array magics{
    Magic{0, "\x89PNG\r\n\x1a\n"sv, "a PNG image", of_images},
    Magic{0, "\xff\xd8\xff"sv, "a JPEG image", of_images},
    Magic{0, "GIF8"sv, "a GIF image", of_images},
    Magic{0, "II*\0"sv, "a TIFF image", of_images},
    Magic{0, "MM\0*"sv, "a TIFF image", of_images},
    Magic{8, "WEBP"sv, "a WebP image", of_images},
    Magic{8, "WAVE"sv, "a WAV recording", of_sounds},
    Magic{0, "fLaC"sv, "a FLAC recording", of_sounds},
    Magic{0, "OggS"sv, "an Ogg recording", of_sounds},
    Magic{0, "ID3"sv, "an MP3 recording", of_sounds},
    Magic{8, "AVI "sv, "an AVI video", of_films},
    Magic{4, "ftyp"sv, "an MP4 video", of_films},
    Magic{0, "\x1a\x45\xdf\xa3"sv, "a Matroska video", of_films},
    Magic{0, "\x1f\x8b"sv, "compressed with gzip", "Unpack it: gunzip -k FILE"},
    Magic{0, "BZh"sv, "compressed with bzip2", "Unpack it: bunzip2 -k FILE"},
    Magic{0,
          "\xfd"
          "7zXZ\0"sv,
          "compressed with xz", "Unpack it: unxz -k FILE"},
    Magic{0, "\x28\xb5\x2f\xfd"sv, "compressed with zstd", "Unpack it: unzstd FILE"},
    Magic{0, "7z\xbc\xaf\x27\x1c"sv, "a 7-Zip archive", "Unpack it: 7z x FILE"},
    Magic{257, "ustar"sv, "a tar archive", "Unpack it: tar xf FILE"},
    Magic{0, "\x93NUMPY"sv, "a NumPy array",
          "Convert arrays to HDF5: python3 -c \"import h5py, numpy; h5py.File('OUT.h5', "
          "'a')['inputs'] = numpy.load('FILE')\", then run the same command with ['targets'] for "
          "the targets"},
    Magic{0, "PAR1"sv, "a Parquet table",
          "Convert it to CSV, then make a data set of it: lockstep data import series TABLE.csv "
          "OUT.h5"},
    Magic{0, "ARROW1"sv, "an Arrow table",
          "Convert it to CSV, then make a data set of it: lockstep data import series TABLE.csv "
          "OUT.h5"},
    Magic{0, "CDF\1"sv, "netCDF-3, which is not HDF5", "Convert it: nccopy -k nc4 FILE NEW.nc"},
    Magic{0, "CDF\2"sv, "netCDF-3, which is not HDF5", "Convert it: nccopy -k nc4 FILE NEW.nc"},
    Magic{0, "CDF\5"sv, "netCDF-3, which is not HDF5", "Convert it: nccopy -k nc4 FILE NEW.nc"},
    Magic{0, "%PDF"sv, "a PDF document", ""},
    Magic{0,
          "\x7f"
          "ELF"sv,
          "a program or a library", ""},
    Magic{0, "version https://git-lfs"sv, "a Git LFS pointer, not the file itself",
          "Fetch the file: git lfs pull"},
    Magic{0, "\xff\xfe"sv, "in UTF-16", to_utf8},
    Magic{0, "\xfe\xff"sv, "in UTF-16", to_utf8},
    Magic{0, "<!DOCTYPE html"sv, "a web page", "Download the file itself"},
    Magic{0, "<!doctype html"sv, "a web page", "Download the file itself"},
    Magic{0, "<html"sv, "a web page", "Download the file itself"},
};

std::string read_part(File const& file, std::uint64_t at, std::size_t bytes) {
    std::string part(bytes, '\0');
    file.read_at(at, std::as_writable_bytes(std::span(part)));
    return part;
}

std::string head_of(File const& file) {
    return read_part(file, 0, std::min<std::uint64_t>(file.size(), head_bytes));
}

bool has(std::string_view text, std::size_t at, std::string_view part) {
    return text.size() >= at + part.size() && text.substr(at, part.size()) == part;
}

/// A header, of ours for one, may precede what marks it.
bool holds_hdf5(std::string_view head) {
    for (std::size_t at = 0; at < head_bytes; at = at == 0 ? 512 : 2 * at) {
        if (has(head, at, "\x89HDF\r\n\x1a\n"sv)) {
            return true;
        }
    }
    return false;
}

std::string python(std::string const& imports, std::string const& tensors) {
    return concat("Name a checkpoint or a best.h5; for model.weights, convert the file: python3 -c "
                  "\"import ",
                  imports,
                  "; from safetensors.torch import save_file; save_file({n: t.contiguous() for n, "
                  "t in ",
                  tensors, ".items()}, 'OUT.safetensors')\"");
}

constexpr char const* save_script =
    "Save the model from which it was made, with torch.jit.script(model).save(FILE)";
constexpr char const* only_weights = "This file holds weights without the code of the model. Save "
                                     "the model itself, with torch.jit.script(model).save(FILE)";

FileKind pickled(std::string const& name) {
    return {name,
            "Load it in Python, and write its arrays with h5py as two datasets, inputs and targets",
            python("torch", "torch.load('FILE', map_location='cpu', weights_only=True)"),
            only_weights};
}

FileKind cut_off(std::string const& name) {
    constexpr char const* again = "Copy the file again from its source";
    return {name, again, again, again, true};
}

/// The first part of a ZIP archive's list of contents, if the archive is whole.
std::optional<std::string> contents_of_archive(File const& file) {
    auto const looked_at = std::min(file.size(), zip_end_bytes);
    auto const tail = read_part(file, file.size() - looked_at, looked_at);
    auto const directory = zip_directory(tail, file.size());
    if (!directory) {
        return std::nullopt;
    }
    return read_part(file, directory->begin, std::min<std::uint64_t>(directory->size, list_bytes));
}

FileKind archive(std::string_view names) {
    auto const holds = [&](char const* name) { return names.find(name) != std::string_view::npos; };
    if (holds("archive_format") || holds("serialized_exported_program.json") ||
        holds("models/model.json")) {
        return {"a torch.export archive (PT2)",
                "This file holds a model instead of samples. Set model.file to this file, and "
                "model.name = export",
                python("torch", "torch.export.load('FILE').state_dict"), "Set model.name = export"};
    }
    if (holds("constants.pkl")) {
        return {"a TorchScript module",
                "This file holds a model instead of samples. Set model.file to this file, and "
                "model.name = script",
                python("torch", "torch.jit.load('FILE', 'cpu').state_dict()"), ""};
    }
    if (holds("data.pkl")) {
        return pickled("a torch.save pickle");
    }
    if (holds("xl/workbook.xml")) {
        return {"an Excel workbook",
                "Save it as CSV, then make a data set of it: lockstep data import series TABLE.csv "
                "OUT.h5",
                "", ""};
    }
    if (holds(".npy")) {
        return {"an archive of NumPy arrays",
                "Convert them to HDF5: python3 -c \"import h5py, numpy; f = h5py.File('OUT.h5', "
                "'w'); a = numpy.load('FILE'); f['inputs'] = a['NAME']; f['targets'] = "
                "a['NAME']\"",
                "", ""};
    }
    return {"a ZIP archive", "Unpack it: unzip FILE", "", ""};
}

/// A protobuf message that begins with ONNX's ir_version, and continues with a field of its own.
bool is_onnx(std::string_view head) {
    constexpr std::string_view next{"\x12\x1a\x22\x28\x32\x3a\x42\x72"};
    return head.size() > 16 && head[0] == 8 && head[1] > 0 && head[1] < 32 &&
           next.find(head[2]) != std::string_view::npos;
}

FileKind of_onnx(std::string_view head) {
    constexpr char const* data = "This file holds a model instead of samples. Name a data set";
    if (head.substr(0, 16).find("lockstep") != std::string_view::npos) { // its producer
        return {"an ONNX model that this program exported", data,
                "Name the checkpoint or best.h5 that it was exported from, because the weights in "
                "an ONNX file have other names and shapes",
                save_script};
    }
    return {"an ONNX model", data,
            "Name a checkpoint or a best.h5; for model.weights, convert the file: python3 -c "
            "\"import onnx, onnx.numpy_helper as h; from "
            "safetensors.numpy import save_file; save_file({i.name: h.to_array(i) for i in "
            "onnx.load('FILE').graph.initializer}, 'OUT.safetensors')\"",
            save_script};
}

/// The length of a safetensors file's header; 0 where there is none.
std::uint64_t safetensors_header(std::string_view head) {
    constexpr std::uint64_t max = 100'000'000; // the format's own limit
    std::uint64_t length = 0;
    if (head.size() < 10) {
        return 0;
    }
    std::memcpy(&length, head.data(), sizeof length);
    return length >= 2 && length <= max && head[8] == '{' ? length : 0;
}

/// 0, 0, a type, a number of dimensions.
bool is_idx(std::string_view head) {
    return head.size() >= 8 && has(head, 0, "\0\0"sv) && head[2] >= 8 && head[2] <= 14 &&
           head[3] >= 1 && head[3] <= 4;
}

bool is_text(std::string_view head) {
    return std::none_of(head.begin(), head.end(), [](char letter) {
        auto const code = static_cast<unsigned char>(letter);
        return code < 0x20 && letter != '\n' && letter != '\r' && letter != '\t';
    });
}

/// Whether two lines have as many commas, semicolons or tabs.
bool is_table(std::string_view head) {
    auto const end = head.find('\n');
    if (end == std::string_view::npos || head.front() == '#') {
        return false;
    }
    auto const first = head.substr(0, end);
    auto const second = head.substr(end + 1, head.find('\n', end + 1) - end - 1);
    return std::any_of(separators.begin(), separators.end(), [&](char separator) {
        auto const count = std::count(first.begin(), first.end(), separator);
        return count > 0 && count == std::count(second.begin(), second.end(), separator);
    });
}

FileKind of_text(std::string_view head) {
    if (has(head, 0, "{")) {
        return {"a JSON file", "", "", ""};
    }
    if (is_table(head)) {
        return {"a text table (CSV)",
                "Make a data set of it: lockstep data import series FILE OUT.h5", "", ""};
    }
    return {"a text file", "", "", ""};
}

FileKind recognised(File const& file) {
    auto const size = file.size();
    if (size == 0) {
        return {"empty", "", "", ""};
    }
    auto const head = head_of(file);
    if (has(head, 4096, "LOCKSTEPSIGNED"sv)) { // behind its checksums, and before HDF5's own
        return {"a message of a federation", "It holds no samples: name a data set", of_federation,
                of_federation};
    }
    if (holds_hdf5(head)) {
        return {};
    }
    if (has(head, 0, "PK\3\4"sv) || has(head, 0, "PK\5\6"sv)) {
        auto const contents = contents_of_archive(file);
        return contents ? archive(*contents)
                        : cut_off("a ZIP archive that is cut off or damaged (a model of PyTorch, "
                                  "for example)");
    }
    for (auto const& magic : magics) {
        if (has(head, magic.at, magic.bytes)) {
            return {magic.name, magic.data, "", ""};
        }
    }
    auto const header = safetensors_header(head);
    if (header > size - sizeof header) {
        return cut_off("a safetensors file that is cut off");
    }
    if (header > 0) {
        return {"a safetensors file", a_model, "Set model.weights to it", only_weights};
    }
    if (head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5) {
        return pickled("a pickle");
    }
    if (is_onnx(head)) {
        return of_onnx(head);
    }
    if (is_idx(head)) {
        return {"an IDX file",
                "Make a data set of it: lockstep data import idx IMAGES,LABELS OUT.h5", "", ""};
    }
    if (std::all_of(head.begin(), head.end(), [](char letter) { return letter == 0; })) {
        return {"a file that begins with nothing but zero bytes",
                "The contents of the file were never written. Copy the file again from its source",
                "", ""};
    }
    return is_text(head) ? of_text(head) : FileKind();
}

std::string with_path(std::string text, std::string const& path) {
    constexpr std::string_view place = "FILE";
    for (auto at = text.find(place); at != std::string::npos; at = text.find(place, at)) {
        text.replace(at, place.size(), path);
        at += path.size();
    }
    return text;
}

} // namespace

FileKind kind_of_file(std::filesystem::path const& path) {
    try {
        auto kind = recognised(File::open_read(path));
        for (auto* text : {&kind.data, &kind.weights}) {
            *text = with_path(*text, path.string());
        }
        return kind;
    } catch (Error const&) {
        return {};
    }
}

bool begins_as_safetensors(File const& file) {
    return safetensors_header(head_of(file)) > 0;
}

bool is_hdf5(std::filesystem::path const& path) {
    try {
        return holds_hdf5(head_of(File::open_read(path)));
    } catch (Error const&) {
        return false;
    }
}

} // namespace lockstep
