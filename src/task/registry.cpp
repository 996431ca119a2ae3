#include "lockstep/base/error.hpp"
#include "lockstep/base/text.hpp"
#include "lockstep/task/task.hpp"

#include "classification.hpp"

namespace lockstep::task {

std::vector<TaskKind> task_kinds() {
    return {classification_kind()};
}

std::unique_ptr<Task> make_task(config::Task const& chosen, std::int64_t classes) {
    std::vector<std::string> names;
    for (auto const& kind : task_kinds()) {
        names.push_back(kind.name);
        if (kind.name == chosen.kind) {
            return kind.make(config::OwnValues("task", chosen.own, kind.keys), classes);
        }
    }
    auto const near = nearest_name(chosen.kind, names);
    throw Error(ExitCode::usage,
                {concat("task.kind = ", chosen.kind), concat("there are ", joined(names, ", ")),
                 near.empty() ? std::string("lockstep tasks lists them with their keys")
                              : concat("Did you mean ", near, "?")});
}

} // namespace lockstep::task
