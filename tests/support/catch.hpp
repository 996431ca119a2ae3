#pragma once

// LibTorch has a macro CHECK, too: read before, or a file that is compiled with this one brings it
// in.
#if __has_include(<c10/util/Logging.h>)
#include <c10/util/Logging.h>
#endif

// Catch2 as it is installed: version 2 (Debian 12) or 3.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
