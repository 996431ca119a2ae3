#include "base/text.hpp"

#include <algorithm>

#include "commands.hpp"
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
    auto text = paragraph("",
                          concat("[mpirun -n RANKS] lockstep data import ",
                                 all ? "KIND" : kinds[0].name, " SOURCE OUT [OPTION]..."),
                          8) +
                "\n" + (all ? "KIND\n" : "");
    std::size_t column = 10;
    for (auto const& kind : kinds) {
        column = std::max(column, kind.name.size() + 4);
    }
    for (auto const& kind : kinds) {
        auto head = "  " + kind.name;
        head.resize(column, ' ');
        text += paragraph(head, "SOURCE: " + kind.source, column) + option_lines(kind.rows, 12);
    }
    text += "\n" +
            paragraph("",
                      "OUT is a file or, if there are several sets, a directory. In a list, put a "
                      "name that contains a comma in double quotes, and double each double quote "
                      "inside the name: --classes 'cat,\"dog, wolf\"'.",
                      0) +
            "\nOptions of every kind\n";
    text += option_lines(import_options(told, {}).rows, 2);
    return text + "\nTo resume an interrupted import, run the same command again.\n";
}

} // namespace lockstep::app
