#pragma once

#include "lockstep/base/error.hpp"

#include <string>

#include "catch.hpp"

namespace lockstep::test {

/// The error that `work` throws; a test that throws none of ours fails here.
template <class Work>
Error error_of(Work const& work) {
    try {
        work();
    } catch (Error const& error) {
        return error;
    }
    FAIL("no error was thrown");
    throw std::logic_error("not reached");
}

/// The exit code of what `work` throws; ok where that is nothing.
template <class Work>
ExitCode code_of(Work const& work) {
    try {
        work();
    } catch (Error const& error) {
        return error.code();
    }
    return ExitCode::ok;
}

inline bool says(Error const& error, std::string const& part) {
    return std::string(error.what()).find(part) != std::string::npos;
}

} // namespace lockstep::test
