#pragma once

#include "base/table.hpp"
