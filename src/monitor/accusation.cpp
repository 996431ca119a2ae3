#include "accusation.hpp"

#include "base/text.hpp"

namespace lockstep::monitor {

ErrorText Accusation::text() const {
    switch (why) {
    case Why::gone:
        return {"its process is gone",
                "it was killed or crashed, or the launcher's daemon on its host died, which ends "
                "all ranks there",
                "Look at that host, and at the last lines that this rank has printed"};
    case Why::daemon:
        return {"the launcher's daemon on its host has ended",
                "it was killed or has crashed, and the ranks of that host end with it",
                "Look at that host"};
    case Why::session:
        return {"the session in which the launcher has started its host's ranks has ended",
                "ssh, or the launcher's daemon on that host, was killed or has lost its "
                "connection, and the launcher ends all ranks",
                "Look at that host and at its network"};
    case Why::alone:
        return {"its host has lost contact with all other hosts",
                "this host is cut off from the network", "Look at this host's network"};
    case Why::stopped:
    case Why::silent:
    case Why::nothing:
        break;
    }
    return {concat("its host has sent nothing for ", fixed(silence_s, 0), " s"),
            why == Why::stopped
                ? "the host can be reached, but all its ranks are stopped or get no processor time"
                : "that host is cut off from the network or switched off, or all its ranks are "
                  "stopped",
            "Look at that host and at its network"};
}

} // namespace lockstep::monitor
