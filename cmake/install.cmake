# What `cmake --install` writes: the headers, and the package that find_package(octet) finds.
# SPDX-License-Identifier: MIT
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/octet-config-version.cmake COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/octet DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS octet EXPORT octet)
install(EXPORT octet NAMESPACE octet:: FILE octet-config.cmake DESTINATION ${CMAKE_INSTALL_DATADIR}/cmake/octet)
install(FILES ${PROJECT_BINARY_DIR}/octet-config-version.cmake DESTINATION ${CMAKE_INSTALL_DATADIR}/cmake/octet)
