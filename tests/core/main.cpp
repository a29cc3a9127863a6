// Catch2's main alone: it takes longer to compile than all tests together.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
