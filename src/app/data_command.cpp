#include "lockstep/base/text.hpp"
#include "lockstep/data/inspect.hpp"

#include <iostream>

#include "command.hpp"

namespace lockstep::app {

namespace {

constexpr char const* help =
    R"(lockstep data import idx|images|video|speech|series|hdf5 SOURCE OUT [options]
    Makes data sets; lockstep data import --help says more.
lockstep data info FILE...
    What is in it.
lockstep data verify FILE...
    Recomputes all checksums; exit 65 when a block has changed.
)";

void print(data::DataInfo const& info) {
    std::cout << info.path.string() << ": " << bytes_text(info.bytes) << ", "
              << (info.ours ? "a Lockstep data set" : "written by others")
              << (info.checksums ? ", with checksums" : ", without checksums") << "\n  "
              << count_text(info.samples) << " samples of [";
    for (std::size_t i = 0; i < info.sample_shape.size(); ++i) {
        std::cout << (i == 0 ? "" : ", ") << info.sample_shape[i];
    }
    std::cout << "] " << h5::name_of(info.input_type) << "\n";
    for (std::size_t i = 0; i < info.mean.size(); ++i) {
        std::cout << "  mean " << fixed(info.mean[i], 4) << ", standard deviation "
                  << fixed(info.std[i], 4) << "\n";
    }
    for (std::size_t i = 0; i < info.class_names.size(); ++i) {
        std::cout << "  class " << i << " " << info.class_names[i] << ": "
                  << count_text(info.class_counts[i]) << "\n";
    }
}

ExitCode verify_files(std::vector<std::string> const& files) {
    bool whole = true;
    for (auto const& file : files) {
        auto const damage = data::verify(file);
        for (auto const& block : damage) {
            std::cout << file << ": " << block.dataset << " has changed in bytes "
                      << block.first_byte << " to " << block.last_byte << "\n";
        }
        std::cout << file << (damage.empty() ? ": every checksum is right\n" : ": damaged\n");
        whole = whole && damage.empty();
    }
    return whole ? ExitCode::ok : ExitCode::data;
}

} // namespace

ExitCode data_command(Invocation const& invocation) {
    auto arguments = invocation.arguments;
    if (!arguments.empty() && arguments.front() == "import") {
        return data_import_command(
            {{arguments.begin() + 1, arguments.end()}, invocation.argc, invocation.argv});
    }
    if (arguments.empty() || take_flag(arguments, "--help")) {
        std::cout << help;
        return invocation.arguments.empty() ? ExitCode::usage : ExitCode::ok;
    }
    auto const action = arguments.front();
    arguments.erase(arguments.begin());
    if (action == "info" || action == "verify") {
        expect_arguments(arguments, 1, 100000, concat("lockstep data ", action, " FILE..."));
        if (action == "verify") {
            return verify_files(arguments);
        }
        for (auto const& file : arguments) {
            print(data::describe(file));
        }
        return ExitCode::ok;
    }
    throw Error(ExitCode::usage, {concat("lockstep data ", action),
                                  "there are import, info and verify", "See lockstep data --help"});
}

} // namespace lockstep::app
