# The program with its man page (made of its --help), desktop entry and icon.
install(TARGETS zerolab-gui RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${CMAKE_CURRENT_LIST_DIR}/zerolab.desktop DESTINATION ${CMAKE_INSTALL_DATADIR}/applications)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/zerolab.svg DESTINATION ${CMAKE_INSTALL_DATADIR}/icons/hicolor/scalable/apps)

find_package(Python3 QUIET COMPONENTS Interpreter)
if(NOT Python3_FOUND OR ZEROLAB_SANITIZE)
  return()
endif()
set(describe ${PROJECT_SOURCE_DIR}/scenarios/cli/package/describe)
set(page ${CMAKE_CURRENT_BINARY_DIR}/zerolab-gui.1)
add_custom_command(OUTPUT ${page} DEPENDS zerolab-gui ${describe} VERBATIM
                   COMMAND ${Python3_EXECUTABLE} ${describe} ${CMAKE_CURRENT_BINARY_DIR} $<TARGET_FILE:zerolab-gui>
                           ${PROJECT_VERSION} --gui)
add_custom_target(zl_gui_page ALL DEPENDS ${page})
install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
