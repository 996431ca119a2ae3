#include "app/command.hpp"
#include "base/arguments.hpp"
#include "base/text.hpp"
#include "data/inspect.hpp"

#include <iostream>

namespace lockstep::app {

namespace {

/// Files and the names of what is in them.
std::vector<data::DatasetOptions> named_files(std::vector<std::string> arguments,
                                              std::string const& action) {
    auto const inputs = take_option(arguments, "--inputs", "inputs");
    auto const targets = take_option(arguments, "--targets", "targets");
    bool const sample_per_file = take_flag(arguments, "--sample-per-file");
    expect_arguments(arguments, 1, 100000, concat("lockstep data ", action, " FILE..."));
    std::vector<data::DatasetOptions> files;
    files.reserve(arguments.size());
    for (auto const& file : arguments) {
        files.push_back({.files = file,
                         .inputs = inputs,
                         .targets = targets,
                         .sample_per_file = sample_per_file});
    }
    return files;
}

void print(data::DataInfo const& info) {
    std::cout << info.path.string() << ": " << bytes_text(info.bytes) << ", "
              << (info.ours ? "a Lockstep data set" : "written by others")
              << (info.checksums ? ", with checksums" : ", without checksums") << "\n  "
              << count_text(info.samples) << " samples\n";
    for (std::size_t f = 0; f < info.fields.size(); ++f) {
        auto const& field = info.fields[f];
        std::cout << "  " << field.name << ": [" << (field.ragged ? "any number of, " : "");
        for (std::size_t i = 0; i < field.shape.size(); ++i) {
            std::cout << (i == 0 ? "" : ", ") << field.shape[i];
        }
        std::cout << "] " << h5::name_of(field.type) << (info.places[f].empty() ? "" : ", ")
                  << info.places[f] << "\n";
    }
    for (std::size_t i = 0; i < info.mean.size(); ++i) {
        std::cout << "  mean " << fixed(info.mean[i], 4) << ", standard deviation "
                  << fixed(info.std[i], 4) << "\n";
    }
    for (std::size_t i = 0; i < info.class_names.size(); ++i) {
        std::cout << "  class " << i << " " << info.class_names[i];
        if (i < info.class_counts.size()) {
            std::cout << ": " << count_text(info.class_counts[i]);
        }
        std::cout << "\n";
    }
}

/// Whether all is well: the checksums of the file, or of those that it leads to, and every sample.
bool verify(data::DatasetOptions const& options) {
    bool checksums = false;
    bool damaged = false;
    for (auto const& path : data::files_of(options)) {
        if (path != options.files) {
            std::cout << options.files << ": with samples in " << path.string() << "\n";
        }
        if (!data::has_checksums(path)) {
            continue;
        }
        checksums = true;
        if (auto const added = data::datasets_added_to(path); !added.empty()) {
            std::cout << path.string() << ": " << joined(added, ", ")
                      << " added since the import, without checksums\n";
        }
        for (auto const& block : data::verify(path)) {
            std::cout << path.string() << ": " << block.dataset << " has changed in bytes "
                      << block.first_byte << " to " << block.last_byte << "\n";
            damaged = true;
        }
    }
    if (!damaged) {
        for (auto const& warning : data::warnings_of(options)) {
            std::cout << warning << "\n";
        }
    }
    auto const odd = damaged ? std::vector<data::NotFinite>{} : data::look_through(options);
    for (auto const& field : odd) {
        std::cout << options.files << ": " << count_text(field.count) << " values of "
                  << field.dataset << " are not finite, in " << count_text(field.samples)
                  << " samples; the first is sample " << field.first << "\n";
    }
    std::cout << options.files
              << (damaged        ? ": damaged\n"
                  : !odd.empty() ? ": not fit for training\n"
                  : checksums    ? ": every checksum is right\n"
                                 : ": every sample can be read; it has no checksums\n");
    return !damaged && odd.empty();
}

} // namespace

ExitCode data_info_command(std::vector<std::string> const& arguments) {
    for (auto const& file : named_files(arguments, "info")) {
        print(data::describe(file));
    }
    return ExitCode::ok;
}

ExitCode data_verify_command(std::vector<std::string> const& arguments) {
    bool whole = true;
    for (auto const& file : named_files(arguments, "verify")) {
        whole = verify(file) && whole;
    }
    return whole ? ExitCode::ok : ExitCode::data;
}

} // namespace lockstep::app
