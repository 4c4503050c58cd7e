// How a program ends: its help, or one line on standard error that names what is wrong; exit code 0, 1 or 2 (usage), or the failure's own.
// SPDX-License-Identifier: MIT
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "failure.hpp"

namespace lab {

// Prints "program: message" on standard error, as one line without control characters, whatever the message holds.
inline int complain(const CLI::App& app, std::string message, int exit_code) {
  for (char& c : message)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7F') c = ' ';
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), message.c_str());
  return exit_code;
}

// Parses the command line and calls body(). The return value is main's.
template <class Body>
int run(CLI::App& app, int argc, char** argv, Body body) {
  try {
    app.parse(argc, argv);
    body();
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) throw failure("standard output: could not be written");
    return 0;
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return std::fflush(stdout) == 0 ? 0 : complain(app, "standard output: could not be written", 1);
  } catch (const CLI::ParseError& error) {
    return complain(app, std::string(error.what()) + " (see --help)", 2);
  } catch (const usage_error& error) {
    return complain(app, std::string(error.what()) + " (see --help)", 2);
  } catch (const failure& error) {
    return complain(app, error.what(), error.exit_code);
  } catch (const std::bad_alloc&) {
    return complain(app, "out of memory", 1);
  } catch (const std::exception& error) {
    return complain(app, error.what(), 1);
  }
}

}  // namespace lab
