# The program with its man page and the completions of three shells, which are made of its --help.
install(TARGETS zerolab RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

find_package(Python3 QUIET COMPONENTS Interpreter)
if(ZEROLAB_SANITIZE)
  return()
elseif(NOT Python3_FOUND)
  message(STATUS "zerolab: no man pages and completions: Python 3 not found (apt-get install python3)")
  return()
endif()
set(describe ${CMAKE_CURRENT_LIST_DIR}/describe)
set(pages ${CMAKE_CURRENT_BINARY_DIR})
set(outputs ${pages}/zerolab.1 ${pages}/zerolab.bash ${pages}/zerolab.fish ${pages}/_zerolab)
add_custom_command(OUTPUT ${outputs}
                   COMMAND ${Python3_EXECUTABLE} ${describe} ${pages} $<TARGET_FILE:zerolab> ${PROJECT_VERSION}
                   DEPENDS zerolab ${describe} VERBATIM)
add_custom_target(zl_cli_pages ALL DEPENDS ${outputs})
install(FILES ${pages}/zerolab.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${pages}/zerolab.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME zerolab)
install(FILES ${pages}/_zerolab DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${pages}/zerolab.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
