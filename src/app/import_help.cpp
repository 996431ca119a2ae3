#include "app/command.hpp"

#include <algorithm>

#include "import_options.hpp"

namespace lockstep::app {

std::string data_import_help(HelpWords const& words) {
    ImportTold told;
    auto kinds = import_kinds(told);
    auto const one = std::ranges::find_if(
        kinds, [&](auto const& kind) { return !words.empty() && kind.name == words.front(); });
    bool const all = one == kinds.end();
    if (!all) {
        kinds = {*one};
    }
    auto text = "[mpirun -n RANKS] lockstep data import " + (all ? "KIND" : kinds[0].name) +
                " SOURCE OUT [OPTION]...\n\n" + (all ? "KIND\n" : "");
    for (auto const& kind : kinds) {
        auto head = "  " + kind.name;
        head.resize(10, ' ');
        text += paragraph(head, "SOURCE: " + kind.source, 10) + option_lines(kind.rows, 12);
    }
    text += R"(
OUT is a file or, where there are several sets, a directory. A name with a comma in a list is
written in double quotes, a quote in it twice: --classes 'cat,"dog, wolf"'.

Options of every kind
)";
    text += option_lines(import_options(told, {}).rows, 2);
    return text + "\nAn interrupted import resumes where it was when it is given the same again.\n";
}

} // namespace lockstep::app
