# What `cmake --install` puts where. The tree stands on its own: it needs neither deps/ nor the build folder,
# and can be moved, because everything in it is found from where the program or the library lies.
#
#   bin/dcrl                 the program
#   lib/libdcrl.so           the library; include/dcrl/ its headers
#   lib/dcrl/                libmujoco, ours alone
#   lib/cmake/dcrl/, lib/pkgconfig/dcrl.pc   for find_package(dcrl) and pkg-config
#   share/dcrl/ogbench/      the robots' descriptions (src/base/install.c looks here)
#   share/dcrl/experts/      trained experts of walking robots, for dcrl gen
#   share/man/, share/bash-completion/, share/zsh/, share/fish/   man page and completion
#   share/doc/dcrl/          licences of all that is copied, the API's tour, the example
include(CMakePackageConfigHelpers)
set(CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/dcrl)
set(DOC_DIR share/doc/dcrl)

install(TARGETS dcrl)
install(TARGETS dcrl_shared EXPORT dcrlTargets INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/dcrl DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(DIRECTORY configs/experts DESTINATION share/dcrl FILES_MATCHING PATTERN "*.safetensors")
install(FILES LICENSE docs/api.md DESTINATION ${DOC_DIR})
install(DIRECTORY examples DESTINATION ${DOC_DIR} PATTERN "build*" EXCLUDE)

# Completion and the man page, as the program writes them.
set(SHARE ${CMAKE_BINARY_DIR}/share)
set(TALK ${SHARE}/dcrl.bash ${SHARE}/_dcrl ${SHARE}/dcrl.fish ${SHARE}/dcrl.1)
add_custom_command(OUTPUT ${TALK}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${SHARE}
  COMMAND dcrl completion bash > ${SHARE}/dcrl.bash
  COMMAND dcrl completion zsh > ${SHARE}/_dcrl
  COMMAND dcrl completion fish > ${SHARE}/dcrl.fish
  COMMAND sh ${CMAKE_SOURCE_DIR}/tools/man.sh $<TARGET_FILE:dcrl> > ${SHARE}/dcrl.1
  DEPENDS dcrl tools/man.sh VERBATIM)
add_custom_target(talk ALL DEPENDS ${TALK})
install(FILES ${SHARE}/dcrl.bash DESTINATION share/bash-completion/completions RENAME dcrl)
install(FILES ${SHARE}/_dcrl DESTINATION share/zsh/site-functions)
install(FILES ${SHARE}/dcrl.fish DESTINATION share/fish/vendor_completions.d)
install(FILES ${SHARE}/dcrl.1 DESTINATION share/man/man1)

if(MUJOCO_LIB)
  install(PROGRAMS ${MUJOCO_LIB} DESTINATION ${CMAKE_INSTALL_LIBDIR}/dcrl)
  install(FILES ${DEPS}/mujoco/LICENSE DESTINATION ${DOC_DIR} RENAME LICENSE.mujoco)
  install(FILES ${DEPS}/mujoco/LICENSES_THIRD_PARTY.md DESTINATION ${DOC_DIR} RENAME LICENSES_THIRD_PARTY.mujoco.md)
  install(FILES ${DEPS}/ogbench/LICENSE DESTINATION ${DOC_DIR} RENAME LICENSE.ogbench)
  install(DIRECTORY ${DEPS}/ogbench DESTINATION share/dcrl)
  # One RUNPATH for the build folder and the installed tree. If they differed, CMake would end the first with ':', and
  # an empty element is the current folder: whatever library lies there would be loaded (tests/cli/test_runpath.py).
  file(COPY ${MUJOCO_LIB} DESTINATION ${CMAKE_BINARY_DIR}/lib/dcrl)
  file(RELATIVE_PATH up /x/${CMAKE_INSTALL_BINDIR} /x/${CMAKE_INSTALL_LIBDIR}/dcrl)
  set_target_properties(dcrl PROPERTIES INSTALL_RPATH "$ORIGIN/${up};$ORIGIN/lib/dcrl")
  set_target_properties(dcrl_shared PROPERTIES INSTALL_RPATH "$ORIGIN/dcrl;$ORIGIN/lib/dcrl")
  set_target_properties(dcrl dcrl_shared PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
endif()
if(WITH_CUDA) # the toolkit's libraries stay where they are
  set_target_properties(dcrl dcrl_shared PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
endif()

install(EXPORT dcrlTargets NAMESPACE dcrl:: DESTINATION ${CMAKE_DIR} FILE dcrlConfig.cmake)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/dcrlConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/dcrlConfigVersion.cmake DESTINATION ${CMAKE_DIR})

file(RELATIVE_PATH up /x/${CMAKE_INSTALL_LIBDIR}/pkgconfig /x)
configure_file(tools/dcrl.pc.in ${CMAKE_BINARY_DIR}/dcrl.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/dcrl.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
